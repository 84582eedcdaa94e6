//! `assay dups export` and `assay dups across`: finds duplicates across machines that have too many files for one
//! index.

use super::documents::{Across, Exports, MachineExport};
use super::explore::print_json;
use super::index_location::Place;
use crate::context::{self, report_writer};
use crate::status::Status;
use assay_dups::across::{Teller, export, export_queries};
use assay_dups::name::format_readable;
use assay_model::SCHEMA_VERSION;
use assay_model::size::Convention::Binary;
use assay_render::table::render_table;
use assay_render::units::{format_grouped, format_plural};
use clap::Args;
use std::io::Write as _;
use std::path::PathBuf;

/// Arguments of `assay dups export`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  assay dups scan /srv --hash-all        on each machine, so that every content has a hash
  assay dups export /var/tmp/hashes      without any path; what it exported there before is replaced
  assay dups across /var/tmp/hashes      where the exports of all machines were brought together

One Parquet file for each first digit of the hash: DIR/prefix=a/MACHINE.parquet, with the columns
machine, hash, size and count, a row for each content, in order. Only you can read them: who knows a
hash can tell whether this machine has that content.")]
pub struct Export {
    /// Folder to write to; it may hold the exports of other machines
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Name this machine in the export [default: its host name]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Split into 16, 256 or 4096 files by 1, 2 or 3 digits of the hash
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    digits: u8,
}

/// Arguments of `assay dups across`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  assay dups across hashes               what the machines have in common, and the largest of it
  assay dups across nas/ laptop/ --json  exports in several folders
  assay dups across large.parquet        what DuckDB, pyarrow or another program wrote

Each file is read once, a page at a time: memory does not grow with the number of files. Any program
that reads Parquet answers other questions about the same files. Tables of other programs need the
columns machine, hash, size and count, in any order and with rows in any order.

Exit status: 0 done, 2 error, 3 some of the exports are not whole.")]
pub struct AcrossArgs {
    /// Folders with exports, or Parquet files
    #[arg(required = true, value_name = "DIR|FILE")]
    dirs: Vec<PathBuf>,
    /// Show the N contents with most to gain
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u16).range(..=10_000))]
    top: u16,
    /// Use N threads [default: one per processor]
    #[arg(long, value_name = "N")]
    threads: Option<std::num::NonZeroUsize>,
}

/// Returns the identity of this machine for an export, with a new random id of the export.
pub(super) fn teller(named: Option<&String>) -> anyhow::Result<Teller> {
    let here = assay_facts::machine(&assay_host::LiveHost);
    let (id, name) = here.map_or((None, None), |here| (Some(here.id), here.name));
    let machine = named.cloned().or(name).ok_or_else(|| {
        anyhow::anyhow!("the name of this machine is unknown: give one with --machine NAME")
    })?;
    anyhow::ensure!(
        (1..=64).contains(&machine.len()) && !machine.chars().any(char::is_control),
        "`{}`: expected a name of 1 to 64 bytes without control characters",
        format_readable(machine.as_bytes())
    );
    let export = context::random_uid()?;
    Ok(Teller {
        machine,
        id,
        export,
    })
}

pub fn export(args: &Export, place: &Place) -> anyhow::Result<Status> {
    let index = place.read()?;
    let teller = teller(args.machine.as_ref())?;
    let done = export::export(&index, &args.dir, args.digits, &teller)?;
    anyhow::ensure!(
        !done.is_empty(),
        "nothing was scanned yet: run `assay dups scan PATH` first"
    );
    if place.json {
        let one = |(machine, done): (&String, &export::Exported)| MachineExport {
            machine: machine.clone(),
            contents: done.contents,
            files: done.files,
            files_without_hash: done.unhashed,
            written: done.parts,
        };
        print_json(&Exports {
            schema: SCHEMA_VERSION,
            exported: done.iter().map(one).collect(),
        })?;
        return Ok(Status::Ok);
    }
    let mut out = report_writer()?;
    for (machine, done) in &done {
        let machine = format_readable(machine.as_bytes());
        writeln!(
            out,
            "{machine}: {} of {}, in {}",
            format_plural(done.contents, "content", "contents"),
            format_plural(done.files, "file", "files"),
            format_plural(done.parts, "Parquet file", "Parquet files"),
        )?;
        if done.unhashed > 0 {
            eprintln!(
                "assay: {machine}: {} without a hash are not in it; scan with --hash-all",
                format_plural(done.unhashed, "file", "files")
            );
        }
    }
    out.flush()?;
    Ok(Status::Ok)
}

pub fn across(args: &AcrossArgs, place: &Place) -> anyhow::Result<Status> {
    let threads = args.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
    let answer = export_queries::ask(&args.dirs, args.top.into(), threads)?;
    for problem in &answer.problems {
        eprintln!("assay: {problem}");
    }
    let status = match answer.problems.is_empty() {
        true => Status::Ok,
        false => Status::Unreadable,
    };
    if place.json {
        print_json(&Across {
            schema: SCHEMA_VERSION,
            answer,
        })?;
        return Ok(status);
    }
    text(&answer)?;
    Ok(status)
}

fn text(answer: &export_queries::CommonFiles) -> anyhow::Result<()> {
    let mut out = report_writer()?;
    writeln!(
        out,
        "{}, {}, {}",
        format_plural(answer.machines.len() as u64, "machine", "machines"),
        format_plural(answer.files, "file", "files"),
        Binary.show(answer.bytes)
    )?;
    writeln!(
        out,
        "{} of several files: {} could be free if each were kept once",
        format_plural(answer.groups, "content", "contents"),
        Binary.show(answer.redundant_bytes)
    )?;
    writeln!(
        out,
        "{} on at least two machines: {} beside one machine's",
        format_plural(answer.shared_groups, "content", "contents"),
        Binary.show(answer.shared_bytes)
    )?;
    if answer.repeated_rows > 0 {
        writeln!(
            out,
            "given twice and counted once: {}",
            format_plural(answer.repeated_rows, "row", "rows")
        )?;
    }
    let row = |one: &export_queries::ExportMachine| {
        vec![
            format_readable(one.name.as_bytes()),
            format_grouped(one.files),
            Binary.show(one.bytes),
            Binary.show(one.redundant_bytes),
            Binary.show(one.shared_bytes),
        ]
    };
    let rows: Vec<Vec<String>> = answer.machines.iter().map(row).collect();
    let head = ["machine", "files", "size", "own copies", "also elsewhere"];
    write!(out, "\n{}", render_table(0, "lrrrr", &head, &rows))?;
    if !answer.largest.is_empty() {
        writeln!(out, "\nMost to gain:")?;
    }
    for one in &answer.largest {
        let names: Vec<String> = one
            .names
            .iter()
            .map(|name| format_readable(name.as_bytes()))
            .collect();
        let more = match one.machines - names.len() as u64 {
            0 => String::new(),
            more => format!(" and {}", format_plural(more, "other", "others")),
        };
        writeln!(
            out,
            "  {}  {} of {} on {}{more}  {}",
            Binary.show(one.redundant_bytes),
            format_plural(one.files, "file", "files"),
            Binary.show(one.size),
            names.join(", "),
            one.hash
        )?;
    }
    out.flush()?;
    Ok(())
}
