//! Determines whether a Match or Host block applies to a connection. Follows `match_cfg_line` (servconf.c),
//! `match_pattern_list` (match.c) and `addr_match_list` (addrmatch.c) of OpenSSH 9.2.

use crate::text::to_lossy_text;
use std::net::IpAddr;

/// Known properties of a connection. Unknown properties are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Name of the user: the local user for sshd, the remote user for ssh.
    pub user: Option<String>,
    /// Groups of which the user is a member on the server.
    pub groups: Option<Vec<String>>,
    /// Host name: the client for sshd, the host to connect to for ssh.
    pub host: Option<String>,
    /// IP address of the client.
    pub address: Option<IpAddr>,
    /// Address to which the client connected.
    pub local_address: Option<IpAddr>,
    /// Port to which the client connected.
    pub local_port: Option<u16>,
    /// Routing domain of the connection.
    pub rdomain: Option<String>,
}

/// Splits the head of a block into words like the program: in a Match line, `=` may replace a blank, and a backslash
/// has no meaning.
pub(super) fn split_head(parsed: &[String], line: &[u8]) -> Vec<String> {
    let Some(name) = parsed
        .first()
        .filter(|name| name.eq_ignore_ascii_case("match"))
    else {
        return parsed.to_vec();
    };
    let mut rest = Some(line);
    let mut words = Vec::new();
    while let Some(word) = next_word(&mut rest).filter(|word| !word.is_empty()) {
        if word[0] == b'#' {
            break;
        }
        words.push(to_lossy_text(&word));
    }
    // A quoted keyword yields an empty word before it.
    if words
        .first()
        .is_none_or(|first| !first.eq_ignore_ascii_case(name))
    {
        return parsed.to_vec();
    }
    words
}

/// Returns the next word like `strdelim`: a word ends at a blank, at one `=`, or at a quote.
fn next_word(rest: &mut Option<&[u8]>) -> Option<Vec<u8>> {
    let text = (*rest)?;
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let after = |text: &[u8]| text.iter().take_while(|byte| blank(byte)).count();
    let Some(end) = text
        .iter()
        .position(|byte| blank(byte) || matches!(byte, b'"' | b'='))
    else {
        *rest = None;
        return Some(text.to_vec());
    };
    let mut next = &text[end + 1..];
    let word = match text[end] {
        b'"' => {
            let length = next.iter().position(|&byte| byte == b'"')?;
            let word = [&text[..end], &next[..length]].concat();
            next = &next[length + 1..];
            next = &next[after(next)..];
            word
        }
        delimiter => {
            next = &next[after(next)..];
            if delimiter != b'=' && next.first() == Some(&b'=') {
                next = &next[1..];
                next = &next[after(next)..];
            }
            text[..end].to_vec()
        }
    };
    *rest = Some(next);
    Some(word)
}

/// Returns whether a connection meets all criteria of a head; `None` if this cannot be determined.
pub(super) fn match_applies(head: &[String], connection: &Connection) -> Option<bool> {
    let (name, criteria) = head.split_first()?;
    if name.eq_ignore_ascii_case("host") {
        return host_block(criteria, connection.host.as_ref()?);
    }
    let mut all = Some(true);
    let mut words = criteria.iter();
    if criteria.is_empty() {
        return None;
    }
    while let Some(attribute) = words.next() {
        let attribute = attribute.to_ascii_lowercase();
        if attribute == "all" {
            return (criteria.len() == 1).then_some(true);
        }
        let one = words
            .next()
            .and_then(|wanted| criterion_matches(&attribute, wanted, connection));
        all = match (all, one) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
    }
    all
}

fn criterion_matches(attribute: &str, wanted: &str, connection: &Connection) -> Option<bool> {
    match attribute {
        "user" => Some(list(connection.user.as_ref()?, wanted)),
        "group" => {
            let groups = connection.groups.as_ref()?;
            Some(any_of(groups, wanted))
        }
        "host" => {
            let host = connection.host.as_ref()?.to_ascii_lowercase();
            Some(list(&host, &wanted.to_ascii_lowercase()))
        }
        "address" => address_matches(connection.address?, wanted),
        "localaddress" => address_matches(connection.local_address?, wanted),
        "localport" => Some(connection.local_port? == wanted.parse::<u16>().ok()?),
        "rdomain" => Some(list(connection.rdomain.as_ref()?, wanted)),
        // Criteria of newer versions, or of the client, that run a command or read its state.
        _ => None,
    }
}

/// Evaluates a Host line of ssh_config. At least one pattern must match, and no negated pattern may match.
fn host_block(patterns: &[String], host: &str) -> Option<bool> {
    let mut found = false;
    for wanted in patterns {
        match wanted.strip_prefix('!') {
            Some(wanted) if pattern_matches(host, wanted) => return Some(false),
            Some(_) => {}
            None => found |= pattern_matches(host, wanted),
        }
    }
    Some(found)
}

/// Matches a list of patterns like `match_pattern_list`. If a negated pattern matches, the result is false.
fn list(text: &str, patterns: &str) -> bool {
    any_of(&[text.to_owned()], patterns)
}

fn any_of(texts: &[String], patterns: &str) -> bool {
    let mut found = false;
    for pattern in patterns.split(',') {
        let (negated, pattern) = match pattern.strip_prefix('!') {
            Some(pattern) => (true, pattern),
            None => (false, pattern),
        };
        if texts.iter().any(|text| pattern_matches(text, pattern)) {
            if negated {
                return false;
            }
            found = true;
        }
    }
    found
}

/// Matches a pattern with `*` and `?` like `match_pattern`. Backtracks only to the last star, so that the run time is
/// short for any pattern.
#[must_use]
pub fn pattern_matches(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let (mut t, mut p) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Matches an address like `addr_match_list`: against networks, or against patterns for the address as text. `None` for
/// a list that sshd rejects.
fn address_matches(address: IpAddr, wanted: &str) -> Option<bool> {
    let mut found = false;
    for entry in wanted.split(',') {
        let (negated, entry) = match entry.strip_prefix('!') {
            Some(entry) => (true, entry),
            None => (false, entry),
        };
        if entry.is_empty() {
            return None;
        }
        let fits = match parse_network(entry) {
            Network::Wrong => return None,
            Network::Of(network, bits) => is_in_network(address, network, bits),
            Network::NotOne => pattern_matches(&address.to_string(), entry),
        };
        if fits && negated {
            return Some(false);
        }
        found |= fits;
    }
    Some(found)
}

enum Network {
    Of(IpAddr, u32),
    /// The mask is too long, or address bits outside of the mask are set.
    Wrong,
    NotOne,
}

fn parse_network(text: &str) -> Network {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => match bits.parse::<u32>() {
            Ok(bits) if bits <= 128 && !bits_sign(text) => (address, Some(bits)),
            _ => return Network::NotOne,
        },
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return Network::NotOne;
    };
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(width);
    match bits <= width && address_number(address) & !network_mask(bits, width) == 0 {
        true => Network::Of(address, bits),
        false => Network::Wrong,
    }
}

/// Returns whether the number of bits begins with a sign. Rust's `parse` accepts `+8`, but sshd does not.
fn bits_sign(text: &str) -> bool {
    text.contains("/+")
}

fn address_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns a mask with the highest `bits` of `width` bits set.
fn network_mask(bits: u32, width: u32) -> u128 {
    let whole = u128::MAX >> (128 - width);
    let rest = whole.checked_shr(bits).unwrap_or(0);
    whole & !rest
}

fn is_in_network(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    let width = if network.is_ipv4() { 32 } else { 128 };
    address.is_ipv4() == network.is_ipv4()
        && address_number(address) & network_mask(bits, width) == address_number(network)
}
