//! `assay lab demo`: shows a tour for new users.

use crate::context;
use crate::global::Global;
use crate::status::Status;
use anyhow::Context as _;
use assay_host::process::{Dies, Running};
use assay_loads::Cancel;
use assay_serve::demo_fleet::DemoSize;
use rustix::process::Signal;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  assay lab demo          in the current directory
  assay lab demo /srv     on the storage below /srv
  assay lab demo --list   only list the steps
  assay lab demo --serve  show a made-up fleet in the browser, without root and without measuring

It makes one directory of its own, a file of 256 MiB in it for a while, and removes both at the
end, also after Ctrl-C. Nothing of yours is read or changed; what is measured is not kept.

Exit status: 0 done, 2 error, 130 interrupted.";

/// Interval between two checks whether the current step has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Take a tour of three minutes: facts, lint, plan, run, trial
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Directory on the storage to measure
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true)]
    dir: PathBuf,
    /// Only list the steps
    #[arg(long)]
    list: bool,
    /// Show a made-up fleet in a browser instead
    #[arg(long, conflicts_with = "list")]
    serve: bool,
    /// With --serve: listen on this address and port
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:7878",
        requires = "serve"
    )]
    listen: SocketAddr,
}

/// One step of the tour, with its purpose and the arguments of `assay`. `DIR` in the arguments is replaced by the
/// directory from the command line.
struct Step {
    about: &'static str,
    words: &'static [&'static str],
}

const STEPS: [Step; 6] = [
    Step {
        about: "What is true of this machine, and where it is written",
        words: &["facts", "cpu.model", "cpu.threads", "memory.total", "tool"],
    },
    Step {
        about: "A benchmark from a blog: what would it really measure?",
        words: &[
            "lint",
            "fio --name=test --rw=randread --iodepth=32 --bs=4k --size=1g",
        ],
    },
    Step {
        about: "What would four disks of 4 TB make?",
        words: &["plan", "layout", "4T", "4T", "4T", "4T", "--limit", "5"],
    },
    Step {
        about: "What does this storage do at one small random read at a time, and why not more?",
        words: &[
            "run",
            "DIR",
            "--rw",
            "randread",
            "--bs",
            "4k",
            "--size",
            "256MiB",
            "--runtime",
            "2s",
        ],
    },
    Step {
        about: "Advice that is repeated everywhere: cache=unsafe makes virtual machines fast. Try it",
        words: &[
            "trial",
            "cache-unsafe",
            "DIR",
            "--yes",
            "--size",
            "64MiB",
            "--slot",
            "2s",
            "--budget",
            "90s",
        ],
    },
    Step {
        about: "What else people recommend, and what is true of it",
        words: &["advice"],
    },
];

/// Runs `assay lab demo`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    if args.serve {
        return serve_fleet(args.listen);
    }
    if args.list {
        for step in &STEPS {
            context::print(&heading(step, global))?;
        }
        return Ok(Status::Ok);
    }
    let cancel = context::on_signals()?;
    let dir = tempfile::Builder::new()
        .prefix(".assay-demo-")
        .tempdir_in(&args.dir)
        .with_context(|| {
            format!(
                "cannot create a directory in {}. Name another directory: assay lab demo DIR",
                args.dir.display()
            )
        })?;
    let mut failed = Vec::new();
    for step in &STEPS {
        context::print(&heading(step, global))?;
        let done = carry_out(step, dir.path(), &cancel)?;
        if cancel.is_cancelled() {
            dir.close()
                .context("cannot remove the directory of the tour")?;
            return Ok(Status::Interrupted);
        }
        if !done {
            failed.push(step.words[0]);
        }
        context::print("\n")?;
    }
    dir.close()
        .context("cannot remove the directory of the tour")?;
    match failed.as_slice() {
        [] => context::print(
            "Everything is removed. Next: assay run quick . or assay trial --help\n",
        )?,
        verbs => anyhow::bail!(
            "the tour failed in these steps (their errors are above): {}",
            verbs.join(", ")
        ),
    }
    Ok(Status::Ok)
}

/// Fills a temporary store with a made-up fleet, and serves the store. The store is removed at the end.
fn serve_fleet(listen: SocketAddr) -> anyhow::Result<Status> {
    let dir = tempfile::Builder::new()
        .prefix("assay-demo-")
        .tempdir()
        .context(
            "cannot create a directory for the store. Set TMPDIR to one that you can write to",
        )?;
    let catalogue = assay_advice::Catalogue::builtin()?;
    let (store, history) = (dir.path().join("demo.db"), dir.path().join("fleet"));
    eprintln!("making up five machines with 45 nights of runs ...");
    assay_serve::demo_fleet::fill(
        &store,
        &history,
        &catalogue,
        context::now(),
        DemoSize::WHOLE,
    )
    .map_err(|error| anyhow::anyhow!("cannot fill {}: {error}", store.display()))?;
    let options = assay_serve::SiteOptions {
        store,
        history,
        accept: Some(dir.path().join(assay_serve::demo_fleet::ACCEPT)),
        pool: None,
        duplicates: None,
        catalogue,
        read_facts: Box::new(super::serve::read_facts),
        token: None,
        names: Vec::new(),
        version: env!("CARGO_PKG_VERSION"),
        machine: None,
        actions: None,
        notice: Some(assay_serve::demo_fleet::NOTICE.to_owned()),
    };
    let status = super::serve::serve_until_signal(listen, options, None)?;
    dir.close()
        .context("cannot remove the directory of the demonstration")?;
    Ok(status)
}

fn heading(step: &Step, global: &Global) -> String {
    let style = context::style(global);
    let line = shell_words::join(step.words);
    format!("{}\n$ assay {line}\n", style.bold(step.about))
}

/// Runs a step, and returns whether it succeeded. Exit status 1 (findings) also counts as success.
fn carry_out(step: &Step, dir: &Path, cancel: &Cancel) -> anyhow::Result<bool> {
    let place = |word: &&str| match *word {
        "DIR" => dir.as_os_str().to_owned(),
        word => OsString::from(word),
    };
    let program = std::env::current_exe().context("cannot find the program file of assay")?;
    #[allow(
        clippy::disallowed_methods,
        reason = "assay itself, whose output goes to the user as it comes"
    )]
    let mut command = Command::new(program);
    command.args(step.words.iter().map(place));
    command.env("ASSAY_STORE", dir.join("demo.db"));
    let mut running = Running::start(command, Dies::Asked).context("cannot start assay")?;
    let mut told = false;
    while !running.wait(LOOK)? {
        // The step has a separate process group: the signal is passed on, and the step cleans up.
        if cancel.is_cancelled() && !told {
            told = true;
            running.signal(Signal::INT);
        }
    }
    Ok(matches!(running.reap()?.code(), 0 | 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_step_is_a_command_that_assay_knows() {
        for step in &STEPS {
            let words = ["assay"].iter().chain(step.words);
            assert!(
                Cli::parse(words.map(OsString::from)).is_ok(),
                "{:?}",
                step.words
            );
        }
    }
}
