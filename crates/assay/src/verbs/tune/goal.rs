//! Converts the command line to a goal, a load, and a list of settings that are never changed.

use super::Args;
use anyhow::{Context as _, bail, ensure};
use assay_host::{Host as _, LiveHost};
use assay_loads::printed_figures::compile_pattern;
use assay_measure::tuning::find_goal_workload;
use assay_model::advice::Guard;
use assay_model::load::{Http, PrintedFigure};
use assay_model::secrets::withhold_in_text;
use assay_model::target::is_url;
use assay_model::{Bytes, Load};
use assay_tune::{Allowed, EXAMPLES, Goal, Want};
use serde::Deserialize;
use std::path::Path;

/// File that lists the settings that the administrator forbids to change.
const NEVER: &str = "/etc/assay/never.toml";
/// Default number of connections to a web server.
const CONNECTIONS: u32 = 8;
/// Default size of the test file.
const SIZE: Bytes = Bytes(1 << 30);

/// Parses the goals. If the load is a command, goals such as `p50 <= 3s` need no workload name. A name that is not a
/// figure of assay, as in `more tps`, then refers to a figure that the command prints.
pub(super) fn read_goal(args: &Args) -> anyhow::Result<Goal> {
    let parse = |text: &String| match args.load {
        Some(_) => Want::parse_for_command(text),
        None => text.parse(),
    };
    let wants: Vec<Want> = args.want.iter().map(parse).collect::<Result<_, _>>()?;
    // The run time of a load generator that prints its figures is often fixed.
    let decides = (wants.first().filter(|want| want.printed_name().is_none())).map(Want::metric);
    let mut guards: Vec<Guard> = args.guard.clone();
    if let Some(decides) = decides
        && !args.no_tail_guard
    {
        guards.extend(Guard::default_tail(decides, &guards));
    }
    let goal = Goal {
        wants,
        guards,
        margin: args.margin(),
    };
    Ok(goal.check()?)
}

/// Returns the load of the session.
pub(super) fn read_load(args: &Args, goal: &Goal) -> anyhow::Result<Load> {
    if let Some(load) = &args.page_load {
        return Ok(load.clone());
    }
    let workload = goal.wants.iter().find_map(Want::workload);
    if let Some(command) = &args.load {
        ensure!(
            args.target.as_deref().is_none_or(|target| !is_url(target)),
            "a URL is a load of its own: leave out --load, or name no URL"
        );
        if let Some(workload) = workload.filter(|name| *name != "load" && *name != "command") {
            bail!(
                "cannot measure `{workload}` with --load: the command is the only load. Write the figure alone, \
                 such as `less p50` or `more tps`; a figure that the command prints under such a name is \
                 `printed:{workload}.…`."
            );
        }
        return read_command_load(command, read_printed(args, goal)?);
    }
    if let Some(name) = goal.wants.iter().find_map(Want::printed_name) {
        bail!("`{name}` is a figure that a load prints: name the load with --load");
    }
    let Some(target) = &args.target else {
        bail!(
            "name what is tuned: a directory, such as `assay tune /srv --want '{}'`, a URL, or a command with --load",
            EXAMPLES[0]
        );
    };
    if is_url(target) {
        if let Some(workload) = workload.filter(|name| *name != "load" && *name != "http") {
            bail!(
                "cannot measure `{workload}` on a web server: its load is `http`, such as `http.p99 <= 80ms` or \
                 `more http.iops`"
            );
        }
        let http = Http {
            url: target.clone(),
            connections: args.connections.unwrap_or(CONNECTIONS),
            rate: args.rate,
            insecure: args.insecure,
            ca: args.ca.as_deref().map(authorities_file).transpose()?,
            ..Http::default()
        };
        http.check()
            .map_err(|why| anyhow::anyhow!("cannot ask the web server: {why}"))?;
        check_is_here(target)?;
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

/// Returns the absolute path of the file of `--ca`, because a resumed session may start in another directory.
fn authorities_file(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path).context("cannot use the file of --ca")?;
    let name = path.into_os_string().into_string();
    name.ok()
        .context("the path of --ca is not valid UTF-8; use a symlink with a UTF-8 name")
}

/// Returns the figure of the goal if the load prints this figure, with its regular expression from the goal file.
/// `None` if the goal has no such figure.
fn read_printed(args: &Args, goal: &Goal) -> anyhow::Result<Option<PrintedFigure>> {
    let Some(name) = goal.wants.iter().find_map(Want::printed_name) else {
        ensure!(
            args.figures.is_empty(),
            "[figures] names figures that the load prints, but no wish is about one of them"
        );
        return Ok(None);
    };
    let pattern = args.figures.get(name).cloned();
    if let Some(pattern) = &pattern {
        compile_pattern(pattern).map_err(|why| anyhow::anyhow!("figures: {name}: {why}"))?;
    }
    let name = name.to_owned();
    Ok(Some(PrintedFigure { name, pattern }))
}

/// Returns the load that runs the command of `--load`.
pub(super) fn read_command_load(
    command: &str,
    prints: Option<PrintedFigure>,
) -> anyhow::Result<Load> {
    let argv = shell_words::split(command).context("cannot read the command of --load")?;
    ensure!(!argv.is_empty(), "the command of --load is empty");
    Ok(Load::Command { argv, prints })
}

/// Fails if the web server is on another machine, because the session changes settings of this machine.
fn check_is_here(url: &str) -> anyhow::Result<()> {
    let shown = withhold_in_text(url);
    let parsed = assay_http::Url::parse(url)
        .map_err(|why| anyhow::anyhow!("cannot read the URL {shown}: {why}"))?;
    let addresses = parsed
        .resolve()
        .with_context(|| format!("cannot find the server of {shown}"))?;
    ensure!(
        addresses.iter().any(assay_web::is_here),
        "{} is on another machine, and `assay tune` changes settings of this one: run it there",
        parsed.host()
    );
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NeverFile {
    settings: Vec<String>,
    #[serde(default)]
    because: String,
}

/// Returns which changes the user and the administrator permit.
pub(super) fn read_allowed(args: &Args) -> anyhow::Result<Allowed> {
    let mut allowed = Allowed {
        risk: args.allowed_risk(),
        ..Allowed::default()
    };
    let path = Path::new(NEVER);
    if LiveHost.exists(path)? {
        let text = LiveHost.read_text(path)?;
        (allowed.never, allowed.because) = read_never_file(NEVER, &text)?;
    }
    allowed.never.extend(args.never.iter().cloned());
    if allowed.because.is_empty() && !args.never.is_empty() {
        allowed.because = args.never_because.clone().unwrap_or_default();
    }
    Ok(allowed)
}

/// Parses a file of settings that must never be changed. Returns the settings and the reason.
fn read_never_file(name: &str, text: &str) -> anyhow::Result<(Vec<String>, String)> {
    let file: NeverFile = toml::from_str(text)
        .with_context(|| format!("cannot read {name}. It holds: settings = [\"vm.swappiness\"]"))?;
    let because = match file.because.is_empty() {
        true => name.to_owned(),
        false => format!("{} ({name})", file.because),
    };
    Ok((file.settings, because))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_untouched_settings_has_its_reason() {
        let text = "settings = [\"vm.*\"]\nbecause = \"agreed\"\n";
        let (settings, because) = read_never_file("never.toml", text).unwrap();
        assert_eq!(settings, ["vm.*"]);
        assert!(because.starts_with("agreed") && because.contains("never.toml"));
        let (_, because) = read_never_file("never.toml", "settings = []").unwrap();
        assert_eq!(because, "never.toml");
        for wrong in [
            "",
            "settings = \"vm.*\"",
            "setting = []",
            "settings = [1]",
            "\u{0}",
        ] {
            assert!(read_never_file("never.toml", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_elsewhere_is_refused() {
        check_is_here("http://127.0.0.1:1/").unwrap();
        check_is_here("http://[::1]/").unwrap();
        // TEST-NET-1 (RFC 5737) is nobody's.
        assert!(check_is_here("http://192.0.2.1/").is_err());
    }
}
