//! The built-in plans, which are the files in `plans/` at the root of the repository.

use super::PlanSpec;

/// Name and text of each built-in plan, in the order in which assay lists them.
pub const BUILTIN: [(&str, &str); 9] = [
    ("quick", include_str!("../../../../plans/quick.toml")),
    ("matrix", include_str!("../../../../plans/matrix.toml")),
    ("sync", include_str!("../../../../plans/sync.toml")),
    ("device", include_str!("../../../../plans/device.toml")),
    ("web", include_str!("../../../../plans/web.toml")),
    ("database", include_str!("../../../../plans/database.toml")),
    ("log", include_str!("../../../../plans/log.toml")),
    (
        "throughput",
        include_str!("../../../../plans/throughput.toml"),
    ),
    ("http", include_str!("../../../../plans/http.toml")),
];

/// Returns the built-in plan with this name.
#[must_use]
pub fn builtin_plan(name: &str) -> Option<PlanSpec> {
    let (_, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    PlanSpec::from_toml(text, name).ok()
}
