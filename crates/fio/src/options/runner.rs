//! Determines the program that a command really runs. The program may come after a prompt, `sudo`, `timeout 60` or
//! `docker run`, or may be in the quoted words of `ssh` and `sh -c`.

use super::shell::UNKNOWN;

/// What a command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    /// A program, as the words from its name on, and the variables that `env` sets.
    Program(Vec<String>, Vec<(String, String)>),
    /// Text that a local or remote shell interprets.
    Text(String),
    /// No relevant program.
    Nothing,
}

/// A program that runs another program, as (name, options whose value is the next word, number of own words before the
/// other program).
type Wrapper = (&'static str, &'static [&'static str], usize);

const WRAPPERS: [Wrapper; 27] = [
    (
        "sudo",
        &[
            "-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "--user", "--group",
        ],
        0,
    ),
    ("doas", &["-u", "-C"], 0),
    ("env", &["-u", "-C", "--unset", "--chdir"], 0),
    ("timeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    ("nice", &["-n", "--adjustment"], 0),
    ("ionice", &["-c", "-n", "--class", "--classdata"], 0),
    ("taskset", &[], 1),
    ("numactl", &["-N", "-m", "-C", "-i", "-p", "-l"], 0),
    ("chrt", &["-T", "-P", "-D"], 1),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("nohup", &[], 0),
    ("setsid", &[], 0),
    ("exec", &["-a"], 0),
    ("builtin", &[], 0),
    ("time", &["-f", "-o", "--format", "--output"], 0),
    (
        "strace",
        &["-e", "-o", "-p", "-s", "-P", "-S", "-E", "-a", "-u"],
        0,
    ),
    ("ltrace", &["-e", "-o", "-p", "-s", "-n", "-u"], 0),
    (
        "systemd-run",
        &[
            "-p",
            "-u",
            "-t",
            "-M",
            "-E",
            "--property",
            "--unit",
            "--slice",
            "--uid",
        ],
        0,
    ),
    ("systemd-inhibit", &[], 0),
    ("cgexec", &["-g"], 0),
    ("unshare", &["-S", "-G", "-R", "-w"], 0),
    ("nsenter", &["-t", "-S", "-G"], 0),
    ("chroot", &[], 1),
    ("watch", &["-n", "-d", "--interval"], 0),
    (
        "xargs",
        &["-I", "-n", "-P", "-L", "-d", "-a", "-s", "-E"],
        0,
    ),
    ("flock", &["-w", "-E", "--timeout"], 1),
    ("catchsegv", &[], 0),
];

/// Programs whose arguments may contain the word fio, but that do not run fio.
const OTHERS: [&str; 58] = [
    "apt", "apt-get", "aptitude", "yum", "dnf", "zypper", "apk", "pacman", "brew", "pkg", "port",
    "emerge", "nix-env", "snap", "dpkg", "rpm", "pip", "pip3", "conda", "which", "type", "hash",
    "whereis", "echo", "printf", "cat", "tee", "grep", "egrep", "fgrep", "awk", "sed", "test", "[",
    "[[", "cd", "pushd", "mkdir", "rm", "ls", "cp", "mv", "ln", "chmod", "chown", "tar", "git",
    "make", "wget", "curl", "killall", "pkill", "pgrep", "pidof", "man", "alias", "source", ".",
];

/// Shells, which accept commands as text.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"];

fn base_name(word: &str) -> &str {
    word.rsplit(['/', '\\']).next().unwrap_or(word)
}

/// Returns whether a word is the name or a path of the program fio.
pub(super) fn is_fio(word: &str) -> bool {
    base_name(word).trim_end_matches(".exe") == "fio"
}

/// Determines what a command runs.
pub(super) fn resolve(words: &[String]) -> Runs {
    let mut rest = words;
    let mut environment = Vec::new();
    // Each iteration consumes at least one word.
    for _ in 0..=words.len() {
        let Some(first) = rest.first() else {
            return Runs::Nothing;
        };
        let own = base_name(first);
        if is_prompt(first) || own == "builtin" {
            rest = &rest[1..];
            continue;
        }
        if let Some((_, values, before)) = WRAPPERS.iter().find(|(name, _, _)| *name == own) {
            rest = behind_options(&rest[1..], values, *before, &mut environment);
            continue;
        }
        match own {
            "command" => match rest.get(1).map(String::as_str) {
                Some("-v" | "-V") => return Runs::Nothing,
                _ => rest = behind_options(&rest[1..], &[], 0, &mut environment),
            },
            "perf" => {
                rest = behind_options(
                    rest.get(2..).unwrap_or_default(),
                    &["-e", "-o", "-C", "-a", "-p"],
                    0,
                    &mut environment,
                )
            }
            "ip" if rest.get(1).is_some_and(|word| word == "netns") => {
                rest = rest.get(4..).unwrap_or_default();
            }
            "ssh" | "pdsh" | "sshpass" => return remote_commands(rest),
            "su" | "runuser" | "script" | "vagrant" => return text_behind(rest, "-c"),
            _ if SHELLS.contains(&own) => return text_behind(rest, "-c"),
            "docker" | "podman" | "nerdctl" | "kubectl" | "oc" | "crictl" | "lxc"
            | "lxc-attach" | "pct" => {
                return container_commands(rest, environment);
            }
            _ if OTHERS.contains(&own) => return Runs::Nothing,
            _ => return Runs::Program(rest.to_vec(), environment),
        }
    }
    Runs::Nothing
}

/// Returns whether a word is a shell prompt: `$`, `#`, `%`, `>`, `user@host:~$`, `[root@host`, `~]#`, `PS C:\>`.
fn is_prompt(word: &str) -> bool {
    let ends = word.ends_with(['$', '#', '%', '>', '❯']);
    let alone = matches!(word, "$" | "#" | "%" | ">" | "❯" | "$>" | "PS");
    alone
        || ends && (word.contains(['@', ':', '~', ']', '\\']))
        || word.starts_with('[') && word.contains('@')
}

/// Returns the words after the options and own words of a program that runs another program.
fn behind_options<'w>(
    words: &'w [String],
    values: &[&str],
    before: usize,
    environment: &mut Vec<(String, String)>,
) -> &'w [String] {
    let (mut at, mut own) = (0, before);
    while let Some(word) = words.get(at) {
        if word == "--" {
            at += 1;
            continue;
        }
        if word.starts_with('-') && word.len() > 1 {
            at += 1 + usize::from(values.contains(&word.as_str()));
            continue;
        }
        let assigned = word.split_once('=').filter(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        if let Some((name, value)) = assigned {
            environment.push((name.to_owned(), value.to_owned()));
            at += 1;
            continue;
        }
        if own == 0 {
            break;
        }
        own -= 1;
        at += 1;
    }
    words.get(at..).unwrap_or_default()
}

/// Options of ssh whose value is the next word (ssh(1)).
const OF_SSH: [&str; 21] = [
    "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o", "-P", "-p",
    "-Q", "-R", "-S", "-W", "-w",
];

/// Returns the text after the host in an ssh command, which the remote shell interprets.
fn remote_commands(words: &[String]) -> Runs {
    let (mut at, mut named) = (1, false);
    while let Some(word) = words.get(at) {
        if base_name(word) == "ssh" {
            at += 1;
        } else if word.starts_with('-') {
            at += 1 + usize::from(
                OF_SSH.contains(&word.as_str()) || matches!(word.as_str(), "-u" | "-f"),
            );
        } else if named {
            break;
        } else {
            named = true;
            at += 1;
        }
    }
    match words.get(at..).unwrap_or_default() {
        [] => Runs::Nothing,
        rest => Runs::Text(rest.join(" ")),
    }
}

fn text_behind(words: &[String], option: &str) -> Runs {
    let is_it = |word: &String| {
        word == option || word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
    };
    let at = words.iter().position(is_it);
    match at.and_then(|at| words.get(at + 1)) {
        Some(text) => Runs::Text(text.clone()),
        None => Runs::Nothing,
    }
}

/// Returns the program that a container runs: `docker run … IMAGE fio …`, `kubectl exec … -- fio …`, and images that
/// run fio themselves.
fn container_commands(words: &[String], environment: Vec<(String, String)>) -> Runs {
    let Some(verb) = words
        .iter()
        .position(|word| matches!(word.as_str(), "run" | "exec" | "-n" | "--"))
    else {
        return Runs::Nothing;
    };
    let behind = &words[verb + 1..];
    let dashes = behind.iter().position(|word| word == "--");
    let rest = dashes.map_or(behind, |at| &behind[at + 1..]);
    if dashes.is_some() {
        return resolve(rest);
    }
    if let Some(at) = rest.iter().position(|word| is_fio(word))
        && !rest[at].contains('/') | rest[at].starts_with('/')
    {
        return Runs::Program(rest[at..].to_vec(), environment);
    }
    if let Some(at) = rest
        .iter()
        .position(|word| SHELLS.contains(&base_name(word)))
    {
        return resolve(&rest[at..]);
    }
    // `docker run … some/fio --name=…`: the image runs fio.
    let image = |word: &String| {
        base_name(word)
            .split(':')
            .next()
            .is_some_and(|name| name == "fio")
    };
    match rest
        .iter()
        .position(|word| !word.starts_with('-') && image(word))
    {
        Some(at) if rest[at + 1..].iter().any(|word| word.starts_with("--")) => {
            let program = [vec!["fio".to_owned()], rest[at + 1..].to_vec()].concat();
            Runs::Program(program, environment)
        }
        _ => Runs::Nothing,
    }
}

/// Returns whether the words after `fio` request something else than running a job, such as `--version`.
pub(super) fn is_no_job(arguments: &[String]) -> bool {
    const ASKS: [&str; 14] = [
        "--help",
        "-h",
        "--version",
        "-v",
        "--cmdhelp",
        "--enghelp",
        "--crctest",
        "--cpuclock-test",
        "--parse-only",
        "--server",
        "--showcmd",
        "-V",
        "-?",
        "--debug",
    ];
    let asks = |word: &String| {
        let name = word.split('=').next().unwrap_or(word);
        ASKS.contains(&name)
    };
    arguments.is_empty()
        || arguments.iter().any(asks) && !arguments.iter().any(|word| word.starts_with("--name"))
        || arguments.iter().all(|word| word == &UNKNOWN.to_string())
}

/// Returns whether the words after `fio` look like a job. Used if it is uncertain whether the word `fio` is a program
/// call.
pub(super) fn looks_like_a_job(arguments: &[String]) -> bool {
    let option = |word: &String| {
        let name = word
            .strip_prefix("--")
            .and_then(|rest| rest.split(['=', ' ']).next());
        name.is_some_and(|name| super::NAMES.lines().any(|known| known == name) || name == "name")
    };
    arguments
        .iter()
        .any(|word| option(word) || word.ends_with(".fio"))
}

/// Returns whether at least one of the options exists only in fio.
pub(super) fn looks_like_fio(arguments: &[String]) -> bool {
    let has = |name: &str| {
        let given = |word: &String| {
            word.strip_prefix("--")
                .is_some_and(|rest| rest.split('=').next() == Some(name))
        };
        arguments.iter().any(given)
    };
    has("name")
        && ["rw", "readwrite", "ioengine", "iodepth", "bs", "numjobs"]
            .iter()
            .any(|name| has(name))
}
