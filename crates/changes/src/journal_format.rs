//! The language of the journal: one JSON object a line, the first one a header. What a line means
//! is what [`State::apply`] does with it; how bytes become lines is in `read`.

use crate::setting::Original;
use crate::temporary_objects::Made;
use assay_model::change::Setting;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the journal. It grows with every new kind of line: an older assay must not pass over
/// what it does not understand.
pub(crate) const FORMAT: u32 = 2;

/// The format of assay 0.1, without numbers and checksums. It is still read, and carried on with.
pub(crate) const FIRST_FORMAT: u32 = 1;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    #[serde(rename = "assay-journal")]
    pub(crate) format: u32,
    pub(crate) uid: String,
    pub(crate) label: String,
    pub(crate) target: String,
    pub(crate) pid: u32,
    /// /proc/sys/kernel/random/boot_id: what the kernel holds in memory ends with it.
    pub(crate) boot: String,
    /// Seconds since 1970.
    pub(crate) begun: u64,
}

/// Every other line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Line {
    /// Somebody takes over, perhaps behind a line that a crash tore.
    Resumed { pid: u32 },
    /// About to be made.
    Made { id: u64, thing: Made },
    /// Gone again.
    Unmade { id: u64 },
    /// A setting as it was found. Nothing is changed yet.
    Opened {
        id: u64,
        setting: Box<Setting>,
        identity: String,
        original: Box<Original>,
    },
    /// About to be set.
    Set { id: u64, value: Option<String> },
    /// Was set, and reads so.
    Confirmed { id: u64, reads: Option<String> },
    /// Is as it was found.
    Restored { id: u64 },
    /// Stays as it is, because the user wants it so.
    Kept { id: u64, value: Option<String> },
    /// Nothing more will be done with it.
    Closed { id: u64 },
    /// The journal was found damaged in a way that its own lines do not show.
    Damaged { what: String },
    /// The proper end: everything is closed.
    End {},
}

/// A setting in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Switched {
    pub(crate) setting: Setting,
    pub(crate) identity: String,
    pub(crate) original: Original,
    /// What assay set or read back since it was last as found.
    pub(crate) ours: Vec<Option<String>>,
    /// Set without a confirmation: what came of it is not known.
    pub(crate) unconfirmed: Option<Option<String>>,
    pub(crate) closed: bool,
}

impl Switched {
    /// Whether it may differ from how it was found.
    pub(crate) fn touched(&self) -> bool {
        !self.ours.is_empty()
    }
}

/// Something in the journal that may have to be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Made { thing: Made, gone: bool },
    Switched(Box<Switched>),
}

impl Entry {
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Made { gone, .. } => !gone,
            Self::Switched(switched) => !switched.closed,
        }
    }
}

/// What the lines of a journal amount to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) entries: BTreeMap<u64, Entry>,
    /// What a recovery has noted of damage.
    pub(crate) damaged: Vec<String>,
    /// The last process that took the session over.
    pub(crate) resumed: Option<u32>,
}

impl State {
    pub(crate) fn next(&self) -> u64 {
        self.entries.keys().next_back().map_or(0, |last| last + 1)
    }

    pub(crate) fn open(&self) -> impl DoubleEndedIterator<Item = (u64, &Entry)> + Clone {
        let all = self.entries.iter().map(|(id, entry)| (*id, entry));
        all.filter(|(_, entry)| entry.is_open())
    }

    pub(crate) fn switched(&self, id: u64) -> Option<&Switched> {
        match self.entries.get(&id) {
            Some(Entry::Switched(switched)) => Some(switched),
            _ => None,
        }
    }

    pub(crate) fn apply(&mut self, line: Line) {
        let mut with = |id: u64, change: &mut dyn FnMut(&mut Switched)| {
            if let Some(Entry::Switched(switched)) = self.entries.get_mut(&id) {
                change(switched);
            }
        };
        match line {
            Line::Resumed { pid } => self.resumed = Some(pid),
            Line::End {} => {}
            Line::Damaged { what } => self.damaged.push(what),
            Line::Made { id, thing } => {
                let entry = Entry::Made { thing, gone: false };
                self.entries.insert(id, entry);
            }
            Line::Unmade { id } => {
                if let Some(Entry::Made { gone, .. }) = self.entries.get_mut(&id) {
                    *gone = true;
                }
            }
            Line::Opened {
                id,
                setting,
                identity,
                original,
            } => {
                let switched = Switched {
                    setting: *setting,
                    identity,
                    original: *original,
                    ours: Vec::new(),
                    unconfirmed: None,
                    closed: false,
                };
                let entry = Entry::Switched(Box::new(switched));
                self.entries.insert(id, entry);
            }
            Line::Set { id, value } => with(id, &mut |switched| {
                switched.ours.push(value.clone());
                switched.unconfirmed = Some(value.clone());
            }),
            Line::Confirmed { id, reads } => with(id, &mut |switched| {
                switched.ours.push(reads.clone());
                switched.unconfirmed = None;
            }),
            Line::Restored { id } => with(id, &mut |switched| {
                switched.ours.clear();
                switched.unconfirmed = None;
            }),
            Line::Kept { id, .. } | Line::Closed { id } => {
                with(id, &mut |switched| switched.closed = true);
            }
        }
    }
}
