//! JSON schemas of types with hand-written serialisation, for `assay dev schemas`. Other types derive their schema.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// Declares the schema of a type that is serialised as text.
macro_rules! text {
    ($type:ty, $name:literal, $says:literal) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $says })
            }
        }
    };
}

text!(
    crate::criterion::Metric,
    "Metric",
    "A figure, such as `p99` or `read.iops`."
);
text!(
    crate::criterion::Criterion,
    "Criterion",
    "What was declared as success, such as `randwrite-4k-qd1.p99 <= 20ms`."
);

/// Declares the schema of a number in the store.
macro_rules! number {
    ($type:ty, $name:literal) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": ["integer", "null"],
                    "description": "Number in the store; null when it was not stored.",
                })
            }
        }
    };
}

number!(crate::run::RunId, "RunId");
number!(crate::trial::TrialId, "TrialId");
