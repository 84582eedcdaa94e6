//! Optional features of this build. Packages have all, `make run` builds none. Parquet and PostgreSQL are left out at
//! the edge of their crates, `assay-columns` and `assay-store`.

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
#[cfg(not(all(feature = "browse", feature = "schemas")))]
pub fn missing(feature: &str, content: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "this build of assay has no {content}: use a package, or build it with \
         `cargo build --release --package assay --features {feature}`"
    )
}
