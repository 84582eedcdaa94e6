//! Compares the list of files with `nginx -T`, and values and inheritance with the responses of a running nginx.

use super::{Dice, ask, read, refused};
use assay_config::effective::{Effective, Program, ScopeId};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Returns the files that nginx reads, each once, in reading order; `None` if nginx rejects the configuration.
#[expect(clippy::option_option, reason = "refused is not the same as not there")]
fn files(main: &Path) -> Option<Option<Vec<PathBuf>>> {
    let log = main.with_file_name("log");
    let pid = format!("pid {};", main.with_file_name("pid").display());
    let argv = [
        "nginx",
        "-T",
        "-q",
        "-e",
        log.to_str()?,
        "-g",
        &pid,
        "-c",
        main.to_str()?,
    ];
    let output = ask(&argv)?;
    if !output.status.success() {
        return Some(None);
    }
    let says = String::from_utf8_lossy(&output.stdout).into_owned();
    let files = says.lines().filter_map(|line| {
        line.strip_prefix("# configuration file ")?
            .strip_suffix(':')
    });
    Some(Some(files.map(PathBuf::from).collect()))
}

fn once(ours: &Effective) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for file in &ours.files {
        if !files.contains(file) {
            files.push(file.clone());
        }
    }
    files
}

/// Every pattern that consists of random parts matches the same files in the same order as glob(3).
#[test]
fn attack_patterns_of_includes() {
    const NAMES: [&str; 20] = [
        "a.conf",
        "b.conf",
        "10-a.conf",
        "-.conf",
        "].conf",
        "[a].conf",
        ".h.conf",
        "{a,b}.conf",
        "a*b.conf",
        "^.conf",
        "!.conf",
        "A.conf",
        "ab.conf",
        "\\.conf",
        "é.conf",
        " .conf",
        "a",
        "a.confx",
        "a-b.conf",
        "~.conf",
    ];
    const PARTS: [&str; 32] = [
        "*",
        "*",
        "?",
        "**",
        "[ab]",
        "[!ab]",
        "[^ab]",
        "[a-z]",
        "[]]",
        "[!]]",
        "[[]",
        "[a-]",
        "[]-a]",
        "[[:digit:]-]*",
        "[[:alpha:][:punct:]]",
        "[[:nope:]]",
        "\\*",
        "[\\]]",
        "{a,b}",
        "a",
        "b",
        "-",
        ".",
        ".conf",
        ".conf",
        ".conf",
        "[",
        "]",
        "[^]",
        "[!-.]",
        "[Z-_]",
        "[--0]",
    ];
    let mut dice = Dice::new(7);
    let dir = tempfile::tempdir().unwrap();
    for place in ["one", "two/.hidden", "two/x"] {
        let place = dir.path().join(place);
        std::fs::create_dir_all(&place).unwrap();
        for name in NAMES {
            std::fs::write(place.join(name), "# nothing\n").unwrap();
        }
    }
    let main = dir.path().join("nginx.conf");
    let (mut tried, mut some) = (0, 0);
    for _ in 0..250 * assay_testing::attack_factor() {
        let place = dice.one(&[
            "one/",
            "two/*/",
            "two/.*/",
            "*/",
            "",
            "[o]ne/",
            "./one/../one/",
        ]);
        let mut pattern = String::from(*place);
        for _ in 0..=dice.below(5) {
            pattern.push_str(PARTS[dice.below(PARTS.len())]);
        }
        // The star makes the name a pattern, which may match nothing and stays in its directory.
        let text = format!("events {{}}\ninclude '{pattern}*.conf';\n");
        std::fs::write(&main, &text).unwrap();
        let Some(theirs) = files(&main) else { return };
        // nginx resolves backslashes in quotes, and the result may not be a pattern.
        let ours = read(Program::Nginx, &main);
        let Some(theirs) = theirs else { continue };
        assert_eq!(once(&ours), theirs, "{pattern}*.conf: {:?}", ours.problems);
        assert!(!refused(&ours), "{pattern}*.conf: {:?}", ours.problems);
        tried += 1;
        some += u64::from(theirs.len() > 1);
    }
    println!("nginx: {tried} patterns, {some} of them with files");
    assert!(some * 5 > tried);
    assay_testing::attacked("random patterns of nginx", tried, tried);
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(main: &Path, socket: &Path) -> Option<Server> {
    let log = main.with_file_name("log");
    let started = Command::new("/usr/sbin/nginx")
        .arg("-e")
        .arg(&log)
        .args(["-g", "daemon off; master_process off;", "-c"])
        .arg(main)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = started else {
        assay_testing::skipped("nginx", "no nginx");
        return None;
    };
    let server = Server(child);
    let began = Instant::now();
    while UnixStream::connect(socket).is_err() {
        let log = || std::fs::read_to_string(&log).unwrap_or_default();
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "nginx does not start: {}",
            log()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(server)
}

/// Returns the head and the body of a response.
fn get(socket: &Path, host: &str, path: &str) -> (Vec<String>, String) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().map(str::to_owned).collect(), body.to_owned())
}

/// Quoted words, each with the value that nginx writes into a response.
const VALUES: [(&str, &str); 8] = [
    ("plain", "plain"),
    ("\"a # b\"", "a # b"),
    ("'{ ; }'", "{ ; }"),
    ("a#b", "a#b"),
    (r#""q\"q""#, "q\"q"),
    (r"back\\slash", r"back\slash"),
    (r"a\;b", r"a\;b"),
    (r#"'it\'s "x"'"#, "it's \"x\""),
];

/// Generates directives of a block: headers with the name of this block, and whether files are compressed.
fn block(dice: &mut Dice, level: &str) -> String {
    let mut out = String::new();
    for index in 0..dice.below(3) {
        let (value, _) = dice.one(&VALUES);
        let end = dice.one(&[";", ";\n", " ; # add_header X-No no;\n", "\n\t;\r\n"]);
        out.push_str(&format!("add_header X-{level}-{index} {value}{end}"));
    }
    if dice.below(3) == 0 {
        out.push_str(&format!("default_type text/{level};\n"));
    }
    out
}

/// The test checks with a running nginx which headers apply in which location, and which values they have.
#[test]
fn attack_what_is_inherited_and_what_values_mean() {
    let mut compared = 0;
    for seed in 0..8 * assay_testing::attack_factor() {
        let mut dice = Dice::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display();
        let socket = dir.path().join("socket");
        std::fs::create_dir(dir.path().join("sites")).unwrap();
        let (value, meant) = dice.one(&VALUES);
        for name in ["[1]", "2"] {
            let text = format!(
                "server {{ listen unix:{path}/socket; server_name s{}; {}\
                 location /a {{ {} location /a/b {{ {} return 200 {value}; }} return 200 {value}; }}\n\
                 location = \"/c d\" {{ {} return 200 \"c\"; }} }}\n",
                name.trim_matches(['[', ']']),
                block(&mut dice, "server"),
                block(&mut dice, "outer"),
                block(&mut dice, "inner"),
                block(&mut dice, "other"),
            );
            std::fs::write(dir.path().join("sites").join(format!("{name}.conf")), text).unwrap();
        }
        let main = dir.path().join("nginx.conf");
        let text = format!(
            "user root; pid {path}/pid; error_log {path}/log;\nevents {{ worker_connections 64; }}\n\
             # sendfile off; '\nhttp {{ access_log off; log_format a 'sendfile off; # {{';\n{}\
             include sites/*.conf; }}\n",
            block(&mut dice, "http")
        );
        std::fs::write(&main, &text).unwrap();
        let ours = read(Program::Nginx, &main);
        assert!(ours.problems.is_empty(), "{:?}", ours.problems);
        assert_eq!(ours.value(ScopeId::ROOT, "sendfile"), None);
        let Some(_server) = start(&main, &socket) else {
            return;
        };
        let servers = ours.find(&["http", "server"]);
        assert_eq!(servers.len(), 2);
        for server in servers {
            let host = ours.value(server, "server_name").unwrap().word().unwrap();
            for (location, url) in [
                (&["location /a"][..], "/a"),
                (&["location /a", "location /a/b"], "/a/b"),
                (&["location = /c d"], "/c%20d"),
            ] {
                let path = [&["http", "server"], location].concat();
                let mut scopes = ours.find(&path).into_iter();
                let scope = scopes
                    .find(|scope| {
                        let mut at = Some(*scope);
                        std::iter::from_fn(|| {
                            let now = at?;
                            at = ours.scope(now).parent;
                            Some(now)
                        })
                        .any(|around| around == server)
                    })
                    .unwrap();
                let (head, body) = get(&socket, &host, url);
                let theirs: Vec<&str> = head
                    .iter()
                    .map(|line| &line[..])
                    .filter(|line| line.starts_with("X-"))
                    .collect();
                let said = ours.get(scope, "add_header");
                let words = |at: usize| {
                    let word = move |said: &&assay_config::effective::Setting| {
                        String::from_utf8_lossy(&said.words[at]).into_owned()
                    };
                    said.iter().map(word).collect::<Vec<_>>()
                };
                let lines: Vec<String> = std::iter::zip(words(0), words(1))
                    .map(|(name, value)| format!("{name}: {value}"))
                    .collect();
                assert_eq!(lines, theirs, "{host} {url}\n{text}");
                let kind = ours.value(scope, "default_type").map(|said| said.text());
                let kind = format!("Content-Type: {}", kind.as_deref().unwrap_or("text/plain"));
                assert!(head.contains(&kind), "{kind} {head:?}");
                let returned = ours.value(scope, "return").unwrap();
                assert_eq!(String::from_utf8_lossy(&returned.words[1]), body);
                assert!(url.starts_with("/c") || body == *meant);
                // Position and range lead to the line.
                let file = std::fs::read(&returned.place.path).unwrap();
                assert!(file[returned.place.span.clone()].starts_with(b"return 200"));
                compared += lines.len() + 2;
            }
        }
    }
    println!("nginx: {compared} values compared");
    assert!(compared > 0);
    let tried = 8 * assay_testing::attack_factor();
    assay_testing::attacked("random configurations of nginx", tried, tried);
}
