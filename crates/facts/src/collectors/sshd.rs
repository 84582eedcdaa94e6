//! Collects settings of sshd outside of Match blocks that make logins slow. The first line with a keyword applies, also
//! if it is in an included file (sshd_config(5)).

use crate::gather::Gather;
use assay_config::effective::{Program, ScopeId};

const FILE: &str = "/etc/ssh/sshd_config";

/// Keywords and their defaults. The default of UseDNS applies since OpenSSH 6.8 (servconf.c, V_6_8_P1), the other
/// defaults since the keywords exist.
const KEYWORDS: [(&str, &str); 3] = [
    ("usedns", "no"),
    ("gssapiauthentication", "no"),
    ("usepam", "no"),
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(all) = g.configuration("sshd", Program::Sshd, FILE) else {
        return;
    };
    for (keyword, default) in KEYWORDS {
        let place = (ScopeId::ROOT, keyword);
        let default = (default, "sshd_config(5)");
        let lower = |value: String| value.to_ascii_lowercase();
        g.configured(&format!("sshd.{keyword}"), &all, place, lower, default);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;
    use assay_model::FactKind;

    /// Returns a host with the files of Debian 12 and one file `own` of the administrator.
    fn host(own: &str) -> Recorded {
        Recorded::new()
            .file(
                "/etc/ssh/sshd_config",
                "Include /etc/ssh/sshd_config.d/*.conf\n\n#UseDNS no\nKbdInteractiveAuthentication no\nUsePAM yes\nusedns yes\nMatch User bob\n  GSSAPIAuthentication yes\n",
            )
            .file("/etc/ssh/sshd_config.d/10-own.conf", own)
    }

    fn facts(host: &Recorded) -> assay_model::Facts {
        let mut g = Gather::new(host);
        collect(&mut g);
        g.facts
    }

    #[test]
    fn the_first_line_wins_and_match_blocks_do_not_count() {
        let found = facts(&host("UseDNS=\"no\"\n"));
        assert_eq!(found.str("sshd.usedns"), Some("no"));
        assert_eq!(
            found.map["sshd.usedns"].place.to_string(),
            "/etc/ssh/sshd_config.d/10-own.conf:1"
        );
        assert_eq!(
            found.map["sshd.usepam"].place.to_string(),
            "/etc/ssh/sshd_config:5"
        );
        assert_eq!(
            found.map["sshd.gssapiauthentication"].kind,
            FactKind::Default
        );
        let found = facts(&host("# nothing\n"));
        assert_eq!(found.str("sshd.usedns"), Some("yes"));
        assert_eq!(
            found.map["sshd.usedns"].place.to_string(),
            "/etc/ssh/sshd_config:6"
        );
    }

    #[test]
    fn patterns_with_brackets_and_several_names() {
        let host = Recorded::new()
            .file(
                FILE,
                "Include sshd_config.d/[!0-9]*.conf \"/etc/ssh/x y\"\nUseDNS no\n",
            )
            .file("/etc/ssh/sshd_config.d/10-own.conf", "UseDNS no\n")
            .file("/etc/ssh/sshd_config.d/own.conf", "Match all\nUsePAM no\n")
            .file("/etc/ssh/x y", "# one\nUseDNS \"yes\" # why\nUsePAM YES\n");
        let found = facts(&host);
        assert_eq!(found.str("sshd.usedns"), Some("yes"));
        assert_eq!(found.map["sshd.usedns"].place.to_string(), "/etc/ssh/x y:2");
        assert_eq!(found.str("sshd.usepam"), Some("yes"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_no_default() {
        let host = host("GSSAPIAuthentication yes\n");
        let host = host.denied("/etc/ssh/sshd_config.d/10-own.conf");
        let found = facts(&host);
        assert!(found.map.contains_key("sshd"));
        // The unreadable file comes first, so it may set every keyword.
        for key in ["sshd.gssapiauthentication", "sshd.usedns"] {
            assert!(
                found.map.contains_key(key) && found.get(key).is_none(),
                "{key}"
            );
        }
        // The include stands at the end, so it cannot change an earlier setting.
        let text = "UseDNS yes\nInclude sshd_config.d/[0-9]*.conf\n";
        let found = facts(&host.file(FILE, text));
        assert_eq!(found.str("sshd.usedns"), Some("yes"));
        assert_eq!(found.get("sshd.usepam"), None);
    }

    #[test]
    fn an_include_means_what_it_means_to_sshd() {
        let include = |pattern: &str| {
            let host = Recorded::new()
                .file(
                    "/etc/ssh/sshd_config",
                    format!("Include {pattern}\nUseDNS no\n"),
                )
                .file("/etc/ssh/own.d/10-dns.conf", "UseDNS yes\n");
            facts(&host).str("sshd.usedns").map(str::to_owned)
        };
        for pattern in [
            "own.d/1*.conf",
            "own.d/10-???.conf",
            "o*.d/*",
            "/etc/ssh/own.d/[0-9]*",
        ] {
            assert_eq!(include(pattern).as_deref(), Some("yes"), "{pattern}");
        }
        for pattern in ["own.d/2*.conf", "own.d/*.cfg", "*.conf"] {
            assert_eq!(include(pattern).as_deref(), Some("no"), "{pattern}");
        }
    }

    #[test]
    fn no_sshd_no_facts_and_a_file_that_includes_itself_ends() {
        assert!(facts(&Recorded::new()).map.is_empty());
        // sshd fails with "Too many recursive configuration includes".
        let found = facts(&host("Include sshd_config\n"));
        assert!(found.map.contains_key("sshd") && found.get("sshd.usedns").is_none());
    }
}
