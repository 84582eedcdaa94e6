//! `assay fleet changed`: shows changes of machines with their causes. Facts and findings come from stored bundles,
//! figures from stored runs of a plan.

mod figures;
pub(super) mod key;

use super::fleet::ask;
use crate::context::{self, print};
use crate::global::Global;
use crate::status::{Status, Unreadable};
use anyhow::Context as _;
use assay_fleet::changed::{Then, changes};
use assay_fleet::{Entry, History};
use assay_host::{Bundle, Host as _};
use assay_render::text::escape_line;
use assay_report::fleet::{self as report, Changed};
use jiff::{Timestamp, ToSpan as _};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay fleet changed                       on all machines, since the previous check
  assay fleet changed web1 db1              on these
  assay fleet changed --since 7d            since a week ago; also 12h, 2026-11-20, 2026-11-20T06:00Z
  assay fleet changed --key sysctl.vm.       each value, since when, and the previous one
  assay fleet changed --key sshd. --since 30d
                                            every change of these in a month
  assay fleet changed --since 30d --html changed.html
                                            as a page, with each figure over time
  assay fleet changed --json                for programs

Machines are asked by `assay fleet check` or `assay fleet facts`; this only compares what was
kept, by the rules of today. Figures of plans that were run seven times or more are told when they
are other ones from a run on; of a plan of which nothing changed, once in a hundred times at most,
for as long as it is run. Nothing is printed when nothing changed.

Exit status: 0 nothing changed, 1 something did, 2 error, 3 what was kept cannot be read.";

/// Show what changed on machines since an earlier check, and why
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Machines by their fleet name or host name [default: all]
    #[arg(value_name = "MACHINE")]
    machines: Vec<String>,
    /// Compare with this date or time, or this long ago
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Show the history of facts and findings whose key begins with KEY
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Write a page with what changed and the curves of the figures
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    html: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    own: super::advice::Own,
}

/// Runs `assay fleet changed`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let since = match &args.since {
        Some(text) => Some(time(text, context::now())?),
        None => None,
    };
    if let Some(key) = &args.key {
        return key::run(key, &args.machines, since, args.json, global);
    }
    let history = ask::history()?;
    let known = history.machines()?;
    let store = context::existing_store(global)?;
    if known.is_empty() && store.is_none() {
        anyhow::bail!("no machine was asked yet: `assay fleet check root@box1` does");
    }
    let measured = match &store {
        Some(store) => store.runs()?,
        None => Vec::new(),
    };
    for name in &args.machines {
        let there = |row: &assay_store::RunRow| {
            figures::named(row.machine.as_ref(), std::slice::from_ref(name))
        };
        if !known.contains(name) && !measured.iter().any(there) {
            let known: Vec<String> = known.iter().map(|name| escape_line(name)).collect();
            anyhow::bail!(
                "{}: was not asked yet; there are {}",
                escape_line(name),
                known.join(", ")
            );
        }
    }
    let names = known
        .into_iter()
        .filter(|name| args.machines.is_empty() || args.machines.contains(name));
    let catalogue = super::advice::catalogue(&args.own)?;
    let pages = catalogue.all();
    let mut all = Vec::new();
    let names: Vec<String> = names.collect();
    for name in &names {
        let entries = history.entries(name)?;
        let Some((old, new)) = pair(&entries, since) else {
            eprintln!(
                "note: {} was asked only once so far: there is nothing to compare it with",
                escape_line(name)
            );
            continue;
        };
        let when = match &store {
            Some(store) => key::when(store, name, (old, new))?,
            None => BTreeMap::new(),
        };
        all.push(Changed {
            name,
            from: old.at,
            to: new.at,
            changes: between(&history, name, (old, new), &pages)?,
            when,
        });
    }
    let kept = figures::Kept {
        history: &history,
        pages: &pages,
    };
    let figures = match &store {
        Some(store) => figures::changed(store, &args.machines, since, &kept)?,
        None => Vec::new(),
    };
    if let Some(path) = &args.html {
        context::write_file(path, &report::html(&all, &figures))?;
    }
    print(&match args.json {
        true => format!("{:#}\n", report::changes_json(&all, &figures)),
        false => {
            let style = context::style(global);
            let parts = [
                report::changes(&all, style),
                report::figures(&figures, style),
            ];
            let parts = parts.iter().map(String::as_str);
            let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
            parts.join("\n")
        }
    })?;
    Ok(
        match figures.is_empty() && all.iter().all(|one| one.changes.is_empty()) {
            true => Status::Ok,
            false => Status::Findings,
        },
    )
}

/// Returns the newest entry, and the older entry with which it is compared. Without `since`, the older entry is the
/// previous one. With `since`, it is the last entry up to that time; if there is none, the oldest entry.
fn pair(entries: &[Entry], since: Option<Timestamp>) -> Option<(&Entry, &Entry)> {
    let (new, before) = entries.split_last()?;
    let old = match since {
        None => before.last(),
        Some(since) => before
            .iter()
            .rfind(|entry| entry.at <= since)
            .or_else(|| before.first()),
    };
    Some((old?, new))
}

fn between(
    history: &History,
    name: &str,
    (old, new): (&Entry, &Entry),
    pages: &[&assay_model::advice::Advice],
) -> anyhow::Result<Vec<assay_model::drift::Change>> {
    let read = |entry: &Entry| -> anyhow::Result<_> {
        let unreadable =
            |why: String| Unreadable(format!("what was kept of {}: {why}", escape_line(name)));
        let bytes = history
            .bundle(name, entry)
            .map_err(|error| unreadable(error.to_string()))?;
        let bundle =
            Bundle::read(&bytes[..], "a bundle").map_err(|error| unreadable(error.to_string()))?;
        let stat = bundle
            .read_text(Path::new("/proc/stat"))
            .unwrap_or_default();
        let booted = stat
            .lines()
            .find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
        let packages = assay_facts::installed_packages(&bundle);
        Ok((ask::judge(&bundle, pages), booted, packages))
    };
    let (before, booted_before, packages_before) = read(old)?;
    let (after, booted_after, packages_after) = read(new)?;
    Ok(changes(
        &Then {
            facts: &before.facts,
            checked: &before.checked,
            entry: old,
            booted: booted_before,
            packages: packages_before,
        },
        &Then {
            facts: &after.facts,
            checked: &after.checked,
            entry: new,
            booted: booted_after,
            packages: packages_after,
        },
    ))
}

/// Parses a date such as `2026-11-20`, an RFC 3339 time, or an age such as `12h`, `7d` or `2w`.
fn time(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ago = || {
        let number: i64 = digits
            .parse()
            .ok()
            .filter(|number| (0..100_000).contains(number))?;
        let hours = match &text[digits.len()..] {
            "h" => number,
            "d" => number.checked_mul(24)?,
            "w" => number.checked_mul(24 * 7)?,
            _ => return None,
        };
        now.checked_sub(hours.hours()).ok()
    };
    let date = || {
        let date: jiff::civil::Date = text.parse().ok()?;
        Some(date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    };
    let whole = || text.parse::<Timestamp>().ok();
    // A date is also the prefix of a time.
    let found = ago().or_else(|| if text.len() <= 10 { date() } else { whole() });
    found.with_context(|| {
        format!("--since {text}: a date (2026-11-20), a time (2026-11-20T06:00Z) or so long ago (12h, 7d)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_write_them() {
        let now: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("12h", "2026-11-23T00:00:00Z"),
            ("7d", "2026-11-16T12:00:00Z"),
            ("2026-11-20", "2026-11-20T00:00:00Z"),
            ("2026-11-20T06:00Z", "2026-11-20T06:00:00Z"),
        ] {
            assert_eq!(
                time(text, now).unwrap(),
                expected.parse().unwrap(),
                "{text}"
            );
        }
        for text in ["", "yesterday", "7", "-1d", "99999999999999999999d"] {
            assert!(time(text, now).is_err(), "{text}");
        }
    }
}
