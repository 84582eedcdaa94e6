//! Parses the header of a mail (RFC 5322), as far as this is needed to find the servers on its path.

use serde::Serialize;
use std::net::IpAddr;

/// One hop on the path of a mail. The receiving server describes in a `Received` field which host passed the mail on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Hop {
    /// Address of the host that passed the mail on; `None` if the mail was submitted on the receiving machine itself.
    pub address: Option<IpAddr>,
    /// Name that the sending host gave; it may be forged.
    pub from: Option<String>,
    /// Name of the server that received the mail and wrote the field.
    pub by: Option<String>,
}

/// Returns the fields of a header in order, each with its name and its unfolded value. The header ends at the first
/// empty line, or at the first line that is not a field.
#[must_use]
pub fn parse_fields(mail: &[u8]) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for (at, line) in mail.split(|byte| *byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches('\r');
        if line.starts_with([' ', '\t']) {
            let Some((_, value)) = fields.last_mut() else {
                break;
            };
            value.push(' ');
            value.push_str(line.trim());
            continue;
        }
        match line.split_once(':') {
            Some((name, value)) if !name.is_empty() && is_field_name(name) => {
                fields.push((name.to_owned(), value.trim().to_owned()));
            }
            // The line with which mbox begins a mail.
            _ if at == 0 && line.starts_with("From ") => {}
            _ => break,
        }
    }
    fields
}

fn is_field_name(name: &str) -> bool {
    name.bytes().all(|byte| (33..=126).contains(&byte))
}

/// Returns the hops of a mail, newest first, as in the header. The user's own server wrote the first hop. The sender
/// may have forged all other hops.
#[must_use]
pub fn list_hops(fields: &[(String, String)]) -> Vec<Hop> {
    let received = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("received"));
    received.map(|(_, value)| parse_received(value)).collect()
}

/// Parses a field such as `from NAME (helo [ADDRESS]) by SERVER with …`, in the forms of Postfix, Exim, Sendmail and
/// Exchange.
fn parse_received(value: &str) -> Hop {
    // What follows the last semicolon is the date.
    let value = value.rsplit_once(';').map_or(value, |(before, _)| before);
    let from_clause = value.split(" by ").next().unwrap_or_default();
    let from_clause = from_clause.trim_start().strip_prefix("from ");
    Hop {
        address: from_clause.and_then(find_address),
        from: from_clause
            .and_then(|clause| clause.split_whitespace().next())
            .map(str::to_owned),
        by: word_after(value, "by"),
    }
}

/// Returns the last address literal of the clause. The text before it is not trustworthy, because the client chooses
/// the name there, and this name may look like an address.
fn find_address(clause: &str) -> Option<IpAddr> {
    let between = |open: char, close: char| {
        clause.rsplit(open).filter_map(move |rest| {
            let (inside, _) = rest.split_once(close)?;
            parse_address(inside)
        })
    };
    between('[', ']')
        .next()
        .or_else(|| between('(', ')').next())
}

fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let text = match text.get(..5) {
        Some(prefix) if prefix.eq_ignore_ascii_case("ipv6:") => &text[5..],
        _ => text,
    };
    let address: IpAddr = text.parse().ok()?;
    Some(address.to_canonical())
}

fn word_after(value: &str, word: &str) -> Option<String> {
    let mut words = value.split_whitespace();
    words.find(|one| *one == word)?;
    words.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(value: &str) -> (Option<String>, Option<String>, Option<String>) {
        let hop = parse_received(value);
        (
            hop.address.map(|address| address.to_string()),
            hop.from,
            hop.by,
        )
    }

    #[test]
    fn forms_of_servers() {
        let some = |text: &str| Some(text.to_owned());
        for (value, address, from, by) in [
            // Postfix, Exim, Exchange, a local mail of Postfix, Sendmail.
            (
                "from mx.a.org (mx.a.org [203.0.113.7]) by mail.b.org (Postfix) with ESMTPS id 4A for <x@b.org>; Mon",
                some("203.0.113.7"),
                some("mx.a.org"),
                some("mail.b.org"),
            ),
            (
                "from [IPv6:2001:db8::99] (helo=laptop) by mx.a.org with esmtpsa (Exim 4.96) id 1a; Mon",
                some("2001:db8::99"),
                some("[IPv6:2001:db8::99]"),
                some("mx.a.org"),
            ),
            (
                "from AM1 (2603:10a6:20b::1) by AM2 (2603:10a6:20b::2) with Microsoft SMTP Server; Mon",
                some("2603:10a6:20b::1"),
                some("AM1"),
                some("AM2"),
            ),
            (
                "by mail.b.org (Postfix, from userid 0) id 4B; Mon",
                None,
                None,
                some("mail.b.org"),
            ),
            (
                "from [127.0.0.1] (evil.example [198.51.100.9]) by x with SMTP; Mon",
                some("198.51.100.9"),
                some("[127.0.0.1]"),
                some("x"),
            ),
            (
                "from a ([::ffff:192.0.2.1]) by x; Mon",
                some("192.0.2.1"),
                some("a"),
                some("x"),
            ),
        ] {
            assert_eq!(hop(value), (address, from, by), "{value}");
        }
    }

    #[test]
    fn a_header_ends_where_the_text_begins() {
        let mail =
            b"From me Mon\r\nSubject: a\r\n b\r\nX: y\r\n\r\nReceived: from x ([1.2.3.4]) by z\r\n";
        let fields = parse_fields(mail);
        assert_eq!(fields[0], ("Subject".to_owned(), "a b".to_owned()));
        assert_eq!((fields.len(), list_hops(&fields).len()), (2, 0));
        assert!(parse_fields(b"\x7fELF\x00\x01").is_empty());
        assert!(parse_fields(b" folded: at once").is_empty());
    }
}
