//! `assay version`: prints the version and its built-in features, for bug reports and scripts.

use crate::context::{print, wrap};
use crate::status::Status;
use assay_model::SCHEMA_VERSION;

/// Print the version and the built-in features
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay version
  assay version --json | jq -r .version

Exit status: 0.")]
pub struct Args {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Document of `assay version`: version and features of the program.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Document {
    /// Schema version of the `--json` documents.
    schema: u32,
    version: &'static str,
    architecture: &'static str,
    /// How the program is linked: `static` or `dynamic`.
    linked: &'static str,
    /// Optional features of this build.
    features: &'static [&'static str],
}

/// Runs `assay version`, and returns the exit status.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    let features = crate::features::BUILT;
    let linked = match cfg!(target_feature = "crt-static") {
        true => "static",
        false => "dynamic",
    };
    let (version, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let text = match args.json {
        true => format!(
            "{:#}\n",
            serde_json::json!(Document {
                schema: SCHEMA_VERSION,
                version,
                architecture: arch,
                linked,
                features,
            })
        ),
        false => format!(
            "assay {version}, {arch}, {linked}\n{}\ndocuments of --json: schema {SCHEMA_VERSION}\n",
            wrap(
                &match features {
                    [] => "features: none".to_owned(),
                    some => format!("features: {}", some.join(", ")),
                },
                0
            )
            .trim_end()
        ),
    };
    print(&text)?;
    Ok(Status::Ok)
}
