//! Parses lists of addresses and networks that block lists publish as files, and searches them for an address. Sends no
//! DNS queries.

use serde::Serialize;
use std::collections::HashMap;
use std::net::IpAddr;

/// A list of networks after parsing, which can be searched for an address.
#[derive(Debug, Default)]
pub struct AddressList {
    /// Number of the line of each network. The key consists of whether the network is IPv6, its prefix length, and its
    /// first address.
    networks: HashMap<(bool, u8, u128), usize>,
    /// Prefix lengths that occur in the list, each with whether the network is IPv6.
    lengths: Vec<(bool, u8)>,
    /// Number of lines that are neither a network nor a comment.
    pub unread: usize,
}

/// An entry of a list whose network contains a searched address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ListEntry {
    /// Name of the file with the list.
    pub list: String,
    /// Network of the entry, such as `203.0.113.0/24`.
    pub network: String,
    /// Number of the entry's line, from 1.
    pub line: usize,
}

impl AddressList {
    /// Parses a list. Each line contains one of the following, with an optional comment after `#` or `;`:
    /// - an address, a network (`203.0.113.0/24`) or a range (`203.0.113.0 - 203.0.113.255`);
    /// - a JSON object with the key `cidr`, in the format of Spamhaus.
    ///
    /// In hosts files, and in exports with more columns, only the first column counts.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut list = Self::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.split(['#', ';']).next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            match parse_line(line) {
                Some(networks) => {
                    for network in networks {
                        list.networks.entry(network).or_insert(at + 1);
                        let length = (network.0, network.1);
                        if !list.lengths.contains(&length) {
                            list.lengths.push(length);
                        }
                    }
                }
                None => list.unread += 1,
            }
        }
        list.lengths.sort_unstable_by(|a, b| b.cmp(a));
        list
    }

    /// Returns the number of networks in the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.networks.len()
    }

    /// Returns whether the list contains no network.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }

    /// Returns the smallest network in the list that contains the address, and the number of its line; `None` if there
    /// is no such network.
    #[must_use]
    pub fn find(&self, address: IpAddr) -> Option<(String, usize)> {
        let (is_six, bits) = to_bits(address);
        let own = self.lengths.iter().filter(|(family, _)| *family == is_six);
        own.copied().find_map(|(_, length)| {
            let first = bits & mask(is_six, length);
            let line = self.networks.get(&(is_six, length, first))?;
            Some((format!("{}/{length}", from_bits(is_six, first)), *line))
        })
    }
}

type Network = (bool, u8, u128);

fn parse_line(line: &str) -> Option<Vec<Network>> {
    if line.starts_with('{') {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        return match value.get("cidr") {
            Some(cidr) => parse_network(cidr.as_str()?).map(|one| vec![one]),
            // The line with the time and the terms at the end.
            None => value.get("type").map(|_| Vec::new()),
        };
    }
    if let Some((first, last)) = line.split_once('-') {
        return split_range(first.trim().parse().ok()?, last.trim().parse().ok()?);
    }
    let word = line.split([' ', '\t', ',']).next()?;
    parse_network(word.trim_matches('"')).map(|one| vec![one])
}

fn parse_network(word: &str) -> Option<Network> {
    let (address, length) = match word.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
        None => (word, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let (is_six, bits) = to_bits(address);
    let length = length.unwrap_or_else(|| bits_of(is_six));
    (length <= bits_of(is_six)).then(|| (is_six, length, bits & mask(is_six, length)))
}

/// Splits a range of addresses into the smallest possible number of networks; `None` if the range is invalid.
fn split_range(first: IpAddr, last: IpAddr) -> Option<Vec<Network>> {
    let ((is_six, mut at), (other, last)) = (to_bits(first), to_bits(last));
    if is_six != other || at > last {
        return None;
    }
    let mut networks = Vec::new();
    loop {
        let most = at.trailing_zeros().min(bits_of(is_six).into());
        let size = (0..=most).rev().find(|size| {
            let span = if *size >= 128 {
                u128::MAX
            } else {
                (1 << size) - 1
            };
            at.checked_add(span).is_some_and(|end| end <= last)
        })?;
        networks.push((is_six, bits_of(is_six) - u8::try_from(size).ok()?, at));
        let span = if size >= 128 {
            return Some(networks);
        } else {
            1_u128 << size
        };
        match at.checked_add(span) {
            Some(next) if next <= last => at = next,
            _ => return Some(networks),
        }
    }
}

fn bits_of(is_six: bool) -> u8 {
    if is_six { 128 } else { 32 }
}

fn mask(is_six: bool, length: u8) -> u128 {
    let host = u32::from(bits_of(is_six) - length);
    u128::MAX.checked_shl(host).unwrap_or(0)
}

fn to_bits(address: IpAddr) -> (bool, u128) {
    match address.to_canonical() {
        IpAddr::V4(address) => (false, u32::from(address).into()),
        IpAddr::V6(address) => (true, address.into()),
    }
}

fn from_bits(is_six: bool, bits: u128) -> IpAddr {
    match u32::try_from(bits) {
        Ok(bits) if !is_six => IpAddr::V4(bits.into()),
        _ => IpAddr::V6(bits.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(list: &AddressList, address: &str) -> Option<(String, usize)> {
        list.find(address.parse().unwrap())
    }

    #[test]
    fn forms_of_lists() {
        let text = "; Spamhaus DROP List\n1.10.16.0/20 ; SBL256894\n\n# comment\n203.0.113.7\n\
                    {\"cidr\":\"2001:db8::/32\",\"sblid\":\"SBL1\"}\n{\"type\":\"metadata\",\"records\":1}\n\
                    198.51.100.0 - 198.51.100.9\n\"192.0.2.0/24\",spam\nnot an address\n\
                    203.0.113.0/24\n300.1.1.1\n1.1.1.1/40\n";
        let list = AddressList::parse(text);
        assert_eq!((list.unread, list.is_empty()), (3, false));
        let net = |text: &str, line| Some((text.to_owned(), line));
        assert_eq!(found(&list, "1.10.31.255"), net("1.10.16.0/20", 2));
        assert_eq!(found(&list, "1.10.32.0"), None);
        assert_eq!(found(&list, "203.0.113.7"), net("203.0.113.7/32", 5));
        assert_eq!(found(&list, "203.0.113.8"), net("203.0.113.0/24", 11));
        assert_eq!(found(&list, "2001:db8::99"), net("2001:db8::/32", 6));
        assert_eq!(found(&list, "::ffff:192.0.2.5"), net("192.0.2.0/24", 9));
        assert_eq!(found(&list, "198.51.100.9"), net("198.51.100.8/31", 8));
        assert_eq!(found(&list, "198.51.100.10"), None);
    }

    #[test]
    fn whole_families() {
        let list = AddressList::parse(
            "0.0.0.0/0\n::/0\n0.0.0.0-255.255.255.255\n::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\n",
        );
        assert_eq!((list.len(), list.unread), (2, 0));
        assert!(found(&list, "8.8.8.8").is_some() && found(&list, "::1").is_some());
    }
}
