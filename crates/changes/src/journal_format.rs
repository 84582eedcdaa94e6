//! Format of the journal: one JSON object per line; the first line is a header. [`State::apply`] defines the meaning of
//! a line. The module `read` converts bytes to lines.

use crate::setting::Original;
use crate::temporary_objects::Made;
use assay_model::change::Setting;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the journal. It increases with every new kind of line, because an older assay must not ignore an
/// unknown line.
pub(crate) const FORMAT: u32 = 2;

/// The format of assay 0.1, without numbers and checksums. Such journals are still read and continued.
pub(crate) const FIRST_FORMAT: u32 = 1;

/// The first line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    #[serde(rename = "assay-journal")]
    pub(crate) format: u32,
    pub(crate) uid: String,
    pub(crate) label: String,
    pub(crate) target: String,
    pub(crate) pid: u32,
    /// Content of /proc/sys/kernel/random/boot_id. Settings that exist only in the kernel's memory are lost when this
    /// boot ends.
    pub(crate) boot: String,
    /// Time at which the session began, in seconds since 1970.
    pub(crate) begun: u64,
}

/// A line after the header: an action, or the result of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Line {
    /// Another process took over the session. The preceding line may be incomplete after a crash.
    Resumed { pid: u32 },
    /// The object is about to be created.
    Made { id: u64, thing: Made },
    /// The object was removed.
    Unmade { id: u64 },
    /// The original state of a setting was recorded; nothing is changed yet.
    Opened {
        id: u64,
        setting: Box<Setting>,
        identity: String,
        original: Box<Original>,
    },
    /// The setting is about to get this value.
    Set { id: u64, value: Option<String> },
    /// The setting was set and read back.
    Confirmed { id: u64, reads: Option<String> },
    /// The setting is in its original state.
    Restored { id: u64 },
    /// The setting stays changed because the user wants it.
    Kept { id: u64, value: Option<String> },
    /// The session does nothing more with the setting.
    Closed { id: u64 },
    /// The journal has damage that its own lines do not show.
    Damaged { what: String },
    /// The session ended regularly: all settings and objects are closed.
    End {},
}

/// A setting that the journal records, with the values that assay gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Switched {
    pub(crate) setting: Setting,
    pub(crate) identity: String,
    pub(crate) original: Original,
    /// Values that assay set or read back after it recorded the original state.
    pub(crate) ours: Vec<Option<String>>,
    /// A value that was set but not read back, so that its effect is unknown.
    pub(crate) unconfirmed: Option<Option<String>>,
    pub(crate) closed: bool,
}

impl Switched {
    /// Whether the setting may differ from its original state.
    pub(crate) fn touched(&self) -> bool {
        !self.ours.is_empty()
    }
}

/// A setting or object in the journal that may have to be rolled back.
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

/// State of a session, as computed from all lines of its journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) entries: BTreeMap<u64, Entry>,
    /// Descriptions of damage that a recovery recorded.
    pub(crate) damaged: Vec<String>,
    /// Id of the last process that took over the session.
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
