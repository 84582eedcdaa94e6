//! Assigns numbers to the machines of the files that are being read.

use super::note;
use crate::Error;
use assay_columns::Reader;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Maximum number of machines.
const MOST: usize = 1 << 20;
/// Maximum length of a machine's name, in bytes.
const LONGEST: usize = 255;

/// A machine.
#[derive(Clone, Debug)]
struct Machine {
    name: String,
    id: String,
    export: String,
    /// Number of files in its export.
    files: u32,
    /// Files of another export were among them.
    mixed: bool,
}

/// All machines.
#[derive(Debug, Default)]
pub struct Machines {
    list: Vec<Machine>,
    by_name: HashMap<String, u32>,
    /// Machine and prefix of the files read so far.
    seen: HashSet<(u32, String)>,
}

impl Machines {
    /// Returns the number of a file's machine. `part` is the prefix of the file.
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
        let number = match self.by_name.get(&name) {
            Some(number) => *number,
            None if self.list.len() == MOST => {
                return Err(Error::Usage(format!("more than {MOST} machines")));
            }
            None => {
                let number = self.list.len() as u32;
                self.by_name.insert(name.clone(), number);
                self.list.push(Machine {
                    name,
                    id: id.clone(),
                    export: export.clone(),
                    files,
                    mixed: false,
                });
                number
            }
        };
        let known = &mut self.list[number as usize];
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

    /// Describes problems with the machines' files, one line each, ordered by name.
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
