//! Finds remote management of Java programs without a password, and managers of Tomcat that every address may open.

use super::super::lines_of_files::{files, read_readable};
use super::Misuses;
use crate::collectors::daemons::lines::at_line;
use crate::gather::{Gather, lossy};
use roxmltree::Document;

/// Directories with options of services.
const OPTIONS: [(&str, &str); 3] = [
    ("/etc/default", ""),
    ("/etc/sysconfig", ""),
    ("/etc/systemd/system", ".service"),
];
const MANAGERS: [&str; 2] = ["manager", "host-manager"];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    note_management(g, &mut found);
    found.note(g, "jmx");
    let mut found = Misuses::default();
    for name in g.list("tomcat_manager", "/etc") {
        let name = lossy(&name);
        if name.starts_with("tomcat") {
            note_users(g, &format!("/etc/{name}/tomcat-users.xml"), &mut found);
            for manager in MANAGERS {
                note_manager(
                    g,
                    &format!("/etc/{name}/Catalina/localhost/{manager}.xml"),
                    &mut found,
                );
            }
        }
    }
    found.note(g, "tomcat_manager");
}

/// Notes JMX ports without a password: a client of the port can load and run code.
fn note_management(g: &mut Gather<'_>, found: &mut Misuses) {
    let mut paths = Vec::new();
    for (dir, end) in OPTIONS {
        paths.extend(files(g, "jmx", dir, end));
    }
    for dir in files(g, "jmx", "/etc/systemd/system", ".service.d") {
        paths.extend(files(g, "jmx", &dir, ".conf"));
    }
    for name in g.list("jmx", "/etc") {
        let name = lossy(&name);
        if name.starts_with("tomcat") {
            paths.extend(files(g, "jmx", &format!("/etc/{name}"), ".conf"));
        }
    }
    for path in paths {
        let lines = read_readable(g, &path);
        let lines: Vec<_> = lines
            .into_iter()
            .filter(|line| !line.text.trim().starts_with('#'))
            .collect();
        let says = |wanted: &str| lines.iter().find(|line| line.text.contains(wanted));
        let Some(port) = says("com.sun.management.jmxremote.port=") else {
            continue;
        };
        let hosts = ["jmxremote.host=127.", "jmxremote.host=localhost"];
        let local = hosts.iter().any(|host| says(host).is_some());
        let off = says("com.sun.management.jmxremote.authenticate=false");
        let place = off.unwrap_or(port).place.clone();
        found.add("without_password", off.is_some() && !local, place);
    }
}

/// Notes managers whose password is that of an example, or the name of the user.
fn note_users(g: &mut Gather<'_>, path: &str, found: &mut Misuses) {
    let Some(text) = g.read("tomcat_manager", path) else {
        return;
    };
    let Ok(document) = Document::parse(&text) else {
        return;
    };
    for node in document
        .descendants()
        .filter(|node| node.has_tag_name("user"))
    {
        let value = |name: &str| node.attribute(name).unwrap_or_default();
        if !value("roles").contains("manager") && !value("roles").contains("admin") {
            continue;
        }
        let user = node.attribute("username").unwrap_or_else(|| value("name"));
        let password = value("password");
        let examples = [
            "admin", "tomcat", "s3cret", "password", "manager", "changeit", "secret", "",
        ];
        let known = examples.contains(&password.to_ascii_lowercase().as_str()) || password == user;
        let row = document.text_pos_at(node.range().start).row;
        let place = at_line(path, usize::try_from(row).unwrap_or(1));
        found.add("known_password", known, place);
    }
}

/// Returns whether a pattern of RemoteAddrValve admits every address, or a list of RemoteCIDRValve all networks.
fn admits_all(class: &str, allow: &str) -> bool {
    match class.rsplit('.').next().unwrap_or_default() {
        "RemoteAddrValve" | "RemoteHostValve" => {
            [".*", ".+", "^.*$", "\\d+\\.\\d+\\.\\d+\\.\\d+"].contains(&allow.trim())
        }
        "RemoteCIDRValve" => allow.split(',').any(|one| one.trim().ends_with("/0")),
        _ => false,
    }
}

fn note_manager(g: &mut Gather<'_>, path: &str, found: &mut Misuses) {
    let Some(text) = g.read("tomcat_manager", path) else {
        return;
    };
    let Ok(document) = Document::parse(&text) else {
        return;
    };
    let line = |node: roxmltree::Node<'_, '_>| {
        usize::try_from(document.text_pos_at(node.range().start).row).unwrap_or(1)
    };
    let limits = |class: &str| {
        ["RemoteAddrValve", "RemoteHostValve", "RemoteCIDRValve"]
            .iter()
            .any(|end| class.ends_with(end))
    };
    let mut valves = document.descendants().filter(|node| {
        node.has_tag_name("Valve") && limits(node.attribute("className").unwrap_or_default())
    });
    let (open, place) = match valves.next() {
        Some(valve) => {
            let class = valve.attribute("className").unwrap_or_default();
            let allow = valve.attribute("allow").unwrap_or_default();
            (admits_all(class, allow), line(valve))
        }
        None => (true, line(document.root_element())),
    };
    found.add("open", open, at_line(path, place));
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn options_and_valves_and_their_near_misses() {
        let options = "/etc/default/tomcat10";
        let manager = "/etc/tomcat9/Catalina/localhost/manager.xml";
        let jmx = "JAVA_OPTS=\"-Dcom.sun.management.jmxremote.port=9010 -Dcom.sun.management.jmxremote.authenticate=";
        let valve = |allow: &str| {
            format!(
                "<Context>\n<Valve className=\"org.apache.catalina.valves.RemoteAddrValve\" allow=\"{allow}\"/>\n</Context>"
            )
        };
        for (path, text, expected) in [
            (options, format!("{jmx}false\"\n"), "without_password=true"),
            (options, format!("{jmx}true\"\n"), "without_password=false"),
            (options, format!("#{jmx}false\"\n"), ""),
            (
                options,
                format!("{jmx}false -Dcom.sun.management.jmxremote.host=127.0.0.1\"\n"),
                "without_password=false",
            ),
            (
                "/etc/tomcat9/tomcat-users.xml",
                "<tomcat-users>\n<user username=\"admin\" password=\"admin\" roles=\"manager-gui\"/>\n</tomcat-users>".to_owned(),
                "known_password=true",
            ),
            (
                "/etc/tomcat9/tomcat-users.xml",
                "<tomcat-users>\n<user username=\"a\" password=\"kJ3-91.xQ\" roles=\"manager-gui\"/>\n</tomcat-users>".to_owned(),
                "known_password=false",
            ),
            (manager, valve(".*"), "open=true"),
            (manager, valve("127\\.\\d+\\.\\d+\\.\\d+|::1"), "open=false"),
            (
                manager,
                "<Context privileged=\"true\"/>".to_owned(),
                "open=true",
            ),
        ] {
            assert_eq!(
                found(&[(path, &text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
