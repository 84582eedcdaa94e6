//! Defines the options `--root` and `--host`, with which verbs read another machine.

use crate::context;
use crate::progress::{LOG_EVERY, Meter};
use crate::status::Unreadable;
use assay_fleet::{SshSession, session};
use assay_host::{Bundle, Captured, Host};
use assay_model::Nanos;
use assay_render::text::escape_line;
use std::path::PathBuf;
use std::time::Duration;

/// The machine that is read.
#[derive(clap::Args)]
pub struct MachineSource {
    /// Read a captured directory or a bundle; - is standard input
    #[arg(long, value_name = "DIR|BUNDLE")]
    pub root: Option<PathBuf>,
    /// Read another machine over ssh; nothing is installed there
    #[arg(long, value_name = "[USER@]HOST", conflicts_with = "root")]
    pub host: Option<String>,
    #[command(flatten)]
    pub how: How,
}

/// How to reach a machine over ssh.
#[derive(clap::Args, Clone)]
pub struct How {
    /// Become root on the other machine with `sudo -n`
    #[arg(long)]
    pub sudo: bool,
    /// Give up on the machine after this many seconds [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub deadline: Option<u64>,
    /// Use this ssh configuration instead of your own
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
}

impl How {
    /// Returns the time limit for reading one machine.
    pub fn deadline(&self) -> Duration {
        self.deadline.map_or(session::DEADLINE, Duration::from_secs)
    }

    /// Returns the absolute path of the ssh configuration. A relative path would fail, because ssh runs in another
    /// directory.
    pub fn ssh_config(&self) -> Option<PathBuf> {
        let path = self.ssh_config.as_ref()?;
        Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
    }

    /// Creates an ssh session with a machine; does not connect yet.
    pub fn session(&self, host: &str) -> SshSession {
        SshSession {
            host: host.to_owned(),
            sudo: self.sudo,
            deadline: self.deadline(),
            config: self.ssh_config(),
        }
    }
}

impl MachineSource {
    /// Returns whether another machine is selected.
    pub fn is_meant(&self) -> bool {
        self.root.is_some() || self.host.is_some()
    }

    /// Returns whether files in home directories can be read. They can on this machine, or in a directory given with
    /// `--root`. A bundle does not contain them.
    pub fn has_accounts(&self) -> bool {
        self.host.is_none() && self.root.as_ref().is_none_or(|path| path.is_dir())
    }

    /// Opens the other machine; returns `None` if this machine is selected. Over ssh, the collector reads more details
    /// about `paths`.
    pub fn open(&self, paths: &[PathBuf]) -> anyhow::Result<Option<Box<dyn Host>>> {
        let captured = match (&self.root, &self.host) {
            // A file in the directory counts as the directory: nothing is known about either.
            (Some(path), _) => {
                assay_host::open(path).map_err(|error| Unreadable(error.to_string()))?
            }
            (None, Some(host)) => self.ask(host, paths)?,
            (None, None) => {
                if self.how.sudo || self.how.deadline.is_some() || self.how.ssh_config.is_some() {
                    anyhow::bail!(
                        "--sudo, --deadline and --ssh-config need another machine: name it with --host"
                    );
                }
                return Ok(None);
            }
        };
        if let Some(version) = &captured.collector
            && version != env!("CARGO_PKG_VERSION")
        {
            let version: String = version.escape_debug().take(40).collect();
            eprintln!(
                "note: the collector was of assay {version}; what this assay asks in addition is not known"
            );
        }
        Ok(Some(captured.host))
    }

    fn ask(&self, host: &str, paths: &[PathBuf]) -> anyhow::Result<Captured> {
        let session = self.how.session(host);
        let cancel = context::on_signals()?;
        let limit = session.deadline;
        let mut meter = Meter::new(false, Nanos::from(limit));
        let script = assay_facts::script_for(env!("CARGO_PKG_VERSION"), paths)
            .map_err(anyhow::Error::msg)?;
        let sent = session.run(&script, &mut |passed| {
            // After two seconds, show the user what is running.
            if passed >= Duration::from_secs(2)
                && (passed < LOG_EVERY || passed.as_secs() % 10 == 0)
            {
                meter.say(format!("waiting for {}", escape_line(host)));
            }
            cancel.is_cancelled()
        });
        meter.end();
        let sent = sent.map_err(crate::remote::unreached)?;
        let bundle = Bundle::read(&sent.bytes[..], "what it sent");
        let bundle = bundle.map_err(|error| {
            let error = session.no_bundle(&error.to_string(), &sent);
            Unreadable(error.to_string())
        });
        Ok(bundle?.into())
    }
}
