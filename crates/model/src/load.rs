//! Loads: what is done to what is measured, by runs, trials, ladders and studies alike.

mod http;

pub use http::Http;

use crate::units::Bytes;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};

/// One load. Operations are I/Os, requests, logins, files or commands; `iops` counts them per second and
/// the latencies are theirs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Load {
    /// fio on a file, a block device or an NBD export.
    Fio {
        /// What fio does.
        workload: Workload,
        /// Size of the file it works on; in a plan, the plan's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<Bytes>,
    },
    /// HTTP requests.
    Http(Box<Http>),
    /// IMAP: connect, LOGIN, LOGOUT, one after the other.
    Imap {
        /// `HOST:PORT`, without TLS: for the loopback interface.
        address: String,
        /// User name.
        user: String,
        /// File whose first line is the password; it reaches no report.
        password_file: String,
        /// Sessions at once.
        sessions: u32,
    },
    /// Small files with an extended attribute, made anew in turn, one after the other.
    Attributes {
        /// How many files there are.
        files: u32,
        /// Length of the attribute, up to 64 KiB.
        size: Bytes,
    },
    /// A command, one after the other, timed from start to end.
    Command {
        /// The command and its arguments. `{host}`, `{port}` and `{path}` stand for what is
        /// measured, where the change makes two of them.
        argv: Vec<String>,
    },
    /// Nothing, again and again: what taking a sample costs by itself.
    Null,
}

impl Load {
    /// Its kind, as files say it; for fio the name of the workload.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Fio { workload, .. } => &workload.name,
            Self::Http(_) => "http",
            Self::Imap { .. } => "imap",
            Self::Attributes { .. } => "attributes",
            Self::Command { .. } => "command",
            Self::Null => "null",
        }
    }

    /// What fio does, when it is fio's.
    #[must_use]
    pub fn fio(&self) -> Option<&Workload> {
        match self {
            Self::Fio { workload, .. } => Some(workload),
            _ => None,
        }
    }

    /// What is asked of a web server, when it is one.
    #[must_use]
    pub fn http(&self) -> Option<&Http> {
        match self {
            Self::Http(http) => Some(http),
            _ => None,
        }
    }

    /// What may be stored and shown.
    #[must_use]
    pub fn kept(self) -> Self {
        match self {
            Self::Http(http) => Self::Http(Box::new(http.kept())),
            other => other,
        }
    }

    /// What one operation is called, for people: `I/O`, `request`, `login`, `run`.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Fio { .. } => "I/O",
            Self::Http(_) => "request",
            Self::Imap { .. } => "login",
            Self::Attributes { .. } => "file",
            Self::Command { .. } => "run",
            Self::Null => "turn",
        }
    }

    /// One line for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Fio { workload, size } => {
                let file = size.map_or_else(String::new, |size| format!(", {size} file"));
                format!("fio: {}{file}", workload.describe())
            }
            Self::Http(http) => http.describe(),
            Self::Imap {
                address,
                user,
                sessions,
                ..
            } => format!("IMAP logins as {user} at {address}, {sessions} at a time"),
            Self::Attributes { files, size } => {
                format!("{files} files, made in turn with an extended attribute of {size}")
            }
            Self::Command { argv } => format!("`{}`, one after the other", argv.join(" ")),
            Self::Null => "nothing, again and again".to_owned(),
        }
    }
}
