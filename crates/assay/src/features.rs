//! Optional features of this build.

/// Names of the features of this build.
pub const BUILT: &[&str] = &[
    #[cfg(feature = "browse")]
    "browse",
    #[cfg(feature = "parquet")]
    "parquet",
    #[cfg(feature = "postgres")]
    "postgres",
    #[cfg(feature = "schemas")]
    "schemas",
];

/// Returns the error of a command whose feature is not part of this build: `content` is what the build lacks.
#[cfg(not(feature = "schemas"))]
pub fn missing(feature: &str, content: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "this build of assay has no {content}: use a package, or build it with \
         `cargo build --release --package assay --features {feature}`"
    )
}
