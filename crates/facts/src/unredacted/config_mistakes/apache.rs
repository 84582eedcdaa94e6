//! Finds mistakes in Apache's configuration: HTTP methods that a `<Limit>` section does not restrict, served home
//! directories of root, and TRACE.

use super::super::apache_files::apache_files;
use super::super::lines_of_files::read;
use super::Misuses;
use super::apache_trust::note_trust;
use crate::collectors::services::apache_reading::{self, Line, Server};
use crate::gather::Gather;
use assay_model::FactPlace;

/// Notes the mistakes. The files are read in the order in which Apache reads them.
pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    note_limits(g, &mut found);
    let reading = apache_reading::read(g.host);
    let own = |server: &Server, name: &str| server.lines.iter().any(|line| line.name == name);
    for (at, server) in reading.servers.iter().enumerate() {
        // If each VirtualHost has the directive itself, no request gets the value of the main server.
        let hosts = &reading.servers[1..];
        let inherited = |name: &str| hosts.is_empty() || hosts.iter().any(|host| !own(host, name));
        let counts = |name: &str| at > 0 || inherited(name);
        if counts("userdir") {
            note_home(server, &mut found);
        }
        if let Some(line) = server.last("traceenable").filter(|_| counts("traceenable")) {
            let on = !line.arguments.eq_ignore_ascii_case("off");
            found.add("trace", on, line.place.clone());
        }
        if let Some(line) = server.last("sslinsecurerenegotiation") {
            let on = line.arguments.eq_ignore_ascii_case("on");
            found.add("insecure_renegotiation", on, line.place.clone());
        }
    }
    note_trust(g, &reading, &mut found);
    found.note(g, "apache.misuse");
}

/// Notes `<Limit>` sections with rules. A section without GET limits only writing, which leaves reading open on
/// purpose; GET includes HEAD.
fn note_limits(g: &mut Gather<'_>, found: &mut Misuses) {
    for path in apache_files(g) {
        let mut limit: Option<(FactPlace, bool)> = None;
        let mut others = false;
        let mut limits = Vec::new();
        for line in read(g, "apache", &path) {
            let text = line.text.trim().to_ascii_lowercase();
            let words: Vec<&str> = text.trim_end_matches('>').split_whitespace().collect();
            match words[..] {
                ["<limit", ref methods @ ..] => {
                    limit = methods.contains(&"get").then_some((line.place, false));
                }
                ["</limit"] => limits.extend(limit.take()),
                ["<limitexcept", ..] => others = true,
                ["require", "all", "granted"] => {}
                ["require", ..] | ["deny", "from", ..] => {
                    if let Some((_, restricts)) = &mut limit {
                        *restricts = true;
                    }
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
}

/// Notes whether a server publishes the home directory of root. Names after `disabled` have precedence over those
/// after `enabled`, and `disabled` without a name leaves only the enabled accounts (mod_userdir of 2.4).
fn note_home(server: &Server, found: &mut Misuses) {
    let (mut whole, mut all_off, mut root_off, mut root_on) = (false, false, false, false);
    let mut last: Option<&Line> = None;
    for line in server.lines.iter().filter(|line| line.name == "userdir") {
        let text = line.arguments.to_ascii_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["disabled"] => all_off = true,
            ["disabled", ref names @ ..] => root_off |= names.contains(&"root"),
            ["enabled", ref names @ ..] => {
                if names.contains(&"root") {
                    root_on = true;
                    last = Some(line);
                }
            }
            [dir, ..] => {
                whole = matches!(dir.trim_matches('"'), "." | "./");
                last = Some(line).filter(|_| whole || !root_on).or(last);
            }
            [] => {}
        }
    }
    if let Some(line) = last {
        let served = root_on || (whole && !all_off);
        found.add("home_of_root", served && !root_off, line.place.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const MAIN: &str = "/etc/apache2/apache2.conf";

    /// Debian's apache2.conf includes modules, snippets and sites in this order, and a VirtualHost has its own value.
    #[test]
    fn later_files_and_virtual_hosts_decide() {
        let main = "IncludeOptional mods-enabled/*.conf\nIncludeOptional conf-enabled/*.conf\n\
                    IncludeOptional sites-enabled/*.conf\n";
        let (snippet, site) = (
            "/etc/apache2/conf-enabled/a.conf",
            "/etc/apache2/sites-enabled/a.conf",
        );
        let of = |in_snippet: &str, in_site: &str| {
            let files = [(MAIN, main), (snippet, in_snippet), (site, in_site)];
            found(&files, collect).join(" ")
        };
        assert_eq!(of("TraceEnable Off\n", "TraceEnable On\n"), "trace=true");
        assert_eq!(of("TraceEnable On\n", "TraceEnable Off\n"), "trace=false");
        assert_eq!(of("UserDir p\n", "UserDir ./\n"), "home_of_root=true");
        let host = "<VirtualHost *:80>\nTraceEnable Off\n</VirtualHost>\n";
        assert_eq!(of("TraceEnable On\n", host), "trace=false");
        let two = format!("{host}<VirtualHost *:81>\n</VirtualHost>\n");
        assert_eq!(of("TraceEnable On\n", &two), "trace=true trace=false");
    }

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
            ("<Limit POST PUT DELETE>\nRequire valid-user\n</Limit>", ""),
            (
                "UserDir disabled\nUserDir enabled root",
                "home_of_root=true",
            ),
            ("UserDir disabled\nUserDir ./", "home_of_root=false"),
            ("UserDir ./", "home_of_root=true"),
            ("UserDir ./\nUserDir disabled root", "home_of_root=false"),
            ("UserDir public_html", "home_of_root=false"),
            ("TraceEnable On", "trace=true"),
            ("TraceEnable On\nTraceEnable off", "trace=false"),
        ] {
            assert_eq!(
                found(&[(MAIN, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
