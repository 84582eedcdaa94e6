//! Finds files that a web server serves although they were probably not meant to be public: repositories, settings with
//! passwords, dumps, and copies of scripts. Reads only the first level of each served directory.

use super::apache_files::apache_files;
use super::lines_of_files::{Line, exists, note, read};
use super::nginx_blocks::{is_local, own_value};
use crate::collectors::nginx::FILE;
use crate::gather::{Gather, lossy};
use assay_config::effective::files::OfHost;
use assay_config::effective::{Effective, Program, ScopeId, Setting, read_effective};
use assay_model::FactPlace;
use std::collections::BTreeSet;
use std::path::Path;

/// Files that reveal a repository or contain settings. Each has a word that the pattern of a blocking rule contains if
/// the rule blocks the file.
const HIDDEN: [(&str, &str); 5] = [
    (".git/HEAD", "git"),
    (".svn/wc.db", "svn"),
    (".hg/requires", "hg"),
    (".env", "env"),
    (".htpasswd", "ht"),
];
/// File name endings of copies and dumps.
const ENDS: [&str; 9] = [
    ".php.bak",
    ".php.old",
    ".php.save",
    ".php~",
    ".php.swp",
    ".sql",
    ".sql.gz",
    ".sql.zip",
    ".ini.bak",
];
/// Maximum number of names in one directory that are examined.
const MOST: usize = 2000;

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut seen = BTreeSet::new();
    let passwords = password_files(g);
    for (root, place, hides) in nginx_roots(g).into_iter().chain(apache_roots(g)) {
        if !seen.insert(root.clone()) {
            continue;
        }
        let file = found_in(g, &root, &hides).or_else(|| {
            let mut below = passwords
                .iter()
                .filter_map(|path| path.strip_prefix(&format!("{root}/")));
            below.find(|file| !hides(file, file)).map(str::to_owned)
        });
        let properties = [
            ("file", file.clone().unwrap_or_default().into()),
            ("served", file.is_some().into()),
        ];
        note(
            g,
            "served_file",
            &seen.len().to_string(),
            &place,
            &properties,
        );
    }
}

/// Returns the files in which nginx and Apache look up passwords. They exist wherever the server runs.
fn password_files(g: &mut Gather<'_>) -> Vec<String> {
    let mut all = Vec::new();
    if let Ok(nginx) = read_effective(Program::Nginx, Path::new(FILE), &OfHost(g.host)) {
        let lines = nginx.settings().iter();
        let files = lines.filter(|said| said.key == "auth_basic_user_file");
        all.extend(files.filter_map(Setting::word));
    }
    for path in apache_files(g) {
        for line in read(g, "served_file", &path) {
            let text = line.text.trim();
            let (name, file) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            if name.eq_ignore_ascii_case("authuserfile") {
                all.push(file.trim().trim_matches(['"', '\'']).to_owned());
            }
        }
    }
    all
}

/// Returns the first file in a served directory that should not be served. `hides` returns whether a rule blocks a
/// file.
fn found_in(g: &Gather<'_>, root: &str, hides: &dyn Fn(&str, &str) -> bool) -> Option<String> {
    for (file, word) in HIDDEN {
        if exists(g, &format!("{root}/{file}")) && !hides(file, word) {
            return Some(file.to_owned());
        }
    }
    let mut names: Vec<String> = g
        .host
        .list(Path::new(root))
        .ok()?
        .iter()
        .take(MOST)
        .map(|name| lossy(name))
        .collect();
    names.sort();
    names.into_iter().find(|name| {
        let end = ENDS.iter().find(|end| name.ends_with(*end));
        end.is_some_and(|end| {
            !hides(
                name,
                end.rsplit('.').next().unwrap_or(end).trim_end_matches('~'),
            )
        })
    })
}

/// A served directory, the line that makes the server serve it, and a function that returns whether a rule of the
/// server blocks a file.
type Root = (String, FactPlace, Box<dyn Fn(&str, &str) -> bool>);

/// Returns the root directories of nginx servers that serve files themselves and are reachable from other machines.
fn nginx_roots(g: &Gather<'_>) -> Vec<Root> {
    let Ok(all) = read_effective(Program::Nginx, Path::new(FILE), &OfHost(g.host)) else {
        return Vec::new();
    };
    let mut roots: Vec<Root> = Vec::new();
    for (id, scope) in all.scopes() {
        if scope.head.first().is_none_or(|head| head != "server") {
            continue;
        }
        let Some(root) = all.value(id, "root") else {
            continue;
        };
        let path = root.word().unwrap_or_default();
        if !path.starts_with('/') || path.contains('$') || !sends_files(&all, id) {
            continue;
        }
        let hiding: Vec<String> = all
            .scopes()
            .filter(|(inner, _)| is_below(&all, *inner, id) && is_closed(&all, *inner))
            .map(|(_, scope)| scope.head[1..].join(" "))
            .collect();
        let hides =
            move |file: &str, word: &str| hiding.iter().any(|pattern| covers(pattern, file, word));
        roots.push((
            path.trim_end_matches('/').to_owned(),
            FactPlace::from(&root.place),
            Box::new(hides),
        ));
    }
    roots
}

fn is_below(all: &Effective, inner: ScopeId, outer: ScopeId) -> bool {
    inner != outer
        && std::iter::successors(Some(inner), |id| all.scope(*id).parent).any(|id| id == outer)
}

/// Returns whether a server serves files to everyone. Servers that only redirect or forward requests, or that require a
/// password, do not.
fn sends_files(all: &Effective, server: ScopeId) -> bool {
    let closed = |id: ScopeId| {
        ["auth_basic", "auth_request", "deny", "return"]
            .iter()
            .any(|key| own_value(all, id, key).is_some())
    };
    let hands_on = |id: ScopeId| {
        [
            "proxy_pass",
            "uwsgi_pass",
            "fastcgi_pass",
            "grpc_pass",
            "return",
            "root",
            "alias",
        ]
        .iter()
        .any(|key| own_value(all, id, key).is_some())
    };
    let mut whole = all.scopes().filter(|(_, scope)| {
        scope.parent == Some(server)
            && scope.head.len() == 2
            && scope.head[0] == "location"
            && scope.head[1] == "/"
    });
    !is_local(all, server) && !closed(server) && !whole.any(|(id, _)| hands_on(id) || closed(id))
}

/// Returns whether a location refuses all requests that match it.
fn is_closed(all: &Effective, id: ScopeId) -> bool {
    let refuses = |said: &Setting| {
        let word = said.word().unwrap_or_default();
        said.key == "deny"
            || said.key == "internal"
            || said.key == "auth_basic"
            || (said.key == "return" && word.starts_with('4'))
    };
    all.settings()
        .iter()
        .any(|said| said.scope == id && refuses(said))
}

/// Returns whether the pattern of a blocking rule covers a file. The pattern contains the file's name, or covers all
/// names that begin with a dot.
fn covers(pattern: &str, file: &str, word: &str) -> bool {
    let dots = ["/\\.", "^\\.", "(^|/)\\.", "/[.]"].iter().any(|all| {
        pattern.find(all).is_some_and(|at| {
            let rest = &pattern[at + all.len()..];
            // Of `/\.ht` the rest is a name: only that is hidden.
            !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '(')
                || rest.starts_with("(?!")
        })
    });
    let of_passwords = file.starts_with(".ht") && pattern.contains("\\.ht");
    (file.starts_with('.') && dots) || of_passwords || pattern.contains(word)
}

/// Returns the directories of Apache that everyone may read.
fn apache_roots(g: &mut Gather<'_>) -> Vec<Root> {
    let lines: Vec<Line> = apache_files(g)
        .iter()
        .flat_map(|path| read(g, "served_file", path))
        .collect();
    let plain = |line: &&Line| !line.text.trim_start().starts_with('#');
    let patterns: Vec<String> = lines
        .iter()
        .filter(plain)
        .filter(|line| {
            let text = line.text.trim_start().to_ascii_lowercase();
            let begins = [
                "<directorymatch",
                "<locationmatch",
                "<filesmatch",
                "<files",
                "<location ",
                "redirectmatch",
                "rewriterule",
            ];
            begins.iter().any(|begin| text.starts_with(begin))
        })
        .map(|line| line.text.clone())
        .collect();
    let mut roots: Vec<Root> = Vec::new();
    for line in lines.iter().filter(plain) {
        let mut words = line.text.split_whitespace();
        if !words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("documentroot"))
        {
            continue;
        }
        let path = words
            .next()
            .unwrap_or_default()
            .trim_matches(['"', '\''])
            .trim_end_matches('/')
            .to_owned();
        if !path.starts_with('/') || is_closed_directory(&lines, &path) {
            continue;
        }
        let mut patterns = patterns.clone();
        patterns.extend(g.host.read_text(Path::new(&format!("{path}/.htaccess"))));
        let hides = move |file: &str, word: &str| {
            patterns.iter().any(|pattern| covers(pattern, file, word))
        };
        roots.push((path, line.place.clone(), Box::new(hides)));
    }
    roots
}

/// Returns whether the `<Directory>` section of a path restricts access.
fn is_closed_directory(lines: &[Line], path: &str) -> bool {
    let mut inside = false;
    for line in lines {
        let text = line.text.trim().to_ascii_lowercase();
        if let Some(section) = text.strip_prefix("<directory ") {
            let section = section
                .trim_end_matches('>')
                .trim()
                .trim_matches('"')
                .trim_end_matches('/');
            inside = section == path.to_ascii_lowercase();
        } else if text.starts_with("</directory") {
            inside = false;
        } else if inside
            && (text.starts_with("require ") || text.starts_with("deny "))
            && text != "require all granted"
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn served(host: Recorded) -> Vec<String> {
        let mut g = Gather::new(&host);
        collect(&mut g);
        let all = g.facts.map.keys().filter(|key| key.ends_with(".file"));
        all.filter_map(|key| g.facts.str(key).map(str::to_owned))
            .collect()
    }

    fn nginx(server: &str) -> Recorded {
        let text = format!("events {{}}\nhttp {{\nserver {{ root /srv/www;\n{server}\n}}\n}}\n");
        Recorded::new()
            .file(FILE, text)
            .file("/srv/www/.git/HEAD", "ref: x\n")
            .file("/srv/www/index.html", "x")
    }

    #[test]
    fn rules_that_hide_and_those_that_do_not() {
        for (server, file) in [
            ("", Some(".git/HEAD")),
            ("location ~ /\\.ht { deny all; }", Some(".git/HEAD")),
            (
                "location / { try_files $uri /index.php; }",
                Some(".git/HEAD"),
            ),
            ("location ~ /\\.(?!well-known) { deny all; }", Some("")),
            ("location ~ /\\. { return 404; }", Some("")),
            ("location ~ /\\.git { deny all; }", Some("")),
            ("location / { proxy_pass http://127.0.0.1:1; }", None),
            ("listen 127.0.0.1:80;", None),
            ("auth_basic x;", None),
        ] {
            assert_eq!(
                served(nginx(server)),
                file.into_iter().collect::<Vec<_>>(),
                "{server}"
            );
        }
    }

    #[test]
    fn passwords_below_the_root() {
        let asked = "location /in/ { auth_basic x; auth_basic_user_file /srv/www/.htpasswd; }";
        let hidden = format!("{asked} location ~ /\\.ht {{ deny all; }}");
        let elsewhere = asked.replace("/srv/www/", "/etc/nginx/");
        for (server, file) in [(asked, ".htpasswd"), (&hidden, ""), (&elsewhere, "")] {
            let text =
                format!("events {{}}\nhttp {{\nserver {{ root /srv/www;\n{server}\n}}\n}}\n");
            assert_eq!(served(Recorded::new().file(FILE, text)), [file], "{server}");
        }
        let apache = |name: &str| {
            let text = format!(
                "<FilesMatch \"^\\.ht\">\nRequire all denied\n</FilesMatch>\n<VirtualHost *:80>\n\
                 DocumentRoot /srv/www\n<Location /in>\nAuthUserFile \"/srv/www/{name}\"\n</Location>\n</VirtualHost>\n"
            );
            served(Recorded::new().file("/etc/apache2/apache2.conf", text))
        };
        assert_eq!(apache("users.txt"), ["users.txt"]);
        assert_eq!(apache(".htusers"), [""]);
    }

    #[test]
    fn directories_of_apache() {
        let site = |more: &str| {
            let text = format!("<VirtualHost *:80>\nDocumentRoot /srv/www\n{more}</VirtualHost>\n");
            Recorded::new()
                .file("/etc/apache2/sites-enabled/a.conf", text)
                .file("/srv/www/wp-config.php.bak", "x")
        };
        assert_eq!(served(site("")), ["wp-config.php.bak"]);
        assert_eq!(
            served(site(
                "<FilesMatch \"\\.(bak|sql)$\">\nRequire all denied\n</FilesMatch>\n"
            )),
            [""]
        );
        assert!(
            served(site(
                "<Directory /srv/www>\nRequire valid-user\n</Directory>\n"
            ))
            .is_empty()
        );
    }
}
