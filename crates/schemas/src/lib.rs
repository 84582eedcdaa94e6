//! JSON schemas of the `--json` documents. All crates depend on this crate under the name `schemars`.
//!
//! With the feature `schemas`, this crate is schemars itself. Without the feature, `#[derive(JsonSchema)]` expands to
//! nothing. The reason is that the derived code was two thirds of the symbols in the library of `model`, and that only
//! `assay dev schemas` runs it.

#[cfg(feature = "schemas")]
pub use real::*;

#[cfg(not(feature = "schemas"))]
pub use assay_empty_derive::JsonSchema;

/// Declares the schema of a type with hand-written serialisation, from the type, its name and the schema.
#[cfg(feature = "schemas")]
#[macro_export]
macro_rules! declare_schema {
    ($type:ty, $name:literal, $schema:tt) => {
        impl $crate::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut $crate::SchemaGenerator) -> $crate::Schema {
                $crate::json_schema!($schema)
            }
        }
    };
}

/// Declares no schema, in a build without schemas.
#[cfg(not(feature = "schemas"))]
#[macro_export]
macro_rules! declare_schema {
    ($type:ty, $name:literal, $schema:tt) => {};
}
