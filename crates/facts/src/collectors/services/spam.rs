//! Collects SpamAssassin settings in /etc/spamassassin that have no effect: scores of undefined rules, custom rules
//! that are disabled, block lists that were shut down, and plugins that are already loaded. `spamassassin --lint`
//! reports none of them (Conf/Parser.pm, `lint_check`: "not a lint warning any more").
//!
//! The patterns of rules reveal which mail is blocked. [`redact`] therefore keeps only the kind and name of a rule,
//! numbers, and words that a check uses.

use super::dnsbl;
use super::setting_lines::place;
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(crate) const DIR: &str = "/etc/spamassassin/";
/// Directory of the rules that the package contains.
pub(crate) const SHIPPED: &str = "/usr/share/spamassassin/";
/// Directory of the rules that sa-update(1p) downloads. It contains one directory per version.
pub(crate) const UPDATES: &str = "/var/lib/spamassassin/";

/// Package files in the configuration directory, which users normally do not edit (Debian 12 and 13).
const OF_PACKAGE: [&str; 1] = ["65_debian.cf"];

/// Plugins that a check uses. SpamAssassin 4.0.1 loads the first two in v310.pre and Check in v320.pre; OLEVBMacro is
/// commented out in v343.pre.
pub(crate) const PLUGINS: [&str; 4] = ["MIMEHeader", "ReplaceTags", "Check", "OLEVBMacro"];

/// Keywords that define a rule (Mail::SpamAssassin::Conf and the plugins of 4.0.1).
pub(crate) const KINDS: [&str; 15] = [
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

/// Replaces a pattern that detects ZIP archives only by their declared MIME type.
const BY_TYPE: &str = "zip-by-type";

/// A line that is relevant to a check.
enum Line<'a> {
    Plugin(&'a str),
    Defines {
        name: &'a str,
        rest: Vec<&'a str>,
    },
    Score {
        name: &'a str,
        numbers: Vec<&'a str>,
    },
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        let name = words.next()?;
        let rest: Vec<&str> = words.collect();
        match first {
            "loadplugin" => {
                let known = PLUGINS.into_iter().find(|plugin| {
                    name.strip_prefix("Mail::SpamAssassin::Plugin::") == Some(plugin)
                })?;
                Some(Self::Plugin(known))
            }
            "score" => {
                let numbers: Vec<&str> = rest
                    .into_iter()
                    .take_while(|word| !word.starts_with('#'))
                    .collect();
                let all = numbers.iter().all(|word| is_number(word));
                (is_name(name) && !numbers.is_empty() && all)
                    .then_some(Self::Score { name, numbers })
            }
            kind if KINDS.contains(&kind) && is_name(name) => Some(Self::Defines { name, rest }),
            _ => None,
        }
    }
}

fn is_name(name: &str) -> bool {
    let byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.len() <= 80 && name.bytes().all(byte)
}

/// Returns whether the word is a score: `1.5`, `-5`, or the relative form `(0.5)`, which is added to the previous
/// score.
fn is_number(word: &str) -> bool {
    let inner = word
        .strip_prefix('(')
        .and_then(|word| word.strip_suffix(')'));
    let digits = inner.unwrap_or(word).trim_start_matches(['-', '+']);
    !digits.is_empty()
        && digits.len() <= 12
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

pub(crate) fn collect(g: &mut Gather<'_>) {
    let mut own = Own::default();
    for name in g.list("spamassassin", DIR) {
        let name = lossy(&name);
        if !name.ends_with(".cf") {
            continue;
        }
        let path = format!("{DIR}{name}");
        let Some(text) = g.read("spamassassin", &path) else {
            continue;
        };
        match OF_PACKAGE.contains(&name.as_str()) {
            true => own.brought.extend(defined(&text)),
            false => own.file(g, &path, &text),
        }
    }
    if own.scores.is_empty() && own.rules.is_empty() {
        return;
    }
    let brought = list_shipped_rules(g);
    for (name, (score, at)) in &own.scores {
        let is_own = own.rules.contains_key(name);
        let mut note = |what: &str, value: serde_json::Value| {
            let fact = format!("spamassassin.score.{name}.{what}");
            g.facts.known(fact, value, FactKind::Configured, at.clone());
        };
        note("own", is_own.into());
        note("off", (*score == 0.0).into());
        if let Some(brought) = &brought {
            let known = is_own || brought.contains(name) || own.brought.contains(name);
            note("defined", known.into());
        }
        g.about(["spamassassin.score", name]);
    }
}

/// Scores and rules in the machine's own files, in contrast to the rules of packages.
#[derive(Default)]
struct Own {
    /// The score of each rule that applies (its last line), with its place.
    scores: BTreeMap<String, (f64, FactPlace)>,
    rules: BTreeMap<String, FactPlace>,
    /// Rules that are defined by files of the package in the same directory.
    brought: BTreeSet<String>,
}

impl Own {
    fn file(&mut self, g: &mut Gather<'_>, path: &str, text: &str) {
        for (number, line) in text.lines().enumerate() {
            let at = place(path, number, line);
            match Line::read(line) {
                Some(Line::Plugin(plugin)) => {
                    let key = number.to_string();
                    let fact = format!("spamassassin.plugin.{key}.loads");
                    g.facts.known(fact, plugin, FactKind::Configured, at);
                    g.about(["spamassassin.plugin", &key]);
                }
                Some(Line::Score { name, numbers }) => {
                    let number = |word: &&str| word.trim_matches(['(', ')']).parse::<f64>();
                    let values = numbers.iter().filter_map(|word| number(word).ok());
                    let most = values.map(f64::abs).fold(0.0, f64::max);
                    self.scores.insert(name.to_owned(), (most, at));
                }
                Some(Line::Defines { name, rest }) => {
                    let zones: Vec<&str> =
                        rest.iter().filter_map(|word| dnsbl::closed(word)).collect();
                    let fact = |what: &str| format!("spamassassin.rule.{name}.{what}");
                    if !zones.is_empty() {
                        let key = fact("closed_lists");
                        g.facts.known(key, zones, FactKind::Configured, at.clone());
                        g.about(["spamassassin.rule", name]);
                    }
                    if rest.contains(&BY_TYPE) {
                        let key = fact("zip_by_type");
                        g.facts.known(key, true, FactKind::Configured, at.clone());
                        g.about(["spamassassin.rule", name]);
                    }
                    self.rules.insert(name.to_owned(), at);
                }
                None => {}
            }
        }
    }
}

fn defined(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| match Line::read(line) {
        Some(Line::Defines { name, .. }) => Some(name.to_owned()),
        _ => None,
    })
}

/// Returns the names of all shipped rules; `None` if no rule directory exists, as in a partial copy of a file tree.
fn list_shipped_rules(g: &mut Gather<'_>) -> Option<BTreeSet<String>> {
    let mut dirs = vec![SHIPPED.trim_end_matches('/').to_owned()];
    for version in g.list("spamassassin.score", UPDATES.trim_end_matches('/')) {
        let channels = format!("{UPDATES}{}", lossy(&version));
        if !is_version(&lossy(&version)) {
            continue;
        }
        for channel in g.list("spamassassin.score", &channels) {
            let channel = lossy(&channel);
            if !channel.ends_with(".cf") && !channel.ends_with(".pre") {
                dirs.push(format!("{channels}/{channel}"));
            }
        }
    }
    let mut all = BTreeSet::new();
    let mut any = false;
    for dir in dirs {
        if !matches!(g.host.exists(Path::new(&dir)), Ok(true)) {
            continue;
        }
        for name in g.list("spamassassin.score", &dir) {
            let name = lossy(&name);
            if !name.ends_with(".cf") {
                continue;
            }
            if let Some(text) = g.read("spamassassin.score", &format!("{dir}/{name}")) {
                any = true;
                all.extend(defined(&text));
            }
        }
    }
    any.then_some(all)
}

/// Returns whether the name is a rule directory of sa-update, such as `4.000001`. The directory of its keys is next to
/// the rule directories and does not match.
fn is_version(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Returns whether a file contains rules.
pub(crate) fn may_be(path: &str) -> bool {
    let below = [DIR, SHIPPED, UPDATES]
        .iter()
        .any(|dir| path.starts_with(dir));
    below && path.ends_with(".cf")
}

/// Returns whether the names in a directory may be listed; the path ends with `/`.
pub(crate) fn may_be_listed(dir: &str) -> bool {
    [DIR, SHIPPED, UPDATES]
        .iter()
        .any(|known| dir.starts_with(known))
}

/// Redacts a line of a rule file.
pub(crate) fn redact(line: &str) -> String {
    match Line::read(line) {
        Some(Line::Plugin(plugin)) => format!("loadplugin Mail::SpamAssassin::Plugin::{plugin}"),
        Some(Line::Score { name, numbers }) => format!("score {name} {}", numbers.join(" ")),
        Some(Line::Defines { name, .. }) => {
            let mut words = line.split_whitespace();
            let kind = words.next().unwrap_or_default();
            let rest = words.skip(1).collect::<Vec<_>>().join(" ");
            let mut kept = format!("{kind} {name}");
            let mut zones: Vec<&str> = dnsbl::closed_in(&rest);
            zones.dedup();
            for zone in zones {
                kept = format!("{kept} {zone}");
            }
            let by_type = rest.starts_with("Content-Type ") && rest.contains("=~ /zip/");
            if by_type || rest.split(' ').any(|word| word == BY_TYPE) {
                kept = format!("{kept} {BY_TYPE}");
            }
            kept
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_kept_of_a_line() {
        for (line, kept) in [
            ("score  FOO 0 # off", "score FOO 0"),
            ("score FOO 1 2 -0.5 (1)", "score FOO 1 2 -0.5 (1)"),
            ("header BOSS From =~ /smith@corp/", "header BOSS"),
            (
                "header X_SORBS eval:check_rbl('s', 'dnsbl.sorbs.net.')",
                "header X_SORBS sorbs.net",
            ),
            (
                "mimeheader ZIP Content-Type =~ /zip/i",
                "mimeheader ZIP zip-by-type",
            ),
            (
                "loadplugin Mail::SpamAssassin::Plugin::Check",
                "loadplugin Mail::SpamAssassin::Plugin::Check",
            ),
            ("loadplugin Evil secret", ""),
            ("# score FOO 0", ""),
            ("describe FOO what the boss said", ""),
            ("score FOO secret", ""),
            ("trusted_networks 10.0.0.0/8", ""),
        ] {
            assert_eq!(redact(line), kept, "{line}");
        }
    }

    proptest! {
        #[test]
        fn what_was_cleaned_is_clean(
            kind in "(score|header|mimeheader|loadplugin|body|x)", rest in "[ -~]{0,60}",
        ) {
            let once = redact(&format!("{kind} {rest}"));
            prop_assert_eq!(redact(&once), once);
        }
    }
}
