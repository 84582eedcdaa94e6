//! Counts vehicles with their own Wi-Fi network, by make. The evidence is the name of the network, which follows a
//! pattern of the maker, and the vendor of the radio. Both are weak evidence: anybody can choose a name, and most radio
//! vendors do not build only for vehicles. Therefore each count has a lower and an upper bound.

use crate::address::{Address, Family};
use crate::reading::{Bss, Reading};
use crate::registry::Registry;
use crate::ssid::Ssid;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A make of vehicles, with the properties that identify its networks.
struct Make {
    name: &'static str,
    /// Prefixes of its network names. Four to eight letters or digits follow the prefix.
    prefixes: &'static [&'static str],
    /// Whether other devices also have names of this pattern.
    common: bool,
    /// Prefixes of the names of its radio vendors, with letters and digits only.
    makers: &'static [&'static str],
    /// Number of vehicles that the blog article (see [`MAKES`]) counted in 30 days at one place.
    published: usize,
}

/// Network names, vendors and numbers from the article (heiland blog, "Reverse wardriving", 2017). The network name
/// `SmartGate_` is also in Škoda's manuals of 2016.
const MAKES: [Make; 5] = [
    Make {
        name: "Mercedes-Benz",
        prefixes: &["MB WLAN ", "MB Hotspot "],
        common: false,
        makers: &["harman"],
        published: 77,
    },
    Make {
        name: "Opel",
        prefixes: &["WiFi Hotspot "],
        common: true,
        makers: &["mitsumi"],
        published: 73,
    },
    Make {
        name: "Škoda",
        prefixes: &["SmartGate_"],
        common: false,
        makers: &["universa"],
        published: 14,
    },
    Make {
        name: "Audi",
        prefixes: &["Audi_MMI_"],
        common: false,
        makers: &["wistron"],
        published: 7,
    },
    Make {
        name: "Volvo",
        prefixes: &["MyVolvo"],
        common: false,
        makers: &["actia"],
        published: 6,
    },
];

/// Vendors whose radios are only built for vehicles. The names are from the registry and from Wireshark's short form.
const FOR_VEHICLES: [&str; 3] = ["harmanb", "actiaautomotive", "actia"];

/// Number of characters that follow the prefix of a network name.
const BEHIND: std::ops::RangeInclusive<usize> = 4..=8;

/// Result of counting vehicles in Wi-Fi files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Census {
    /// Number of networks that were examined.
    pub networks: usize,
    /// Number of networks with a local address, which the device chose itself and which does not identify a vendor.
    pub local_addresses: usize,
    /// Whether the IEEE registry was available for vendor lookups.
    pub registry: bool,
    /// Numbers of vehicles for each make.
    pub makes: Vec<MakeCount>,
    /// Number of radios for vehicles whose network name matches no make.
    pub unnamed: usize,
}

/// Number of vehicles of one make, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Counted")]
pub struct MakeCount {
    /// Name of the make.
    pub make: &'static str,
    /// Pattern of the make's network names.
    pub pattern: String,
    /// Number of addresses whose name and vendor match the make.
    pub both: usize,
    /// Number of addresses whose name matches the make and whose vendor is unknown.
    pub name_only: usize,
    /// Number of addresses whose name matches the make and whose vendor does not.
    pub other_maker: usize,
    /// Minimum number of vehicles. Addresses that may belong to one device count once. A name that other devices use
    /// too counts only with a matching vendor.
    pub at_least: usize,
    /// Maximum number of vehicles, for which every address counts.
    pub at_most: usize,
    /// Number from the blog article "Reverse wardriving" (heiland, 2017): vehicles in 30 days at one place, counted by
    /// name.
    pub published: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    Both,
    Name,
    Another,
}

/// An address with its network name, and the evidence for its make.
struct Sighting<'a> {
    address: Option<Address>,
    ssid: &'a Ssid,
    evidence: Evidence,
}

/// Counts the vehicles in these files. Without a registry, only names are evidence.
#[must_use]
pub fn census(files: &[&Reading], registry: &Registry) -> Census {
    let all = || files.iter().flat_map(|file| &file.heard);
    let local = all().filter(|bss| bss.address.is_some_and(Address::is_local));
    let mut found: Vec<Vec<Sighting<'_>>> = MAKES.iter().map(|_| Vec::new()).collect();
    let mut unnamed: BTreeSet<Address> = BTreeSet::new();
    for bss in all() {
        let maker = maker(bss, registry);
        match MAKES.iter().position(|make| make.names(&bss.ssid)) {
            Some(at) => {
                let evidence = match &maker {
                    None => Evidence::Name,
                    Some(maker)
                        if MAKES[at]
                            .makers
                            .iter()
                            .any(|known| maker.starts_with(known)) =>
                    {
                        Evidence::Both
                    }
                    Some(_) => Evidence::Another,
                };
                found[at].push(Sighting {
                    address: bss.address,
                    ssid: &bss.ssid,
                    evidence,
                });
            }
            None => {
                let vehicle =
                    |maker: String| FOR_VEHICLES.iter().any(|known| maker.starts_with(known));
                unnamed.extend(bss.address.filter(|_| maker.is_some_and(vehicle)));
            }
        }
    }
    Census {
        networks: all().count(),
        local_addresses: local.count(),
        registry: !registry.is_empty(),
        makes: MAKES
            .iter()
            .zip(&found)
            .map(|(make, found)| counted(make, found))
            .collect(),
        unnamed: unnamed.len(),
    }
}

impl Make {
    fn names(&self, ssid: &Ssid) -> bool {
        let name = ssid.shown();
        self.prefixes.iter().any(|prefix| {
            name.strip_prefix(prefix).is_some_and(|rest| {
                BEHIND.contains(&rest.len())
                    && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
            })
        })
    }
}

/// Returns the vendor in lower case, with letters and digits only. The vendor comes from the registry; if it is missing
/// there, from the file.
fn maker(bss: &Bss, registry: &Registry) -> Option<String> {
    let address = bss.address?;
    if address.is_local() {
        return None;
    }
    let name = registry.maker(address).or(bss.vendor.as_deref())?;
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    Some(letters.collect::<String>().to_ascii_lowercase())
}

fn counted(make: &Make, found: &[Sighting<'_>]) -> MakeCount {
    // Several sightings of one address count once.
    let mut addresses: BTreeMap<(Option<Address>, &Ssid), Evidence> = BTreeMap::new();
    for sighting in found {
        addresses.insert((sighting.address, sighting.ssid), sighting.evidence);
    }
    let mut distinct: BTreeMap<Option<Address>, Evidence> = BTreeMap::new();
    let mut nameless = 0;
    for ((address, _), evidence) in &addresses {
        match address {
            Some(_) => drop(distinct.insert(*address, *evidence)),
            None => nameless += 1,
        }
    }
    let of = |evidence: Evidence| {
        distinct
            .values()
            .filter(|known| **known == evidence)
            .count()
    };
    let speaks = |evidence: Evidence| match evidence {
        Evidence::Both => true,
        Evidence::Name => !make.common,
        Evidence::Another => false,
    };
    let certain = addresses.iter().filter(|(_, evidence)| speaks(**evidence));
    let certain: Vec<(Option<Family>, &Ssid)> = certain
        .map(|((address, ssid), _)| (address.map(Address::family), *ssid))
        .collect();
    let pattern: Vec<String> = make
        .prefixes
        .iter()
        .map(|prefix| format!("{prefix}…"))
        .collect();
    MakeCount {
        make: make.name,
        pattern: pattern.join(", "),
        both: of(Evidence::Both),
        name_only: of(Evidence::Name) + nameless,
        other_maker: of(Evidence::Another),
        at_least: groups(&certain),
        at_most: distinct.len() + nameless,
        published: make.published,
    }
}

/// Counts the groups of members. Members belong to one group if they are connected by equal names or equal families.
fn groups(members: &[(Option<Family>, &Ssid)]) -> usize {
    let mut parents: Vec<usize> = (0..members.len()).collect();
    let mut families: BTreeMap<Family, usize> = BTreeMap::new();
    let mut names: BTreeMap<&Ssid, usize> = BTreeMap::new();
    for (at, (family, name)) in members.iter().enumerate() {
        let first = family.map(|family| *families.entry(family).or_insert(at));
        let named = *names.entry(name).or_insert(at);
        for other in first.into_iter().chain([named]) {
            let (a, b) = (root(&mut parents, at), root(&mut parents, other));
            parents[a.max(b)] = a.min(b);
        }
    }
    parents
        .iter()
        .enumerate()
        .filter(|(at, parent)| at == *parent)
        .count()
}

/// Returns the first member of the group of `at`. Path halving keeps this fast for long chains.
fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

#[cfg(test)]
mod tests;
