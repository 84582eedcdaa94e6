//! `assay stack`: shows the layers under a target and their cost.

mod layers;
mod measure;

use crate::global::Global;
use crate::machine_source::MachineSource;
use crate::remote::{Going, RemoteWork, Value, go};
use crate::shape::Shape;
use crate::status::Status;
use std::path::PathBuf;

/// Show the layers under a path, disk or VM, and their cost
#[derive(clap::Args)]
#[command(after_help = format!("{}\n\n{}", layers::EXAMPLES, measure::EXAMPLES))]
pub struct Args {
    /// Path, block device, image or virtual machine [default: .]
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    #[command(flatten)]
    elsewhere: MachineSource,
    #[command(flatten)]
    going: Going,
    #[command(flatten)]
    measure: measure::Measure,
    #[command(flatten)]
    shape: Shape,
    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,
}

/// Runs `assay stack`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let target = args.target.as_deref();
    if measure::is_asked(&args.measure) {
        match (&args.elsewhere.host, &args.elsewhere.root) {
            (Some(host), _) => return there(host, args, global),
            (None, Some(_)) => {
                anyhow::bail!("cannot measure a captured machine: leave out --root")
            }
            (None, None) => {}
        }
    }
    match measure::run(&args.measure, target, &args.shape, args.quiet, global)? {
        Some(status) => Ok(status),
        None => layers::run(target, &args.elsewhere, &args.shape, global),
    }
}

/// Measures the layers on another machine, and stores the run locally.
fn there(host: &str, args: &Args, global: &Global) -> anyhow::Result<Status> {
    let mut asked = RemoteWork {
        cut: vec![("--html", Value::One)],
        quiet: args.quiet,
        ..RemoteWork::default()
    };
    args.measure.there(&mut asked)?;
    let how = &args.elsewhere.how;
    let done = go(host, how, &args.going, args.quiet, |way| {
        way.carry(&asked, global)
    })?;
    done.pass_on(args.shape.json)?;
    if let (Some(path), Some((run, _))) = (&args.shape.html, done.records.runs.last()) {
        let id = run.id;
        eprintln!(
            "the page of a measurement from elsewhere is made of what is stored: `assay stack --show {id} --html {}`",
            path.display()
        );
    }
    Ok(done.status())
}
