//! The names of this machine: a connection to one of them stays on the machine.

use crate::collectors::services::apache_reading;
use crate::gather::Gather;
use assay_config::effective::Effective;
use std::collections::BTreeSet;
use std::path::Path;

/// Names of this machine and of its sites, in lower case.
pub(super) struct OwnNames(BTreeSet<String>);

impl OwnNames {
    /// Reads /etc/hostname, the loopback lines of /etc/hosts, and the names of the sites of nginx and Apache.
    pub(super) fn read(g: &Gather<'_>, nginx: &Effective) -> Self {
        let mut own = Self::of_apache(g);
        let of_nginx = nginx.settings().iter();
        let of_nginx = of_nginx.filter(|said| said.key == "server_name");
        for word in of_nginx.flat_map(|said| &said.words) {
            own.add(&String::from_utf8_lossy(word));
        }
        own
    }

    /// As [`Self::read`], without the sites of nginx.
    pub(super) fn of_apache(g: &Gather<'_>) -> Self {
        let text = |path: &str| g.host.read_text(Path::new(path)).unwrap_or_default();
        let mut own = Self(BTreeSet::new());
        own.add(text("/etc/hostname").trim());
        for line in text("/etc/hosts").lines() {
            let mut words = line
                .split('#')
                .next()
                .unwrap_or_default()
                .split_whitespace();
            let address = words.next().unwrap_or_default();
            if address.starts_with("127.") || address == "::1" {
                words.for_each(|name| own.add(name));
            }
        }
        for server in apache_reading::read(g.host).servers {
            for line in server.lines {
                if ["servername", "serveralias"].contains(&line.name.as_str()) {
                    let names = line.arguments.split_whitespace();
                    names.for_each(|name| own.add(name.split(':').next().unwrap_or_default()));
                }
            }
        }
        own
    }

    fn add(&mut self, name: &str) {
        let name = name.trim_matches('"').to_ascii_lowercase();
        if name.contains('.') && !name.contains(['*', '~', '$']) {
            self.0.insert(name);
        }
    }

    /// Returns whether a host, with or without a port, is a name of this machine.
    pub(super) fn contains(&self, host: &str) -> bool {
        let bare = host.trim_matches(['"', '\'']).to_ascii_lowercase();
        self.0.contains(bare.split(':').next().unwrap_or_default())
    }
}
