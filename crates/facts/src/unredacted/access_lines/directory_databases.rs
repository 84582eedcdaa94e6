//! Databases of slapd: hashes of passwords that everybody reads, a root password in clear text, and databases that do
//! not write their changes to the disk. Reads slapd.conf and the LDIF files of slapd-config(5).

use super::super::lines_of_files::files;
use super::Lines;
use crate::collectors::daemons::lines::at_line;
use crate::gather::Gather;
use base64::Engine as _;

const CONF: [&str; 2] = ["/etc/ldap/slapd.conf", "/etc/openldap/slapd.conf"];
const LDIF: [&str; 2] = ["/etc/ldap/slapd.d", "/etc/openldap/slapd.d"];
const KEY: &str = "ldap_database";

/// A statement of a configuration: its name in lower case, its arguments, and its line.
struct Statement {
    name: String,
    value: String,
    line: usize,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut all: Vec<String> = CONF.map(str::to_owned).to_vec();
    for dir in LDIF {
        all.extend(files(g, KEY, &format!("{dir}/cn=config"), ".ldif"));
    }
    let mut found = (
        Lines::of("ldap_hashes", "readable"),
        Lines::of("ldap_root", "clear"),
        Lines::of("ldap_database", "unsynced"),
    );
    for path in all {
        let Some(text) = g.read(KEY, &path) else {
            continue;
        };
        let statements = match path.ends_with(".ldif") {
            true => read_ldif(&text),
            false => read_conf(&text),
        };
        note_file(g, &path, &statements, &mut found);
    }
}

/// Reads the attributes of an LDIF file. A line that begins with a blank continues the line before it, and `::` stands
/// before base64 (RFC 2849).
fn read_ldif(text: &str) -> Vec<Statement> {
    let mut unfolded: Vec<(usize, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix(' '), unfolded.last_mut()) {
            (Some(rest), Some((_, last))) => last.push_str(rest),
            _ => unfolded.push((number + 1, line.to_owned())),
        }
    }
    let mut statements = Vec::new();
    for (line, text) in unfolded {
        if text.starts_with('#') {
            continue;
        }
        let Some((name, value)) = text.split_once(':') else {
            continue;
        };
        let value = match value.strip_prefix(':') {
            Some(coded) => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(coded.trim());
                String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
            }
            None => value.trim().to_owned(),
        };
        statements.push(Statement {
            name: name
                .to_ascii_lowercase()
                .trim_start_matches("olc")
                .to_owned(),
            value,
            line,
        });
    }
    // Values with an index apply in the order of the index.
    statements.sort_by_key(|one| match one.name.as_str() {
        "access" => index_of(&one.value),
        _ => 0,
    });
    statements
}

fn index_of(value: &str) -> usize {
    let index = value
        .strip_prefix('{')
        .and_then(|rest| rest.split_once('}'));
    index
        .and_then(|(index, _)| index.parse::<usize>().ok())
        .map_or(0, |index| index + 1)
}

/// Reads slapd.conf. A line that begins with a blank continues the line before it.
fn read_conf(text: &str) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        match (line.starts_with([' ', '\t']), statements.last_mut()) {
            (true, Some(last)) => {
                last.value.push(' ');
                last.value.push_str(bare);
            }
            _ => {
                let (name, value) = bare.split_once(char::is_whitespace).unwrap_or((bare, ""));
                statements.push(Statement {
                    name: name.to_ascii_lowercase(),
                    value: value.trim().to_owned(),
                    line: number + 1,
                });
            }
        }
    }
    statements
}

fn note_file(
    g: &mut Gather<'_>,
    path: &str,
    statements: &[Statement],
    (hashes, root, databases): &mut (Lines, Lines, Lines),
) {
    // Each database of slapd.conf has its own access rules and flags.
    for database in statements.chunk_by(|_, next| next.name != "database") {
        let mut decided = false;
        let writable = database.iter().any(|one| has_flag(one, "writemap"));
        for one in database {
            let place = at_line(path, one.line);
            match one.name.as_str() {
                "access" if !decided => {
                    let (fits, reads) = judge_access(&one.value);
                    decided = fits;
                    if fits {
                        hashes.add(g, reads, &place);
                    }
                }
                "rootpw" => {
                    let hashed = one.value.trim_matches('"').starts_with('{');
                    root.add(g, !hashed && !one.value.is_empty(), &place);
                }
                "dbnosync" => {
                    // Without a value, slapd.conf switches it on.
                    let value = one.value.trim_matches('"').to_ascii_lowercase();
                    let on = ["", "on", "true", "yes"].contains(&value.as_str());
                    databases.add(g, on, &place);
                }
                "dbenvflags" | "envflags" => {
                    // Only a map that slapd writes to is flushed later (slapd-mdb(5), mapasync).
                    let off = has_flag(one, "nosync") || (writable && has_flag(one, "mapasync"));
                    databases.add(g, off, &place);
                }
                _ => {}
            }
        }
    }
}

/// Returns whether a statement sets this flag of a database. Values of cn=config have an index.
fn has_flag(one: &Statement, wanted: &str) -> bool {
    let mut flags = one.value.split([' ', '\t', '}', '"']);
    ["dbenvflags", "envflags"].contains(&one.name.as_str())
        && flags.any(|flag| flag.eq_ignore_ascii_case(wanted))
}

/// Returns whether an access rule applies to userPassword of all entries, and whether it lets everybody read it
/// (slapd.access(5): the first rule that fits counts).
fn judge_access(rule: &str) -> (bool, bool) {
    let low = rule.to_ascii_lowercase();
    let low = low
        .rsplit_once("}to ")
        .map_or(low.as_str(), |(_, rest)| rest);
    let low = low.strip_prefix("to ").unwrap_or(low);
    let mut clauses = low.split(" by ");
    let what: Vec<&str> = clauses
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let names = |word: &str| {
        word.split_once('=').is_some_and(|(key, list)| {
            ["attrs", "attr"].contains(&key) && list.split(',').any(|name| name == "userpassword")
        })
    };
    let fits = what == ["*"]
        || what
            .first()
            .is_some_and(|word| what.len() == 1 && names(word));
    let mut reads = false;
    for clause in clauses {
        let words: Vec<&str> = clause.split_whitespace().collect();
        let who = words.first().copied().unwrap_or_default();
        let level = words.get(1).copied().unwrap_or_default();
        if ["*", "anonymous", "users"].contains(&who) {
            reads |= ["read", "write", "manage", "+r", "=r"]
                .iter()
                .any(|right| level.starts_with(right));
            if words.contains(&"break") {
                return (false, false);
            }
            if who == "*" {
                break;
            }
        }
    }
    (fits, reads)
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    #[test]
    fn databases_and_their_near_misses() {
        let conf = CONF[0];
        let ldif = "/etc/ldap/slapd.d/cn=config/olcDatabase={1}mdb.ldif";
        let coded = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let first = format!(
            "olcAccess:: {}\nolcAccess: {{1}}to attrs=userPassword by self write by * \n none\n",
            coded("{0}to * by * read")
        );
        let password = format!("olcRootPW:: {}\n", coded("plain"));
        let hash = format!("olcRootPW:: {}\n", coded("{SSHA}abc"));
        for (path, text, expected) in [
            (ldif, first.as_str(), vec!["ldap_hashes.1.readable 1"]),
            (
                ldif,
                "olcAccess: {1}to * by * read\nolcAccess: {0}to attrs=userPassword by anonymous auth by * none\n",
                vec![],
            ),
            (
                conf,
                "access to attrs=userPassword\n by self write\n by * read\n",
                vec!["ldap_hashes.1.readable 1"],
            ),
            (
                conf,
                "access to attrs=userPassword by * auth\naccess to * by * read\n",
                vec![],
            ),
            (ldif, &password, vec!["ldap_root.1.clear 1"]),
            (ldif, &hash, vec![]),
            (
                ldif,
                "olcDbEnvFlags: nordahead\nolcDbEnvFlags: {1}nosync\n",
                vec!["ldap_database.2.unsynced 2"],
            ),
            (ldif, "olcDbNoSync: FALSE\n", vec![]),
            (
                ldif,
                "olcDbEnvFlags: {0}writemap\nolcDbEnvFlags: {1}mapasync\n",
                vec!["ldap_database.2.unsynced 2"],
            ),
            (
                conf,
                "database mdb\nenvflags mapasync\ndatabase mdb\nenvflags writemap\n",
                vec![],
            ),
            (
                conf,
                "database mdb\ndbnosync\n",
                vec!["ldap_database.1.unsynced 2"],
            ),
            (
                conf,
                "database mdb\ndbnosync Yes\n",
                vec!["ldap_database.1.unsynced 2"],
            ),
            (conf, "database mdb\ndbnosync off\n", vec![]),
        ] {
            let mut found = holds(&[(path, text)]);
            found.retain(|fact| !fact.starts_with("ldap_access"));
            assert_eq!(found, expected, "{text}");
        }
    }
}
