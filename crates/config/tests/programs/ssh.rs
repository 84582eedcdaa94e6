//! Compares this crate with `sshd -T -C` and `ssh -G`.

use super::{Dice, Disk, ask, read, refused, stdout};
use assay_config::effective::ssh_match::Connection;
use assay_config::effective::{
    Effective, Program, SSHD_GLOBAL, ScopeId, Setting, Trouble, read_effective,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Keywords with values that `sshd -T` prints as written. The last keywords are allowed only outside of Match blocks.
const KEYWORDS: [(&str, &[&str]); 14] = [
    ("X11Forwarding", &["yes", "no"]),
    ("PermitTTY", &["yes", "no"]),
    ("MaxSessions", &["3", "7", "11"]),
    ("ClientAliveInterval", &["5", "60"]),
    (
        "Banner",
        &["/a", "\"/b c\"", "'/d#e'", "/f\\\\g", "\"/h\\\"i\""],
    ),
    ("ForceCommand", &["echo \"a\" # b", "/bin/true", "'x' y"]),
    ("ChallengeResponseAuthentication", &["yes", "no"]),
    ("KbdInteractiveAuthentication", &["yes", "no"]),
    ("AcceptEnv", &["LANG LC_*", "A B", "\"C\""]),
    ("AuthorizedKeysFile", &[".ssh/a .ssh/b", "/k/%u"]),
    ("AllowUsers", &["ann", "bob carol"]),
    ("UseDNS", &["yes", "no"]),
    ("GSSAPIAuthentication", &["yes", "no"]),
    ("MaxStartups", &["1:2:3", "10:30:60"]),
];
/// Number of these keywords, from the first on, that are allowed in a Match block.
const IN_MATCH: usize = 11;
const SPECS: [(&str, &str, &str, &str, u16); 6] = [
    ("ann", "a.example.org", "10.0.0.7", "192.0.2.1", 22),
    ("bob", "B.example.org", "10.1.0.7", "192.0.2.2", 2222),
    ("carol", "host", "2001:db8::7", "2001:db8::1", 22),
    ("nobody", "x", "198.51.100.3", "192.0.2.1", 22),
    ("root", "a.example.org", "10.0.0.9", "192.0.2.9", 1),
    ("annabel", "example.org", "::1", "::1", 22),
];
const CRITERIA: [&str; 18] = [
    "all",
    "User ann",
    "user=ann,bob",
    "User \"a*\" Address 10.0.0.0/24",
    "User !bob,*",
    "User !bob",
    "Host *.example.org",
    "Host a.EXAMPLE.org,host # note",
    "Address 10.0.0.0/8,2001:db8::/32",
    "Address !10.1.0.0/16,10.0.0.0/8",
    "Address 10.0.?.7",
    "LocalPort 22",
    "LocalPort=2222 User *",
    "LocalAddress 192.0.2.0/30",
    "Group root",
    "User ??? Host ?.*",
    "RDomain x",
    "Address ::1",
];

/// Returns the output of `sshd -T` for a connection, by keyword; `None` if sshd rejects the file. sshd requires
/// /run/sshd, which exists only after the service was started. A mount namespace provides this directory.
#[expect(clippy::option_option, reason = "refused is not the same as not there")]
fn dump(file: &Path, spec: Option<&str>) -> Option<Option<BTreeMap<String, Vec<String>>>> {
    if !Path::new("/usr/sbin/sshd").exists() {
        assay_testing::skipped("sshd", "no sshd");
        return None;
    }
    let script = "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec /usr/sbin/sshd -T \"$@\"";
    let mut argv = vec!["unshare", "--mount", "sh", "-c", script, "sh", "-f"];
    argv.push(file.to_str()?);
    argv.extend(spec.map(|spec| ["-C", spec]).into_iter().flatten());
    let output = ask(&argv)?;
    if !output.status.success() {
        let says = String::from_utf8_lossy(&output.stderr);
        if says.contains("unshare") || says.contains("mount") {
            assay_testing::skipped("mount", says);
            return None;
        }
        return Some(None);
    }
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in stdout(&output).lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        all.entry(key.to_owned())
            .or_default()
            .push(value.to_owned());
    }
    Some(Some(all))
}

fn joined(said: &[&Setting]) -> Vec<String> {
    let word = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
    match said {
        [] => Vec::new(),
        // One line for each word, as sshd prints them.
        [first, ..] if ["acceptenv", "allowusers"].contains(&&first.key[..]) => said
            .iter()
            .flat_map(|said| said.words.iter().map(word))
            .collect(),
        _ => said
            .iter()
            .map(|said| said.words.iter().map(word).collect::<Vec<_>>().join(" "))
            .collect(),
    }
}

fn connection(spec: &(&str, &str, &str, &str, u16)) -> (String, Connection) {
    let (user, host, address, local, port) = spec;
    let text =
        format!("user={user},host={host},addr={address},laddr={local},lport={port},rdomain=x");
    let groups = ask(&["id", "-nG", user]).map(|output| {
        let groups = String::from_utf8_lossy(&output.stdout).into_owned();
        groups.split_whitespace().map(str::to_owned).collect()
    });
    let connection = Connection {
        user: Some((*user).to_owned()),
        groups,
        host: Some((*host).to_owned()),
        address: address.parse().ok(),
        local_address: local.parse().ok(),
        local_port: Some(*port),
        rdomain: Some("x".to_owned()),
    };
    (text, connection)
}

/// Compares both results key by key. Returns the number of compared keys.
fn agree(
    ours: &Effective,
    theirs: &BTreeMap<String, Vec<String>>,
    connection: &Connection,
    context: &str,
) -> usize {
    let mut compared = 0;
    let old = is_of_9_2().unwrap_or_default();
    for (key, _) in KEYWORDS {
        if key == "MaxStartups" && !old {
            continue;
        }
        let said = ours.get_for(connection, key).unwrap();
        // Defaults are not in the files.
        let Some(first) = said.first() else { continue };
        let expected = theirs.get(&first.key).cloned().unwrap_or_default();
        assert_eq!(joined(&said), expected, "{key} {connection:?}\n{context}");
        compared += 1;
    }
    compared
}

/// Generates a file that consists of random lines.
fn text(dice: &mut Dice, dir: &Path, mut in_match: bool, depth: usize) -> String {
    const PATTERNS: [&str; 10] = [
        "[0-9]*.conf",
        "[!0-9]*.conf",
        "*.conf",
        "?0-*",
        "1[0-1]-{a,b}.conf",
        "[[:alpha:]]*.conf",
        "none/*",
        "[b-]*",
        "[^1]*",
        "\\10-a.conf",
    ];
    let mut out = String::new();
    for _ in 0..dice.below(8) {
        let end = *dice.one(&["\n", "\n", "\r\n", "  \n", "\n\n# note \"\n"]);
        let line = match dice.below(6) {
            0 => {
                in_match = true;
                let keyword = dice.one(&["Match", "match", "\tMATCH "]);
                format!("{keyword} {}", dice.one(&CRITERIA))
            }
            1 if depth < 2 => {
                let pattern = dice.one(&PATTERNS);
                let quote = dice.one(&["", "\""]);
                let two = match dice.below(3) {
                    0 => format!(" {}/z.conf", dir.display()),
                    _ => String::new(),
                };
                // In quotes, and outside too, a backslash before a letter stays.
                format!(
                    "Include {quote}{}/{depth}/{pattern}{quote}{two}",
                    dir.display()
                )
            }
            _ => {
                let limit = if in_match { IN_MATCH } else { KEYWORDS.len() };
                let (key, values) = KEYWORDS[dice.below(limit)];
                let between = dice.one(&[" ", "=", " = ", "\t"]);
                let key = match dice.below(4) {
                    0 => key.to_lowercase(),
                    1 => format!("\"{key}\""),
                    _ => key.to_owned(),
                };
                let comment = match (dice.below(3), key.to_lowercase().contains("forcecommand")) {
                    (0, false) => " # why",
                    _ => "",
                };
                let indent = dice.one(&["", "  ", "\t"]);
                let value = dice.one(values);
                let between = if key.starts_with('"') { " " } else { between };
                format!("{indent}{key}{between}{value}{comment}")
            }
        };
        out.push_str(&line);
        out.push_str(end);
    }
    out
}

#[test]
fn attack_random_configurations_of_sshd() {
    let names = [
        "10-a.conf",
        "11-b.conf",
        "b.conf",
        "-x.conf",
        ".h.conf",
        "z.conf",
        "20-{.conf",
    ];
    let (mut tried, mut accepted, mut compared) = (0, 0, 0);
    for seed in 0..25 * assay_testing::attack_factor() {
        let mut dice = Dice::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let mut all = Vec::new();
        std::fs::write(dir.path().join("z.conf"), "MaxSessions 9\n").unwrap();
        for depth in 0..2 {
            let inner = dir.path().join(depth.to_string());
            std::fs::create_dir(&inner).unwrap();
            for name in names {
                // Whether an included file is inside a Match block is not known here; sshd then refuses the
                // file.
                let text = text(&mut dice, dir.path(), true, depth + 1);
                std::fs::write(inner.join(name), &text).unwrap();
                all.push(format!("== {depth}/{name}\n{text}"));
            }
        }
        let main = text(&mut dice, dir.path(), false, 0);
        let file = dir.path().join("sshd_config");
        std::fs::write(&file, &main).unwrap();
        let context = format!("{main}\n{}", all.concat());
        let ours = read(Program::Sshd, &file);
        let Some(theirs) = dump(&file, None) else {
            return;
        };
        tried += 1;
        if theirs.is_none() {
            continue;
        }
        assert!(!refused(&ours), "{:?}\n{context}", ours.problems);
        accepted += 1;
        for _ in 0..3 {
            let (spec, connection) = connection(dice.one(&SPECS));
            let Some(Some(theirs)) = dump(&file, Some(&spec)) else {
                panic!("{spec} is refused\n{context}")
            };
            compared += agree(&ours, &theirs, &connection, &context);
        }
    }
    println!("sshd: {tried} configurations, {accepted} accepted, {compared} values compared");
    assert!(accepted * 4 >= tried && compared > accepted);
    assay_testing::attacked("random configurations of sshd", tried as u64, tried as u64);
}

/// The keywords that sshd rejects in Match blocks are those in the list of this crate. `Match all` in the main file
/// ends a block.
#[test]
fn keywords_that_stand_outside_of_match_alone() {
    const OTHERS: [&str; 8] = [
        "permitrootlogin",
        "passwordauthentication",
        "loglevel",
        "maxauthtries",
        "ignorerhosts",
        "casignaturealgorithms",
        "exposeauthinfo",
        "x11displayoffset",
    ];
    const VALUES: [&str; 10] = [
        "yes",
        "no",
        "3",
        "none",
        "INFO",
        "+aes128-cbc",
        "+hmac-md5",
        "+ssh-rsa",
        "sha256",
        "/dev/null",
    ];
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sshd_config");
    let inner = dir.path().join("inner.conf");
    let mut compared = 0;
    for key in SSHD_GLOBAL.iter().chain(&OTHERS) {
        let taken = |text: String| {
            std::fs::write(&file, text).unwrap();
            let ours = read(Program::Sshd, &file);
            let refused = |one: &assay_config::effective::ConfigProblem| {
                matches!(one.trouble, Trouble::Refused { .. })
            };
            let theirs = dump(&file, None)?;
            Some((!ours.problems.iter().any(refused), theirs.is_some()))
        };
        for value in VALUES {
            let Some((ours, theirs)) = taken(format!("{key} {value}\n")) else {
                return;
            };
            assert!(ours, "{key}");
            if !theirs {
                continue;
            }
            std::fs::write(&inner, format!("Match all\n{key} {value}\n")).unwrap();
            let include = format!("Include {}\n", inner.display());
            for text in [
                format!("Match User ann\n{key} {value}\n"),
                format!("Match User ann\nMatch ALL\n{key} {value}\n"),
                format!("Match User ann\n{include}"),
                include,
            ] {
                let (ours, theirs) = taken(text.clone()).unwrap();
                assert_eq!(ours, theirs, "{text}");
                compared += 1;
            }
            break;
        }
    }
    println!("sshd: {compared} files with a keyword in a block");
    assert!(compared >= 150, "{compared}");
}

/// For two lines of a keyword, the effective value is that of sshd. Covers every keyword that does not simply follow
/// "the first line takes effect", and some that do.
#[test]
fn which_of_two_lines_counts() {
    let lines = |key: &str, values: &[&str]| {
        values
            .iter()
            .map(|value| format!("{key} {value}\n"))
            .collect::<String>()
    };
    let server: [(&str, &[&str]); 15] = [
        ("MaxStartups", &["10:30:60", "1:2:3"]),
        ("PerSourceNetBlockSize", &["24:64", "16:32"]),
        ("PerSourceMaxStartups", &["3", "4"]),
        ("IPQoS", &["cs1 cs3", "cs2 cs4"]),
        ("StreamLocalBindMask", &["022", "077"]),
        ("FingerprintHash", &["MD5", "SHA256"]),
        ("UnusedConnectionTimeout", &["60", "none", "30"]),
        ("UnusedConnectionTimeout", &["60", "30"]),
        ("AuthorizedKeysCommand", &["/a \"b  c\" # d", "/e"]),
        ("AuthorizedPrincipalsCommand", &["/a 'b'", "/c \"d\" # e"]),
        ("LogLevel", &["DEBUG", "INFO"]),
        ("LogVerbose", &["a:b:1 c:d:2", "e:f:3"]),
        ("VersionAddendum", &["a \"b\" # c", "d"]),
        ("ChannelTimeout", &["session=1 x11=2", "session=3"]),
        ("Port", &["22", "23"]),
    ];
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sshd_config");
    let users = "AuthorizedKeysCommandUser root\nAuthorizedPrincipalsCommandUser root\n";
    let Some(old) = is_of_9_2() else { return };
    for (key, values) in server {
        // Later versions use the first line of most keywords.
        if !old {
            break;
        }
        std::fs::write(&file, format!("{users}{}", lines(key, values))).unwrap();
        let Some(theirs) = dump(&file, None) else {
            return;
        };
        let ours = read(Program::Sshd, &file);
        let said = joined(&ours.get(ScopeId::ROOT, key));
        let theirs = theirs.unwrap_or_else(|| panic!("{key} is refused"));
        assert_eq!(said, theirs[&key.to_lowercase()], "{key}");
    }
    let client: [(&str, &[&str]); 4] = [
        ("StreamLocalBindMask", &["022", "077"]),
        ("IPQoS", &["cs1 cs3", "cs2 cs4"]),
        ("FingerprintHash", &["MD5", "SHA256"]),
        ("CertificateFile", &["/a", "/b"]),
    ];
    let connection = Connection {
        host: Some("h".to_owned()),
        ..Connection::default()
    };
    for ((key, values), head) in client
        .iter()
        .flat_map(|one| ["", "Match host h\n", "Host other\n"].map(|head| (one, head)))
    {
        std::fs::write(&file, format!("{head}{}", lines(key, values))).unwrap();
        let argv = ["ssh", "-G", "-F", file.to_str().unwrap(), "h"];
        let Some(output) = ask(&argv) else { return };
        let dump = stdout(&output);
        let prefix = format!("{} ", key.to_lowercase());
        let theirs: Vec<&str> = dump
            .lines()
            .filter_map(|line| line.strip_prefix(&prefix))
            .collect();
        let ours = read_effective(Program::Ssh, &file, &Disk).unwrap();
        let said = joined(&ours.get_for(&connection, key).unwrap());
        // A keyword without a line has its default.
        match said.is_empty() {
            true => assert_eq!(head, "Host other\n", "{key}"),
            false => assert_eq!(said, theirs, "{key} {head}"),
        }
    }
}

/// Values whose parts are on several lines, and a keyword that another one disables, outside of Match blocks and in
/// them.
#[test]
fn attack_values_of_sshd_that_take_several_lines() {
    const LINES: [&str; 16] = [
        "MaxStartups 5",
        "MaxStartups 7",
        "MaxStartups 1:20:40",
        "MaxStartups 2:50:60",
        "RekeyLimit 1G",
        "RekeyLimit 64M none",
        "RekeyLimit default 60",
        "RekeyLimit 16K 1h",
        "RekeyLimit default none",
        "AuthorizedKeysCommand /k",
        "AuthorizedKeysCommand none",
        "AuthorizedPrincipalsCommand /p",
        "AuthorizedPrincipalsCommand /q",
        "AuthorizedPrincipalsCommand none",
        "Match User ann",
        "Match User bob",
    ];
    let Some(true) = is_of_9_2() else { return };
    let (mut tried, mut held, mut several) = (0, 0, 0);
    for seed in 0..60 * assay_testing::attack_factor() {
        let mut dice = Dice::new(seed);
        let mut text =
            "AuthorizedKeysCommandUser root\nAuthorizedPrincipalsCommandUser root\n".to_owned();
        let mut in_match = false;
        for _ in 0..2 + dice.below(9) {
            let line = *dice.one(&LINES);
            in_match |= line.starts_with("Match");
            // This keyword applies to all connections.
            if !(in_match && line.starts_with("MaxStartups")) {
                text.push_str(line);
                text.push('\n');
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sshd_config");
        std::fs::write(&file, &text).unwrap();
        let ours = read(Program::Sshd, &file);
        let (spec, connection) = connection(&SPECS[0]);
        let Some(theirs) = dump(&file, Some(&spec)) else {
            return;
        };
        let theirs = theirs.unwrap_or_else(|| panic!("refused:\n{text}"));
        let said = |key: &str| ours.get_for(&connection, key).unwrap();
        let expected = [
            ("maxstartups", startups(&said("maxstartups"))),
            ("rekeylimit", rekeying(&said("rekeylimit"))),
            (
                "authorizedprincipalscommand",
                joined(&said("authorizedprincipalscommand"))
                    .pop()
                    .unwrap_or("none".to_owned()),
            ),
        ];
        for (key, value) in expected {
            several += usize::from(said(key).len() > 1);
            tried += 1;
            held += u64::from(theirs[key] == [&*value]);
            if theirs[key] != [&*value] {
                eprintln!("{key}: {value}, sshd has {:?}\n{text}", theirs[key]);
            }
        }
    }
    assert!(several > 0);
    assay_testing::attacked("values of sshd in several lines", tried, held);
}

/// Formats the value of MaxStartups as sshd prints it. The default is 10:30:100 (sshd_config(5)).
fn startups(said: &[&Setting]) -> String {
    let numbers = |said: &Setting| -> Vec<String> {
        let text = said.text();
        text.split(':').map(str::to_owned).collect()
    };
    match said
        .iter()
        .map(|said| numbers(said))
        .collect::<Vec<_>>()
        .as_slice()
    {
        [] => "10:30:100".to_owned(),
        [one, rate @ ..] if one.len() == 1 => {
            let rate = rate.first().map_or("30", |rate| &rate[1]);
            format!("{}:{rate}:{}", one[0], one[0])
        }
        [whole, ..] => whole.join(":"),
    }
}

/// Formats the value of RekeyLimit as sshd prints it, in bytes and seconds.
fn rekeying(said: &[&Setting]) -> String {
    let word = |said: &Setting, at: usize| {
        let word = said.words.get(at);
        word.map(|word| String::from_utf8_lossy(word).into_owned())
    };
    let size = said.first().and_then(|said| word(said, 0));
    let interval = said.last().and_then(|said| word(said, 1));
    let number = |text: Option<String>| match text.as_deref() {
        Some("1G") => 1 << 30,
        Some("64M") => 64 << 20,
        Some("16K") => 16 << 10,
        Some("1h") => 3600,
        Some("60") => 60,
        _ => 0,
    };
    format!("{} {}", number(size), number(interval))
}

/// Returns whether the installed sshd probably has the version that this crate follows, according to the installed ssh;
/// `None` without ssh.
fn is_of_9_2() -> Option<bool> {
    let output = ask(&["ssh", "-V"])?;
    Some(String::from_utf8_lossy(&output.stderr).starts_with("OpenSSH_9.2"))
}

#[test]
fn includes_of_sshd_that_do_not_end() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sshd_config");
    let text = format!("UseDNS yes\nInclude {}\n", file.display());
    std::fs::write(&file, text).unwrap();
    let ours = read(Program::Sshd, &file);
    assert!(refused(&ours) && ours.files.len() == 17);
    let Some(theirs) = dump(&file, None) else {
        return;
    };
    assert!(theirs.is_none());
    // Exactly the maximum depth.
    for depth in 0..=17 {
        let text = format!("Include {}/{}\n", dir.path().display(), depth + 1);
        let text = if depth == 16 {
            "MaxSessions 5\n".to_owned()
        } else {
            text
        };
        std::fs::write(dir.path().join(depth.to_string()), text).unwrap();
    }
    let first = read(Program::Sshd, &dir.path().join("0"));
    assert!(!refused(&first));
    let found = first.value(ScopeId::ROOT, "maxsessions").unwrap();
    assert_eq!(found.place.path, dir.path().join("16"));
    let theirs = dump(&dir.path().join("0"), None).unwrap().unwrap();
    assert_eq!(theirs["maxsessions"], ["5"]);
}

#[test]
fn ssh() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = dir.path().join(".ssh");
    std::fs::create_dir(&ssh).unwrap();
    let file = ssh.join("config");
    let [own, more] = ["own.conf", "more"].map(|name| ssh.join(name));
    let text = "Host a*.example !ab.example\n  User one\n  SendEnv A\nInclude PLACE/own.conf\nHost *\n  \
                User three\n  SendEnv B\n  ProxyCommand nc \"%h\" # %p\nMatch host \"b.example\"\n  Port 77\n";
    std::fs::write(&file, text.replace("PLACE", ssh.to_str().unwrap())).unwrap();
    std::fs::write(&own, "Port 23\nHost b.example\n  User two\n  Port 24\n").unwrap();
    std::fs::write(&more, "").unwrap();
    let ours = read_effective(Program::Ssh, &file, &Disk).unwrap();
    for host in ["a.example", "ab.example", "b.example", "c.example"] {
        let argv = ["ssh", "-G", "-F", file.to_str().unwrap(), host];
        let Some(output) = ask(&argv) else { return };
        let connection = Connection {
            host: Some(host.to_owned()),
            ..Connection::default()
        };
        let dump = stdout(&output);
        for key in ["user", "port", "sendenv", "proxycommand"] {
            let theirs: Vec<&str> = dump
                .lines()
                .filter_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
                .filter(|value| (key, *value) != ("port", "22"))
                .collect();
            let said = ours.get_for(&connection, key).unwrap();
            assert_eq!(joined(&said), theirs, "{host} {key}");
        }
    }
}
