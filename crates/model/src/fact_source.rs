//! Sources of facts: files, commands and kernel interfaces.

use serde::{Deserialize, Serialize};

/// Place from which the value of a fact was read.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Place")]
pub enum FactPlace {
    /// A file.
    File {
        /// Path of the file.
        path: String,
        /// Line number, counted from 1. `None` for the file as a whole.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        /// Part of the line from which the value comes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        span: Option<Span>,
    },
    /// The output of a command.
    Command {
        /// The command and its arguments.
        argv: Vec<String>,
        /// How the value was set, according to the command: `inherited from tank`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        how: Option<String>,
    },
    /// A kernel interface: a file of procfs or sysfs.
    Interface {
        /// Path of the interface.
        path: String,
    },
    /// Another source as text: the documentation of a default, or a source that assay 0.1 stored.
    Words(String),
}

/// A part of a line. Column and length are in bytes.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
pub struct Span {
    /// First column of the part, counted from 1.
    pub column: usize,
    /// Length of the part. If the statement continues on the next line, the part ends at the end of this line.
    pub length: usize,
}

impl FactPlace {
    /// Creates the source for the output of a command.
    pub fn command<S: AsRef<str>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self::Command {
            argv: argv
                .into_iter()
                .map(|word| word.as_ref().to_owned())
                .collect(),
            how: None,
        }
    }

    /// Returns the path if the source is a file.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::File { path, .. } => Some(path),
            Self::Command { .. } | Self::Interface { .. } | Self::Words(_) => None,
        }
    }

    /// Returns the line number if the source is a line of a file.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::File { line, .. } => *line,
            Self::Command { .. } | Self::Interface { .. } | Self::Words(_) => None,
        }
    }

    /// Parses a source that assay 0.1 stored: `/etc/x:12`, a path, a command line or a manual page.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let numbered = text
            .rsplit_once(':')
            .filter(|(path, _)| path.starts_with('/'));
        match numbered.and_then(|(path, line)| Some((path, line.parse().ok()?))) {
            Some((path, line)) => Self::File {
                path: path.to_owned(),
                line: Some(line),
                span: None,
            },
            None => Self::from(text),
        }
    }
}

/// Converts text to a source. A path below /proc or /sys is a kernel interface, any other path is a file, and any other
/// text remains text.
impl From<&str> for FactPlace {
    fn from(text: &str) -> Self {
        let path = text.to_owned();
        match text {
            _ if text.starts_with("/proc/") || text.starts_with("/sys/") => {
                Self::Interface { path }
            }
            _ if text.starts_with('/') => Self::File {
                path,
                line: None,
                span: None,
            },
            _ => Self::Words(path),
        }
    }
}

impl From<String> for FactPlace {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&FactPlace> for FactPlace {
    fn from(place: &Self) -> Self {
        place.clone()
    }
}

impl From<&String> for FactPlace {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<std::borrow::Cow<'_, str>> for FactPlace {
    fn from(text: std::borrow::Cow<'_, str>) -> Self {
        Self::from(&*text)
    }
}

impl std::fmt::Display for FactPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File {
                path,
                line: Some(line),
                ..
            } => write!(f, "{path}:{line}"),
            Self::File { path, .. } | Self::Interface { path } => f.write_str(path),
            Self::Command { argv, how: None } => f.write_str(&argv.join(" ")),
            Self::Command {
                argv,
                how: Some(how),
            } => write!(f, "{} ({how})", argv.join(" ")),
            Self::Words(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_text_becomes_a_place_that_says_the_same() {
        for text in [
            "/etc/ssh/sshd_config:12",
            "/etc/sysctl.conf",
            "/etc/odd:name",
            "/sys/block/vda/queue/scheduler",
            "/proc/meminfo",
            "sshd_config(5)",
            "zfs get -Hp all tank (inherited from tank)",
        ] {
            assert_eq!(FactPlace::from_text(text).to_string(), text);
        }
        let place = FactPlace::from_text("/etc/x y:7");
        assert_eq!((place.file(), place.line()), (Some("/etc/x y"), Some(7)));
        assert!(matches!(
            FactPlace::from_text("/sys/x"),
            FactPlace::Interface { .. }
        ));
    }
}
