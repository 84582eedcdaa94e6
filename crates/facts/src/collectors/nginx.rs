//! Collects the worker settings of nginx, and the response settings of its http block. A server or location block may
//! override the response settings.

use crate::gather::Gather;
use crate::harmless::is_pattern;
use assay_config::effective::{Program, ScopeId};
use assay_model::change::ConfigLanguage;

pub(crate) const FILE: &str = "/etc/nginx/nginx.conf";
/// Directory that contains all configuration files of nginx.
pub(crate) const DIR: &str = "/etc/nginx/";

/// A directive, its enclosing blocks, and its default value (nginx.org, ngx_core_module, ngx_http_core_module and
/// ngx_http_gzip_module).
const DIRECTIVES: [(&str, &[&str], &str); 4] = [
    ("worker_processes", &[], "1"),
    ("sendfile", &["http"], "off"),
    ("worker_connections", &["events"], "512"),
    ("gzip_comp_level", &["http"], "1"),
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(all) = g.configuration("nginx", Program::Nginx, FILE) else {
        return;
    };
    for (name, block, default) in DIRECTIVES {
        let scope = all.find(block).first().copied().unwrap_or(ScopeId::ROOT);
        let default = (default, "nginx.org/en/docs");
        g.configured(
            &format!("nginx.{name}"),
            &all,
            (scope, name),
            |value| value,
            default,
        );
    }
}

/// Redacts an nginx file for a capture: keeps the directives of `DIRECTIVES`, and the blocks and includes that may
/// contain them.
pub(crate) fn redact(text: &[u8]) -> Vec<u8> {
    let kept = |name: &str, value: &str| {
        let ours = DIRECTIVES.iter().any(|(known, ..)| *known == name);
        match name {
            "http" | "events" | "server" | "location" | "stream" | "mail" => Some(String::new()),
            "include" => is_pattern(value).then(|| value.to_owned()),
            _ if ours => Some(crate::harmless::word(value.trim_matches(['"', '\'']))),
            _ => crate::collectors::services::nginx::kept(name, value),
        }
    };
    assay_config::outline_text(ConfigLanguage::Nginx, text, &kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;
    use assay_model::FactKind;

    #[test]
    fn as_debian_ships_it() {
        let text = include_str!("../../fixtures/nginx-1.22.1-debian12.conf");
        let host = Recorded::new().file(FILE, text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.str("nginx.worker_processes"), Some("auto"));
        assert_eq!(g.facts.str("nginx.sendfile"), Some("on"));
        assert!(
            g.facts.map["nginx.sendfile"]
                .place
                .to_string()
                .ends_with(".conf:18")
        );
        let kept = String::from_utf8(redact(text.as_bytes())).unwrap();
        let shared = Recorded::new().file(FILE, kept);
        let mut again = Gather::new(&shared);
        collect(&mut again);
        assert_eq!(
            again.facts.map["nginx.sendfile"],
            g.facts.map["nginx.sendfile"]
        );
    }

    #[test]
    fn quotes_and_included_files() {
        let host = Recorded::new()
            .file(
                FILE,
                "http { log_format a '# {'; include conf.d/[a-c]*.conf; }\nworker_processes 4;",
            )
            .file("/etc/nginx/conf.d/b.conf", "# one\nsendfile \"on\";\n")
            .file("/etc/nginx/conf.d/x.conf", "sendfile off;\n");
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.str("nginx.sendfile"), Some("on"));
        assert_eq!(
            g.facts.map["nginx.sendfile"].place.to_string(),
            "/etc/nginx/conf.d/b.conf:2"
        );
        assert_eq!(g.facts.str("nginx.worker_processes"), Some("4"));
        // The unreadable file may contain the directive, but only for the block that includes it.
        let host = host.denied("/etc/nginx/conf.d/b.conf");
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert!(g.facts.map.contains_key("nginx") && g.facts.get("nginx.sendfile").is_none());
        assert_eq!(g.facts.str("nginx.worker_processes"), Some("4"));
    }

    #[test]
    fn defaults_and_other_blocks() {
        let host = Recorded::new().file(
            FILE,
            "# worker_processes 4;\nhttp { server { sendfile on; } }\n",
        );
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.str("nginx.worker_processes"), Some("1"));
        assert_eq!(g.facts.map["nginx.sendfile"].kind, FactKind::Default);
    }
}
