//! JSON schemas of types with hand-written serialisation, for `assay dev schemas`. The schemas of all other types are
//! derived.

use schemars::declare_schema;

declare_schema!(crate::criterion::Metric, "Metric", {
    "type": "string",
    "description": "A figure, such as `p99` or `read.iops`.",
});
declare_schema!(crate::criterion::Criterion, "Criterion", {
    "type": "string",
    "description": "What was declared as success, such as `randwrite-4k-qd1.p99 <= 20ms`.",
});
declare_schema!(crate::run::RunId, "RunId", {
    "type": ["integer", "null"],
    "description": "Number in the store; null when it was not stored.",
});
declare_schema!(crate::trial::TrialId, "TrialId", {
    "type": ["integer", "null"],
    "description": "Number in the store; null when it was not stored.",
});
