//! Converts the command line to a goal, a load, and the settings that are never changed.

use super::Args;
use anyhow::{Context as _, bail, ensure};
use assay_host::{Host as _, LiveHost};
use assay_measure::tuning::find_goal_workload;
use assay_model::advice::Guard;
use assay_model::load::Http;
use assay_model::{Bytes, Load};
use assay_tune::{Allowed, EXAMPLES, Goal, Want};
use std::path::Path;

/// Settings that the administrator forbids to change.
const NEVER: &str = "/etc/assay/never.toml";
/// Default number of connections to a web server.
const CONNECTIONS: u32 = 8;
/// Default size of the test file.
const SIZE: Bytes = Bytes(1 << 30);

/// Parses the goals; with a command as the load, `run time <= 3s` contains no workload.
pub(super) fn read_goal(args: &Args) -> anyhow::Result<Goal> {
    let wants: Vec<Want> = (args.want.iter())
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let decides = wants.first().map(Want::metric);
    let mut guards: Vec<Guard> = args.guard.clone();
    if let Some(decides) = decides
        && !args.no_tail_guard
    {
        guards.extend(Guard::default_tail(decides, &guards));
    }
    let goal = Goal {
        wants,
        guards,
        margin: args.margin,
    };
    Ok(goal.check()?)
}

/// Returns the load of the session.
pub(super) fn read_load(args: &Args, goal: &Goal) -> anyhow::Result<Load> {
    let workload = goal.wants.iter().find_map(Want::workload);
    if let Some(command) = &args.load {
        if let Some(workload) = workload.filter(|name| *name != "load" && *name != "command") {
            bail!(
                "cannot measure `{workload}` with --load: the command is the only load. Write the figure alone, \
                 such as `less p50`, or `load.p50 <= 2s`."
            );
        }
        let argv = shell_words::split(command)
            .with_context(|| format!("cannot read the command of --load: {command}"))?;
        ensure!(!argv.is_empty(), "the command of --load is empty");
        return Ok(Load::Command { argv });
    }
    let Some(target) = &args.target else {
        bail!(
            "name what is tuned: a directory, such as `assay tune /srv --want '{}'`, a URL, or a command with --load",
            EXAMPLES[0]
        );
    };
    if assay_model::target::is_url(target) {
        let http = Http {
            url: target.clone(),
            connections: args.connections.unwrap_or(CONNECTIONS),
            rate: args.rate,
            ..Http::default()
        };
        return Ok(Load::Http(Box::new(http)));
    }
    let Some(name) = workload else {
        bail!(
            "name the workload in --want, such as `{}` or `{}`: the same load is measured with every change",
            EXAMPLES[0],
            EXAMPLES[1]
        );
    };
    let Some(workload) = find_goal_workload(name) else {
        bail!(
            "unknown workload `{name}`: write PATTERN-SIZE-qdN[-fsync], such as randwrite-16k-qd1-fsync, or a \
             workload of a plan (`assay run --list`)"
        );
    };
    Ok(Load::Fio {
        workload,
        size: Some(args.size.unwrap_or(SIZE)),
    })
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NeverFile {
    settings: Vec<String>,
    #[serde(default)]
    because: String,
}

/// Returns the changes that the user and the administrator permit.
pub(super) fn read_allowed(args: &Args) -> anyhow::Result<Allowed> {
    let mut allowed = Allowed {
        risk: args.allowed_risk(),
        ..Allowed::default()
    };
    let path = Path::new(NEVER);
    if LiveHost.exists(path)? {
        let text = LiveHost.read_text(path)?;
        let file: NeverFile = toml::from_str(&text).with_context(|| {
            format!("cannot read {NEVER}. It holds: settings = [\"vm.swappiness\"]")
        })?;
        allowed.never = file.settings;
        allowed.because = match file.because.is_empty() {
            true => NEVER.to_owned(),
            false => format!("{} ({NEVER})", file.because),
        };
    }
    Ok(allowed)
}
