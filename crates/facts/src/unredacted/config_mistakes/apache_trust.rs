//! Finds what Apache trusts without a check: certificates of clients and of servers behind it, and addresses of
//! backends that a client completes. Also finds sections that never apply because of the name of their module.

use super::super::apache_files::apache_files;
use super::super::lines_of_files::read;
use super::super::nginx_captures::can_capture;
use super::Misuses;
use super::apache_traps::{join, note_traps};
use super::own_names::OwnNames;
use crate::collectors::daemons::lines::is_abroad;
use crate::collectors::services::apache_reading::{Line, Reading, Server};
use crate::gather::Gather;
use assay_model::FactPlace;

/// Words of lines that use the result of checking a client's certificate.
const USES: [&str; 6] = [
    "ssl_client",
    "ssl-verify-client",
    "sslrequire ",
    "sslusername",
    "fakebasicauth",
    "stdenvvars",
];

pub(super) fn note_trust(g: &mut Gather<'_>, reading: &Reading, found: &mut Misuses) {
    let used = note_modules(g, found);
    let Some(main) = reading.servers.first() else {
        return;
    };
    let own = OwnNames::of_apache(g);
    let mut backends = Vec::new();
    for server in &reading.servers {
        note_client_certificates(server, used, found);
        find_backends(server, main, &own, &mut backends);
        for line in &server.lines {
            match line.name.as_str() {
                "proxypass" => note_slash(line, found),
                "rewriterule" => note_rewrite(line, found),
                _ => {}
            }
        }
    }
    // All such lines have one cause and one remedy.
    join(&backends, "backend_unverified", found);
    note_traps(g, reading, found);
}

/// Notes `<IfModule>` sections for a name that no module can have. Returns whether a line uses a client's certificate.
fn note_modules(g: &mut Gather<'_>, found: &mut Misuses) -> bool {
    let mut used = false;
    for path in apache_files(g) {
        for line in read(g, "apache", &path) {
            let text = line.text.trim();
            let low = text.to_ascii_lowercase();
            if low.starts_with('#') {
                continue;
            }
            used |= USES.iter().any(|word| low.contains(word));
            let Some(name) = low.strip_prefix("<ifmodule") else {
                continue;
            };
            let name = name.trim_end_matches('>').trim().trim_matches('"');
            if name.is_empty() || name.starts_with('!') {
                continue;
            }
            let possible = name.ends_with(".c") || name.ends_with("_module") || name.contains('$');
            found.add("module_impossible", !possible, line.place);
        }
    }
    used
}

/// Splits arguments at white space outside of quotation marks.
fn arguments(line: &Line) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = line.arguments.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(inner) => inner.split_once('"').unwrap_or((inner, "")),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        all.push(word.to_owned());
        rest = after.trim_start();
    }
    all
}

/// Returns the scheme and the rest of a URL.
fn url(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let plain = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then_some((scheme, rest))
}

fn note_client_certificates(server: &Server, used: bool, found: &mut Misuses) {
    for line in server
        .lines
        .iter()
        .filter(|line| line.name == "sslverifyclient")
    {
        let value = line.arguments.trim().to_ascii_lowercase();
        let optional = value.starts_with("optional");
        found.add(
            "client_certificates_unused",
            optional && !used,
            line.place.clone(),
        );
    }
}

/// Finds backends on other networks whose certificate Apache does not check; that is the default.
fn find_backends(
    server: &Server,
    main: &Server,
    own: &OwnNames,
    found: &mut Vec<(bool, FactPlace)>,
) {
    let last = |name: &str| server.last(name).or_else(|| main.last(name));
    let is = |name: &str, word: &str| {
        last(name).is_some_and(|line| line.arguments.trim().eq_ignore_ascii_case(word))
    };
    if !is("sslproxyengine", "on") {
        return;
    }
    let unchecked = !is("sslproxyverify", "require");
    // The older check of the name counts where the newer one is off (mod_ssl, SSLProxyCheckPeerCN).
    let unnamed = is("sslproxycheckpeername", "off") && is("sslproxycheckpeercn", "off");
    let deciding = match unchecked {
        true => last("sslproxyverify"),
        false => last("sslproxycheckpeername"),
    };
    let passes = [
        "proxypass",
        "proxypassmatch",
        "rewriterule",
        "balancermember",
    ];
    for line in server
        .lines
        .iter()
        .filter(|line| passes.contains(&line.name.as_str()))
    {
        let words = arguments(line);
        let mut targets = words.iter().filter_map(|word| url(word));
        let Some((_, rest)) = targets.find(|(scheme, _)| ["https", "wss", "h2"].contains(scheme))
        else {
            continue;
        };
        let host = rest.split('/').next().unwrap_or_default();
        let wrong = (unchecked || unnamed) && is_abroad(host) && !own.contains(host);
        let place = deciding.map_or(&line.place, |line| &line.place);
        found.push((wrong, place.clone()));
    }
}

/// Notes paths that end with a slash while the address of the backend has none: Apache appends the rest of the path to
/// the name of the host. Seen with 2.4.71: `ProxyPass /app/ http://host` and `/app/.example` ask `host.example`.
fn note_slash(line: &Line, found: &mut Misuses) {
    let words = arguments(line);
    let [path, target, ..] = &words[..] else {
        return;
    };
    let Some((scheme, rest)) = url(target) else {
        return;
    };
    if !path.starts_with('/') || scheme == "balancer" || target.contains('$') {
        return;
    }
    let chosen = path.ends_with('/') && !rest.contains('/');
    found.add("host_completed", chosen, line.place.clone());
}

/// Notes rewritten requests that go to a host which the client names in the path.
fn note_rewrite(line: &Line, found: &mut Misuses) {
    let words = arguments(line);
    let [pattern, target, flags] = &words[..] else {
        return;
    };
    let flags = flags.trim_matches(['[', ']']).to_ascii_lowercase();
    let mut flags = flags.split(',').map(str::trim);
    let Some((_, rest)) = url(target).filter(|_| flags.any(|flag| flag == "p" || flag == "proxy"))
    else {
        return;
    };
    let group = rest.strip_prefix('$').map(|rest| {
        let end = rest
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(rest.len());
        rest.split_at(end)
    });
    let chosen = group.is_some_and(|(group, after)| {
        let letter = if after.starts_with('.') { '/' } else { '.' };
        !group.is_empty() && can_capture(pattern, group, letter).unwrap_or(true)
    });
    found.add("proxies_anywhere", chosen, line.place.clone());
}

#[cfg(test)]
mod tests {
    use super::super::{apache, found};

    #[test]
    fn lines_and_their_near_misses() {
        let proxy = "SSLProxyEngine on\nProxyPass /a/ https://api.example.net/\n";
        for (text, expected) in [
            (
                "ProxyPass \"/app/\" \"http://10.0.0.7\"\n".to_owned(),
                "host_completed=true",
            ),
            (
                "ProxyPass /app/ http://10.0.0.7/\n".into(),
                "host_completed=false",
            ),
            (
                "ProxyPass /app http://10.0.0.7\n".into(),
                "host_completed=false",
            ),
            ("ProxyPass /app/ balancer://app\n".into(), ""),
            ("ProxyPass /app/ !\n".into(), ""),
            (
                "RewriteRule \"^/f/(.*)$\" \"http://$1\" [P,L]\n".into(),
                "proxies_anywhere=true",
            ),
            (
                "RewriteRule ^/f/([a-z]+)/ http://$1.internal/ [P]\n".into(),
                "proxies_anywhere=false",
            ),
            (
                "RewriteRule ^/f/(.*)$ http://127.0.0.1/$1 [P]\n".into(),
                "proxies_anywhere=false",
            ),
            ("RewriteRule ^/f/(.*)$ http://$1 [R]\n".into(), ""),
            (
                "<IfModule mod_authz_host>\n</IfModule>\n".into(),
                "module_impossible=true",
            ),
            (
                "<IfModule mod_authz_host.c>\n</IfModule>\n".into(),
                "module_impossible=false",
            ),
            ("<IfModule !prefork>\n</IfModule>\n".into(), ""),
            (
                "SSLVerifyClient optional_no_ca\n".into(),
                "client_certificates_unused=true",
            ),
            (
                "SSLVerifyClient require\n".into(),
                "client_certificates_unused=false",
            ),
            (
                "SSLVerifyClient optional\n<Location /a>\nRequire ssl-verify-client\n</Location>\n"
                    .into(),
                "client_certificates_unused=false",
            ),
            (proxy.to_owned(), "backend_unverified=true"),
            (
                format!("SSLProxyVerify require\n{proxy}"),
                "backend_unverified=false",
            ),
            (
                format!(
                    "SSLProxyVerify require\nSSLProxyCheckPeerName off\nSSLProxyCheckPeerCN off\n{proxy}"
                ),
                "backend_unverified=true",
            ),
            (
                format!("SSLProxyVerify require\nSSLProxyCheckPeerCN off\n{proxy}"),
                "backend_unverified=false",
            ),
            ("ProxyPass /a/ https://api.example.net/\n".into(), ""),
            (
                "SSLProxyEngine on\nProxyPass /a/ https://127.0.0.1:8443/\n".into(),
                "backend_unverified=false",
            ),
        ] {
            let all = found(&[("/etc/apache2/apache2.conf", &text)], apache::collect);
            let name = expected.split('=').next().unwrap_or_default();
            let own: Vec<String> = match name {
                "" => all
                    .iter()
                    .filter(|one| !one.starts_with("host_completed=false"))
                    .cloned()
                    .collect(),
                name => all
                    .iter()
                    .filter(|one| one.starts_with(name))
                    .cloned()
                    .collect(),
            };
            assert_eq!(own.join(" "), expected, "{text}: {all:?}");
        }
    }
}
