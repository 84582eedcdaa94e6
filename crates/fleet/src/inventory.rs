//! Lists machines from a TOML file, from the ssh configuration, from the output of `ansible-inventory --list`, or from
//! the nodes and guests of Proxmox VE. Groups are lists of names and patterns.

mod ansible;
mod proxmox;
mod ssh;

use crate::session::{SessionError, SshSession, check_name};
use assay_host::{Host as _, HostError, LiveHost};
use assay_render::text::escape_line;
use globset::{Glob, GlobMatcher};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};

/// A machine that the inventory lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Name of the machine in commands and reports.
    pub name: String,
    /// Destination for ssh, which may differ from the name.
    pub address: String,
    /// Names of the groups to which the machine belongs.
    pub groups: BTreeSet<String>,
    /// Whether to become root with sudo for reading; `None` if the inventory file does not set this.
    pub sudo: Option<bool>,
    /// Time limit of a check in seconds; `None` if the inventory file does not set this.
    pub deadline: Option<u64>,
}

/// All machines whose names are known, and their groups.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    machines: BTreeMap<String, Machine>,
    /// Path of an ssh configuration file from the inventory file; `None` if the inventory file does not set one.
    pub ssh_config: Option<PathBuf>,
}

type Cause = Box<dyn Error + Send + Sync>;

/// A TOML error. Its message ends with an empty line. As the source of another error, the message would be printed
/// twice.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.to_string().trim())]
struct Form(toml::de::Error);

/// Reason why the inventory, or some of its machines, are not available.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// A file cannot be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A file is not text.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Reason why the file is not text.
        source: Cause,
    },
    /// A file is invalid.
    #[error("{name}: {source}")]
    Invalid {
        /// Name of the file, with the line if it is known.
        name: String,
        /// Description of the fault.
        source: Cause,
    },
    /// No machine or group has this name.
    #[error("{what}: unknown machine or group; known are {known}")]
    Unknown {
        /// Name that the user gave.
        what: String,
        /// Names that exist, as text for the user.
        known: String,
    },
    /// A Proxmox node could not list its machines.
    #[error(transparent)]
    Node(#[from] SessionError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    #[serde(default)]
    sudo: Option<bool>,
    #[serde(default)]
    deadline: Option<u64>,
    #[serde(default)]
    ssh_config: Option<PathBuf>,
    #[serde(default)]
    groups: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    machines: BTreeMap<String, WrittenMachine>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenMachine {
    #[serde(default)]
    address: Option<String>,
    #[serde(default)]
    sudo: Option<bool>,
    #[serde(default)]
    deadline: Option<u64>,
}

/// Maximum size of an inventory in bytes.
const LONGEST: usize = 8 << 20;

impl Inventory {
    /// Reads a TOML file. Without a file, lists the machines in the ssh configuration.
    ///
    /// # Errors
    /// The file cannot be read or is invalid.
    pub fn open(file: Option<&Path>, ssh_config: Option<&Path>) -> Result<Self, InventoryError> {
        let Some(path) = file else {
            let mut all = Self {
                ssh_config: ssh_config.map(Path::to_owned),
                ..Self::default()
            };
            for name in ssh::names(ssh_config)? {
                all.add(Machine::new(&name));
            }
            return Ok(all);
        };
        let text = read(path)?;
        Self::parse(&text, path, ssh_config)
    }

    /// Reads the output of `ansible-inventory --list`; `-` is standard input.
    ///
    /// # Errors
    /// The output cannot be read or is invalid.
    pub fn of_ansible(path: &Path) -> Result<Self, InventoryError> {
        let text = match path == Path::new("-") {
            true => std::io::read_to_string(std::io::Read::take(std::io::stdin(), LONGEST as u64))
                .map_err(|error| InventoryError::Unreadable {
                    path: path.to_owned(),
                    source: error.into(),
                })?,
            false => read(path)?,
        };
        let mut all = Self::default();
        for machine in ansible::machines(&text).map_err(|reason| InventoryError::Invalid {
            name: path.display().to_string(),
            source: reason.into(),
        })? {
            all.add(machine);
        }
        Ok(all)
    }

    /// Lists running nodes and guests of Proxmox VE. Requests the list from one node over ssh. Checks `stop` several
    /// times a second.
    ///
    /// # Errors
    /// The node does not answer, or its answer is invalid.
    pub fn of_proxmox(
        session: &SshSession,
        stop: &mut dyn FnMut(std::time::Duration) -> bool,
    ) -> Result<Self, InventoryError> {
        let mut all = Self {
            ssh_config: session.config.clone(),
            ..Self::default()
        };
        for machine in proxmox::machines(session, stop)? {
            all.add(machine);
        }
        Ok(all)
    }

    /// Parses the answers of a Proxmox VE node, as received over ssh.
    ///
    /// # Errors
    /// The answers are invalid, or a name in them cannot be the name of a machine.
    #[doc(hidden)]
    pub fn told_by_proxmox(bytes: &[u8]) -> Result<Self, String> {
        let mut all = Self::default();
        for machine in proxmox::told(&String::from_utf8_lossy(bytes), Some("root"))? {
            all.add(machine);
        }
        Ok(all)
    }

    fn parse(text: &str, path: &Path, ssh_config: Option<&Path>) -> Result<Self, InventoryError> {
        let invalid = |source: Cause| InventoryError::Invalid {
            name: path.display().to_string(),
            source,
        };
        let written: Written = toml::from_str(text).map_err(|error| invalid(Form(error).into()))?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let here = path.parent().unwrap_or(Path::new("/"));
        let own_config = written.ssh_config.map(|file| here.join(file));
        let ssh_config = ssh_config.map(Path::to_owned).or(own_config);
        let mut all = Self {
            ssh_config: ssh_config.clone(),
            ..Self::default()
        };
        for (name, said) in written.machines {
            check_name(&name).map_err(|error| invalid(error.into()))?;
            let address = said.address.unwrap_or_else(|| name.clone());
            check_name(&address).map_err(|error| invalid(error.into()))?;
            all.add(Machine {
                address,
                sudo: said.sudo,
                deadline: said.deadline,
                ..Machine::new(&name)
            });
        }
        // The ssh configuration is read only if a pattern may refer to it.
        let mut of_ssh: Option<Vec<String>> = None;
        for (group, members) in written.groups {
            for member in members {
                let names = match pattern(&member) {
                    None => {
                        check_name(&member).map_err(|error| invalid(error.into()))?;
                        vec![member.clone()]
                    }
                    Some(pattern) => {
                        let known = match &of_ssh {
                            Some(known) => known,
                            None => of_ssh.insert(ssh::names(ssh_config.as_deref())?),
                        };
                        let own = all.machines.keys();
                        let fits = |name: &&String| pattern.is_match(name);
                        let names: BTreeSet<String> =
                            own.chain(known).filter(fits).cloned().collect();
                        if names.is_empty() {
                            let why = format!(
                                "group {group}: `{member}` means no machine, neither of this file nor of the configuration of ssh"
                            );
                            return Err(invalid(why.into()));
                        }
                        names.into_iter().collect()
                    }
                };
                for name in names {
                    if !all.machines.contains_key(&name) {
                        all.add(Machine::new(&name));
                    }
                    if let Some(machine) = all.machines.get_mut(&name) {
                        machine.groups.insert(group.clone());
                    }
                }
            }
        }
        for machine in all.machines.values_mut() {
            machine.sudo = machine.sudo.or(written.sudo);
            machine.deadline = machine.deadline.or(written.deadline);
        }
        Ok(all)
    }

    fn add(&mut self, machine: Machine) {
        self.machines.insert(machine.name.clone(), machine);
    }

    /// Returns all machines, ordered by name.
    pub fn all(&self) -> impl Iterator<Item = &Machine> {
        self.machines.values()
    }

    /// Selects the machines that match these names, groups and patterns. Each machine is returned once; `all` matches
    /// every machine. With `others`, an unknown name becomes a machine with this name as the destination for ssh.
    ///
    /// # Errors
    /// A name matches no machine.
    pub fn choose(&self, wanted: &[String], others: bool) -> Result<Vec<Machine>, InventoryError> {
        let mut found: BTreeMap<String, Machine> = BTreeMap::new();
        for what in wanted {
            let pattern = pattern(what);
            let meant = |machine: &&Machine| {
                what == "all"
                    || machine.name == *what
                    || machine.groups.contains(what)
                    || pattern
                        .as_ref()
                        .is_some_and(|one| one.is_match(&machine.name))
            };
            let before = found.len();
            let meant: Vec<&Machine> = self.machines.values().filter(meant).collect();
            found.extend(
                meant
                    .iter()
                    .map(|&machine| (machine.name.clone(), machine.clone())),
            );
            if !meant.is_empty() || found.len() > before {
                continue;
            }
            if others && pattern.is_none() && what != "all" && check_name(what).is_ok() {
                found.insert(what.clone(), Machine::new(what));
                continue;
            }
            return Err(InventoryError::Unknown {
                what: escape_line(what),
                known: self.known(),
            });
        }
        Ok(found.into_values().collect())
    }

    fn known(&self) -> String {
        let groups: BTreeSet<&String> = self.all().flat_map(|machine| &machine.groups).collect();
        let names = self.machines.keys();
        let all: Vec<String> = groups
            .into_iter()
            .chain(names)
            .map(|name| escape_line(name))
            .collect();
        match all.len() {
            0 => "none".to_owned(),
            1..=12 => all.join(", "),
            many => format!("{}, and {} more", all[..12].join(", "), many - 12),
        }
    }
}

impl Machine {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            address: name.to_owned(),
            groups: BTreeSet::new(),
            sudo: None,
            deadline: None,
        }
    }
}

fn pattern(text: &str) -> Option<GlobMatcher> {
    let wild = text.contains(['*', '?', '[']);
    wild.then(|| Glob::new(text).ok().map(|glob| glob.compile_matcher()))?
}

fn read(path: &Path) -> Result<String, InventoryError> {
    let unreadable = |source: Cause| InventoryError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let text = std::path::absolute(path)
        .map_err(|error| HostError::io(path, &error))
        .and_then(|absolute| LiveHost.read(&absolute))
        .map_err(|error| error.named(path))?;
    if text.len() > LONGEST {
        return Err(unreadable("longer than 8 MiB".into()));
    }
    String::from_utf8(text).map_err(|_| unreadable("not UTF-8".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
sudo = true
[groups]
web = ["web1", "root@web2.example.org"]
db = ["db*"]
[machines.db1]
address = "root@10.0.0.7"
deadline = 120
[machines.db2]
sudo = false
"#;

    fn inventory(text: &str) -> Result<Inventory, InventoryError> {
        let none = Path::new("/dev/null");
        Inventory::parse(text, Path::new("fleet.toml"), Some(none))
    }

    fn names(found: &[Machine]) -> Vec<&str> {
        found.iter().map(|machine| machine.name.as_str()).collect()
    }

    #[test]
    fn groups_names_and_patterns() {
        let all = inventory(TEXT).unwrap();
        let choose = |what: &[&str]| {
            let what: Vec<String> = what.iter().map(|&what| what.to_owned()).collect();
            all.choose(&what, false)
        };
        assert_eq!(
            names(&choose(&["web"]).unwrap()),
            ["root@web2.example.org", "web1"]
        );
        assert_eq!(names(&choose(&["db", "db1"]).unwrap()), ["db1", "db2"]);
        assert_eq!(names(&choose(&["*1"]).unwrap()), ["db1", "web1"]);
        assert_eq!(choose(&["all"]).unwrap().len(), 4);
        let db = choose(&["db"]).unwrap();
        assert_eq!(
            (db[0].sudo, db[1].sudo, db[0].deadline),
            (Some(true), Some(false), Some(120))
        );
        assert_eq!(db[0].address, "root@10.0.0.7");
        insta::assert_snapshot!(choose(&["mail"]).unwrap_err(), @"mail: unknown machine or group; known are db, web, db1, db2, root@web2.example.org, web1");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, part) in [
            ("groups = 1", "line 1"),
            ("[groups]\nweb = [\"-oProxyCommand=x\"]", "hyphen"),
            ("[groups]\nweb = [\"x*\"]", "means no machine"),
            ("[machines.\"a b\"]", "blanks"),
            ("[machine.a]", "unknown field"),
        ] {
            let error = inventory(text).unwrap_err().to_string();
            assert!(
                error.contains(part) && error.starts_with("fleet.toml"),
                "{error}"
            );
        }
    }
}
