//! `assay facts`: shows facts of this machine or of a captured one, with their sources.

use crate::context::{self, print};
use crate::global::Global;
use crate::machine_source::MachineSource;
use crate::status::Status;
use anyhow::Context as _;
use assay_facts::{CollectOptions, Redacted};
use assay_host::{Host, LiveHost, Recording};
use assay_model::{Facts, SCHEMA_VERSION};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  assay facts                       everything that explains a measurement here
  assay facts disk.vda mount        only keys that begin so
  assay facts --target /tank/vm     and the ZFS, btrfs, ext4 or XFS below a path
  assay facts --json | jq '.facts[\"memory.total\"]'
  assay facts --capture box1        copy what was read into a new directory …
  assay facts --root box1           … and read it elsewhere
  assay facts --script > collector  a shell script that reads the same, to be read first; then
  ssh box1 sudo -n sh < collector > box1.bundle && assay check --root box1.bundle
  assay facts --host root@box1      the same in one step

Each fact names the file or command it was read from. `unknown` is not the same as absent: the
fact may exist, but could not be read; the reason is given. Serial numbers and the host name are left
out without --identity.

Exit status: 0 done, 1 no key begins with any PREFIX, 2 error, 3 what was captured cannot be
read, or the host not be reached.";

/// Show facts of this machine, and the file each was read from
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Show only facts whose key begins with PREFIX
    #[arg(value_name = "PREFIX")]
    prefixes: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    elsewhere: MachineSource,
    /// Also copy each file that assay reads into a new directory, for --root
    #[arg(long, value_name = "DIR", conflicts_with_all = ["root", "host"])]
    capture: Option<PathBuf>,
    /// Print the collector, a shell script that writes a bundle for --root
    #[arg(long, conflicts_with_all = ["root", "host", "capture", "prefixes", "json", "targets", "services", "identity"])]
    script: bool,
    /// Describe the file system of this path [default: this directory]
    #[arg(long = "target", value_name = "PATH")]
    targets: Vec<PathBuf>,
    /// Also read services and all ZFS pools, as `assay check` does
    #[arg(long)]
    services: bool,
    /// Include serial numbers and the host name
    #[arg(long)]
    identity: bool,
}

/// Document of `assay facts`.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Document<'a> {
    schema: u32,
    facts: &'a Facts,
}

/// Runs `assay facts`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    if args.script {
        print(&assay_facts::script(env!("CARGO_PKG_VERSION")))?;
        return Ok(Status::Ok);
    }
    let facts = match (args.elsewhere.open(&args.targets)?, &args.capture) {
        (Some(host), _) => collect(&*host, args, args.targets.clone()),
        (None, Some(dir)) => {
            let redacted = Redacted::new(&LiveHost, args.identity);
            let recording = Recording::new(&redacted, dir)?;
            let facts = collect(&recording, args, targets(args)?);
            let withheld = redacted.withheld();
            let count = withheld.len();
            recording.finish(withheld)?;
            eprintln!(
                "captured into {}; of {count} files and commands not all was kept: \
                 `withheld` in its assay-capture.json names them",
                dir.display()
            );
            facts
        }
        (None, None) => collect(&LiveHost, args, targets(args)?),
    };
    let chosen = choose(facts, &args.prefixes);
    if args.json {
        print(&format!(
            "{:#}\n",
            serde_json::json!(Document {
                schema: SCHEMA_VERSION,
                facts: &chosen,
            })
        ))?;
    } else {
        print(&assay_report::facts_listing::format_listing(
            &chosen,
            context::style(global),
        ))?;
    }
    // Like grep(1): a requested fact does not exist.
    match chosen.map.is_empty() && !args.prefixes.is_empty() {
        true => Ok(Status::Findings),
        false => Ok(Status::Ok),
    }
}

/// Returns the absolute paths of the targets on the command line, or the current directory.
fn targets(args: &Args) -> anyhow::Result<Vec<PathBuf>> {
    if args.targets.is_empty() {
        return Ok(std::env::current_dir().into_iter().collect());
    }
    let absolute = |path: &PathBuf| {
        path.canonicalize()
            .with_context(|| path.display().to_string())
    };
    args.targets.iter().map(absolute).collect()
}

fn collect(host: &dyn Host, args: &Args, targets: Vec<PathBuf>) -> Facts {
    assay_facts::collect(
        host,
        &CollectOptions {
            with_identity: args.identity,
            targets: &targets,
            services: args.services,
            accounts: false,
        },
    )
}

fn choose(mut facts: Facts, prefixes: &[String]) -> Facts {
    if !prefixes.is_empty() {
        facts
            .map
            .retain(|key, _| prefixes.iter().any(|prefix| key.starts_with(prefix)));
    }
    facts
}
