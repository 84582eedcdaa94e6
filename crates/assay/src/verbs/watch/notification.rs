//! Sends new and ended alarms to a command of the user or by mail.

use super::What;
use anyhow::Context as _;
use assay_fleet::alarms::News;
use assay_host::process::{Dies, Keep, Leftovers, Running};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a command.
const LIMIT: Duration = Duration::from_secs(60);

/// Preferred path of sendmail. In a systemd service, sendmail may not be in PATH.
const SENDMAIL: &str = "/usr/sbin/sendmail";

/// Runs the user's command and sends the mail, if the user configured them.
pub(super) fn all(
    what: &What,
    document: &serde_json::Value,
    news: &News,
    text: &str,
) -> anyhow::Result<()> {
    if let Some((program, arguments)) = what.command.split_first() {
        let input = format!("{document}\n");
        feed(program, arguments, input.as_bytes())?;
    }
    if let Some(address) = &what.mail {
        let arguments = ["-i", "--", address].map(OsString::from);
        let program = match Path::new(SENDMAIL).exists() {
            true => SENDMAIL,
            false => "sendmail",
        };
        feed(
            program.as_ref(),
            &arguments,
            mail(address, news, text).as_bytes(),
        )?;
    }
    Ok(())
}

/// Formats the mail with the alarms (RFC 5322).
fn mail(address: &str, news: &News, text: &str) -> String {
    let count = |number: usize, word: &str| match number {
        0 => None,
        number => Some(format!("{number} {word}")),
    };
    let parts = [
        count(news.raised.len(), "new"),
        count(news.over.len(), "over"),
    ];
    let subject: Vec<String> = parts.into_iter().flatten().collect();
    // The header contains no names of machines, only text of assay.
    format!(
        "To: {address}\nSubject: assay watch: {}\nMIME-Version: 1.0\nContent-Type: text/plain; \
         charset=utf-8\nAuto-Submitted: auto-generated\n\n{text}",
        subject.join(", ")
    )
}

/// Parses a mail address. Rejects characters that have a special meaning in a mail header or for sendmail.
pub(super) fn address(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, ',' | ';' | '<' | '>' | '"' | '\\');
    let good = !text.starts_with('-') && !text.is_empty() && text.len() <= 254;
    match good && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("an address is written as ops@example.org".to_owned()),
    }
}

/// Runs a program with `input` on standard input, and waits until it exits.
#[allow(
    clippy::disallowed_methods,
    reason = "the user named this program to be told"
)]
fn feed(program: &OsStr, arguments: &[OsString], input: &[u8]) -> anyhow::Result<()> {
    let name = program.to_string_lossy().escape_debug().to_string();
    let fail = || format!("{name}: cannot send the notification; the next check tries again");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let running = Running::start_with_bytes(command, input, Dies::WithThread).with_context(fail)?;
    let begun = Instant::now();
    let keep = Keep {
        stdout: 0,
        stderr: 4096,
        leftovers: Leftovers::Leave,
    };
    let done = running
        .collect(keep, |_| begun.elapsed() > LIMIT)
        .with_context(fail)?;
    if done.stopped {
        anyhow::bail!("{}: no end after {} s", fail(), LIMIT.as_secs());
    }
    if !done.ended.success() {
        let why = String::from_utf8_lossy(&done.stderr);
        let why = why.lines().next_back().unwrap_or_default();
        anyhow::bail!(
            "{}: {} {}",
            fail(),
            done.ended,
            assay_render::text::escape_line(why)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one() {
        assert!(address("ops@example.org").is_ok() && address("root").is_ok());
        for bad in ["", "-oQ/tmp", "a b@c", "a@b\nBcc: c@d", "a@b,c@d", "<a@b>"] {
            assert!(address(bad).is_err(), "{bad:?}");
        }
    }
}
