//! `assay run smb://server/share` and `nfs://server/export`: measures a share of a file server.

use super::Args;
use crate::context::{self, columns, print};
use crate::global::Global;
use crate::status::Status;
use assay_model::SCHEMA_VERSION;
use assay_model::units::mb_per_s;
use assay_render::text::{escape_line, format_paragraph, measure_width, pad_left, pad_right};
use assay_shares::{
    FILE_PREFIX, Protection, ShareProtocol, ShareRequest, ShareResult, ShareTransfers, ShareUrl,
    measure_share,
};

/// Default size of the test file in bytes.
const FILE_BYTES: u64 = 256 << 20;
/// Default number of rounds of a measurement.
const ROUNDS: u32 = 3;

/// Document of `assay run smb://…`.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "ShareDocument")]
pub(in crate::verbs) struct ShareDocument<'a> {
    schema: u32,
    #[serde(flatten)]
    result: &'a ShareResult,
}

/// Returns the URL of a share if the arguments contain one.
///
/// # Errors
/// There are other arguments besides the URL.
pub(super) fn find_share(words: &[String]) -> anyhow::Result<Option<&str>> {
    let Some(url) = words.iter().find(|word| ShareUrl::is_share(word)) else {
        return Ok(None);
    };
    anyhow::ensure!(
        words.len() == 1,
        "cannot measure {} with a plan or beside other targets: give the share alone",
        url.escape_debug()
    );
    Ok(Some(url))
}

/// Measures a share, and prints the result.
pub(super) fn run(url: &str, args: &Args, global: &Global) -> anyhow::Result<Status> {
    anyhow::ensure!(
        !args.remote.is_meant()?,
        "cannot measure a share from another machine yet: run assay there"
    );
    for (given, option) in [
        (!args.want.is_empty(), "--want"),
        (args.html.is_some(), "--html"),
        (args.runtime.is_some(), "--runtime"),
        (args.budget.is_some(), "--budget"),
        (args.plan_file.is_some(), "--plan-file"),
    ] {
        anyhow::ensure!(!given, "{option} has no meaning for a share: leave it out");
    }
    let url = ShareUrl::parse(url)?;
    anyhow::ensure!(
        args.auth_file.is_none() || url.protocol() == ShareProtocol::Smb,
        "--auth-file is for smb://: NFS knows users by number, as in nfs://SERVER/EXPORT?uid=1000&gid=1000"
    );
    let cancel = context::on_signals_within(super::LONGEST_END)?;
    let name = format!("{FILE_PREFIX}{}", &context::random_uid()?[..16]);
    let request = ShareRequest {
        url: &url,
        auth_file: args.auth_file.as_deref(),
        file_bytes: args.size.map_or(FILE_BYTES, |size| size.0),
        rounds: args.rounds.unwrap_or(ROUNDS).max(1),
        records: &context::state_dir()?.join("shares"),
        file_name: &name,
        seed: context::random_seed()?,
    };
    anyhow::ensure!(request.file_bytes > 0, "--size must be larger than 0");
    if !args.quiet {
        eprintln!(
            "{}: writes, reads and removes {name} ({}) {} times with each protection",
            url.share_name(),
            assay_model::Bytes(request.file_bytes),
            request.rounds
        );
    }
    let done = measure_share(
        &request,
        &|| cancel.is_cancelled(),
        &mut |protection, round| {
            if !args.quiet {
                eprintln!(
                    "round {round} of {}: {}",
                    request.rounds,
                    protection_name(protection)
                );
            }
        },
    );
    let result = match done {
        Err(error) if error.is_stop() => {
            eprintln!("{error}");
            return Ok(Status::Interrupted);
        }
        done => done?,
    };
    if args.json {
        let document = ShareDocument {
            schema: SCHEMA_VERSION,
            result: &result,
        };
        print(&format!("{:#}\n", serde_json::json!(document)))?;
    } else {
        print(&format_result(&result, context::style(global)))?;
    }
    Ok(match result.criterion.met {
        true => Status::Ok,
        false => Status::Findings,
    })
}

fn protection_name(protection: Protection) -> &'static str {
    match protection {
        Protection::Plain => "plain",
        Protection::Signed => "signed",
        Protection::Encrypted => "encrypted",
    }
}

fn format_result(result: &ShareResult, style: assay_render::Style) -> String {
    let criterion = &result.criterion;
    let answer = format!(
        "10 GB at 1 Gbit/s: {}. Writing 10 GB takes {:.0} s, reading {:.0} s; the link alone takes {:.0} s.",
        if criterion.met { "met" } else { "not met" },
        criterion.write_seconds,
        criterion.read_seconds,
        criterion.link_seconds
    );
    let limit = format!("Limit: {}.", result.limit.evidence);
    let mut out = format!("{}\n", style.bold(&escape_line(&result.share)));
    out.push_str(&format_paragraph(&answer, 0, columns()));
    out.push_str(&format_paragraph(&limit, 0, columns()));
    out.push('\n');
    out.push_str(&format_table(result));
    out.push('\n');
    let link = &result.link;
    let facts = [
        Some(format!("client {}", escape_line(&result.client))),
        result
            .dialect
            .as_ref()
            .map(|dialect| format!("dialect {}", escape_line(dialect))),
        link.interface.as_ref().map(|name| match link.mbit_per_s {
            Some(speed) => format!("link {} with {speed} Mbit/s", escape_line(name)),
            None => format!("link {} of unknown speed", escape_line(name)),
        }),
        link.connect_ms
            .map(|ms| format!("a connection takes {ms:.2} ms")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    out.push_str(&format_paragraph(&facts.join("; "), 2, columns()));
    for name in &result.swept {
        let line = format!(
            "removed {} of an earlier measurement that was killed",
            escape_line(name)
        );
        out.push_str(&format_paragraph(&line, 2, columns()));
    }
    out
}

/// Formats the throughput of each part in MB/s as a table.
fn format_table(result: &ShareResult) -> String {
    let mut lines = vec![["MB/s", "write", "read", "client's CPU"].map(str::to_owned)];
    lines.push([
        format!(
            "local disk {}",
            escape_line(&result.local_directory.to_string_lossy())
        ),
        mb_per_s(result.local_write),
        "–".to_owned(),
        "–".to_owned(),
    ]);
    for one in &result.transfers {
        lines.push(format_transfers(one));
    }
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| measure_width(&line[column]))
            .max()
            .unwrap_or(0)
    };
    let mut out = String::new();
    for line in &lines {
        let mut text = format!("  {}", pad_right(&line[0], width(0)));
        for (column, cell) in line.iter().enumerate().skip(1) {
            text.push_str(&format!("  {}", pad_left(cell, width(column))));
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    for one in &result.transfers {
        if let Some(why) = &one.refused {
            let line = format!(
                "{}: refused: {}",
                protection_name(one.protection),
                escape_line(why)
            );
            out.push_str(&format_paragraph(&line, 2, columns()));
        }
    }
    out
}

fn format_transfers(one: &ShareTransfers) -> [String; 4] {
    let range = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        match values.len() {
            0 => "–".to_owned(),
            1 => mb_per_s(high),
            _ => format!("{} to {}", mb_per_s(low), mb_per_s(high)),
        }
    };
    let cpu = match one.refused {
        Some(_) => "–".to_owned(),
        None => format!("{:.0} %", one.client_cpu * 100.0),
    };
    [
        format!("share, {}", protection_name(one.protection)),
        range(&one.writes),
        range(&one.reads),
        cpu,
    ]
}
