//! `assay report store prune`: removes old observations or runs.

use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use anyhow::bail;
use assay_model::SCHEMA_VERSION;
use assay_model::units::Bytes;
use assay_render::table::render_table;
use assay_render::text::shorten_line;
use assay_render::units::{format_plural, format_timestamp};
use assay_store::{PrunableKind, PrunableRecord, PruneRule};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;

/// Options of `prune`.
#[derive(clap::Args)]
pub(super) struct PruneArgs {
    /// Kind of record; `why`, `net` and `check wifi` make observations
    #[arg(value_name = "KIND", value_enum)]
    kind: KindName,
    /// Remove only records older than this: 90d, 12w, 24h
    #[arg(long, value_name = "AGE", value_parser = parse_age, required_unless_present = "keep")]
    older_than: Option<SignedDuration>,
    /// Keep the newest N of each verb or plan, for each machine [default: 1]
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// List what would be removed, and remove nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Remove the records permanently
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy)]
enum KindName {
    Observations,
    Runs,
}

impl KindName {
    fn kind(self) -> PrunableKind {
        match self {
            Self::Observations => PrunableKind::Observations,
            Self::Runs => PrunableKind::Runs,
        }
    }

    fn format_count(self, count: usize) -> String {
        let (one, many) = match self {
            Self::Observations => ("observation", "observations"),
            Self::Runs => ("run", "runs"),
        };
        format_plural(count as u64, one, many)
    }
}

/// Document of `assay report store prune`: what was removed.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "PruneDocument")]
pub(in crate::verbs) struct Document {
    schema: u32,
    kind: PrunableKind,
    /// Whether the records were removed. False if they are only listed.
    removed: bool,
    /// Total size of the records in bytes.
    bytes: u64,
    /// Number of bytes by which the store's file shrank. Null if the file keeps its size and reuses the space.
    file_smaller_by: Option<u64>,
    /// The removed or listed records, oldest first.
    records: Vec<PrunableRecord>,
}

/// Parses an age from 1 hour to 36500 days, such as `90d`, `12w` or `24h`.
fn parse_age(text: &str) -> Result<SignedDuration, String> {
    let wrong = || "give an age such as 90d, 12w or 24h".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        _ => return Err(wrong()),
    };
    let number: i64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    match number.checked_mul(hours) {
        Some(hours @ 1..=876_000) => Ok(SignedDuration::from_hours(hours)),
        _ => Err("give 1h to 36500d".to_owned()),
    }
}

/// Lists or removes the records.
pub(super) fn run(args: &PruneArgs, global: &Global) -> anyhow::Result<Status> {
    let kind = args.kind.kind();
    let Some(mut store) = context::existing_store(global)? else {
        bail!(context::nothing_measured(global)?);
    };
    let now = context::now();
    let rule = PruneRule {
        before: args.older_than.map_or(now, |age| now - age),
        keep: args.keep.unwrap_or(1),
    };
    let records = store.list_prunable(kind, rule)?;
    let mut document = Document {
        schema: SCHEMA_VERSION,
        kind,
        removed: false,
        bytes: records.iter().map(|record| record.bytes).sum(),
        file_smaller_by: None,
        records,
    };
    if args.yes && !document.records.is_empty() {
        store.prune(kind, &document.records)?;
        document.removed = true;
        document.file_smaller_by = store.compact()?;
    }
    print(&match args.json {
        true => format!("{:#}\n", serde_json::json!(document)),
        false => describe_result(args, rule.before, &document),
    })?;
    if !args.yes && !args.dry_run && !document.records.is_empty() {
        bail!("nothing was removed: use --yes to remove these records permanently");
    }
    Ok(Status::Ok)
}

fn describe_result(args: &PruneArgs, before: Timestamp, document: &Document) -> String {
    let count = args.kind.format_count(document.records.len());
    if document.records.is_empty() {
        return format!("no record to remove: {count} fit\n");
    }
    let mut groups: BTreeMap<(String, String), (usize, u64)> = BTreeMap::new();
    for record in &document.records {
        let machine = record.machine.as_ref();
        let machine = machine.map_or("unknown", |machine| machine.shown());
        let names = (shorten_line(&record.name, 40), shorten_line(machine, 40));
        let group = groups.entry(names).or_default();
        *group = (group.0 + 1, group.1 + record.bytes);
    }
    let rows = groups.into_iter().map(|((name, machine), (count, bytes))| {
        vec![name, machine, count.to_string(), Bytes(bytes).to_string()]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let head = ["name", "machine", "records", "size"];
    let mut out = render_table(0, "llrr", &head, &rows);
    let did = if document.removed {
        "removed"
    } else {
        "would remove"
    };
    out += &format!(
        "\n{did} {count} from before {}: {}\n",
        format_timestamp(before),
        Bytes(document.bytes)
    );
    match document.file_smaller_by {
        _ if !document.removed => {}
        Some(bytes @ 1..) => out += &format!("the file is {} smaller\n", Bytes(bytes)),
        _ => out += "the freed space stays in the store for later records\n",
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_a_unit_and_bounds() {
        let hours = |text| parse_age(text).map(|age| age.as_hours());
        assert_eq!(hours("90d"), Ok(2160));
        assert_eq!((hours("2w"), hours("24h")), (Ok(336), Ok(24)));
        for wrong in [
            "",
            "d",
            "90",
            "0d",
            "-1d",
            "1.5d",
            "99999999d",
            "9µ",
            "90 d",
        ] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }
}
