//! Checks whether the certificate of a site matches the names of the site: each `server` of nginx with a certificate,
//! and each VirtualHost of Apache. A client rejects a certificate for another name (RFC 9525). Postfix is left out,
//! because clients of a mail server need not request its name (MX records decide, RFC 7672).

use crate::collectors::nginx::FILE as NGINX;
use crate::collectors::services::apache_reading::{self, Reading, Server};
use crate::collectors::services::certificates::of_apache;
use crate::gather::Gather;
use crate::harmless::PATH_WITHHELD;
use crate::harmless::is_path;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Effective, Program, ScopeId, read_effective};
use assay_host::Host;
use assay_model::{FactKind, FactPlace};
use std::collections::BTreeSet;
use std::path::Path;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;

/// A site with its server program, its names and its certificates.
struct Site {
    program: &'static str,
    names: Vec<String>,
    certificates: Vec<String>,
    place: FactPlace,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut sites = list_nginx_sites(g.host);
    sites.extend(list_apache_sites(g.host));
    for (number, site) in sites.iter().enumerate() {
        // Other facts report a certificate that cannot be read.
        let read = |path: &String| g.host.read(Path::new(path)).ok();
        let files: Vec<Vec<u8>> = site.certificates.iter().filter_map(read).collect();
        let read: Vec<Vec<String>> = files
            .iter()
            .filter_map(|file| certificate_names(file))
            .collect();
        if read.is_empty() {
            continue;
        }
        let fits = |name: &&String| read.iter().flatten().any(|of| matches_name(of, name));
        let missing = site.names.iter().filter(|name| !fits(name)).count();
        let which = format!("{}-{}", site.program, number + 1);
        let mut note = |what: &str, value: serde_json::Value| {
            let fact = format!("tls_site.{which}.{what}");
            let place = site.place.clone();
            g.facts.known(fact, value, FactKind::Configured, place);
        };
        note("names", site.names.len().into());
        note("uncovered", missing.into());
        note("certificate", site.certificates[0].as_str().into());
        g.about(["tls_site", &which]);
    }
}

fn list_nginx_sites(host: &dyn Host) -> Vec<Site> {
    let files = OfHost(host);
    let Ok(all) = read_effective(Program::Nginx, Path::new(NGINX), &files) else {
        return Vec::new();
    };
    let is_server = |id: &ScopeId| {
        all.scope(*id)
            .head
            .first()
            .is_some_and(|head| head == "server")
    };
    let servers: Vec<ScopeId> = all.scopes().map(|(id, _)| id).filter(is_server).collect();
    let with_tls: BTreeSet<String> = servers
        .iter()
        .flat_map(|id| list_listens(&all, *id))
        .filter_map(|(address, tls)| tls.then_some(address))
        .collect();
    let servers = servers
        .into_iter()
        .filter(|id| sends_certificate(&all, *id, &with_tls));
    servers.filter_map(|id| build_site(&all, id)).collect()
}

/// Returns the addresses on which a server listens, each with whether it uses TLS.
fn list_listens(all: &Effective, id: ScopeId) -> Vec<(String, bool)> {
    let lines = all.get(id, "listen").into_iter();
    let words = lines.filter_map(|said| {
        let mut words = said.words.iter().map(|word| String::from_utf8_lossy(word));
        let address = words.next()?.into_owned();
        let tls = words.any(|word| matches!(word.as_ref(), "ssl" | "quic"));
        Some((address, tls))
    });
    words.collect()
}

/// Returns whether a server sends a certificate to clients. It must listen with TLS, or on an address for which another
/// server enables TLS, and must not reject the handshake. On a local socket, another server terminates TLS.
fn sends_certificate(all: &Effective, id: ScopeId, with_tls: &BTreeSet<String>) -> bool {
    let on = |key: &str| all.value(id, key).and_then(|said| said.word()).as_deref() == Some("on");
    let tls =
        |(address, _): &(String, bool)| !address.starts_with("unix:") && with_tls.contains(address);
    !on("ssl_reject_handshake") && (on("ssl") || list_listens(all, id).iter().any(tls))
}

fn build_site(all: &Effective, id: ScopeId) -> Option<Site> {
    let words = |key: &str| -> Vec<String> {
        all.get(id, key)
            .iter()
            .flat_map(|said| &said.words)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    };
    let absolute = |path: String| match path.starts_with('/') {
        true => path,
        false => format!("/etc/nginx/{path}"),
    };
    let certificates: Vec<String> = words("ssl_certificate")
        .into_iter()
        .map(absolute)
        .filter(|path| is_path(path))
        .collect();
    let mut names = words("server_name");
    names.retain(|name| is_name(name));
    let place = FactPlace::from(&all.value(id, "server_name")?.place);
    (!certificates.is_empty() && !names.is_empty()).then_some(Site {
        program: "nginx",
        names,
        certificates,
        place,
    })
}

/// Returns the virtual hosts of Apache that use TLS.
fn list_apache_sites(host: &dyn Host) -> Vec<Site> {
    let reading = apache_reading::read(host);
    let servers = reading.servers.iter();
    let hosts = servers.filter(|server| server.begins.is_some() && reading.speaks_tls(server));
    hosts
        .filter_map(|server| virtual_host(&reading, server))
        .collect()
}

fn virtual_host(reading: &Reading, server: &Server) -> Option<Site> {
    let mut names: Vec<String> = Vec::new();
    for line in &server.lines {
        // ServerName may contain a scheme and a port.
        let bare = |word: &str| {
            let word = word.rsplit_once("//").map_or(word, |(_, rest)| rest);
            word.split(':').next().unwrap_or_default().to_owned()
        };
        if ["servername", "serveralias"].contains(&line.name.as_str()) {
            let words = line
                .arguments
                .split_whitespace()
                .map(|word| word.trim_matches('"'));
            names.extend(words.map(bare).filter(|name| is_name(name)));
        }
    }
    let own = |server: &Server| -> Vec<String> {
        let lines = server
            .lines
            .iter()
            .filter(|line| line.name == "sslcertificatefile");
        let texts: Vec<String> = lines
            .map(|line| format!("{} {}", line.name, line.arguments))
            .collect();
        let paths = texts.iter().filter_map(|text| of_apache(text));
        let paths = paths.filter(|(_, path)| *path != PATH_WITHHELD);
        paths.map(|(_, path)| path.to_owned()).collect()
    };
    let mut certificates = own(server);
    if certificates.is_empty() {
        certificates = reading.servers.first().map(own).unwrap_or_default();
    }
    let place = server.last("servername").map(|line| line.place.clone());
    (!certificates.is_empty() && !names.is_empty()).then_some(Site {
        program: "apache",
        names,
        certificates,
        place: place.or_else(|| server.begins.clone())?,
    })
}

/// Returns whether a client may request the name. Regular expressions, names with a variable, and `_`, which matches
/// nothing, do not count.
fn is_name(name: &str) -> bool {
    let byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-.*".contains(&byte);
    // A name without a dot is local: `localhost`, or a machine of this network.
    name.contains('.')
        && !name.starts_with('.')
        && name.bytes().all(byte)
        && name.parse::<std::net::IpAddr>().is_err()
}

/// Returns the names of the first certificate in a file; `None` if the file contains none.
fn certificate_names(file: &[u8]) -> Option<Vec<String>> {
    let block = Pem::iter_from_buffer(file)
        .map_while(Result::ok)
        .find(|block| block.label.ends_with("CERTIFICATE"))?;
    let read = block.parse_x509().ok()?;
    // Since RFC 9525 the common name is ignored.
    let Ok(Some(extension)) = read.subject_alternative_name() else {
        return Some(Vec::new());
    };
    let all = extension.value.general_names.iter();
    let dns = all.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        _ => None,
    });
    Some(dns.collect())
}

/// Returns whether a certificate name `of` matches a site `name`: the names are equal, or the first label of `of` is a
/// wildcard. A site `*.example.org` needs a certificate with exactly this name.
fn matches_name(of: &str, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.trim_end_matches('.');
    of == name
        || of.strip_prefix("*.").is_some_and(|rest| {
            name.split_once('.')
                .is_some_and(|(label, tail)| label != "*" && tail == rest)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_name_a_certificate_is_for() {
        for (of, name, fits) in [
            ("shop.example.org", "SHOP.example.org", true),
            ("*.example.org", "shop.example.org", true),
            ("*.example.org", "a.b.example.org", false),
            ("*.example.org", "example.org", false),
            ("*.example.org", "*.example.org", true),
            ("shop.example.org", "*.example.org", false),
            ("example.org", "example.org.", true),
        ] {
            assert_eq!(matches_name(of, name), fits, "{of} {name}");
        }
        let plain = |name: &str| is_name(name);
        assert!(plain("a.example.org") && plain("*.example.org"));
        for odd in [
            "_",
            "",
            "~^x\\.y$",
            "$host.x",
            "localhost",
            "10.0.0.1",
            ".example.org",
        ] {
            assert!(!plain(odd), "{odd}");
        }
    }

    #[test]
    fn hosts_of_apache() {
        let text = "SSLCertificateFile /etc/x.pem\n<VirtualHost *:443>\n  ServerName https://a.example.org:443\n\
                    \x20 ServerAlias b.example.org \\\n c\n  SSLEngine on\n  SSLCertificateFile \"/etc/a.pem\"\n\
                    \x20 SSLCertificateKeyFile /etc/a.key\n</VirtualHost>\n<VirtualHost *:80>\nServerName z.example.org\n</VirtualHost>\n\
                    <VirtualHost *:444>\nServerName off.example.org\nSSLEngine Off\n</VirtualHost>\n\
                    <VirtualHost *:445>\nServerName main.example.org\nSSLEngine on\n</VirtualHost>\n";
        let host = assay_host::Recorded::new().file("/etc/apache2/apache2.conf", text);
        let sites = list_apache_sites(&host);
        assert_eq!(sites.len(), 2);
        assert_eq!(sites[0].names, ["a.example.org", "b.example.org"]);
        assert_eq!(sites[0].certificates, ["/etc/a.pem"]);
        assert_eq!(sites[0].place.to_string(), "/etc/apache2/apache2.conf:3");
        assert_eq!(sites[1].certificates, ["/etc/x.pem"]);
    }

    #[test]
    fn servers_of_nginx_that_send_a_certificate() {
        let sites = |servers: &str| {
            let text = format!("events {{}}\nhttp {{ ssl_certificate /etc/a.pem; {servers} }}\n");
            let host = assay_host::Recorded::new().file(NGINX, text);
            list_nginx_sites(&host)
                .iter()
                .flat_map(|site| site.names.clone())
                .collect::<Vec<_>>()
        };
        let server = |inside: &str| format!("server {{ server_name a.example.org; {inside} }}");
        for (inside, found) in [
            ("listen 443 ssl;", true),
            ("listen 443 quic reuseport;", true),
            ("listen 443; ssl on;", true),
            ("listen 80;", false),
            ("", false),
            ("listen unix:/run/a ssl;", false),
            ("listen 443 ssl; ssl_reject_handshake on;", false),
            ("listen 443 ssl; ssl_reject_handshake off;", true),
        ] {
            assert_eq!(!sites(&server(inside)).is_empty(), found, "{inside}");
        }
        // TLS applies to all servers on the address.
        let two = server("listen 443 ssl;") + "server { server_name b.example.org; listen 443; }";
        assert_eq!(sites(&two), ["a.example.org", "b.example.org"]);
    }
}
