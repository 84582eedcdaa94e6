//! Finds certificates of certbot that will not be renewed or that nobody loads after the renewal, and servers that
//! read the wrong file of a certificate.

use super::super::apache_files::apache_files;
use super::super::lines_of_files::{Line, exists, files, holds_enabled_units, read, read_readable};
use super::Misuses;
use crate::collectors::nginx::FILE as NGINX;
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Effective, Program, read_effective};
use assay_model::FactPlace;
use std::path::Path;

const LIVE: &str = "/etc/letsencrypt/live/";
const ARCHIVE: &str = "/etc/letsencrypt/archive/";
const RENEWAL: &str = "/etc/letsencrypt/renewal";
const GLOBAL: &str = "/etc/letsencrypt/cli.ini";
/// Directories with programs that certbot runs around each renewal.
const HOOKS: [&str; 2] = [
    "/etc/letsencrypt/renewal-hooks/deploy",
    "/etc/letsencrypt/renewal-hooks/post",
];
const BEFORE: &str = "/etc/letsencrypt/renewal-hooks/pre";
const TIMERS: [&str; 3] = [
    "certbot.timer",
    "certbot-renew.timer",
    "snap.certbot.renew.timer",
];
const UNITS: [&str; 3] = [
    "/etc/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
/// Files of servers other than nginx and Apache that name a certificate.
const SERVERS: [&str; 12] = [
    "/etc/postfix/main.cf",
    "/etc/dovecot/dovecot.conf",
    "/etc/lighttpd/lighttpd.conf",
    "/etc/exim4/exim4.conf",
    "/etc/exim4/exim4.conf.localmacros",
    "/etc/exim/exim.conf",
    "/etc/proftpd/tls.conf",
    "/etc/vsftpd.conf",
    "/etc/vsftpd/vsftpd.conf",
    "/etc/mosquitto/mosquitto.conf",
    "/etc/turnserver.conf",
    "/etc/imapd.conf",
];
const DIRS: [(&str, &str); 4] = [
    ("/etc/dovecot/conf.d", ".conf"),
    ("/etc/lighttpd/conf-enabled", ".conf"),
    ("/etc/exim4/conf.d/main", ""),
    ("/etc/mosquitto/conf.d", ".conf"),
];
/// Names of the certificate that a server presents.
const CERTIFICATES: [&str; 12] = [
    "ssl_certificate",
    "sslcertificatefile",
    "smtpd_tls_cert_file",
    "ssl_cert",
    "ssl_server_cert_file",
    "cert_file",
    "ssl.pemfile",
    "tls_certificate",
    "rsa_cert_file",
    "tlsrsacertificatefile",
    "certfile",
    "tls_server_cert",
];
/// Names of a file with the intermediate certificates.
const CHAINS: [&str; 4] = [
    "sslcertificatechainfile",
    "ssl.ca-file",
    "tlscertificatechainfile",
    "cafile",
];

/// A line of a server's configuration that names a file of certbot.
struct Used {
    name: String,
    path: String,
    place: FactPlace,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let nginx = read_effective(Program::Nginx, Path::new(NGINX), &OfHost(g.host)).ok();
    let used = used_files(g, nginx.as_ref());
    let mut found = Misuses::default();
    for one in &used {
        let certificate = CERTIFICATES.contains(&one.name.as_str());
        if certificate && one.path.starts_with(LIVE) {
            let chain = used.iter().any(|other| {
                CHAINS.contains(&other.name.as_str()) && other.place.file() == one.place.file()
            });
            // A file that can be read is judged by its certificates.
            let leaf = one.path.ends_with("/cert.pem") && !exists(g, &one.path);
            found.add("without_chain", leaf && !chain, one.place.clone());
        }
        if certificate {
            let old = one.path.starts_with(ARCHIVE);
            found.add("from_archive", old, one.place.clone());
        }
    }
    found.note(g, "certbot_line");
    let mut found = Misuses::default();
    note_renewals(g, &used, nginx.as_ref(), &mut found);
    found.note(g, "certbot");
}

fn used_files(g: &mut Gather<'_>, nginx: Option<&Effective>) -> Vec<Used> {
    let mut used = Vec::new();
    for said in nginx.iter().flat_map(|all| all.settings()) {
        let path = said.word().unwrap_or_default();
        if path.starts_with("/etc/letsencrypt/") {
            used.push(Used {
                name: said.key.clone(),
                path,
                place: FactPlace::from(&said.place),
            });
        }
    }
    let mut paths = apache_files(g);
    paths.extend(SERVERS.map(str::to_owned));
    for (dir, end) in DIRS {
        paths.extend(files(g, "certbot", dir, end));
    }
    for path in paths {
        for line in read_readable(g, &path) {
            let text = line.text.trim();
            if text.starts_with(['#', ';']) {
                continue;
            }
            let words: Vec<&str> = text
                .split(|letter: char| letter.is_whitespace() || "=<\"'".contains(letter))
                .filter(|word| !word.is_empty())
                .collect();
            if let [name, file, ..] = words[..]
                && file.starts_with("/etc/letsencrypt/")
            {
                used.push(Used {
                    name: name.to_ascii_lowercase(),
                    path: file.to_owned(),
                    place: line.place,
                });
            }
        }
    }
    used
}

/// The settings of one certificate's renewal.
struct Renewal(Vec<Line>);

impl Renewal {
    fn line(&self, name: &str) -> Option<(String, FactPlace)> {
        self.0.iter().rev().find_map(|line| {
            let (key, value) = line.text.split_once('=')?;
            (key.trim() == name).then(|| (value.trim().to_owned(), line.place.clone()))
        })
    }

    fn value(&self, name: &str) -> String {
        self.line(name).map(|(value, _)| value).unwrap_or_default()
    }

    fn is_set(&self, name: &str) -> bool {
        !["", "None"].contains(&self.value(name).as_str())
    }
}

/// Returns the lines of cron tables and units that run certbot, and whether a job reloads a server.
fn jobs(g: &mut Gather<'_>) -> Vec<String> {
    let mut paths = vec![
        "/etc/crontab".to_owned(),
        "/var/spool/cron/crontabs/root".to_owned(),
        "/var/spool/cron/root".to_owned(),
    ];
    for dir in [
        "/etc/cron.d",
        "/etc/cron.daily",
        "/etc/cron.weekly",
        "/etc/cron.monthly",
    ] {
        paths.extend(files(g, "certbot", dir, ""));
    }
    paths.extend(files(g, "certbot", UNITS[0], ".service"));
    for dir in files(g, "certbot", UNITS[0], ".service.d") {
        paths.extend(files(g, "certbot", &dir, ".conf"));
    }
    let mut all = Vec::new();
    for path in paths {
        for line in read_readable(g, &path) {
            if !line.text.trim().starts_with('#') {
                all.push(line.text);
            }
        }
    }
    all
}

/// Returns whether something renews certificates regularly; `None` if the tree does not show which timers are enabled.
fn is_scheduled(g: &Gather<'_>, jobs: &[String]) -> Option<bool> {
    // Debian's job leaves the renewal to the timer where systemd runs.
    let by_job = jobs.iter().any(|line| {
        let renews = ["certbot", "letsencrypt", "acme.sh"]
            .iter()
            .any(|name| line.contains(name));
        renews
            && line.contains("renew")
            && !line.contains("/run/systemd/system")
            && !line.trim_start().starts_with("ExecStart")
    });
    if by_job {
        return Some(true);
    }
    // A table that cannot be read may contain the job.
    let hidden = ["/var/spool/cron/crontabs/root", "/var/spool/cron/root"];
    let hidden = hidden.iter().any(|path| {
        let text = g.host.read_text(Path::new(path));
        text.is_err_and(|error| !error.is_absent())
    });
    if hidden {
        return None;
    }
    let masked = |name: &str| {
        let link = g.host.link(Path::new(&format!("{}/{name}", UNITS[0])));
        link.is_ok_and(|target| target == Path::new("/dev/null"))
    };
    let there: Vec<&str> = TIMERS
        .into_iter()
        .filter(|name| {
            UNITS.iter().any(|dir| {
                g.host.link(Path::new(&format!("{dir}/{name}"))).is_ok()
                    || exists(g, &format!("{dir}/{name}"))
            })
        })
        .collect();
    if there.is_empty() {
        return None;
    }
    if there.iter().all(|name| masked(name)) {
        return Some(false);
    }
    let enabled = |name: &&str| {
        let link = format!("{}/timers.target.wants/{name}", UNITS[0]);
        g.host.link(Path::new(&link)).is_ok() || exists(g, &link)
    };
    let on = there.iter().filter(|name| !masked(name)).any(enabled);
    match on {
        true => Some(true),
        false => holds_enabled_units(g).then_some(false),
    }
}

fn note_renewals(
    g: &mut Gather<'_>,
    used: &[Used],
    nginx: Option<&Effective>,
    found: &mut Misuses,
) {
    let paths = files(g, "certbot", RENEWAL, ".conf");
    if paths.is_empty() {
        return;
    }
    let jobs = jobs(g);
    let plain = |line: &Line| {
        let text = line.text.trim();
        !text.is_empty() && !text.starts_with(['#', '['])
    };
    let global = Renewal(
        read(g, "certbot", GLOBAL)
            .into_iter()
            .filter(plain)
            .collect(),
    );
    let scheduled = is_scheduled(g, &jobs);
    let mut loads = HOOKS
        .iter()
        .any(|dir| !files(g, "certbot", dir, "").is_empty());
    loads |= ["deploy-hook", "renew-hook", "post-hook"]
        .iter()
        .any(|name| global.is_set(name));
    loads |= jobs.iter().any(|line| {
        ["-hook", "reload", "restart"]
            .iter()
            .any(|word| line.contains(word))
            && !line.trim_start().starts_with("Exec")
            || (line.contains("certbot") && line.contains("-hook"))
    });
    let stops = !files(g, "certbot", BEFORE, "").is_empty() || global.is_set("pre-hook");
    let taken = port_80_is_taken(g, nginx);
    for path in paths {
        let renewal = Renewal(
            read(g, "certbot", &path)
                .into_iter()
                .filter(plain)
                .collect(),
        );
        let Some((authenticator, place)) = renewal.line("authenticator") else {
            continue;
        };
        let name = path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".conf");
        let served = used
            .iter()
            .any(|one| one.path.starts_with(&format!("{LIVE}{name}/")));
        let by_hand = authenticator == "manual" && !renewal.is_set("manual_auth_hook");
        found.add("by_hand", by_hand, place.clone());
        if let Some((server, place)) = renewal.line("server") {
            found.add("staging", server.contains("staging") && served, place);
        }
        if authenticator == "standalone" {
            let other = renewal.is_set("http01_port") && renewal.value("http01_port") != "80";
            let free = renewal.is_set("pre_hook") || stops || other;
            found.add("port_taken", taken && !free, place.clone());
        }
        let hook = ["renew_hook", "deploy_hook", "post_hook"]
            .iter()
            .any(|name| renewal.is_set(name));
        let installs =
            renewal.is_set("installer") || ["nginx", "apache"].contains(&authenticator.as_str());
        found.add(
            "not_loaded",
            served && !by_hand && !(hook || installs || loads),
            place.clone(),
        );
        if let Some((value, place)) = renewal.line("autorenew") {
            found.add("not_renewed", value.eq_ignore_ascii_case("false"), place);
        } else if let Some(scheduled) = scheduled {
            found.add("not_renewed", !scheduled && served, place);
        }
    }
}

/// Returns whether a web server of this machine listens on port 80.
fn port_80_is_taken(g: &mut Gather<'_>, nginx: Option<&Effective>) -> bool {
    let of_port = |word: &str| word.rsplit(':').next() == Some("80");
    let by_nginx = nginx
        .iter()
        .flat_map(|all| all.settings())
        .any(|said| said.key == "listen" && said.word().is_some_and(|word| of_port(&word)));
    let mut paths = apache_files(g);
    paths.push("/etc/apache2/ports.conf".to_owned());
    paths.push("/etc/haproxy/haproxy.cfg".to_owned());
    by_nginx
        || paths.iter().any(|path| {
            read(g, "certbot", path).iter().any(|line| {
                let text = line.text.trim().to_ascii_lowercase();
                let words: Vec<&str> = text.split_whitespace().collect();
                matches!(words[..], ["listen" | "bind", address, ..] if of_port(address))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    const SITE: &str = "events {}\nhttp { server { listen 80; listen 443 ssl;\n\
        ssl_certificate /etc/letsencrypt/live/a/fullchain.pem; } }\n";

    fn facts(host: &Recorded, kind: &str) -> Vec<String> {
        let mut g = Gather::new(host);
        collect(&mut g);
        let mut wrong: Vec<String> = g
            .facts
            .map
            .keys()
            .filter(|key| key.starts_with(&format!("{kind}.")))
            .filter(|key| g.facts.get(key) == Some(&true.into()))
            .filter_map(|key| key.rsplit('.').next().map(str::to_owned))
            .collect();
        wrong.sort();
        wrong
    }

    #[test]
    fn files_of_servers() {
        for (path, text, expected) in [
            (NGINX, SITE.to_owned(), ""),
            (NGINX, SITE.replace("fullchain", "cert"), "without_chain"),
            (NGINX, SITE.replace("live/a/fullchain", "archive/a/fullchain3"), "from_archive"),
            (
                "/etc/apache2/apache2.conf",
                "SSLCertificateFile /etc/letsencrypt/live/a/cert.pem\n".to_owned(),
                "without_chain",
            ),
            (
                "/etc/apache2/apache2.conf",
                "SSLCertificateFile /etc/letsencrypt/live/a/cert.pem\nSSLCertificateChainFile /etc/letsencrypt/live/a/chain.pem\n".to_owned(),
                "",
            ),
            ("/etc/postfix/main.cf", "smtpd_tls_cert_file=/etc/letsencrypt/live/a/cert.pem\n".to_owned(), "without_chain"),
            ("/etc/dovecot/conf.d/10-ssl.conf", "ssl_cert = </etc/letsencrypt/archive/a/fullchain1.pem\n".to_owned(), "from_archive"),
        ] {
            let host = Recorded::new().file(path, text.as_str());
            assert_eq!(facts(&host, "certbot_line").join(" "), expected, "{text}");
        }
    }

    #[test]
    fn renewals() {
        let hook = ("/etc/letsencrypt/renewal-hooks/deploy/a.sh", "#!/bin/sh\n");
        let cron = ("/etc/cron.d/own", "0 3 * * * root certbot renew\n");
        for (text, more, expected) in [
            ("authenticator = manual\n", vec![hook], "by_hand"),
            (
                "authenticator = manual\nmanual_auth_hook = /a\n",
                vec![hook],
                "",
            ),
            ("authenticator = webroot\n", vec![], "not_loaded"),
            (
                "authenticator = webroot\nrenew_hook = systemctl reload nginx\n",
                vec![],
                "",
            ),
            ("authenticator = nginx\ninstaller = nginx\n", vec![], ""),
            ("authenticator = standalone\n", vec![hook], "port_taken"),
            (
                "authenticator = standalone\npre_hook = x\npost_hook = y\n",
                vec![],
                "",
            ),
            (
                "authenticator = nginx\nserver = https://acme-staging-v02.api.letsencrypt.org/directory\n",
                vec![],
                "staging",
            ),
            (
                "authenticator = nginx\nautorenew = False\n",
                vec![],
                "not_renewed",
            ),
            ("authenticator = webroot\n", vec![hook, cron], ""),
        ] {
            let path = "/etc/letsencrypt/renewal/a.conf";
            let host = Recorded::new().file(NGINX, SITE).file(path, text);
            let host = more
                .iter()
                .fold(host, |host, (path, text)| host.file(path, *text));
            assert_eq!(facts(&host, "certbot").join(" "), expected, "{text}");
        }
        let masked = Recorded::new()
            .file(NGINX, SITE)
            .file("/etc/letsencrypt/renewal/a.conf", "authenticator = nginx\n")
            .file("/usr/lib/systemd/system/certbot.timer", "[Timer]\n")
            .linked("/etc/systemd/system/certbot.timer", "/dev/null");
        assert_eq!(facts(&masked, "certbot"), ["not_renewed"]);
    }
}
