//! Runs `smbclient`: builds its arguments, and interprets its output and errors.

use crate::share_client::{ShareClient, Transfer};
use crate::{Protection, ShareError, ShareUrl};
use assay_host::process::{Collected, Dies, Keep, Leftovers, Running};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for one call of `smbclient`, after which it is killed.
pub(crate) const LONGEST: Duration = Duration::from_secs(1800);
/// How much of the output of `smbclient` is kept.
const KEEP: Keep = Keep {
    stdout: 64 << 10,
    stderr: 64 << 10,
    leftovers: Leftovers::Kill,
};

/// `smbclient` for one directory of one share. Each call opens one connection.
pub(crate) struct SmbClient<'a> {
    url: &'a ShareUrl,
    auth_file: Option<&'a Path>,
}

impl ShareClient for SmbClient<'_> {
    fn protections(&self) -> &'static [Protection] {
        &Protection::ALL
    }

    fn share_name(&self) -> String {
        self.url.share_name()
    }

    fn is_for(&self, share: &str, port: u16, directory: &str) -> bool {
        self.url.share_name() == share
            && self.url.port() == port
            && self.url.directory() == directory
    }

    fn describe(&self, stop: &dyn Fn() -> bool) -> Result<String, ShareError> {
        let mut command = Command::new("smbclient");
        command.arg("--version");
        let (done, _) = self.run(command, stop)?;
        let text = String::from_utf8_lossy(&done.stdout);
        let version = text
            .trim()
            .strip_prefix("Version ")
            .unwrap_or("")
            .to_owned();
        Ok(format!("smbclient {version}").trim_end().to_owned())
    }

    fn connect(&self, stop: &dyn Fn() -> bool) -> Result<Option<String>, ShareError> {
        let mut command = self.command(None, "exit");
        // The dialect is in messages of this level; messages of level 10 would contain keys.
        command.args(["-d", "4"]);
        let (done, _) = self.run(command, stop)?;
        let text = join_output(&done);
        if !done.ended.success() {
            return Err(self.refused(&text));
        }
        let dialect = text
            .split_once("negotiated dialect[")
            .and_then(|(_, rest)| {
                let (dialect, _) = rest.split_once(']')?;
                Some(dialect.to_owned())
            });
        Ok(dialect)
    }

    fn transfer(
        &self,
        protection: Protection,
        file: &Path,
        name: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<Transfer, ShareError> {
        let path = file.display();
        let orders = format!("put \"{path}\" \"{name}\"; get \"{name}\" /dev/null; del \"{name}\"");
        let (done, took) = self.run(self.command(Some(protection), &orders), stop)?;
        let text = join_output(&done);
        let (write, read) = (
            find_rate(&text, "putting file"),
            find_rate(&text, "getting file"),
        );
        let (Some(write), Some(read), true) = (write, read, done.ended.success()) else {
            return Err(self.refused(&text));
        };
        Ok(Transfer {
            write,
            read,
            client_cpu: done.ended.cpu.as_secs_f64() / took.as_secs_f64(),
        })
    }

    fn delete(&self, name: &str, stop: &dyn Fn() -> bool) -> Result<(), ShareError> {
        let (done, _) = self.run(self.command(None, &format!("del \"{name}\"")), stop)?;
        let text = join_output(&done);
        match done.ended.success() || text.contains("NT_STATUS_NO_SUCH_FILE") {
            true => Ok(()),
            false => Err(self.refused(&text)),
        }
    }
}

impl<'a> SmbClient<'a> {
    pub(crate) fn new(url: &'a ShareUrl, auth_file: Option<&'a Path>) -> Self {
        Self { url, auth_file }
    }

    fn command(&self, protection: Option<Protection>, orders: &str) -> Command {
        let mut command = Command::new("smbclient");
        command.arg(self.url.share_name());
        // Settings of the user's smb.conf would change what is measured.
        command.args(["-s", "/dev/null", "-p", &self.url.port().to_string(), "-E"]);
        match (self.auth_file, self.url.user()) {
            (Some(file), _) => {
                command.arg("-A").arg(file);
            }
            (None, Some(user)) => {
                command.args(["-N", "-U", user]);
            }
            (None, None) => {
                command.arg("-N");
            }
        }
        if let Some(protection) = protection {
            command.arg(format!("--client-protection={}", protection.option()));
        }
        if !self.url.directory().is_empty() {
            command.args(["-D", self.url.directory()]);
        }
        command.args(["-c", orders]);
        command
    }

    /// Runs the client until it ends. Returns its output and its duration.
    fn run(
        &self,
        mut command: Command,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Collected, Duration), ShareError> {
        command
            .env("LC_ALL", "C")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let start = Instant::now();
        let mut stopped = false;
        let running = Running::start(command, Dies::WithThread).map_err(ShareError::Client)?;
        let done = running.collect(KEEP, |look| {
            stopped = stop();
            stopped || look.now - start > LONGEST
        });
        let done = done.map_err(ShareError::Client)?;
        match (done.stopped, stopped) {
            (true, true) => Err(ShareError::Stopped),
            (true, false) => Err(ShareError::TooLong {
                share: self.share_name(),
            }),
            (false, _) => {
                let took = done.at - start;
                Ok((done, took))
            }
        }
    }

    fn refused(&self, text: &str) -> ShareError {
        let line = text.lines().rev().find(|line| line.contains("NT_STATUS_"));
        let line = line.or_else(|| text.lines().rev().find(|line| !line.trim().is_empty()));
        let mut why: String = line
            .unwrap_or("smbclient printed nothing")
            .trim()
            .chars()
            .filter(|c| !c.is_control())
            .take(200)
            .collect();
        for (status, way_out) in [
            (
                "NT_STATUS_LOGON_FAILURE",
                "Check user and password in the file of --auth-file.",
            ),
            (
                "NT_STATUS_ACCESS_DENIED",
                "Give a user that may write there, with --auth-file FILE.",
            ),
            (
                "NT_STATUS_BAD_NETWORK_NAME",
                "The server has no such share.",
            ),
            (
                "NT_STATUS_CONNECTION_REFUSED",
                "No SMB server listens on that port.",
            ),
            (
                "NT_STATUS_HOST_UNREACHABLE",
                "Check the server's name and the network.",
            ),
            (
                "NT_STATUS_UNSUCCESSFUL",
                "Check the server's name and the network.",
            ),
            ("NT_STATUS_DISK_FULL", "Take a smaller file with --size."),
        ] {
            if why.contains(status) {
                why = format!("{why}. {way_out}");
            }
        }
        ShareError::Refused {
            share: self.share_name(),
            why,
        }
    }
}

fn join_output(done: &Collected) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&done.stdout) + &text(&done.stderr)
}

/// Finds the rate of a transfer in the output, in bytes per second. The output contains lines such as
/// `putting file … (42778.1 kb/s) (average …)` and `getting file … (125188.2 KiloBytes/sec) (average …)`. A kilobyte of
/// smbclient has 1024 bytes.
fn find_rate(text: &str, start: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(start))?;
    let (before, _) = line.rsplit_once(" (average")?;
    let (_, rate) = before.rsplit_once('(')?;
    let number: f64 = rate.split(' ').next()?.parse().ok()?;
    (number > 0.0).then_some(number * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_refusals_are_read() {
        let text = "putting file /tmp/x (1) as \\t.bin (42778.1 kb/s) (average 42778.1 kb/s)\n\
                    getting file \\t.bin of size 268435456 as /dev/null (125188.2 KiloBytes/sec) (average \
                    125188.2 KiloBytes/sec)\n";
        assert_eq!(find_rate(text, "putting file"), Some(42778.1 * 1024.0));
        assert_eq!(find_rate(text, "getting file"), Some(125_188.2 * 1024.0));
        let url = ShareUrl::parse("smb://nas/data").unwrap();
        let client = SmbClient::new(&url, None);
        let error = client.refused("x\nsession setup failed: NT_STATUS_LOGON_FAILURE\n\u{1b}[2J\n");
        let error = error.to_string();
        assert!(
            error.contains("//nas/data") && error.contains("--auth-file"),
            "{error}"
        );
    }
}
