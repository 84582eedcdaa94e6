//! Loads of runs, trials, ladders and studies.

mod http;

pub use http::Http;

use crate::units::Bytes;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};

/// A load. Operations are I/Os, requests, logins, files or commands; `iops` is operations per
/// second, and latencies are per operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Load {
    /// fio on a file, a block device or an NBD export.
    Fio {
        /// The fio workload.
        workload: Workload,
        /// Size of the file. Absent in a plan, because all loads of a plan use its common file size.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<Bytes>,
    },
    /// HTTP requests.
    Http(Box<Http>),
    /// IMAP sessions, each with connect, LOGIN and LOGOUT.
    Imap {
        /// `HOST:PORT` without TLS, for the loopback interface.
        address: String,
        /// User name.
        user: String,
        /// File whose first line is the password. No report contains the password.
        password_file: String,
        /// Concurrent sessions.
        sessions: u32,
    },
    /// Creates small files with an extended attribute, repeatedly and in sequence.
    Attributes {
        /// Number of files.
        files: u32,
        /// Length of the attribute, 1 byte to 64 KiB.
        size: Bytes,
    },
    /// Runs a command repeatedly and measures the time from start to end.
    Command {
        /// The command and its arguments. `{host}`, `{port}` and `{path}` are replaced by those of the target, if the
        /// change creates two targets.
        argv: Vec<String>,
        /// Figure to read from the command's output; absent if only the run time counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prints: Option<PrintedFigure>,
    },
    /// Does nothing repeatedly: measures the overhead of a sample.
    Null,
}

/// A figure in the output of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrintedFigure {
    /// Name of the figure, as the command prints it: `tps`, `Requests/sec`.
    pub name: String,
    /// Regular expression whose first group is the number; absent if the name is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

impl Load {
    /// Returns the kind of load as in files; for fio the name of the workload.
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

    /// Returns the fio workload; `None` for a load other than fio.
    #[must_use]
    pub fn fio(&self) -> Option<&Workload> {
        match self {
            Self::Fio { workload, .. } => Some(workload),
            _ => None,
        }
    }

    /// Returns the HTTP load; `None` for a load other than HTTP.
    #[must_use]
    pub fn http(&self) -> Option<&Http> {
        match self {
            Self::Http(http) => Some(http),
            _ => None,
        }
    }

    /// Returns the load without secrets, for storing and printing.
    #[must_use]
    pub fn kept(self) -> Self {
        match self {
            Self::Http(http) => Self::Http(Box::new(http.kept())),
            other => other,
        }
    }

    /// Returns what one operation is called in reports: `I/O`, `request`, `login`, `run`.
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

    /// Returns a description on one line.
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
            Self::Command { argv, prints } => {
                let figure = prints.as_ref().map_or_else(String::new, |figure| {
                    format!(", which prints `{}`", figure.name)
                });
                format!("`{}`, one after the other{figure}", argv.join(" "))
            }
            Self::Null => "nothing, again and again".to_owned(),
        }
    }
}
