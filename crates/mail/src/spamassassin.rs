//! Runs SpamAssassin on a mail and returns which rules matched. Uses the settings of this machine, not the settings of
//! a user. The home directory is temporary, so that SpamAssassin learns and stores nothing.

use assay_host::process::{Dies, Keep, Leftovers, Running};
use assay_host::{Host, HostError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Verdict of SpamAssassin on a mail.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SpamVerdict {
    /// Sum of the scores of all rules that matched.
    pub score: f64,
    /// Score from which a mail is spam (`required_score`).
    pub required: f64,
    /// Rules that matched, the highest score first.
    pub rules: Vec<Rule>,
}

impl SpamVerdict {
    /// Returns whether the score reaches the required score, so that the mail is spam.
    #[must_use]
    pub fn is_spam(&self) -> bool {
        self.score >= self.required
    }
}

/// A rule of SpamAssassin that matched the mail.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Rule {
    /// Name of the rule, such as `GTUBE`.
    pub name: String,
    /// Points that the rule adds to the score of the mail.
    pub score: f64,
    /// Text of the rule's `describe` line; `None` if there is none.
    pub description: Option<String>,
    /// File that defines the rule; `None` if a plugin defines it.
    pub file: Option<PathBuf>,
    /// Number of the line that defines the rule, from 1.
    pub line: Option<usize>,
}

/// Reason why there is no verdict on a mail.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// SpamAssassin is not installed.
    #[error("spamassassin is not installed")]
    Missing,
    /// SpamAssassin cannot be started, or its output cannot be read.
    #[error("spamassassin: {0}")]
    Io(#[from] io::Error),
    /// SpamAssassin did not end within this time.
    #[error("spamassassin did not end within {} s", .0.as_secs())]
    Timeout(Duration),
    /// SpamAssassin printed no verdict. Contains its error message.
    #[error("spamassassin printed no verdict: {0}")]
    NoVerdict(String),
}

/// Headers that SpamAssassin adds to the mail so that [`run`] can read the verdict. Each has a name and a template.
const HEADERS: [(&str, &str); 2] = [
    ("Assay-Score", "_SCORE_ _REQD_"),
    ("Assay-Rules", "_TESTSSCORES(,)_"),
];
/// Maximum size of SpamAssassin's output in bytes.
const LONGEST: usize = 64 << 20;

/// Runs SpamAssassin on a mail and returns its verdict.
///
/// With `network`, SpamAssassin may query DNS lists and other services, as the machine is configured. Without it,
/// SpamAssassin does not use the network.
///
/// # Errors
/// SpamAssassin is not installed, does not end within `limit`, or prints no verdict.
pub fn run(
    host: &dyn Host,
    mail: &[u8],
    network: bool,
    limit: Duration,
) -> Result<SpamVerdict, FilterError> {
    let program = host
        .which("spamassassin".as_ref())
        .ok_or(FilterError::Missing)?;
    let home = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command
        .args(["--nocreate-prefs", "--test-mode"])
        .args(["--prefspath", "/dev/null"]);
    if !network {
        command.arg("--local");
    }
    let settings = [
        "bayes_auto_learn 0",
        "use_auto_whitelist 0",
        "use_txrep 0",
        "fold_headers 0",
        "clear_headers",
    ];
    let asked = HEADERS.map(|(name, template)| format!("add_header all {name} {template}"));
    for setting in settings.into_iter().map(str::to_owned).chain(asked) {
        command.args(["--cf", &setting]);
    }
    command
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let begun = Instant::now();
    let keep = Keep {
        stdout: LONGEST,
        stderr: 64 << 10,
        leftovers: Leftovers::Kill,
    };
    let collected = Running::start_with_bytes(command, mail, Dies::WithThread)?
        .collect(keep, |look| look.now - begun >= limit)?;
    if collected.stopped {
        return Err(FilterError::Timeout(limit));
    }
    let mut verdict = parse_answer(&collected.stdout).ok_or_else(|| {
        let complaint = String::from_utf8_lossy(&collected.stderr);
        let last = complaint.trim().lines().next_back().unwrap_or("no reason");
        FilterError::NoVerdict(last.to_owned())
    })?;
    if let Ok(known) = read_definitions(host) {
        for rule in &mut verdict.rules {
            let Some(definition) = known.get(&rule.name) else {
                continue;
            };
            rule.description.clone_from(&definition.description);
            if let Some((file, line)) = &definition.place {
                rule.file = Some(file.clone());
                rule.line = Some(*line);
            }
        }
    }
    Ok(verdict)
}

/// Parses the verdict from the two headers of [`HEADERS`] in the mail that SpamAssassin printed.
fn parse_answer(mail: &[u8]) -> Option<SpamVerdict> {
    let fields = crate::message::parse_fields(mail);
    let value = |wanted: &str| {
        let name = format!("X-Spam-{wanted}");
        let field = fields
            .iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(&name));
        field.map(|(_, value)| value.as_str())
    };
    let [(score, _), (rules, _)] = HEADERS;
    let (score, required) = value(score)?.split_once(' ')?;
    let mut rules: Vec<Rule> = value(rules)?.split(',').filter_map(parse_rule).collect();
    rules.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.name.cmp(&b.name))
    });
    Some(SpamVerdict {
        score: score.parse().ok()?,
        required: required.trim().parse().ok()?,
        rules,
    })
}

/// Parses one rule of the header, such as `GTUBE=1000`. Returns `None` for the word `none`, which means that no rule
/// matched.
fn parse_rule(text: &str) -> Option<Rule> {
    let (name, score) = text.trim().split_once('=')?;
    Some(Rule {
        name: name.to_owned(),
        score: score.parse().ok()?,
        description: None,
        file: None,
        line: None,
    })
}

/// Where a rule is defined, and its description.
#[derive(Debug, Default)]
struct Definition {
    description: Option<String>,
    place: Option<(PathBuf, usize)>,
}

/// Directories of rule files: from the package, from `sa-update` (which replaces the package's rules), and from this
/// machine.
const SHIPPED: &str = "/usr/share/spamassassin";
const UPDATED: &str = "/var/lib/spamassassin";
const OWN: &str = "/etc/spamassassin";

/// Reads the definitions of all rules. If a rule is defined twice, the later definition counts, as in SpamAssassin.
fn read_definitions(host: &dyn Host) -> Result<BTreeMap<String, Definition>, HostError> {
    let mut known = BTreeMap::new();
    let updated = list_channels(host);
    let brought = match updated.is_empty() {
        true => vec![PathBuf::from(SHIPPED)],
        false => updated,
    };
    for dir in brought.iter().map(PathBuf::as_path).chain([Path::new(OWN)]) {
        let Ok(mut names) = host.list(dir) else {
            continue;
        };
        names.sort();
        for path in names.iter().map(|name| dir.join(name)) {
            if path.extension().is_some_and(|ending| ending == "cf") {
                add_definitions(&host.read_text(&path)?, &path, &mut known);
            }
        }
    }
    Ok(known)
}

/// Lists the directories of the update channels, for the newest version that `sa-update` downloaded.
fn list_channels(host: &dyn Host) -> Vec<PathBuf> {
    let is_version = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let names = host.list(Path::new(UPDATED)).unwrap_or_default();
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    let Some(newest) = names.filter(|name| is_version(name)).max() else {
        return Vec::new();
    };
    let dir = Path::new(UPDATED).join(newest);
    let channels = host.list(&dir).unwrap_or_default();
    let channels = channels.into_iter().map(|name| dir.join(name));
    channels
        .filter(|path| {
            path.extension()
                .is_none_or(|ending| ending != "cf" && ending != "pre")
        })
        .collect()
}

/// Configuration keywords that define a rule (Mail::SpamAssassin::Conf, and plugins of SpamAssassin 4.0).
const KINDS: [&str; 15] = [
    "header",
    "body",
    "rawbody",
    "full",
    "uri",
    "meta",
    "mimeheader",
    "uri_detail",
    "askdns",
    "uridnsbl",
    "uridnssub",
    "urirhsbl",
    "urirhssub",
    "urinsrhsbl",
    "urinsrhssub",
];

fn add_definitions(text: &str, path: &Path, known: &mut BTreeMap<String, Definition>) {
    for (at, line) in text.lines().enumerate() {
        let Some((kind, rest)) = line.trim().split_once(char::is_whitespace) else {
            continue;
        };
        let (name, rest) = rest
            .trim_start()
            .split_once(char::is_whitespace)
            .unwrap_or((rest, ""));
        if kind == "describe" {
            known.entry(name.to_owned()).or_default().description = Some(rest.trim().to_owned());
        } else if KINDS.contains(&kind) {
            known.entry(name.to_owned()).or_default().place = Some((path.to_owned(), at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer() {
        let mail = b"From: a\r\nX-Spam-Assay-Score: 1001.9 5.0\r\nX-Spam-Assay-Rules: B=0.1,GTUBE=1000,A=-0.5,C=\r\n\
                     \r\n\
                     X-Spam-Assay-Score: 0 5\r\n";
        let verdict = parse_answer(mail).unwrap();
        assert!(verdict.is_spam());
        let names: Vec<&str> = verdict
            .rules
            .iter()
            .map(|rule| rule.name.as_str())
            .collect();
        assert_eq!(names, ["GTUBE", "B", "A"]);
        let none =
            parse_answer(b"X-Spam-Assay-Score: 0.0 5.0\nX-Spam-Assay-Rules: none\n\n").unwrap();
        assert!(!none.is_spam() && none.rules.is_empty());
        assert!(parse_answer(b"From: a\n\n").is_none());
    }

    #[test]
    fn the_last_definition_counts() {
        let mut known = BTreeMap::new();
        add_definitions(
            "header  A From =~ /x/\n describe A first\nscore A 1\n",
            Path::new("/1.cf"),
            &mut known,
        );
        add_definitions(
            "# header A\ndescribe\tA second one\nmeta B A\n",
            Path::new("/2.cf"),
            &mut known,
        );
        assert_eq!(known["A"].description.as_deref(), Some("second one"));
        assert_eq!(known["B"].place, Some((PathBuf::from("/2.cf"), 3)));
    }
}
