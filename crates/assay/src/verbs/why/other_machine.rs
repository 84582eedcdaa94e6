//! `assay why --host`: an uploaded assay makes a recording on the other machine; this machine evaluates it.

use super::Args;
use crate::global::Global;
use crate::remote::{RemoteWork, Value};
use crate::status::{Status, Unreadable};
use assay_render::text::escape_line;
use assay_why::{WatchRecording, read_recording};

/// Options that the local assay evaluates and does not pass to the other machine.
const OURS: [(&str, Value); 4] = [
    ("--record", Value::One),
    ("--html", Value::One),
    ("--json", Value::None),
    ("--markdown", Value::None),
];

/// Makes a recording on the other machine. Returns the recording and its bytes. If there is no recording, returns the
/// remote exit status.
pub(super) fn record(
    args: &Args,
    global: &Global,
) -> anyhow::Result<Result<(WatchRecording, Vec<u8>), Status>> {
    let asked = RemoteWork {
        cut: OURS.to_vec(),
        more: vec!["--record=-".into()],
        quiet: args.quiet,
        ..RemoteWork::default()
    };
    let done = args
        .remote
        .go(args.quiet, |way| way.carry(&asked, global))?;
    if done.stdout.is_empty() {
        return Ok(Err(done.status()));
    }
    let mut recording = read_recording(&mut done.stdout.as_slice()).map_err(|error| {
        let host = escape_line(args.remote.host());
        Unreadable(format!("cannot read the recording of {host}: {error}"))
    })?;
    recording.header.machine = args.remote.host().to_owned();
    Ok(Ok((recording, done.stdout)))
}
