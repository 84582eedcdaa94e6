//! Loads of runs, trials, ladders and studies.

mod http;

pub use http::Http;

use crate::units::Bytes;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};

/// A load. Its operations are I/Os, requests, logins, files or commands. `iops` means operations per second, and
/// latencies are per operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Load {
    /// fio on a file, a block device or an NBD export.
    Fio {
        /// Pattern, block size, queue depth and other parameters of the fio job.
        workload: Workload,
        /// Size of the file. Absent in a plan, because all loads of a plan use its common file size.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<Bytes>,
    },
    /// HTTP requests to a web server.
    Http(Box<Http>),
    /// IMAP sessions. Each consists of connect, LOGIN and LOGOUT.
    Imap {
        /// Address `HOST:PORT`. The connection is without TLS, for use on the loopback interface.
        address: String,
        /// User name for LOGIN.
        user: String,
        /// File whose first line is the password. Reports never contain the password.
        password_file: String,
        /// Number of concurrent sessions.
        sessions: u32,
    },
    /// Creates small files with an extended attribute, one after the other.
    Attributes {
        /// Number of files.
        files: u32,
        /// Length of the attribute, 1 byte to 64 KiB.
        size: Bytes,
    },
    /// Runs a command repeatedly, and measures the time from its start to its end.
    Command {
        /// The command with its arguments. If the change creates two targets, `{host}`, `{port}` and `{path}` are
        /// replaced by the values of the measured target.
        argv: Vec<String>,
        /// Figure to read from the command's output. Absent if only the run time counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prints: Option<PrintedFigure>,
    },
    /// Does nothing repeatedly, to measure the overhead of a sample.
    Null,
}

/// A figure in the output of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrintedFigure {
    /// Name of the figure as the command prints it, such as `tps` or `Requests/sec`.
    pub name: String,
    /// Regular expression whose first group is the number. Absent if the name is enough to find the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

impl Load {
    /// Returns the name of the load's kind in files; for fio, the name of the workload.
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

    /// Returns the load without secrets, for storing and printing. Applying this twice changes nothing.
    #[must_use]
    pub fn kept(self) -> Self {
        match self {
            Self::Http(http) => Self::Http(Box::new(http.kept())),
            other => other,
        }
    }

    /// Returns the noun for one operation in reports: `I/O`, `request`, `login`, `run`.
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
