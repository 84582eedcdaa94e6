//! nginx: what its main file says of its workers and of how it sends files. Other files that it
//! includes may say otherwise for a server or a location.

use crate::gather::Gather;
use assay_model::FactKind;

pub(crate) const FILE: &str = "/etc/nginx/nginx.conf";

/// Directive, the block it stands in, and its default (nginx.org, ngx_core_module and
/// ngx_http_core_module).
const DIRECTIVES: [(&str, &[&str], &str); 2] = [
    ("worker_processes", &[], "1"),
    ("sendfile", &["http"], "off"),
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(text) = g.read("nginx", FILE) else {
        return;
    };
    for (name, section, default) in DIRECTIVES {
        let key = format!("nginx.{name}");
        match find(&text, name, section) {
            Some((line, value)) => {
                g.facts
                    .known(key, value, FactKind::Configured, format!("{FILE}:{line}"))
            }
            None => g
                .facts
                .known(key, default, FactKind::Default, "nginx.org/en/docs"),
        }
    }
}

/// Line and value of a directive in a block.
fn find(text: &str, name: &str, section: &[&str]) -> Option<(usize, String)> {
    let mut blocks: Vec<String> = Vec::new();
    let mut words: Vec<(usize, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let spaced = line
            .replace('{', " { ")
            .replace('}', " } ")
            .replace(';', " ; ");
        for word in spaced.split_whitespace() {
            match word {
                "{" => {
                    let head = words.first().map(|(_, word)| word.clone());
                    blocks.push(head.unwrap_or_default());
                    words.clear();
                }
                "}" => {
                    blocks.pop();
                    words.clear();
                }
                ";" => {
                    if let [(line, first), (_, value), ..] = words.as_slice()
                        && first == name
                        && blocks == section
                    {
                        return Some((*line, value.clone()));
                    }
                    words.clear();
                }
                word => words.push((number + 1, word.to_owned())),
            }
        }
    }
    None
}

/// Of a line the directives above with a number or a word, and what makes blocks. Several directives
/// may stand in one line.
pub(crate) fn redact(line: &str) -> String {
    let line = line.split('#').next().unwrap_or_default();
    let spaced = line
        .replace('{', " { ")
        .replace('}', " } ")
        .replace(';', " ; ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let plain = |word: &str| {
        (1..=8).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let mut kept = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let starts = at == 0 || matches!(words[at - 1], "{" | "}" | ";");
        match *word {
            "{" | "}" => kept.push((*word).to_owned()),
            "http" | "events" if starts => kept.push((*word).to_owned()),
            name if starts && DIRECTIVES.iter().any(|(known, ..)| *known == name) => {
                let value = if plain(next) { next } else { LEFT_OUT };
                kept.push(format!("{name} {value};"));
            }
            _ => {}
        }
    }
    kept.join(" ")
}

/// One word, because blanks part words here.
const LEFT_OUT: &str = "(withheld)";

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn as_debian_ships_it() {
        let text = include_str!("../../fixtures/nginx-1.22.1-debian12.conf");
        let host = Recorded::new().file(FILE, text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.str("nginx.worker_processes"), Some("auto"));
        assert_eq!(g.facts.str("nginx.sendfile"), Some("on"));
        assert!(g.facts.map["nginx.sendfile"].source.ends_with(".conf:18"));
        let kept: Vec<String> = text.lines().map(redact).collect();
        assert_eq!(
            find(&kept.join("\n"), "sendfile", &["http"]),
            Some((18, "on".to_owned()))
        );
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
