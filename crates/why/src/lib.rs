//! Finds out why a machine is slow. [`watch()`] takes a snapshot of the machine (a look) every second through
//! [`assay_host::Host`]. [`WatchWindow`] computes rates from the snapshots, and [`judge_window()`] compares them with
//! the pages in `suspects/`. The crate changes nothing and generates no load. `assay-report` renders the result.

mod answer;
mod figures;
mod machine_snapshot;
mod read;
mod recording;
mod resolve;
mod sampler;
mod suspect_page;
mod watch_subject;
mod window;

pub use answer::{ClassOfWaiting, HARDLY_WAITING, RankedSuspect, SlownessAnswer, judge_window};
pub use machine_snapshot::{Entity, EntityKind, MachineSnapshot, Numbers};
pub use recording::{RecordingError, RecordingHeader, WatchRecording, read_recording, write_line};
pub use resolve::{NothingMeant, resolve_word};
pub use sampler::{WatchPace, watch};
pub use suspect_page::{SuspectPage, SuspectPageError, load_suspects};
pub use watch_subject::WatchSubject;
pub use window::{Curve, WatchWindow, WatchedEntity};
