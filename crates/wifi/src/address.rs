//! Addresses of access points (BSSIDs). An address identifies one device for its whole life, and so reveals
//! where people live. Addresses are never shown in full.

use std::fmt;

/// A BSSID, which is the 48-bit address of an access point. `Display` and `Debug` show the first three octets and hide
/// the other three.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 6]);

/// Bit of the first octet that marks a locally assigned address (IEEE 802-2014, 8.2.2).
const LOCAL: u8 = 0x02;

impl Address {
    /// Parses six hexadecimal octets, separated by colons or hyphens.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut octets = [0; 6];
        let mut parts = text.split([':', '-']);
        for octet in &mut octets {
            let part = parts.next().filter(|part| part.len() == 2)?;
            if !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            *octet = u8::from_str_radix(part, 16).ok()?;
        }
        parts.next().is_none().then_some(Self(octets))
    }

    /// Returns whether the device itself chose the address, so that the first octets do not identify a vendor.
    #[must_use]
    pub fn is_local(self) -> bool {
        self.0[0] & LOCAL != 0
    }

    /// Returns the first 24 bits. They identify the vendor, unless the address is local.
    #[must_use]
    pub fn prefix(self) -> [u8; 3] {
        [self.0[0], self.0[1], self.0[2]]
    }

    /// Returns the 48 bits as a number, for a lookup in the IEEE registry.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
            .iter()
            .fold(0, |number, octet| number << 8 | u64::from(*octet))
    }

    /// Returns the part that all addresses of one device usually have in common. A device numbers its radios and
    /// networks in the last four bits or in the first octet. Two different devices may also have the same family.
    #[must_use]
    pub fn family(self) -> Family {
        let [_, b, c, d, e, f] = self.0;
        Family([b, c, d, e, f & 0xf0])
    }
}

/// Part that the addresses of one device usually have in common (see [`Address::family`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Family([u8; 5]);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, ..] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:xx:xx:xx")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Family")
    }
}

/// Returns whether a text is an address with hidden digits, such as `02:00:5e:xx:xx:xx`.
#[must_use]
pub fn is_masked(text: &str) -> bool {
    let hidden = |byte: u8| byte.is_ascii_hexdigit() || b"xX*_?#.".contains(&byte);
    let parts: Vec<&str> = text.split([':', '-']).collect();
    parts.len() == 6
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(hidden))
}

/// Parses an address that may be masked. Returns `Some(None)` for a masked address and `None` for a text that
/// is not an address.
#[must_use]
pub fn read_or_masked(text: &str) -> Option<Option<Address>> {
    match Address::read(text) {
        Some(address) => Some(Some(address)),
        None => is_masked(text).then_some(None),
    }
}

/// Length of an address as text, in characters.
const LENGTH: usize = 17;

/// Hides the last three octets of every address in a text.
#[must_use]
pub fn mask(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match rest.get(..LENGTH).and_then(Address::read) {
            Some(address) => {
                out.push_str(&address.to_string());
                rest = &rest[LENGTH..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_is_never_shown_in_full() {
        let address = Address::read("78:8A-20:01:02:f3").unwrap();
        assert_eq!(address.to_string(), "78:8a:20:xx:xx:xx");
        assert_eq!(format!("{address:?}"), "Address(78:8a:20:xx:xx:xx)");
        assert!(!format!("{:?}", address.family()).contains("f0"));
        assert_eq!(
            mask("BSS 78:8a:20:01:02:f3(on wlan0), 78-8A-20-01-02-F3é"),
            "BSS 78:8a:20:xx:xx:xx(on wlan0), 78:8a:20:xx:xx:xxé"
        );
        for wrong in [
            "",
            "78:8a:20:01:02",
            "78:8a:20:01:02:f3:00",
            "78:8a:20:01:02:+3",
            "7:8a:20:01:02:f34",
        ] {
            assert_eq!(Address::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn radios_of_one_device_are_one_family() {
        let family = |text| Address::read(text).unwrap().family();
        assert_eq!(family("78:8a:20:01:02:f3"), family("7a:8a:20:01:02:f4"));
        assert_ne!(family("78:8a:20:01:02:f3"), family("78:8a:20:01:03:f3"));
        assert!(Address::read("7a:8a:20:01:02:f4").unwrap().is_local());
    }

    proptest! {
        #[test]
        fn masked_text_holds_no_address(before in "[a-z0-9:é ]{0,20}", octets in any::<[u8; 6]>(), after in "[^0-9a-f:-]{0,9}") {
            let full: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
            let masked = mask(&format!("{before} {}{after}", full.join(":")));
            prop_assert!(!masked.contains(&full.join(":")));
        }
    }
}
