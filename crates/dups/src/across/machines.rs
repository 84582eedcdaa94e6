//! Assigns numbers to the machines of the files that are being read.

use super::note;
use crate::Error;
use assay_columns::Reader;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Maximum number of machines whose files can be merged.
const MOST: usize = 1 << 20;
/// Maximum length of a machine's name, in bytes.
const LONGEST: usize = 255;

/// What the files that were read so far contain about a machine.
#[derive(Clone, Debug)]
struct Machine {
    name: String,
    id: String,
    export: String,
    /// Number of files in its export.
    files: u32,
    /// Whether files of another export of this machine were found, too.
    mixed: bool,
    /// Whether only the machine's name is known, from tables of other programs.
    only_named: bool,
}

/// Numbers and names of the machines seen so far.
#[derive(Debug, Default)]
pub struct Machines {
    list: Vec<Machine>,
    by_name: HashMap<String, u32>,
    /// Machine and hash prefix of each file read so far.
    seen: HashSet<(u32, String)>,
}

impl Machines {
    /// Returns the number of the machine that wrote a file. `part` is the hash prefix of the file.
    pub fn enter(&mut self, reader: &Reader, part: &str, path: &Path) -> Result<u32, Error> {
        let say = |name| reader.note(name).unwrap_or_default().to_owned();
        let (name, id, export) = (say(note::MACHINE), say(note::ID), say(note::EXPORT));
        let files = say(note::FILES).parse().unwrap_or(1);
        if name.is_empty() || name.len().max(id.len()).max(export.len()) > LONGEST {
            return Err(Error::strange(
                path,
                "it does not say of which machine it is",
            ));
        }
        let number = self.number(&name)?;
        let known = &mut self.list[number as usize];
        if known.only_named {
            *known = Machine {
                name,
                id: id.clone(),
                export: export.clone(),
                files,
                mixed: false,
                only_named: false,
            };
        }
        if known.id != id {
            return Err(Error::Usage(format!(
                "{}: another machine is called {} as well; give one of them a name of its own with --machine and let it tell again",
                crate::name::format_readable(crate::sys::path_bytes(path)),
                crate::name::format_readable(known.name.as_bytes())
            )));
        }
        known.mixed |= known.export != export;
        self.seen.insert((number, part.to_owned()));
        Ok(number)
    }

    /// Returns the number of a machine whose name occurs in a table of another program. `path` is the path of this
    /// table.
    pub fn enter_name(&mut self, name: &str, path: &Path) -> Result<u32, Error> {
        match (1..=LONGEST).contains(&name.len()) {
            true => self.number(name),
            false => Err(Error::strange(
                path,
                format!(
                    "the name of a machine has {} bytes, expected 1 to {LONGEST}",
                    name.len()
                ),
            )),
        }
    }

    /// Returns the number of a machine, and assigns one to a new machine.
    fn number(&mut self, name: &str) -> Result<u32, Error> {
        if let Some(number) = self.by_name.get(name) {
            return Ok(*number);
        }
        if self.list.len() == MOST {
            return Err(Error::Usage(format!("more than {MOST} machines")));
        }
        let number = self.list.len() as u32;
        self.by_name.insert(name.to_owned(), number);
        self.list.push(Machine {
            name: name.to_owned(),
            id: String::new(),
            export: String::new(),
            files: 0,
            mixed: false,
            only_named: true,
        });
        Ok(number)
    }

    /// Returns the name of a machine.
    pub fn name(&self, number: u32) -> &str {
        self.list.get(number as usize).map_or("", |one| &one.name)
    }

    /// Returns the id of a machine; empty if it has none.
    pub fn id(&self, number: u32) -> &str {
        self.list.get(number as usize).map_or("", |one| &one.id)
    }

    /// Returns the number of machines.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Describes incomplete and mixed exports of machines, one line each, ordered by name.
    pub fn problems(&self) -> Vec<String> {
        let mut counts = vec![0; self.list.len()];
        for (number, _) in &self.seen {
            counts[*number as usize] += 1_u32;
        }
        let mut lines: Vec<String> = self
            .list
            .iter()
            .zip(counts)
            .filter_map(|(one, seen)| {
                let name = crate::name::format_readable(one.name.as_bytes());
                if one.mixed {
                    return Some(format!(
                        "{name}: files of two exports are mixed; export it again, or copy all of one"
                    ));
                }
                (seen < one.files).then(|| {
                    format!("{name}: {seen} of {} files are there; copy all of them", one.files)
                })
            })
            .collect();
        lines.sort();
        lines
    }
}
