//! Reads a goal from a TOML file. Options of the command line override values of the file.

use super::Args;
use crate::verbs::trial::{guard, percent};
use anyhow::{Context as _, bail, ensure};
use assay_host::{Host as _, LiveHost};
use assay_model::Nanos;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Largest accepted file in bytes.
const LARGEST: usize = 64 << 10;
/// Maximum number of goals in a file.
const MOST_WANTS: usize = 16;
/// Value of a guard that permits p99 to become worse without limit.
const NO_GUARD: &str = "none";

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GoalFile {
    goal: GoalPart,
    #[serde(default)]
    budget: BudgetPart,
    #[serde(default)]
    may: MayPart,
    #[serde(default)]
    never: NeverPart,
    /// For each metric, by how much it may become worse: `p99 = "25%"`.
    #[serde(default)]
    guard: BTreeMap<String, String>,
    /// Figures that the load prints, as name and regular expression. The first group of the expression is the number.
    #[serde(default)]
    figures: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GoalPart {
    target: Option<String>,
    #[serde(default)]
    want: Vec<String>,
    load: Option<String>,
    rate: Option<f64>,
    connections: Option<u32>,
    #[serde(default)]
    insecure: bool,
    ca: Option<String>,
    while_ok: Option<String>,
    #[serde(default)]
    only: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetPart {
    time: Option<Nanos>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MayPart {
    risk: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NeverPart {
    #[serde(default)]
    settings: Vec<String>,
    because: Option<String>,
}

/// Returns the arguments, completed by the values of a goal file.
///
/// # Errors
/// The file cannot be read, is too large, or has an unknown key or value.
pub(super) fn add_goal_file(args: &Args, path: &Path) -> anyhow::Result<Args> {
    let text = LiveHost.read_text(path)?;
    let name = path.display();
    ensure!(
        text.len() <= LARGEST,
        "{name} is larger than a goal can be: {} bytes",
        text.len()
    );
    let file: GoalFile =
        toml::from_str(&text).with_context(|| format!("cannot read the goal in {name}"))?;
    let place = std::path::absolute(path)?;
    let place = place.parent().unwrap_or(Path::new("/"));
    merge(args, file, place).with_context(|| format!("cannot use the goal in {name}"))
}

/// Adds the values of a goal file to the arguments. `place` is the directory of the file; relative paths in the file
/// are relative to it.
fn merge(args: &Args, file: GoalFile, place: &Path) -> anyhow::Result<Args> {
    let mut merged = args.clone();
    let goal = file.goal;
    ensure!(
        goal.want.len() <= MOST_WANTS,
        "{} wishes are more than the {MOST_WANTS} that one session can hold",
        goal.want.len()
    );
    let has_place = args.target.is_some() || args.load.is_some();
    if !has_place {
        merged.target = goal.target.map(|target| relative_to(place, target));
        merged.load = goal.load;
        merged.rate = args.rate.or(goal.rate);
        merged.connections = args.connections.or(goal.connections);
        merged.insecure |= goal.insecure;
        let ca = goal.ca.map(|ca| relative_to(place, ca).into());
        merged.ca = merged.ca.or(ca);
    }
    if args.want.is_empty() {
        merged.want = goal.want;
    }
    if args.only.is_empty() {
        let only = goal.only.into_iter();
        let page = |word: String| match word.ends_with(".md") {
            true => relative_to(place, word),
            false => word,
        };
        merged.only = only.map(page).collect();
    }
    merged.while_ok = args.while_ok.clone().or(goal.while_ok);
    merged.budget = args.budget.or(file.budget.time);
    merged.may = args.may.clone().or(file.may.risk);
    if let Some(risk) = &merged.may
        && !["none", "low", "service"].contains(&risk.as_str())
    {
        bail!("risk = \"{risk}\" is none of none, low and service");
    }
    merged.never.extend(file.never.settings);
    merged.never_because = file.never.because;
    merged.figures = file.figures;
    for (metric, most) in &file.guard {
        if most == NO_GUARD && metric == "p99" {
            merged.no_tail_guard = true;
            continue;
        }
        percent(most).map_err(|why| anyhow::anyhow!("guard {metric} = \"{most}\": {why}"))?;
        let read = guard(&format!("{metric}:{most}"));
        let read = read.map_err(|why| anyhow::anyhow!("guard {metric} = \"{most}\": {why}"))?;
        // What the command line says about the same figure wins.
        if !merged.guard.iter().any(|known| known.metric == read.metric) {
            merged.guard.push(read);
        }
    }
    Ok(merged)
}

fn relative_to(place: &Path, target: String) -> String {
    match assay_model::target::is_url(&target) || target.starts_with('/') {
        true => target,
        false => place.join(target).to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(words: &[&str]) -> Args {
        let words = ["tune"].iter().chain(words);
        Line::try_parse_from(words).map(|line| line.args).unwrap()
    }

    fn merged(words: &[&str], text: &str) -> anyhow::Result<Args> {
        merge(&args(words), toml::from_str(text)?, Path::new("/repo"))
    }

    const WHOLE: &str = r#"
        [goal]
        target = "data"
        want = ["randwrite-16k-qd1-fsync.p99 <= 30ms"]
        while_ok = "curl -fsS http://localhost/"
        only = ["io-scheduler", "own.md"]
        [budget]
        time = "2h"
        [may]
        risk = "none"
        [never]
        settings = ["vm.swappiness"]
        because = "agreed"
        [guard]
        p99 = "10%"
    "#;

    #[test]
    fn a_file_says_what_the_command_line_does_not() {
        let read = merged(&[], WHOLE).unwrap();
        assert_eq!(read.target.as_deref(), Some("/repo/data"));
        assert_eq!(read.want, ["randwrite-16k-qd1-fsync.p99 <= 30ms"]);
        assert_eq!(read.only, ["io-scheduler", "/repo/own.md"]);
        assert_eq!(read.budget(), "2h".parse().unwrap());
        assert_eq!(
            (read.may.as_deref(), &read.never[..]),
            (Some("none"), &["vm.swappiness".to_owned()][..])
        );
        assert_eq!(read.guard.len(), 1);
        let read = merged(
            &[
                "/srv", "--budget", "10m", "--guard", "p99:5%", "--may", "low",
            ],
            WHOLE,
        )
        .unwrap();
        assert_eq!(read.target.as_deref(), Some("/srv"));
        assert_eq!(read.budget(), "10m".parse().unwrap());
        assert_eq!(read.may.as_deref(), Some("low"));
        assert!(read.guard.len() == 1 && (read.guard[0].margin - 0.05).abs() < 1e-9);
        assert!(
            merged(&[], "[goal]\n[guard]\np99 = \"none\"")
                .unwrap()
                .no_tail_guard
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let many = format!("[goal]\nwant = [{}]", "\"less p50\",".repeat(1_000_000));
        for wrong in [
            "",
            "[goal]\nwants = []",
            "[goal]\n[may]\nrisk = \"data-loss\"",
            "[goal]\n[guard]\nspeed = \"5%\"",
            "[goal]\n[guard]\np99 = \"much\"",
            "[goal]\n[budget]\ntime = \"soon\"",
            &many,
        ] {
            assert!(
                merged(&[], wrong).is_err(),
                "{}",
                &wrong[..wrong.len().min(60)]
            );
        }
    }
}
