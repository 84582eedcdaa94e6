//! Finds settings against which the manual of their own program warns. Each fact is a boolean property with the place
//! of the line, and contains neither names nor addresses. The collectors of single programs find other harmful
//! settings.

mod accounts_and_limits;
mod apache;
mod apache_traps;
mod apache_trust;
mod backup_settings;
mod boot_disks;
mod caddy;
mod certbot;
mod clock_sources;
mod confinement;
mod cron_lines;
mod database_options;
mod exim;
mod fstab_lines;
mod interfaces;
mod iscsi_targets;
mod java;
mod log_rotation;
mod mail;
mod mail_servers;
mod mail_together;
mod nginx;
mod nginx_traps;
mod nginx_trust;
mod own_names;
mod package_updates;
mod packet_filters;
mod password_rules;
mod php;
mod proxmox_cluster;
mod rpm_updates;
mod samba;
mod small_servers;
mod ssh_client;
mod ssh_server;
mod ssh_traps;
mod storage_settings;
mod system_files;
mod system_log;
mod timers;
mod unattended;
mod unit_contradictions;
mod unit_files;
mod ups_settings;
mod user_programs;
mod varnish;

use super::lines_of_files::note;
use crate::gather::Gather;
use assay_model::FactPlace;
use serde_json::Value;

pub(super) fn collect(g: &mut Gather<'_>) {
    nginx::collect(g);
    apache::collect(g);
    mail::collect(g);
    exim::collect(g);
    samba::collect(g);
    database_options::collect(g);
    small_servers::collect(g);
    ssh_client::collect(g);
    ssh_server::collect(g);
    system_files::collect(g);
    fstab_lines::collect(g);
    interfaces::collect(g);
    accounts_and_limits::collect(g);
    boot_disks::collect(g);
    clock_sources::collect(g);
    cron_lines::collect(g);
    iscsi_targets::collect(g);
    package_updates::collect(g);
    packet_filters::collect(g);
    proxmox_cluster::collect(g);
    unit_files::collect(g);
    ups_settings::collect(g);
    caddy::collect(g);
    certbot::collect(g);
    java::collect(g);
    mail_servers::collect(g);
    mail_together::collect(g);
    php::collect(g);
    varnish::collect(g);
    timers::collect(g);
    unit_contradictions::collect(g);
    log_rotation::collect(g);
    system_log::collect(g);
    password_rules::collect(g);
    confinement::collect(g);
    rpm_updates::collect(g);
    storage_settings::collect(g);
    backup_settings::collect(g);
    unattended::collect(g);
    user_programs::collect(g);
}

/// A setting that may be a mistake, with its place.
struct ConfigMistake {
    properties: Vec<(&'static str, Value)>,
    place: FactPlace,
}

/// The checked settings of one program.
#[derive(Default)]
struct Misuses(Vec<ConfigMistake>);

impl Misuses {
    fn add(&mut self, property: &'static str, wrong: bool, place: impl Into<FactPlace>) {
        self.0.push(ConfigMistake {
            properties: vec![(property, Value::Bool(wrong))],
            place: place.into(),
        });
    }

    /// Adds a property to the last setting.
    fn also(&mut self, property: &'static str, value: bool) {
        if let Some(last) = self.0.last_mut() {
            last.properties.push((property, Value::Bool(value)));
        }
    }

    /// Notes each setting as a separate subject. The subjects are numbered from 1.
    fn note(self, g: &mut Gather<'_>, kind: &str) {
        for (number, one) in self.0.into_iter().enumerate() {
            let number = (number + 1).to_string();
            note(g, kind, &number, &one.place, &one.properties);
        }
    }
}

/// Runs a collector on these files. Returns its facts as `property=wrong`.
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
