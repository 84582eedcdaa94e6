//! Collects the mail in Postfix's queue: number of messages, age and reason, from `postqueue -j` (postqueue(1), since
//! Postfix 3.1).
//!
//! Responses of other servers may contain addresses, names and free text. [`redact`] therefore converts each message to
//! one line per kind of reason, and the collector parses these lines.

use super::certificates;
use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The command that lists Postfix's queue.
pub(crate) const LIST: [&str; 2] = ["postqueue", "-j"];

/// Exit status of postqueue while the mail system is not running (`EX_UNAVAILABLE`, sysexits(3);
/// postqueue(1)).
const DOWN: i32 = 69;

/// First word of each redacted line.
const CLEAN: &str = "waits";

/// Queues whose messages are counted. The active queue is excluded, because its messages are being delivered.
const QUEUES: [&str; 2] = ["deferred", "hold"];

/// Kinds of reasons, as (needle, kind). A reason that contains the needle in lower case is of this kind; the first
/// match applies. The texts are from Postfix 3.7.11 (src/smtp/smtp_connect.c, smtp_trouble.c, smtp_sasl_glue.c,
/// src/qmgr/qmgr_deliver.c, src/local/, src/global/).
pub(crate) const REASONS: [(&str, &str); 25] = [
    ("authentication", "sasl authentication failed"),
    ("other-side", " said: "),
    ("other-side", " refused to talk to me: "),
    ("local-service", "connect to 127."),
    ("local-service", "connect to localhost"),
    ("local-service", "connect to ::1"),
    ("local-service", "[private/"),
    ("local-service", "[public/"),
    ("transport", "mail transport unavailable"),
    ("transport", "unknown mail transport error"),
    ("tables", "lookup failure"),
    ("tables", "lookup error"),
    ("tables", "database unavailable"),
    ("delivery", "cannot update mailbox"),
    ("delivery", "maildir delivery failed"),
    ("delivery", "command output"),
    ("disk", "no space left"),
    ("disk", "insufficient system storage"),
    ("disk", "queue file write error"),
    ("tls", "tls"),
    ("tls", "server certificate"),
    ("names", "name service error"),
    ("connection", "connect to "),
    ("connection", "lost connection"),
    ("connection", "timed out"),
];

/// Kind of a reason that contains none of the needles.
const OTHER: &str = "other";

/// Reasons for a delay whose cause is on this machine, so that waiting does not help.
const HERE: [&str; 6] = [
    "authentication",
    "local-service",
    "transport",
    "tables",
    "delivery",
    "disk",
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    // Without a configuration file there is no queue.
    let main = super::postfix::MAIN;
    match g.host.exists(Path::new(main)) {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return g.fault("postfix.waiting", &error, FactKind::Runtime, main),
    }
    let key = "postfix.waiting";
    let place = FactPlace::command(LIST);
    let output = match g.try_ask(&LIST) {
        Ok(output) if output.success() => output,
        // Reasons are those of a Postfix that tries: while it does not run there are none.
        Ok(output) if output.status == DOWN => return,
        Ok(output) => {
            let why = output.complaint();
            return g.facts.unknown(key, why, FactKind::Runtime, place);
        }
        Err(error) => return g.fault(key, &error, FactKind::Runtime, place),
    };
    let text = output.text();
    let mut kinds: BTreeMap<&str, Waiting> = BTreeMap::new();
    for line in text.lines().filter_map(Line::read) {
        let one = kinds.entry(line.reason).or_default();
        one.count += 1;
        one.oldest = Some(one.oldest.map_or(line.since, |at| at.min(line.since)));
        if line.code != "-" && !one.codes.contains(&line.code.to_owned()) {
            one.codes.push(line.code.to_owned());
        }
    }
    let now = certificates::now(g);
    for (reason, waiting) in kinds {
        let subject = format!("postfix.waiting.{reason}");
        let mut note = |name: &str, value: Value| {
            let key = format!("{subject}.{name}");
            g.facts.known(key, value, FactKind::Runtime, place.clone());
        };
        note("messages", waiting.count.into());
        note("here", HERE.contains(&reason).into());
        note("why", describe_reason(reason).into());
        let mut codes = waiting.codes;
        codes.sort_unstable();
        note("codes", codes.into());
        let key = format!("{subject}.oldest_hours");
        match (&now, waiting.oldest) {
            (Ok(now), Some(oldest)) => {
                let hours = now.saturating_sub(oldest).max(0) / 3600;
                g.facts.known(key, hours, FactKind::Runtime, place.clone());
            }
            (Err(why), _) => g
                .facts
                .unknown(key, why, FactKind::Runtime, certificates::STAT),
            _ => {}
        }
        g.about(["postfix.waiting", reason]);
    }
}

/// Messages that are delayed for the same kind of reason.
#[derive(Default)]
struct Waiting {
    count: u64,
    /// Arrival time of the oldest message in seconds since 1970.
    oldest: Option<i64>,
    /// Response codes of other servers.
    codes: Vec<String>,
}

/// Returns the reason as a phrase for the report.
fn describe_reason(reason: &str) -> &'static str {
    match reason {
        "authentication" => "the relay does not accept the password of this machine",
        "other-side" => "the other side does not take it yet",
        "local-service" => "a service on this machine that should take it does not answer",
        "transport" => "master.cf has no such transport, or its program fails",
        "tables" => "a table of this machine cannot be read",
        "delivery" => "it cannot be written into a mailbox here",
        "disk" => "there is no space for it here",
        "tls" => "TLS with the other side fails",
        "names" => "the name of the other side is not found in DNS",
        "connection" => "the other side cannot be reached",
        "held" => "somebody put it on hold",
        _ => "another reason",
    }
}

/// One message and one kind of reason, as the redacted line `waits SINCE REASON CODE`. CODE is `-` if there is none.
struct Line<'a> {
    since: i64,
    reason: &'a str,
    code: &'a str,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [CLEAN, since, reason, code] = words.as_slice() else {
            return None;
        };
        let mut known = REASONS.iter().map(|(reason, _)| *reason);
        let known = known.any(|known| known == *reason) || matches!(*reason, OTHER | "held");
        let code_byte = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        let is_code = *code == "-" || code.len() <= 9 && code.bytes().all(code_byte);
        let digits = since.len() <= 12 && since.bytes().all(|byte| byte.is_ascii_digit());
        (known && is_code && digits).then_some(Self {
            since: since.parse().ok()?,
            reason,
            code,
        })
    }
}

/// Redacts a line of the list. Keeps the arrival time and the response code for each kind of reason. Drops addresses,
/// names and message ids.
pub(crate) fn redact(line: &str) -> Option<String> {
    if line.is_empty() || Line::read(line).is_some() {
        return Some(line.to_owned());
    }
    let message: Value = serde_json::from_str(line).ok()?;
    // The cleaned line is parsed as a signed number later.
    let since = i64::try_from(message.get("arrival_time")?.as_u64()?).ok()?;
    let queue = message.get("queue_name")?.as_str()?;
    let queue = QUEUES.iter().find(|known| **known == queue)?;
    let mut found: Vec<String> = Vec::new();
    let recipients = message.get("recipients").and_then(Value::as_array);
    for recipient in recipients.into_iter().flatten() {
        let text = recipient.get("delay_reason").and_then(Value::as_str);
        let (reason, code) = match (*queue, text) {
            ("hold", _) => ("held", "-".to_owned()),
            // No delivery was attempted yet.
            (_, None) => continue,
            (_, Some(text)) => classify_reason(text),
        };
        let one = format!("{CLEAN} {since} {reason} {code}");
        if !found.contains(&one) {
            found.push(one);
        }
    }
    (!found.is_empty()).then(|| found.join("\n"))
}

/// Returns the kind of a reason, and the codes of the other server's response, such as `450.4.7.1`, or only `450` (RFC
/// 5321, RFC 3463).
fn classify_reason(text: &str) -> (&'static str, String) {
    let low = text.to_ascii_lowercase();
    let found = REASONS.iter().find(|(_, needle)| low.contains(needle));
    let reason = found.map_or(OTHER, |(reason, _)| *reason);
    let answer = [" said: ", " refused to talk to me: "]
        .iter()
        .find_map(|before| low.split_once(before))
        .map_or("", |(_, answer)| answer);
    let mut words = answer.split([' ', '-']);
    let three = |word: &&str| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    let Some(code) = words.next().filter(three) else {
        return (reason, "-".to_owned());
    };
    let enhanced = words.next().filter(|word| {
        let parts: Vec<&str> = word.split('.').collect();
        let digit = |part: &&str| part.len() == 1 && part.as_bytes()[0].is_ascii_digit();
        parts.len() == 3 && parts.iter().all(digit)
    });
    (
        reason,
        enhanced.map_or_else(|| code.to_owned(), |more| format!("{code}.{more}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;
    use proptest::prelude::*;

    /// Output of `postqueue -j` of Postfix 3.7.11 (Debian 12): a refused connection, a missing socket, an unknown
    /// transport, and a server that responded with 450 and 452.
    const QUEUE: &str = include_str!("../../../fixtures/postfix-3.7.11-postqueue.jsonl");

    #[test]
    fn a_queue_of_postfix() {
        let host = Recorded::new()
            .file(super::super::postfix::MAIN, "")
            .file(certificates::STAT, "btime 1795425000\n")
            .file(certificates::UPTIME, "7500.10 1.0\n")
            .command(&LIST, QUEUE);
        let clean: Vec<String> = QUEUE.lines().filter_map(redact).collect();
        for secret in ["alice", "bob", ".test", "127.0", "example", "Greylisted"] {
            assert!(!clean.join("\n").contains(secret), "{secret}");
        }
        let host = crate::Redacted::new(&host, false);
        let mut g = Gather::new(&host);
        collect(&mut g);
        let value = |key: &str| {
            g.facts
                .get(&format!("postfix.waiting.{key}"))
                .unwrap_or_else(|| panic!("{key}"))
                .clone()
        };
        assert_eq!(value("local-service.messages"), 2);
        assert_eq!(value("local-service.here"), true);
        assert_eq!(value("transport.messages"), 1);
        assert_eq!(value("other-side.messages"), 2);
        assert_eq!(
            value("other-side.codes"),
            serde_json::json!(["450.4.7.1", "452.4.2.2"])
        );
        assert_eq!(value("connection.here"), false);
        assert_eq!(value("connection.oldest_hours"), 2);
    }

    #[test]
    fn what_counts_as_a_reason() {
        for (text, reason, code) in [
            (
                "SASL authentication failed; server mx said: 535 5.7.8 no",
                "authentication",
                "535.5.7.8",
            ),
            (
                "host mx refused to talk to me: 421 too many",
                "other-side",
                "421",
            ),
            (
                "host mx said: 452-4.5.3 Too many (in reply to RCPT)",
                "other-side",
                "452.4.5.3",
            ),
            (
                "TLS is required, but was not offered by host mx",
                "tls",
                "-",
            ),
            (
                "Host or domain name not found. Name service error for name=x type=MX: Host not found, try again",
                "names",
                "-",
            ),
            ("alias database unavailable", "tables", "-"),
            ("something new", "other", "-"),
        ] {
            assert_eq!(classify_reason(text), (reason, code.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_was_cleaned_is_clean(reason in ".{0,60}", since in 0_u64..5_000_000_000) {
            let line = serde_json::json!({
                "queue_name": "deferred", "arrival_time": since,
                "recipients": [{ "address": "a@b", "delay_reason": reason }],
            });
            let once = redact(&line.to_string()).unwrap();
            for line in once.lines() {
                prop_assert_eq!(redact(line).unwrap(), line);
            }
        }
    }
}
