//! The language of the journal: one JSON object a line, the first one a header. What a line means
//! is what [`State::apply`] does with it.

use crate::made::Made;
use crate::setting::Original;
use assay_model::change::Setting;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the journal. It grows with every new kind of line: an older assay must not pass over
/// what it does not understand.
pub(crate) const FORMAT: u32 = 1;

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
}

impl State {
    pub(crate) fn next(&self) -> u64 {
        self.entries.keys().next_back().map_or(0, |last| last + 1)
    }

    pub(crate) fn open(&self) -> impl DoubleEndedIterator<Item = (u64, &Entry)> {
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
            Line::Resumed { .. } => {}
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

/// What a journal's bytes say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The header was never written whole: nothing was done yet.
    Unborn,
    /// A journal.
    Journal {
        header: Box<Header>,
        state: State,
        /// The first line that cannot be read although others follow that were written later: the
        /// file was damaged, and what that line announced is not known.
        damaged: Option<usize>,
    },
}

/// Reads a journal. A torn or garbage tail is passed over: each line is on disk before the next
/// one is written, so what a torn line would have announced was not begun, and what it would have
/// concluded is found out by looking.
///
/// # Errors
/// Why this is no journal that this assay understands.
pub(crate) fn read(bytes: &[u8]) -> Result<Read, String> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    let Some((_, first)) = lines.next() else {
        return Ok(Read::Unborn);
    };
    let header = match serde_json::from_slice::<Header>(first) {
        Ok(header) if header.format == FORMAT => header,
        other => match format_of(first) {
            Some(format) if format != u64::from(FORMAT) => {
                return Err(format!(
                    "a journal of format {format}; this assay knows format {FORMAT}: use the newer assay that wrote it to take its changes back"
                ));
            }
            // The header is forced to disk before anything is done.
            None if !first.ends_with(b"\n") => return Ok(Read::Unborn),
            None if first.iter().all(|byte| *byte == 0) => return Ok(Read::Unborn),
            _ => {
                let why = other.err().map(|error| error.to_string());
                return Err(format!(
                    "not a journal of assay ({})",
                    why.unwrap_or_default()
                ));
            }
        },
    };
    let mut header = header;
    let mut state = State::default();
    let (mut unreadable, mut damaged) = (None, None);
    for (number, line) in lines {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Line>(line) {
            Ok(line) => {
                let torn = unreadable.take();
                if torn.is_some() && !matches!(line, Line::Resumed { .. }) {
                    damaged = damaged.or(torn);
                }
                if let Line::Resumed { pid } = line {
                    header.pid = pid;
                }
                state.apply(line);
            }
            Err(_) => unreadable = unreadable.or(Some(number + 1)),
        }
    }
    Ok(Read::Journal {
        header: Box::new(header),
        state,
        damaged,
    })
}

fn format_of(line: &[u8]) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    value.get("assay-journal")?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        Header {
            format: FORMAT,
            uid: "0123456789abcdef".into(),
            label: "trial of \"x\"\n".into(),
            target: "/mnt/a b".into(),
            pid: 7,
            boot: "b".into(),
            begun: 1,
        }
    }

    fn write(header: &Header, lines: &[Line]) -> Vec<u8> {
        let mut text = serde_json::to_vec(header).unwrap();
        for line in lines {
            text.push(b'\n');
            text.extend(serde_json::to_vec(line).unwrap());
        }
        text.push(b'\n');
        text
    }

    fn lines() -> Vec<Line> {
        let original = Original {
            value: Some("1".into()),
            shown: "1".into(),
            origin: crate::Origin::Set,
            place: "/proc/sys/a".into(),
            along: Vec::new(),
        };
        vec![
            Line::Made {
                id: 0,
                thing: Made::File("/tmp/assay-0123456789abcdef".into()),
            },
            Line::Opened {
                id: 1,
                setting: Box::new(Setting::Sysctl { key: "a".into() }),
                identity: "kernel:/proc/sys/a".into(),
                original: Box::new(original),
            },
            Line::Set {
                id: 1,
                value: Some("2".into()),
            },
            Line::Confirmed {
                id: 1,
                reads: Some("2".into()),
            },
            Line::Restored { id: 1 },
            Line::Closed { id: 1 },
            Line::Unmade { id: 0 },
        ]
    }

    fn state(lines: &[Line]) -> State {
        let mut state = State::default();
        lines.iter().cloned().for_each(|line| state.apply(line));
        state
    }

    /// What a journal says, whether it is damaged apart.
    fn said(bytes: &[u8]) -> Option<(State, Option<usize>)> {
        match read(bytes).unwrap() {
            Read::Unborn => None,
            Read::Journal { state, damaged, .. } => Some((state, damaged)),
        }
    }

    #[test]
    fn torn_anywhere_it_says_what_its_whole_lines_say() {
        let (lines, whole) = (lines(), write(&header(), &lines()));
        for end in 0..=whole.len() {
            let torn = &whole[..end];
            // A line without its line end is whole all the same when all of it is there.
            let ends = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
            let count = ends(torn) + usize::from(whole.get(end) == Some(&b'\n'));
            let expected = match count {
                0 => None,
                count => Some((state(&lines[..count - 1]), None)),
            };
            assert_eq!(said(torn), expected, "{end}");
        }
    }

    #[test]
    fn a_line_lost_in_the_middle_is_damage_unless_somebody_took_over_behind_it() {
        let mut text = write(&header(), &lines()[..2]);
        text.extend(b"{\"set\":{\"id\":1,\"va");
        let torn = text.clone();
        let (known, damaged) = said(&torn).unwrap();
        assert_eq!((known, damaged), (state(&lines()[..2]), None));
        let more = |mut text: Vec<u8>, line: &Line| {
            text.push(b'\n');
            text.extend(serde_json::to_vec(line).unwrap());
            text.push(b'\n');
            text
        };
        let resumed = more(torn.clone(), &Line::Resumed { pid: 8 });
        assert_eq!(said(&resumed).unwrap().1, None);
        let resumed = more(resumed, &Line::Closed { id: 1 });
        assert_eq!(said(&resumed).unwrap().1, None);
        let damaged = more(torn, &Line::Closed { id: 1 });
        assert_eq!(said(&damaged).unwrap().1, Some(4));
    }

    #[test]
    fn other_files_and_later_formats_are_refused() {
        let told = |text: &[u8]| read(text).unwrap_err();
        assert!(told(b"[Unit]\nDescription=x\n").contains("not a journal of assay"));
        assert!(told(b"{\"assay-journal\":1}\n").contains("missing field"));
        let later = told(b"{\"assay-journal\":2,\"more\":[]}\n");
        assert!(
            later.contains("format 2") && later.contains("format 1"),
            "{later}"
        );
        // What a power cut leaves of a file whose first line never reached the disk.
        assert_eq!(read(b""), Ok(Read::Unborn));
        assert_eq!(read(b"{\"assay-jou"), Ok(Read::Unborn));
        assert_eq!(read(&[0; 512]), Ok(Read::Unborn));
    }

    #[test]
    fn names_that_are_no_text_survive() {
        use std::os::unix::ffi::OsStringExt as _;
        let name = std::ffi::OsString::from_vec(b"/tmp/\xff\n\"assay-0123456789abcdef".to_vec());
        let made = vec![Line::Made {
            id: 0,
            thing: Made::File(name.into()),
        }];
        assert_eq!(said(&write(&header(), &made)), Some((state(&made), None)));
    }

    proptest! {
        #[test]
        fn garbage_behind_the_last_line_changes_nothing(
            garbage in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let lines = lines();
            let mut text = write(&header(), &lines[..3]);
            text.extend(&garbage);
            prop_assert_eq!(said(&text), Some((state(&lines[..3]), None)));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }
    }
}
