//! Application servers: connectors and servlets of Tomcat, sockets of uWSGI, proxies that gunicorn and uvicorn trust,
//! the debugger of PHP, and certificates that Squid does not check.

use super::super::lines_of_files::{files, is_loopback, read};
use super::{Lines, bare, words};
use crate::collectors::daemons::lines::at_line;
use crate::collectors::services::packages::{find_any_version, numbers};
use crate::gather::{Gather, lossy};
use assay_model::FactPlace;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;

const UWSGI: [&str; 4] = [
    "/etc/uwsgi/apps-enabled",
    "/etc/uwsgi/vassals",
    "/etc/uwsgi-emperor/vassals",
    "/etc/uwsgi.d",
];
const UNITS: &str = "/etc/systemd/system";
const PHP: &str = "/etc/php";
const SQUID: &str = "/etc/squid/squid.conf";
/// Actions of ssl_bump with which Squid itself is the client of the server (squid.conf, ssl_bump).
const BUMPS: [&str; 5] = ["bump", "stare", "allow", "client-first", "server-first"];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_tomcat(g);
    note_uwsgi(g);
    note_python_servers(g);
    note_debugger(g);
    note_squid(g);
}

fn note_tomcat(g: &mut Gather<'_>) {
    let mut connectors = Lines::of("tomcat_connector", "open");
    let mut servlets = Lines::of("tomcat_servlet", "writable");
    for name in g.list("tomcat_connector", "/etc") {
        let name = lossy(&name);
        let Some(release) = name.strip_prefix("tomcat") else {
            continue;
        };
        let old = is_old(g, &name, release);
        for_each(g, &format!("/etc/{name}/server.xml"), |g, node, place| {
            if node.has_tag_name("Connector") {
                note_connector(g, node, place, old, &mut connectors);
            }
        });
        for_each(g, &format!("/etc/{name}/web.xml"), |g, node, place| {
            if text_of(node, "param-name") == Some("readonly") {
                let class = node
                    .parent()
                    .and_then(|servlet| text_of(servlet, "servlet-class"))
                    .unwrap_or_default();
                let files = ["DefaultServlet", "WebdavServlet"]
                    .iter()
                    .any(|end| class.ends_with(end));
                let writes = text_of(node, "param-value") == Some("false");
                servlets.add(g, files && writes, place);
            }
        });
    }
}

/// Returns whether AJP of a Tomcat listens on all addresses and needs no secret by default, as before 7.0.100, 8.5.51
/// and 9.0.31; `None` if dpkg does not list the package.
fn is_old(g: &Gather<'_>, package: &str, release: &str) -> Option<bool> {
    if release.parse::<u32>().is_ok_and(|release| release >= 10) {
        return Some(false);
    }
    let version = numbers(&find_any_version(g, package)?);
    let first_new = match version.0 {
        7 => (7, 0, 100),
        8 => (8, 5, 51),
        _ => (9, 0, 31),
    };
    Some(version < first_new)
}

fn note_connector(
    g: &mut Gather<'_>,
    node: Node<'_, '_>,
    place: &FactPlace,
    old: Option<bool>,
    found: &mut Lines,
) {
    let protocol = node.attribute("protocol").unwrap_or_default();
    if !protocol.to_ascii_lowercase().contains("ajp") {
        return;
    }
    let secret = ["secret", "requiredSecret"]
        .iter()
        .any(|name| node.attribute(*name).is_some_and(|value| !value.is_empty()));
    let is_open = |old: bool| {
        let address = node.attribute("address");
        let beyond = address.map_or(old, |address| !is_loopback(address));
        let asks = !old && node.attribute("secretRequired") != Some("false");
        beyond && !secret && !asks
    };
    match old {
        Some(old) => found.add(g, is_open(old), place),
        None if is_open(true) == is_open(false) => found.add(g, is_open(true), place),
        None => found.add_unknown(g, "the release of Tomcat is unknown", place),
    }
}

/// Calls a function with each element of an XML file and the place of the element.
fn for_each(
    g: &mut Gather<'_>,
    path: &str,
    mut call: impl FnMut(&mut Gather<'_>, Node<'_, '_>, &FactPlace),
) {
    let Some(text) = g.read("tomcat_connector", path) else {
        return;
    };
    let Ok(document) = Document::parse(&text) else {
        return;
    };
    for node in document.descendants().filter(Node::is_element) {
        let row = document.text_pos_at(node.range().start).row;
        let place = at_line(path, usize::try_from(row).unwrap_or(1));
        call(g, node, &place);
    }
}

fn text_of<'a>(node: Node<'a, '_>, child: &str) -> Option<&'a str> {
    let mut children = node.children();
    let found = children.find(|one| one.tag_name().name() == child)?;
    found.text().map(str::trim)
}

/// Notes sockets of uWSGI that speak its own protocol with everybody: a client may name the file that runs.
fn note_uwsgi(g: &mut Gather<'_>) {
    let mut all = vec!["/etc/uwsgi.ini".to_owned()];
    for dir in UWSGI {
        all.extend(files(g, "uwsgi", dir, ".ini"));
    }
    let mut found = Lines::of("uwsgi", "open");
    for path in all {
        for line in read(g, "uwsgi", &path) {
            let words = words(&line);
            let (Some(name), Some(address)) = (words.first(), words.get(1)) else {
                continue;
            };
            if ["socket", "uwsgi-socket"].contains(&name.as_str()) {
                let network = address.contains(':')
                    && !["/", "@", "fd:"]
                        .iter()
                        .any(|start| address.starts_with(start));
                found.add(g, network && !is_loopback(address), &line.place);
            }
        }
    }
}

/// Notes units that start gunicorn or uvicorn for the network and let it believe the headers of every client.
fn note_python_servers(g: &mut Gather<'_>) {
    let mut found = Lines::of("python_server", "trusts_all");
    for path in files(g, "python_server", UNITS, ".service") {
        for line in read(g, "python_server", &path) {
            let Some(command) = bare(&line).and_then(|text| text.strip_prefix("ExecStart=")) else {
                continue;
            };
            if !["gunicorn", "uvicorn"]
                .iter()
                .any(|name| command.contains(name))
            {
                continue;
            }
            let words: Vec<&str> = command
                .split(|letter: char| letter.is_whitespace() || letter == '=')
                .map(|word| word.trim_matches(['"', '\'']))
                .filter(|word| !word.is_empty())
                .collect();
            let after = |options: &[&str]| {
                let pairs = words.windows(2).filter(|pair| options.contains(&pair[0]));
                pairs.map(|pair| pair[1]).collect::<Vec<&str>>()
            };
            let trusted = after(&["--forwarded-allow-ips"]);
            if trusted.is_empty() {
                continue;
            }
            let addresses = after(&["--bind", "-b", "--host"]);
            // Without an option, both listen on 127.0.0.1.
            let beyond = addresses
                .iter()
                .any(|address| !is_loopback(address) && !address.starts_with("fd:"));
            found.add(g, beyond && trusted.contains(&"*"), &line.place);
        }
    }
}

/// Notes whether Xdebug connects to each visitor who asks for it, who then runs code (Xdebug, discover_client_host).
fn note_debugger(g: &mut Gather<'_>) {
    let mut found = Lines::of("php_debugger", "for_visitors");
    for version in g.list("php_debugger", PHP) {
        for part in ["fpm", "apache2"] {
            let dir = format!("{PHP}/{}/{part}", lossy(&version));
            let mut all = vec![format!("{dir}/php.ini")];
            all.extend(files(g, "php_debugger", &format!("{dir}/conf.d"), ".ini"));
            let mut said: BTreeMap<String, (String, FactPlace)> = BTreeMap::new();
            let mut loaded = false;
            for path in all {
                for line in read(g, "php_debugger", &path) {
                    let words = words(&line);
                    let Some(name) = words.first() else { continue };
                    let value = words.get(1).cloned().unwrap_or_default();
                    loaded |= name == "zend_extension" && value.contains("xdebug");
                    said.insert(name.clone(), (value, line.place));
                }
            }
            let is_on = |name: &str| {
                said.get(name)
                    .is_some_and(|(value, _)| ["1", "on", "yes", "true"].contains(&value.as_str()))
            };
            let mode = said.get("xdebug.mode");
            let debugs = mode.is_some_and(|(modes, _)| modes.split(',').any(|one| one == "debug"));
            let any_host = is_on("xdebug.discover_client_host") && debugs;
            // Names of version 2.
            let back = is_on("xdebug.remote_enable") && is_on("xdebug.remote_connect_back");
            let place = mode.or(said.get("xdebug.remote_enable"));
            if let (true, Some((_, place))) = (loaded, place) {
                found.add(g, any_host || back, place);
            }
        }
    }
}

fn note_squid(g: &mut Gather<'_>) {
    let mut all = vec![SQUID.to_owned()];
    all.extend(files(g, "squid_tls", "/etc/squid/conf.d", ".conf"));
    let mut lines = Vec::new();
    for path in all {
        lines.extend(read(g, "squid_tls", &path));
    }
    let bumps = lines.iter().any(|line| {
        let words = words(line);
        let action = words.get(1).map_or("", String::as_str);
        words.first().is_some_and(|first| first == "ssl_bump") && BUMPS.contains(&action)
    });
    let mut found = Lines::of("squid_tls", "unverified");
    for line in &lines {
        let text = bare(line).unwrap_or_default().to_ascii_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some(first) = words.first() else { continue };
        match *first {
            "tls_outgoing_options" | "sslproxy_flags" | "cache_peer" => {
                found.add(g, text.contains("dont_verify_peer"), &line.place);
            }
            "sslproxy_cert_error" => {
                found.add(g, bumps && words[1..] == ["allow", "all"], &line.place);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;
    use crate::collectors::services::packages::STATUS;

    #[test]
    fn releases_of_tomcat() {
        let connector = "<Server><Connector protocol='AJP/1.3' port='8009'/></Server>";
        for (name, version, expected) in [
            ("tomcat8", "8.5.50-0+deb9u1", "tomcat_connector.1.open 1"),
            ("tomcat8", "8.5.54-0+deb9u1", ""),
            ("tomcat9", "9.0.16-4", "tomcat_connector.1.open 1"),
            ("tomcat9", "9.0.31-1~deb10u12", ""),
        ] {
            let status =
                format!("Package: {name}\nStatus: install ok installed\nVersion: {version}\n");
            let file = format!("/etc/{name}/server.xml");
            let files = [(&*file, connector), (STATUS, &*status)];
            assert_eq!(holds(&files).join(" "), expected, "{version}");
        }
    }

    #[test]
    fn servers_and_their_near_misses() {
        let tomcat = "/etc/tomcat10/server.xml";
        let servlet = |value: &str| {
            format!(
                "<web-app><servlet>\n<servlet-class>org.apache.catalina.servlets.DefaultServlet\
                 </servlet-class>\n<init-param><param-name>readonly</param-name>\
                 <param-value>{value}</param-value></init-param></servlet></web-app>\n"
            )
        };
        let (writable, readonly) = (servlet("false"), servlet("true"));
        let uwsgi = "/etc/uwsgi/apps-enabled/a.ini";
        let unit = "/etc/systemd/system/app.service";
        let debugger = "/etc/php/8.2/fpm/conf.d/20-xdebug.ini";
        for (path, text, expected) in [
            (
                tomcat,
                "<Server>\n<Connector protocol='AJP/1.3' address='0.0.0.0' secretRequired='false'/></Server>",
                "tomcat_connector.1.open 2",
            ),
            (
                tomcat,
                "<Server><Connector protocol='AJP/1.3' secretRequired='false'/></Server>",
                "",
            ),
            (
                tomcat,
                "<Server><Connector protocol='AJP/1.3' address='::'/></Server>",
                "",
            ),
            (
                tomcat,
                "<Server><!-- <Connector protocol='AJP/1.3' address='::' secretRequired='false'/> --></Server>",
                "",
            ),
            (
                "/etc/tomcat8/server.xml",
                "<Server><Connector protocol='AJP/1.3' port='8009'/></Server>",
                "",
            ),
            (
                "/etc/tomcat8/server.xml",
                "<Server><Connector protocol='AJP/1.3' address='::' secretRequired='false'/></Server>",
                "tomcat_connector.1.open 1",
            ),
            (
                "/etc/tomcat9/web.xml",
                &writable,
                "tomcat_servlet.1.writable 3",
            ),
            ("/etc/tomcat9/web.xml", &readonly, ""),
            (uwsgi, "[uwsgi]\nsocket = :3031\n", "uwsgi.1.open 2"),
            (uwsgi, "[uwsgi]\nsocket = 127.0.0.1:3031\n", ""),
            (uwsgi, "[uwsgi]\nsocket = /run/a.sock\n", ""),
            (uwsgi, "[uwsgi]\nhttp-socket = :8080\n", ""),
            (
                unit,
                "[Service]\nExecStart=/usr/bin/gunicorn \\\n -b 0.0.0.0:80 --forwarded-allow-ips=\"*\" a:b\n",
                "python_server.1.trusts_all 2",
            ),
            (
                unit,
                "[Service]\nExecStart=/usr/bin/gunicorn -b unix:/run/a --forwarded-allow-ips=\"*\" a:b\n",
                "",
            ),
            (
                unit,
                "[Service]\nExecStart=/usr/bin/uvicorn --host 0.0.0.0 --forwarded-allow-ips 10.0.0.1 a:b\n",
                "",
            ),
            (
                debugger,
                "zend_extension=xdebug.so\nxdebug.mode=develop,debug\nxdebug.discover_client_host=1\n",
                "php_debugger.1.for_visitors 2",
            ),
            (
                debugger,
                "zend_extension=xdebug.so\nxdebug.mode=off\nxdebug.discover_client_host=1\n",
                "",
            ),
            (
                debugger,
                "xdebug.mode=debug\nxdebug.discover_client_host=1\n",
                "",
            ),
            (
                SQUID,
                "tls_outgoing_options flags=NO_DEFAULT_CA,DONT_VERIFY_PEER\n",
                "squid_tls.1.unverified 1",
            ),
            (SQUID, "tls_outgoing_options min-version=1.2\n", ""),
            (
                SQUID,
                "sslproxy_cert_error allow all\nssl_bump bump all\n",
                "squid_tls.1.unverified 1",
            ),
            (SQUID, "sslproxy_cert_error allow all\n", ""),
            (
                SQUID,
                "ssl_bump splice all\nsslproxy_cert_error allow all\n",
                "",
            ),
            (
                SQUID,
                "ssl_bump bump all\nacl old dstdomain a\nsslproxy_cert_error allow old\n",
                "",
            ),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
