//! Settings that their own manuals warn of, one property each. The facts are booleans and places, never a name or an
//! address. Settings that harm in another way are in the collector of their program.

mod apache;
mod database_options;
mod fstab_lines;
mod mail;
mod nginx;
mod samba;
mod small_servers;
mod ssh_client;
mod system_files;

use super::lines_of_files::note;
use crate::gather::Gather;
use assay_model::FactPlace;

/// Runs all of them.
pub(super) fn collect(g: &mut Gather<'_>) {
    nginx::collect(g);
    apache::collect(g);
    mail::collect(g);
    samba::collect(g);
    database_options::collect(g);
    small_servers::collect(g);
    ssh_client::collect(g);
    system_files::collect(g);
    fstab_lines::collect(g);
}

/// A setting, whether it is wrong, and its place.
struct Misuse {
    property: &'static str,
    wrong: bool,
    place: FactPlace,
}

/// Collects the settings of one program.
#[derive(Default)]
struct Misuses(Vec<Misuse>);

impl Misuses {
    fn add(&mut self, property: &'static str, wrong: bool, place: impl Into<FactPlace>) {
        self.0.push(Misuse {
            property,
            wrong,
            place: place.into(),
        });
    }

    /// Notes each as a subject of its own.
    fn note(self, g: &mut Gather<'_>, kind: &str) {
        for (number, one) in self.0.into_iter().enumerate() {
            let properties = [(one.property, one.wrong.into())];
            note(g, kind, &(number + 1).to_string(), &one.place, &properties);
        }
    }
}

/// Returns `property=wrong` of all settings that a collector finds in these files.
#[cfg(test)]
fn found(files: &[(&str, &str)], collect: fn(&mut Gather<'_>)) -> Vec<String> {
    let host = files
        .iter()
        .fold(assay_host::Recorded::new(), |host, (path, text)| {
            host.file(path, *text)
        });
    let mut g = Gather::new(&host);
    collect(&mut g);
    let facts = g.facts.map.iter().filter_map(|(key, fact)| {
        let property = key.rsplit('.').next()?;
        match &fact.value {
            assay_model::FactValue::Known(value) => Some(format!("{property}={value}")),
            assay_model::FactValue::Unknown(_) => None,
        }
    });
    facts.collect()
}
