//! How many vehicles send a network of their own, by make. Names follow a pattern that the maker chose, and
//! addresses name who built the radio. Neither proves anything alone: a name can be given by anybody, and most
//! makers of radios do not build for vehicles only. So the count has two bounds, and says what it rests on.

use crate::address::{Address, Family};
use crate::reading::{Bss, Reading};
use crate::registry::Registry;
use crate::ssid::Ssid;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How the networks of a make can be known.
struct Make {
    name: &'static str,
    /// What names begin with. Four to eight letters or digits follow.
    prefixes: &'static [&'static str],
    /// Whether others use such names too.
    common: bool,
    /// What names of the makers of its radios begin with, letters and digits only.
    makers: &'static [&'static str],
    /// How many the blog series counted in 30 days at one place.
    published: usize,
}

/// Names, makers and figures are those of the article (heiland blog, "Reverse wardriving", 2017). The network
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

/// Makers whose radios are built for vehicles (names as in the registry, and as Wireshark shortens them).
const FOR_VEHICLES: [&str; 3] = ["harmanb", "actiaautomotive", "actia"];

/// Letters behind the beginning of a name.
const BEHIND: std::ops::RangeInclusive<usize> = 4..=8;

/// What was counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Census {
    /// Networks that were looked at.
    pub networks: usize,
    /// Of these, with an address that names no maker, because the device made it up.
    pub local_addresses: usize,
    /// Whether makers could be looked up in the registry of the IEEE.
    pub registry: bool,
    /// Each make.
    pub makes: Vec<MakeCount>,
    /// Radios that are built for vehicles, under names that no make uses.
    pub unnamed: usize,
}

/// What was counted of one make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Counted")]
pub struct MakeCount {
    /// The make.
    pub make: &'static str,
    /// Pattern of its names.
    pub pattern: String,
    /// Addresses whose name and maker are those of the make.
    pub both: usize,
    /// Addresses whose name is, and whose maker is not known.
    pub name_only: usize,
    /// Addresses whose name is, and whose maker is another one.
    pub other_maker: usize,
    /// Vehicles at least: what may be one device counts once, and a name that others use too only with its
    /// maker.
    pub at_least: usize,
    /// Vehicles at most: every address is one.
    pub at_most: usize,
    /// What the blog series published: 30 days at one place, counted by name.
    pub published: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    Both,
    Name,
    Another,
}

/// One address, and what speaks for it.
struct Sighting<'a> {
    address: Option<Address>,
    ssid: &'a Ssid,
    evidence: Evidence,
}

/// Counts the vehicles in some files. Without a registry only names speak.
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

/// The maker in lower case, letters and digits only: from the registry, else as the file names it.
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
    // What was heard often is one address.
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

/// How many groups there are when what has a name or a family in common is one.
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

/// The first member of a group; the way to it is halved, so that long chains stay cheap.
fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

#[cfg(test)]
mod tests;
