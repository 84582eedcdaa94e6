//! IEEE registry of address prefixes and their vendors. The lists are CSV files with the heading
//! `Registry,Assignment,Organization Name,Organization Address`. Debian's package ieee-data contains them.

use crate::address::Address;
use crate::table::{Heading, Records};
use assay_render::text::escape_line;
use std::collections::HashMap;

/// Lengths of the prefixes MA-S, MA-M and MA-L in bits. The longest matching prefix determines the vendor.
const LENGTHS: [usize; 3] = [36, 28, 24];
/// Maximum number of assignments in a registry. For comparison: the IEEE has made about 50,000.
const MOST: usize = 1_000_000;

/// Vendors of radios, by address prefix.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    makers: HashMap<(usize, u64), String>,
}

/// The file is not a list of the IEEE.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line 1: no list of the IEEE: its heading is `Registry,Assignment,Organization Name,Organization Address` (oui.csv, mam.csv or oui36.csv of the package ieee-data)"
)]
pub struct RegistryError;

impl Registry {
    /// Adds the assignments of a list.
    ///
    /// # Errors
    /// The heading is not the heading of an IEEE list.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), RegistryError> {
        let mut records = Records::new(bytes, b',', true);
        let first = records.next().and_then(|(_, fields)| fields);
        let heading = Heading::new(&first.ok_or(RegistryError)?);
        let find = |name| heading.find(name).ok_or(RegistryError);
        let (assignment, name) = (find("Assignment")?, find("Organization Name")?);
        for (_, fields) in records {
            let Some(fields) = fields else { continue };
            let text = |at: usize| {
                let field = fields.get(at).map(Vec::as_slice).unwrap_or_default();
                String::from_utf8_lossy(field).trim().to_owned()
            };
            let digits = text(assignment);
            let bits = digits.len() * 4;
            let Ok(number) = u64::from_str_radix(&digits, 16) else {
                continue;
            };
            if LENGTHS.contains(&bits) && self.makers.len() < MOST {
                self.makers.insert((bits, number), escape_line(&text(name)));
            }
        }
        Ok(())
    }

    /// Returns the vendor of an address; `None` for a local or unknown address.
    #[must_use]
    pub fn maker(&self, address: Address) -> Option<&str> {
        if address.is_local() {
            return None;
        }
        let number = address.number();
        LENGTHS
            .iter()
            .find_map(|bits| self.makers.get(&(*bits, number >> (48 - bits))))
            .map(String::as_str)
    }

    /// Returns whether the registry contains no assignments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.makers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_assignment_is_meant() {
        let mut registry = Registry::default();
        let head = "Registry,Assignment,Organization Name,Organization Address\r\n";
        registry
            .add(format!("{head}MA-L,0055DA,IEEE Registration Authority,x\r\nMA-L,00005E,\"A, Inc\",\"a\nb\"\r\n").as_bytes())
            .unwrap();
        registry
            .add(format!("{head}MA-M,0055DA0,Small\x07 Ltd,x\nMA-M,0055DAé,x,x\n").as_bytes())
            .unwrap();
        let maker = |text| {
            registry
                .maker(Address::read(text).unwrap())
                .map(str::to_owned)
        };
        assert_eq!(
            maker("00:55:da:0f:00:00").as_deref(),
            Some("Small\\u{7} Ltd")
        );
        assert_eq!(
            maker("00:55:da:10:00:00").as_deref(),
            Some("IEEE Registration Authority")
        );
        assert_eq!(maker("00:00:5e:00:00:01").as_deref(), Some("A, Inc"));
        assert_eq!(maker("02:55:da:10:00:00"), None);
        assert_eq!(registry.add(b"x,y\n"), Err(RegistryError));
        assert_eq!(registry.add(b""), Err(RegistryError));
    }
}
