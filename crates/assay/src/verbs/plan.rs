//! `assay plan`: plans storage. Each subcommand, such as `assay plan layout`, has its own module; `assay-planner`
//! computes the answers.

mod cache;
mod capacity;
mod clones;
mod distribute;
mod durability;
mod layout;
mod read;
mod show;

use crate::status::Status;

const EXAMPLES: &str = "\
Examples:
  assay plan layout 4T 2T 2T 1T 750G
  assay plan layout --only raidz2 6x4T --json
  assay plan capacity 1TiB
  assay plan distribute 2T@80%,150MB/s 2T,150MB/s --write 500G
  assay plan clones --from zfs-get.txt
  assay plan cache --memory 64GiB --l2arc 480G --block 16KiB
  assay plan durability --disks 8 --survives 2

Sizes: 4T and 4TB are 4·10¹² bytes, as disks are sold; 4TiB is 4·2⁴⁰.";

/// Plan storage: layouts, capacity, clones, caches, durability
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(clap::Subcommand)]
enum Question {
    Layout(layout::Args),
    Capacity(capacity::Args),
    Distribute(distribute::Args),
    Clones(clones::Args),
    Cache(cache::Args),
    Durability(durability::Args),
}

/// Returns the JSON schema of the answer of each subcommand.
#[cfg(feature = "schemas")]
pub(super) fn documents() -> Vec<super::dev::form::Form> {
    use super::dev::form::form;
    use show::Document;
    vec![
        (
            "plan-layout",
            "assay plan layout --json",
            form::<Document<'_, layout::Answer<'_>>>(),
        ),
        (
            "plan-capacity",
            "assay plan capacity --json",
            form::<Document<'_, assay_planner::capacity::CapacityAnswer>>(),
        ),
        (
            "plan-distribute",
            "assay plan distribute --json",
            form::<Document<'_, distribute::Answer>>(),
        ),
        (
            "plan-clones",
            "assay plan clones --json",
            form::<Document<'_, clones::Answer<'_>>>(),
        ),
        (
            "plan-cache",
            "assay plan cache --json",
            form::<Document<'_, assay_planner::cache::CacheAnswer>>(),
        ),
        (
            "plan-durability",
            "assay plan durability --json",
            form::<Document<'_, durability::Answer>>(),
        ),
    ]
}

/// Runs `assay plan`, and returns the exit status.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    match &args.question {
        Question::Layout(args) => layout::run(args),
        Question::Capacity(args) => capacity::run(args),
        Question::Distribute(args) => distribute::run(args),
        Question::Clones(args) => clones::run(args),
        Question::Cache(args) => cache::run(args),
        Question::Durability(args) => durability::run(args),
    }
}
