//! `assay dups offer`, `assay dups collide` and `--wanted`: finds files that may exist on several machines by size and
//! samples. Only these files must then be hashed.

use super::across::teller;
use super::documents::{Collision, Collisions, Name, OfferedFiles};
use super::explore::print_json;
use super::index_location::Place;
use super::progress;
use crate::context::{check_named_once, report_writer, unwritten};
use crate::status::Status;
use anyhow::Context as _;
use assay_columns::TableSource;
use assay_dups::across::collide::find_common_samples as find;
use assay_dups::across::offer::write_offer;
use assay_dups::across::requested_hashes::Wanted;
use assay_dups::name::format_readable;
use assay_host::OutputFile;
use assay_model::SCHEMA_VERSION;
use assay_render::units::format_plural;
use clap::Args;
use std::io::{BufWriter, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size in bytes of a `--wanted` list from standard input.
const LONGEST: u64 = 64 << 30;

/// Arguments of `assay dups offer`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ssh web1 assay dups offer - > offers/web1.parquet        at the hub, for each machine
  assay dups collide offers/*.parquet --to wanted
  ssh web1 assay dups refresh --wanted - < wanted/web1.parquet
  ssh web1 assay dups export hashes                        and bring those together

Of each file in the index 12 KiB are read at most. No path is told, and no hash of a whole file that is
longer than that.

Exit status: 0 done, 2 error, 3 some files could not be read or have changed since they were scanned.")]
pub struct Offer {
    /// File to write; - is standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name this machine [default: its host name]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
}

/// Arguments of `assay dups collide`.
#[derive(Args)]
#[command(after_help = "\
Example:
  assay dups collide offers/*.parquet --to wanted      writes wanted/MACHINE.parquet

An offer that is given twice collides with no other of the same machine. Interrupted or killed, it is
run again: what lies in DIR under its name is whole.")]
pub struct Collide {
    /// Files that `assay dups offer` wrote on the machines
    #[arg(required = true, value_name = "OFFER")]
    offers: Vec<PathBuf>,
    /// Write the list of files to hash, one per machine, to this folder
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub fn offer(args: &Offer, place: &Place) -> anyhow::Result<Status> {
    let index = place.read()?;
    let teller = teller(args.machine.as_ref())?;
    let to_output = args.file == Path::new("-");
    anyhow::ensure!(
        !(to_output && place.json),
        "cannot print both the offer and JSON on standard output: name a FILE, or leave out --json"
    );
    let done = if to_output {
        let out = BufWriter::new(std::io::stdout());
        let (done, mut out) =
            progress::watch(None, |control| write_offer(&index, out, &teller, control))??;
        out.flush().context("cannot write the offer")?;
        done
    } else {
        check_named_once(&args.file)?;
        let out = BufWriter::new(OutputFile::create_private(&args.file).map_err(unwritten)?);
        let (done, out) =
            progress::watch(None, |control| write_offer(&index, out, &teller, control))??;
        let out = out.into_inner().context("cannot write the offer")?;
        out.publish().map_err(unwritten)?;
        done
    };
    let left_out = format_plural(done.left_out, "file", "files");
    if done.left_out > 0 {
        eprintln!(
            "assay: {left_out} could not be read or have changed since they were scanned, and are not in it; \
             `assay dups refresh` looks again"
        );
    }
    if place.json {
        print_json(&OfferedFiles {
            schema: SCHEMA_VERSION,
            machine: teller.machine,
            rows: done.rows,
            files: done.names,
            left_out: done.left_out,
        })?;
    } else {
        eprintln!(
            "{}: {} of {}",
            format_readable(teller.machine.as_bytes()),
            format_plural(done.rows, "sample", "samples"),
            format_plural(done.names, "file", "files")
        );
    }
    Ok(match done.left_out {
        0 => Status::Ok,
        _ => Status::Unreadable,
    })
}

pub fn collide(args: &Collide, place: &Place) -> anyhow::Result<Status> {
    let done = find(&args.offers, &args.to)?;
    if place.json {
        let machines = done.into_iter().map(|one| Collision {
            machine: one.machine,
            rows: one.rows,
            written: Name::of(one.path.as_os_str().as_bytes()),
        });
        print_json(&Collisions {
            schema: SCHEMA_VERSION,
            machines: machines.collect(),
        })?;
        return Ok(Status::Ok);
    }
    let mut out = report_writer()?;
    for one in &done {
        writeln!(
            out,
            "{}: {} to hash: {}",
            format_readable(one.machine.as_bytes()),
            format_plural(one.rows, "sample", "samples"),
            format_readable(one.path.as_os_str().as_bytes())
        )?;
    }
    out.flush()?;
    Ok(Status::Ok)
}

/// Returns the files that must be hashed according to `--wanted`; `None` without the option.
pub(super) fn wanted(file: Option<&Path>) -> anyhow::Result<Option<Arc<Wanted>>> {
    let Some(path) = file else {
        return Ok(None);
    };
    let id = assay_facts::machine(&assay_host::LiveHost).map(|here| here.id);
    if path != Path::new("-") {
        return Ok(Some(Arc::new(Wanted::read(path, id.as_deref())?)));
    }
    // A table is read from its end, which a pipe does not support.
    let mut file = tempfile::tempfile().context("cannot create a temporary file")?;
    let mut input = std::io::stdin().lock().take(LONGEST);
    std::io::copy(&mut input, &mut file)
        .context("cannot store standard input in a temporary file")?;
    let source = TableSource::file(file)?;
    let wanted = Wanted::of(source, Path::new("standard input"), id.as_deref())?;
    Ok(Some(Arc::new(wanted)))
}
