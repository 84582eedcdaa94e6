//! Optional features of this build. Packages have all features; `make run` builds none. The crates `assay-columns` and
//! `assay-store` have the conditional code for Parquet and PostgreSQL.

/// Names of the features that this build has.
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

/// Returns the error of a command that needs a missing feature. `content` describes what the build lacks.
#[cfg(not(all(feature = "browse", feature = "schemas")))]
pub fn missing(feature: &str, content: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "this build of assay has no {content}: use a package, or build it with \
         `cargo build --release --package assay --features {feature}`"
    )
}
