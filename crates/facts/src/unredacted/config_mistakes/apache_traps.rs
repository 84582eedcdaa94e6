//! Finds lines of Apache that do not do what they seem to do: handlers for double extensions, addresses that every
//! client chooses, access rules of 2.2, limits above the limit of the module, published system directories, and
//! workers that run as root.

use super::super::apache_files::apache_files;
use super::super::lines_of_files::{files, read};
use super::super::nginx_pitfalls::SYSTEM;
use super::Misuses;
use crate::collectors::daemons::lines::{is_loopback, is_world};
use crate::collectors::services::apache_reading::{Line, Reading, Server};
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeSet;

/// Directives that name the proxies whose header counts.
const PROXIES: [&str; 4] = [
    "remoteipinternalproxy",
    "remoteipinternalproxylist",
    "remoteiptrustedproxy",
    "remoteiptrustedproxylist",
];
/// Directories in which LoadModule lines are.
const MODULES: [(&str, &str); 2] = [
    ("/etc/apache2/mods-enabled", ".load"),
    ("/etc/httpd/conf.modules.d", ".conf"),
];

pub(super) fn note_traps(g: &mut Gather<'_>, reading: &Reading, found: &mut Misuses) {
    let modules = loaded_modules(g);
    let Some(main) = reading.servers.first() else {
        return;
    };
    note_handlers(g, found);
    note_published(g, reading, found);
    note_limits(main, &modules, found);
    note_root(g, main, found);
    note_waiting(main, &modules, found);
    let listens: Vec<&Line> = main
        .lines
        .iter()
        .filter(|line| line.name == "listen")
        .collect();
    let local = !listens.is_empty()
        && listens
            .iter()
            .all(|line| is_loopback(line.arguments.trim()));
    for server in &reading.servers {
        note_logs_and_origins(server, found);
        if !local {
            note_addresses(server, main, found);
        }
        if !modules.is_empty() && !modules.contains("access_compat") {
            note_old_rules(server, found);
        }
    }
}

/// Returns the names of the loaded modules, without `mod_` and `_module`.
fn loaded_modules(g: &mut Gather<'_>) -> BTreeSet<String> {
    let mut paths = apache_files(g);
    for (dir, end) in MODULES {
        paths.extend(files(g, "apache", dir, end));
    }
    let mut all = BTreeSet::new();
    for path in paths {
        for line in read(g, "apache", &path) {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            if let [first, name, ..] = words[..]
                && first.eq_ignore_ascii_case("loadmodule")
            {
                all.insert(name.trim_end_matches("_module").to_owned());
            }
        }
    }
    all
}

/// Notes handlers of PHP by extension: Apache looks at each extension of a name, so that `a.php.jpg` is executed too
/// (mod_mime, "Files with Multiple Extensions").
fn note_handlers(g: &mut Gather<'_>, found: &mut Misuses) {
    for path in apache_files(g) {
        let mut inside = 0_usize;
        for line in read(g, "apache", &path) {
            let text = line.text.trim().to_ascii_lowercase();
            if text.starts_with("<filesmatch") || text.starts_with("<files ") {
                inside += 1;
            }
            if text.starts_with("</files") {
                inside = inside.saturating_sub(1);
            }
            let words: Vec<&str> = text.split_whitespace().collect();
            let ["addhandler" | "addtype", handler, extensions @ ..] = &words[..] else {
                continue;
            };
            let runs = handler.contains("php") && !handler.contains("source");
            let mut extensions = extensions.iter().map(|one| one.trim_start_matches('.'));
            if runs && extensions.any(|one| one.starts_with("php") || one == "phtml") {
                found.add("handler_by_extension", inside == 0, line.place);
            }
        }
    }
}

/// Notes a header whose address counts although any client may send it (mod_remoteip).
fn note_addresses(server: &Server, main: &Server, found: &mut Misuses) {
    let Some(said) = server.last("remoteipheader") else {
        return;
    };
    let lines = server.lines.iter().chain(&main.lines);
    let proxies: Vec<&Line> = lines
        .filter(|line| PROXIES.contains(&line.name.as_str()))
        .collect();
    let wide = proxies
        .iter()
        .find(|line| line.arguments.split_whitespace().any(is_world));
    let place = wide.map_or(&said.place, |line| &line.place);
    let anybody = proxies.is_empty() || wide.is_some();
    found.add("address_of_anybody", anybody, place.clone());
}

/// Notes access rules of 2.2, which 2.4 understands only with mod_access_compat: Apache does not start.
fn note_old_rules(server: &Server, found: &mut Misuses) {
    let is_old = |line: &&Line| {
        let first = line.arguments.split([' ', ',']).next().unwrap_or_default();
        let first = first.to_ascii_lowercase();
        match line.name.as_str() {
            "order" => ["allow", "deny", "mutual-failure"].contains(&first.as_str()),
            "allow" | "deny" => first == "from",
            _ => false,
        }
    };
    if let Some(line) = server.lines.iter().find(is_old) {
        found.add("rules_of_2_2", true, line.place.clone());
    }
}

/// Notes more workers than the limit of the module permits (mpm_common, ServerLimit): Apache starts fewer.
fn note_limits(main: &Server, modules: &BTreeSet<String>, found: &mut Misuses) {
    let number = |name: &str| {
        let line = main.last(name)?;
        line.arguments.trim().parse::<u64>().ok()
    };
    let Some(line) = main
        .last("maxrequestworkers")
        .or_else(|| main.last("maxclients"))
    else {
        return;
    };
    let Ok(workers) = line.arguments.trim().parse::<u64>() else {
        return;
    };
    let most = match () {
        () if modules.contains("mpm_prefork") => number("serverlimit").unwrap_or(256),
        () if modules.contains("mpm_event") || modules.contains("mpm_worker") => {
            let threads = number("threadsperchild").unwrap_or(25);
            number("serverlimit").unwrap_or(16).saturating_mul(threads)
        }
        () => return,
    };
    found.add("workers_above_limit", workers > most, line.place.clone());
}

/// Notes errors that nobody can read, and origins that any site may claim together with cookies.
fn note_logs_and_origins(server: &Server, found: &mut Misuses) {
    if let Some(line) = server.last("errorlog") {
        let lost = line.arguments.trim().trim_matches('"') == "/dev/null";
        found.add("errors_discarded", lost, line.place.clone());
    }
    let low = |line: &Line| line.arguments.to_ascii_lowercase().replace('"', "");
    let header = |name: &str| {
        let mut lines = server.lines.iter().filter(|line| line.name == "header");
        lines.find(|line| low(line).contains(name))
    };
    let (Some(origin), Some(credentials)) = (
        header("access-control-allow-origin"),
        header("access-control-allow-credentials"),
    ) else {
        return;
    };
    // A variable of SetEnvIf with a pattern for every origin, or the header itself.
    let any = server.lines.iter().any(|line| {
        let text = low(line).replace(' ', "");
        line.name.starts_with("setenvif") && text.starts_with("origin^(.*)$")
            || line.name.starts_with("setenvif") && text.starts_with("origin(.*)")
            || line.name.starts_with("setenvif") && text.starts_with("origin(.+)")
    });
    let text = low(origin);
    let reflected = (text.contains("}e") && any)
        || text.contains("%{http_origin}")
        || text.contains("expr=%{req:origin}");
    let wrong = reflected && low(credentials).contains("true");
    found.add("origin_reflected", wrong, origin.place.clone());
}

/// Notes processes that wait long for the next request of a client; with prefork, each client holds one.
fn note_waiting(main: &Server, modules: &BTreeSet<String>, found: &mut Misuses) {
    let Some(line) = main
        .last("keepalivetimeout")
        .filter(|_| modules.contains("mpm_prefork"))
    else {
        return;
    };
    let off = main
        .last("keepalive")
        .is_some_and(|line| line.arguments.trim().eq_ignore_ascii_case("off"));
    if let Ok(seconds) = line.arguments.trim().parse::<u32>() {
        found.add(
            "clients_hold_processes",
            seconds > 60 && !off,
            line.place.clone(),
        );
    }
}

/// Notes workers that run as root.
fn note_root(g: &mut Gather<'_>, main: &Server, found: &mut Misuses) {
    let Some(line) = main.last("user") else {
        return;
    };
    let user = line.arguments.trim().trim_matches('"');
    let mut place = line.place.clone();
    let mut root = user == "root" || user == "#0";
    if user == "${APACHE_RUN_USER}" {
        for line in read(g, "apache", "/etc/apache2/envvars") {
            let text = line.text.trim().trim_start_matches("export ").trim();
            if let Some(value) = text.strip_prefix("APACHE_RUN_USER=") {
                root = ["root", "#0"].contains(&value.trim_matches(['"', '\'']));
                place = line.place;
            }
        }
    }
    found.add("runs_as_root", root, place);
}

/// A `<Directory>` section that admits everybody.
fn granted_directories(g: &mut Gather<'_>) -> BTreeSet<String> {
    let mut granted = BTreeSet::new();
    for path in apache_files(g) {
        let mut section: Option<(String, Vec<String>)> = None;
        for line in read(g, "apache", &path) {
            let text = line.text.trim().to_owned();
            let low = text.to_ascii_lowercase();
            if let Some(rest) = low.strip_prefix("<directory ") {
                let start = text.len() - rest.len();
                let name = text[start..].trim_end_matches('>').trim().trim_matches('"');
                section = Some((directory(name), Vec::new()));
            } else if low.starts_with("</directory") {
                let all = |rules: &[String]| rules.len() == 1 && rules[0] == "require all granted";
                granted.extend(
                    section
                        .take()
                        .filter(|(_, rules)| all(rules))
                        .map(|(name, _)| name),
                );
            } else if let Some((_, rules)) = &mut section
                && (low.starts_with("require") || low.starts_with("authtype"))
            {
                rules.push(low.split_whitespace().collect::<Vec<&str>>().join(" "));
            }
        }
    }
    granted
}

fn directory(name: &str) -> String {
    match name.trim_end_matches('/') {
        "" => "/".to_owned(),
        bare => bare.to_owned(),
    }
}

/// Notes directories of the system that everybody may read through an alias or as the root of a site.
fn note_published(g: &mut Gather<'_>, reading: &Reading, found: &mut Misuses) {
    let granted = granted_directories(g);
    for line in reading.servers.iter().flat_map(|server| &server.lines) {
        let words: Vec<&str> = line.arguments.split_whitespace().collect();
        let target = match (line.name.as_str(), &words[..]) {
            ("alias", [_, target]) | ("documentroot", [target]) => {
                directory(target.trim_matches('"'))
            }
            _ => continue,
        };
        let open = SYSTEM.contains(&target.as_str()) && granted.contains(&target);
        if line.name == "alias" || open {
            found.add("system_published", open, line.place.clone());
        }
    }
}

/// Joins lines with one cause and one remedy: the place is that of the first line with the fault.
pub(super) fn join(lines: &[(bool, FactPlace)], property: &'static str, found: &mut Misuses) {
    let wrong = lines.iter().find(|(wrong, _)| *wrong);
    if let Some((wrong, place)) = wrong.or(lines.first()) {
        found.add(property, *wrong, place.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{apache, found};

    fn of(text: &str, more: &[(&str, &str)], name: &str) -> String {
        let mut all = vec![("/etc/apache2/apache2.conf", text)];
        all.extend(more);
        let all = found(&all, apache::collect);
        let own: Vec<&str> = all
            .iter()
            .filter_map(|one| one.strip_prefix(name)?.strip_prefix('='))
            .collect();
        own.join(" ")
    }

    #[test]
    fn lines_and_their_near_misses() {
        for (text, name, expected) in [
            (
                "AddHandler application/x-httpd-php .php\n",
                "handler_by_extension",
                "true",
            ),
            (
                "AddType application/x-httpd-php-source .phps\n",
                "handler_by_extension",
                "",
            ),
            (
                "<FilesMatch \"\\.php$\">\nAddHandler application/x-httpd-php .php\n</FilesMatch>\n",
                "handler_by_extension",
                "false",
            ),
            (
                "RemoteIPHeader X-Forwarded-For\n",
                "address_of_anybody",
                "true",
            ),
            (
                "RemoteIPHeader X-Forwarded-For\nRemoteIPInternalProxy 10.0.0.5\n",
                "address_of_anybody",
                "false",
            ),
            (
                "Listen 127.0.0.1:80\nRemoteIPHeader X-Forwarded-For\n",
                "address_of_anybody",
                "",
            ),
            ("ErrorLog /dev/null\n", "errors_discarded", "true"),
            (
                "ErrorLog ${APACHE_LOG_DIR}/error.log\n",
                "errors_discarded",
                "false",
            ),
            (
                "SetEnvIf Origin \"^(.*)$\" O=$1\nHeader set Access-Control-Allow-Origin \"%{O}e\"\n\
                 Header set Access-Control-Allow-Credentials true\n",
                "origin_reflected",
                "true",
            ),
            (
                "SetEnvIf Origin \"^https://a\" O=$0\nHeader set Access-Control-Allow-Origin \"%{O}e\"\n\
                 Header set Access-Control-Allow-Credentials true\n",
                "origin_reflected",
                "false",
            ),
            ("User root\n", "runs_as_root", "true"),
            ("User www-data\n", "runs_as_root", "false"),
            (
                "Alias /b \"/var/backups/\"\n<Directory /var/backups>\nRequire all granted\n</Directory>\n",
                "system_published",
                "true",
            ),
            (
                "Alias /b /var/backups\n<Directory /var/backups>\nRequire ip 10.0.0.0/8\n</Directory>\n",
                "system_published",
                "false",
            ),
            ("Alias /b /var/backups\n", "system_published", "false"),
        ] {
            assert_eq!(of(text, &[], name), expected, "{text}");
        }
    }

    #[test]
    fn what_depends_on_modules() {
        let main = "IncludeOptional mods-enabled/*.load\nOrder allow,deny\nAllow from all\nMaxRequestWorkers 300\n";
        let module = |name: &str| format!("LoadModule {name}_module /usr/lib/{name}.so\n");
        let path = "/etc/apache2/mods-enabled/a.load";
        let prefork = module("mpm_prefork");
        assert_eq!(of(main, &[(path, &prefork)], "rules_of_2_2"), "true");
        assert_eq!(of(main, &[(path, &prefork)], "workers_above_limit"), "true");
        assert_eq!(of(main, &[], "rules_of_2_2"), "");
        let both = format!("{}{}", module("access_compat"), module("mpm_event"));
        assert_eq!(of(main, &[(path, &both)], "rules_of_2_2"), "");
        assert_eq!(of(main, &[(path, &both)], "workers_above_limit"), "false");
        let more = format!("{main}ServerLimit 300\n");
        assert_eq!(
            of(&more, &[(path, &prefork)], "workers_above_limit"),
            "false"
        );
        let user = "User ${APACHE_RUN_USER}\n";
        let variables = ("/etc/apache2/envvars", "export APACHE_RUN_USER=root\n");
        assert_eq!(of(user, &[variables], "runs_as_root"), "true");
    }
}
