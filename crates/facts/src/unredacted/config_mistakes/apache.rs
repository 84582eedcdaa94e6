//! Finds mistakes in Apache's configuration: HTTP methods that a `<Limit>` section does not restrict, served home
//! directories of root, and TRACE.

use super::super::lines_of_files::{exists, files, read};
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;

const MAINS: [&str; 2] = ["/etc/apache2/apache2.conf", "/etc/httpd/conf/httpd.conf"];
const DIRS: [&str; 4] = [
    "/etc/apache2/sites-enabled",
    "/etc/apache2/conf-enabled",
    "/etc/apache2/mods-enabled",
    "/etc/httpd/conf.d",
];

/// Notes the mistakes. The files are read in the order in which Apache reads them.
pub(super) fn collect(g: &mut Gather<'_>) {
    let mut all: Vec<String> = MAINS
        .into_iter()
        .filter(|path| exists(g, path))
        .map(str::to_owned)
        .collect();
    for dir in DIRS {
        all.extend(files(g, "apache", dir, ".conf"));
    }
    let mut found = Misuses::default();
    let (mut home, mut root_disabled, mut trace) = (None, false, None);
    for path in all {
        let mut limit: Option<(FactPlace, bool)> = None;
        let mut others = false;
        let mut limits = Vec::new();
        for line in read(g, "apache", &path) {
            let text = line.text.trim().to_ascii_lowercase();
            let words: Vec<&str> = text.split_whitespace().collect();
            match words[..] {
                ["<limit", ..] => limit = Some((line.place, false)),
                ["</limit>"] => limits.extend(limit.take()),
                ["<limitexcept", ..] => others = true,
                ["require", "all", "granted"] => {}
                ["require", ..] | ["deny", "from", ..] => {
                    if let Some((_, restricts)) = &mut limit {
                        *restricts = true;
                    }
                }
                ["userdir", "disabled", ref names @ ..] => {
                    root_disabled |= names.is_empty() || names.contains(&"root");
                }
                ["userdir", "enabled", ref names @ ..] if names.contains(&"root") => {
                    home = Some((true, line.place));
                }
                ["userdir", dir, ..] if dir != "enabled" => {
                    let whole = matches!(dir.trim_matches('"'), "." | "./");
                    home = Some((whole, line.place));
                }
                ["traceenable", value, ..] => trace = Some((value != "off", line.place)),
                ["sslinsecurerenegotiation", value, ..] => {
                    found.add("insecure_renegotiation", value == "on", line.place);
                }
                _ => {}
            }
        }
        for (place, restricts) in limits {
            if restricts {
                found.add("limit_leaves_methods", !others, place);
            }
        }
    }
    if let Some((whole, place)) = home {
        found.add("home_of_root", whole && !root_disabled, place);
    }
    if let Some((on, place)) = trace {
        found.add("trace", on, place);
    }
    found.note(g, "apache.misuse");
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn sections_and_their_near_misses() {
        for (text, expected) in [
            (
                "<Limit GET POST>\nRequire valid-user\n</Limit>",
                "limit_leaves_methods=true",
            ),
            (
                "<Limit GET>\nRequire valid-user\n</Limit>\n<LimitExcept GET>\nRequire all denied\n</LimitExcept>",
                "limit_leaves_methods=false",
            ),
            ("<Limit GET>\nRequire all granted\n</Limit>", ""),
            ("UserDir ./", "home_of_root=true"),
            ("UserDir ./\nUserDir disabled root", "home_of_root=false"),
            ("UserDir public_html", "home_of_root=false"),
            ("TraceEnable On", "trace=true"),
            ("TraceEnable On\nTraceEnable off", "trace=false"),
        ] {
            assert_eq!(
                found(&[(MAINS[0], text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
