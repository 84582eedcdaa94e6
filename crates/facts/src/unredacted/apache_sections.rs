//! Finds sections of Apache's configuration that publish more than a site: directory listings, status pages, or the
//! whole file system. Reads only `<Directory>` and `<Location>` sections in the files of this machine.

use super::apache_files::{MAINS, apache_files};
use super::lines_of_files::{Line, note, read};
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeMap;

/// Directories for which the main file of a package has a section.
const STOCK: [&str; 9] = [
    "/usr/share",
    "/var/www",
    "/var/www/html",
    "/var/www/cgi-bin",
    "/var/www/icons",
    "/var/www/error",
    "/home/*/public_html",
    "/srv",
    "",
];

/// The settings of a section that decide what is published.
struct Section {
    name: String,
    argument: String,
    place: FactPlace,
    handler: Option<FactPlace>,
    requires: Vec<String>,
    listing: Option<(bool, FactPlace)>,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let all = apache_files(g);
    open_proxy(g, &all);
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut sections: Vec<(Section, bool)> = Vec::new();
    let mut roots: Vec<(String, String)> = Vec::new();
    for path in all {
        let lines = read_defined(g, &path, &mut names);
        roots.extend(lines.iter().filter_map(|line| {
            let root = document_root(&line.text)?;
            Some((path.clone(), root))
        }));
        for section in parse_sections(lines) {
            let of_package = path.contains("/mods-enabled/")
                || (MAINS.contains(&path.as_str())
                    && STOCK.contains(&section.argument.trim_end_matches('/')));
            sections.push((section, !of_package));
        }
    }
    for at in 0..sections.len() {
        // A later section for the same directory replaces the options.
        let (section, _) = &sections[at];
        let replaced = sections[at + 1..].iter().any(|(later, _)| {
            later.name == section.name
                && later.argument == section.argument
                && later.listing.as_ref().is_some_and(|(on, _)| !on)
        });
        if replaced {
            sections[at].0.listing = None;
        }
        let (section, own_site) = &sections[at];
        let roots = roots_of(section, &roots);
        let all = sections.iter().map(|(section, _)| section);
        let ruled = section.requires.is_empty() && !section.is_reachable(all, &roots);
        section.note(g, &(at + 1).to_string(), *own_site, ruled);
    }
}

fn document_root(text: &str) -> Option<String> {
    let (name, path) = text.trim().split_once(char::is_whitespace)?;
    let path = path.trim().trim_matches('"').trim_end_matches('/');
    name.eq_ignore_ascii_case("documentroot")
        .then(|| path.to_owned())
}

/// Returns the document roots of the section's own file, or of all files if it has none.
fn roots_of<'a>(section: &Section, roots: &'a [(String, String)]) -> Vec<&'a str> {
    let own: Vec<&str> = roots
        .iter()
        .filter(|(path, _)| section.place.file() == Some(path.as_str()))
        .map(|(_, root)| root.as_str())
        .collect();
    match own.is_empty() {
        true => roots.iter().map(|(_, root)| root.as_str()).collect(),
        false => own,
    }
}

/// Reads the lines of a file. Replaces variables of `Define` by their values, and drops sections of `<IfDefine>` that
/// do not apply.
fn read_defined(g: &mut Gather<'_>, path: &str, names: &mut BTreeMap<String, String>) -> Vec<Line> {
    let mut kept = Vec::new();
    let mut conditions: Vec<bool> = Vec::new();
    for mut line in read(g, "apache", path) {
        let low = line.text.trim().to_ascii_lowercase();
        if low.starts_with("<ifdefine") {
            let name = line.text.trim().trim_end_matches('>');
            let name = name.split_whitespace().nth(1).unwrap_or_default();
            let (not, name) = name
                .strip_prefix('!')
                .map_or((false, name), |name| (true, name));
            conditions.push(names.contains_key(name) != not);
            continue;
        }
        if low.starts_with("</ifdefine") {
            conditions.pop();
            continue;
        }
        if conditions.contains(&false) {
            continue;
        }
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let [define, name, rest @ ..] = &words[..]
            && define.eq_ignore_ascii_case("define")
        {
            let value = rest.first().map_or("", |value| value.trim_matches('"'));
            names.insert((*name).to_owned(), value.to_owned());
        } else if line.text.contains("${") {
            for (name, value) in &*names {
                line.text = line.text.replace(&format!("${{{name}}}"), value);
            }
        }
        kept.push(line);
    }
    kept
}

/// Notes whether Apache is a forward proxy without a `<Proxy>` section that restricts access.
fn open_proxy(g: &mut Gather<'_>, all: &[String]) {
    let (mut forward, mut limited, mut inside) = (None, false, false);
    for path in all {
        for line in read(g, "apache", path) {
            let text = line.text.trim().to_ascii_lowercase();
            let words: Vec<&str> = text.split_whitespace().collect();
            match words[..] {
                ["proxyrequests", value, ..] => forward = Some((value == "on", line.place)),
                [section, ..] if section.starts_with("<proxy") => inside = true,
                [section, ..] if section.starts_with("</proxy") => inside = false,
                ["require", ..] if inside => limited |= text != "require all granted",
                ["deny" | "authtype", ..] if inside => limited = true,
                _ => {}
            }
        }
    }
    if let Some((on, place)) = forward {
        note(
            g,
            "apache.proxy",
            "forward",
            &place,
            &[("open", (on && !limited).into())],
        );
    }
}

/// Returns the sections for directories or locations in a file. A nested section is returned separately, and each
/// section has only its own lines.
fn parse_sections(lines: Vec<Line>) -> Vec<Section> {
    let mut done = Vec::new();
    let mut open: Vec<Section> = Vec::new();
    for line in lines {
        let text = line.text.trim();
        if let Some(rest) = text.strip_prefix("</") {
            let name = rest.trim_end_matches('>').to_ascii_lowercase();
            if open.last().is_some_and(|section| section.name == name) {
                done.extend(open.pop());
            }
        } else if let Some(rest) = text.strip_prefix('<') {
            let rest = rest.trim_end_matches('>');
            let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let name = name.to_ascii_lowercase();
            if ["directory", "location", "directorymatch", "locationmatch"].contains(&name.as_str())
            {
                open.push(Section {
                    name,
                    argument: argument.trim().trim_matches('"').to_owned(),
                    place: line.place,
                    handler: None,
                    requires: Vec::new(),
                    listing: None,
                });
            }
        } else if let Some(section) = open.last_mut() {
            section.take(text, &line.place);
        }
    }
    done
}

impl Section {
    fn take(&mut self, text: &str, place: &FactPlace) {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim().to_ascii_lowercase();
        match name.to_ascii_lowercase().as_str() {
            "sethandler" if ["server-status", "server-info"].contains(&rest.trim_matches('"')) => {
                self.handler = Some(place.clone());
            }
            "require" | "allow" | "deny" | "authtype" => self.requires.push(rest),
            "options" => {
                for word in rest.split_whitespace() {
                    match word.trim_start_matches('+') {
                        "indexes" | "all" => self.listing = Some((true, place.clone())),
                        "-indexes" | "none" => self.listing = Some((false, place.clone())),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn is_granted(&self) -> bool {
        let mut rules = self.requires.iter();
        rules.any(|rule| rule == "all granted" || rule == "from all")
    }

    fn is_limited(&self) -> bool {
        let mut rules = self.requires.iter();
        rules.any(|rule| rule != "all granted" && rule != "from all")
    }

    /// Whether everybody reaches a section without rules of its own: no section for a part of the address limits it,
    /// and the sections of the document root, of which the longest path decides, grant access (httpd 2.4, "How
    /// the sections are merged").
    fn is_reachable<'a>(
        &self,
        all: impl Iterator<Item = &'a Section> + Clone,
        roots: &[&str],
    ) -> bool {
        let covers = |section: &Section, path: &str| {
            let part = section.argument.trim_end_matches('/');
            path == part || path.starts_with(&format!("{part}/"))
        };
        let mut locations = all.clone().filter(|one| one.name == "location");
        if locations.any(|one| covers(one, &self.argument) && one.is_limited()) {
            return false;
        }
        roots.iter().any(|root| {
            let ruled = all.clone().filter(|one| {
                one.name == "directory" && covers(one, root) && !one.requires.is_empty()
            });
            let nearest = ruled.max_by_key(|one| one.argument.trim_end_matches('/').len());
            nearest.is_some_and(|one| one.is_granted() && !one.is_limited())
        })
    }

    /// Notes what the section publishes; `ruled` if rules elsewhere limit a section without rules of its own.
    fn note(&self, g: &mut Gather<'_>, which: &str, own_site: bool, ruled: bool) {
        let (granted, limited) = (self.is_granted(), self.is_limited());
        if let Some(place) = &self.handler {
            let open = (granted || self.requires.is_empty()) && !limited && !ruled;
            note(g, "apache.status", which, place, &[("open", open.into())]);
        }
        // Sections of packages, for /var/www, icons and home pages, are not those of the
        // administrator.
        let own_site = own_site && !self.argument.starts_with("/usr/share/");
        if let Some((listing, place)) = self.listing.as_ref().filter(|_| own_site) {
            note(
                g,
                "apache.listing",
                which,
                place,
                &[("on", (*listing && !limited).into())],
            );
        }
        if self.name == "directory" && self.argument == "/" {
            note(
                g,
                "apache.root",
                which,
                &self.place,
                &[("granted", (granted && !limited).into())],
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn defined_names_and_replaced_options() {
        let lists = |text: &str| {
            let host = Recorded::new().file("/etc/httpd/conf/httpd.conf", text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            let mut all = g.facts.map.keys();
            all.any(|key| key.ends_with(".on") && g.facts.get(key) == Some(&true.into()))
        };
        let on = "<Directory ${ROOT}>\nOptions +Indexes\n</Directory>\n";
        assert!(lists(&format!("Define ROOT /srv/shop\n{on}")));
        assert!(!lists(&format!("Define ROOT /var/www/html\n{on}")));
        assert!(!lists(&format!("<IfDefine LISTS>\n{on}</IfDefine>\n")));
        let off = "<Directory ${ROOT}>\nOptions -Indexes\n</Directory>\n";
        assert!(!lists(&format!("Define ROOT /srv/shop\n{on}{off}")));
    }

    #[test]
    fn sections_and_their_near_misses() {
        for (text, key, expected) in [
            (
                "<Location /s>\nSetHandler server-status\nRequire all granted\n</Location>",
                "apache.status.1.open",
                true,
            ),
            (
                "<Location /s>\nSetHandler server-status\nRequire local\n</Location>",
                "apache.status.1.open",
                false,
            ),
            (
                "DocumentRoot /srv/www\n<Directory />\nRequire all denied\n</Directory>\n\
                 <Directory /srv/www>\nRequire all granted\n</Directory>\n\
                 <Location /s>\nSetHandler server-status\n</Location>",
                "apache.status.3.open",
                true,
            ),
            (
                "DocumentRoot /srv/www\n<Directory />\nRequire all denied\n</Directory>\n\
                 <Location /s>\nSetHandler server-status\n</Location>",
                "apache.status.2.open",
                false,
            ),
            (
                "DocumentRoot /srv/www\n<Directory /srv/www>\nRequire all granted\n</Directory>\n\
                 <Location />\nRequire ip 10.0.0.0/8\n</Location>\n\
                 <Location /s>\nSetHandler server-status\n</Location>",
                "apache.status.3.open",
                false,
            ),
            (
                "<Directory /srv>\nOptions +Indexes\n</Directory>",
                "apache.listing.1.on",
                true,
            ),
            (
                "<Directory /srv>\nOptions -Indexes\n</Directory>",
                "apache.listing.1.on",
                false,
            ),
            (
                "ProxyRequests On\n<Proxy *>\nRequire all granted\n</Proxy>",
                "apache.proxy.forward.open",
                true,
            ),
            (
                "ProxyRequests On\n<Proxy *>\nRequire ip 10.0.0.0/8\n</Proxy>",
                "apache.proxy.forward.open",
                false,
            ),
            (
                "<Directory />\nRequire all granted\n</Directory>",
                "apache.root.1.granted",
                true,
            ),
            (
                "<Directory />\nRequire all denied\n</Directory>",
                "apache.root.1.granted",
                false,
            ),
        ] {
            let host = Recorded::new().file("/etc/apache2/sites-enabled/a.conf", text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            assert_eq!(
                g.facts.get(key),
                Some(&expected.into()),
                "{text}: {:?}",
                g.facts.map.keys()
            );
        }
    }
}
