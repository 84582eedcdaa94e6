//! sshd: what its files say of what makes logins slow, outside of Match blocks. The first line that
//! says something wins, and so may one in an included file (sshd_config(5)).

use crate::gather::{Gather, lossy};
use assay_model::FactKind;
use std::path::Path;

/// Its drop-in files lie in a directory whose name begins like it.
pub(crate) const FILE: &str = "/etc/ssh/sshd_config";

/// Keywords and their defaults: UseDNS since OpenSSH 6.8 (servconf.c, V_6_8_P1), the others since
/// they exist.
const KEYWORDS: [(&str, &str); 3] = [
    ("usedns", "no"),
    ("gssapiauthentication", "no"),
    ("usepam", "no"),
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(text) = g.read("sshd", FILE) else {
        return;
    };
    let mut found = [None, None, None];
    read(g, FILE, &text, &mut found, 0);
    for ((keyword, default), found) in KEYWORDS.iter().zip(found) {
        let key = format!("sshd.{keyword}");
        match found {
            Some((value, source)) => g.facts.known(key, value, FactKind::Configured, source),
            // An included file that could not be read may say it.
            None if g.facts.map.contains_key("sshd") => {
                g.facts.unknown(
                    key,
                    "an included file cannot be read",
                    FactKind::Configured,
                    FILE,
                );
            }
            None => g
                .facts
                .known(key, *default, FactKind::Default, "sshd_config(5)"),
        }
    }
}

type Found = [Option<(String, String)>; 3];

/// Reads one file up to its first Match block; what was found before stays.
fn read(g: &mut Gather<'_>, path: &str, text: &str, found: &mut Found, depth: usize) {
    for (number, line) in text.lines().enumerate() {
        let Some((keyword, value)) = words(line) else {
            continue;
        };
        if keyword == "match" {
            return;
        }
        if keyword == "include" && depth < 8 {
            for pattern in value.split_whitespace() {
                include(g, pattern, found, depth + 1);
            }
        }
        let known = KEYWORDS.iter().position(|(known, _)| *known == keyword);
        if let Some(place) = known.and_then(|at| found.get_mut(at))
            && place.is_none()
        {
            let value = value.trim_matches('"').to_ascii_lowercase();
            *place = Some((value, format!("{path}:{}", number + 1)));
        }
    }
}

/// All files that a pattern means: `/etc/ssh/sshd_config.d/*.conf`.
fn include(g: &mut Gather<'_>, pattern: &str, found: &mut Found, depth: usize) {
    let pattern = Path::new("/etc/ssh").join(pattern);
    let paths = match assay_host::glob(g.host, &pattern) {
        Ok(paths) => paths,
        Err(error) => {
            return g.fault(
                "sshd",
                &error,
                FactKind::Runtime,
                &lossy(pattern.as_os_str()),
            );
        }
    };
    for path in paths {
        let path = lossy(path.as_os_str());
        if let Some(text) = g.read("sshd", &path) {
            read(g, &path, &text, found, depth);
        }
    }
}

/// Keyword in lower case, and the rest: `Keyword value` or `Keyword=value`.
fn words(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find(|c: char| c.is_whitespace() || c == '=')?;
    let (keyword, value) = line.split_at(end);
    let value = value.trim_start_matches(|c: char| c.is_whitespace() || c == '=');
    Some((keyword.to_ascii_lowercase(), value.trim_end()))
}

/// What a capture keeps of a line: users and addresses stand in the others.
pub(crate) fn redact(line: &str) -> String {
    match words(line) {
        Some((keyword, _)) if keyword == "match" => {
            format!("Match {}", crate::redact::LEFT_OUT)
        }
        Some((keyword, _))
            if keyword == "include" || KEYWORDS.iter().any(|(known, _)| *known == keyword) =>
        {
            line.to_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    /// As Debian 12 ships it, with one file of the user.
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
            found.map["sshd.usedns"].source,
            "/etc/ssh/sshd_config.d/10-own.conf:1"
        );
        assert_eq!(found.map["sshd.usepam"].source, "/etc/ssh/sshd_config:5");
        assert_eq!(
            found.map["sshd.gssapiauthentication"].kind,
            FactKind::Default
        );
        let found = facts(&host("# nothing\n"));
        assert_eq!(found.str("sshd.usedns"), Some("yes"));
        assert_eq!(found.map["sshd.usedns"].source, "/etc/ssh/sshd_config:6");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_no_default() {
        let host = host("GSSAPIAuthentication yes\n");
        // The directory is listed, its file is looked for, then read.
        let faulty = assay_host::Faulty::once(&host, 4);
        let mut g = Gather::new(&faulty);
        collect(&mut g);
        assert!(g.facts.map.contains_key("sshd"));
        assert_eq!(g.facts.get("sshd.gssapiauthentication"), None);
        assert_eq!(g.facts.str("sshd.usedns"), Some("yes"));
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
        let found = facts(&host("Include sshd_config\n"));
        assert_eq!(found.str("sshd.usedns"), Some("yes"));
    }
}
