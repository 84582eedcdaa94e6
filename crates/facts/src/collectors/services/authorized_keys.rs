//! Collects the keys and certificate authorities that may log in. Reads the files of sshd's AuthorizedKeysFile of every
//! account (sshd(8), AUTHORIZED_KEYS FILE FORMAT).
//!
//! [`redact`] reduces each line to the type and size of a key and the names of its options; the collector parses the
//! reduced lines. These files are read only when assay runs on the machine itself, because captures and bundles must
//! not contain account names.

use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Effective, Program, ScopeId, read_effective};
use assay_host::Host;
use assay_model::{FactKind, FactPlace};
use base64::Engine as _;
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) const PASSWD: &str = "/etc/passwd";

/// Default paths of the files (sshd_config(5), AuthorizedKeysFile).
const DEFAULT: [&str; 2] = [".ssh/authorized_keys", ".ssh/authorized_keys2"];

/// Maximum number of files that are read. On a machine with more accounts, the accounts usually come from a directory
/// service.
const MOST: usize = 4096;

/// Types of keys (sshd(8)); certificates do not occur in these files.
const TYPES: [&str; 8] = [
    "ssh-rsa",
    "ssh-dss",
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// Options whose names are kept.
const OPTIONS: [&str; 20] = [
    "agent-forwarding",
    "cert-authority",
    "command",
    "environment",
    "from",
    "no-agent-forwarding",
    "no-port-forwarding",
    "no-pty",
    "no-touch-required",
    "no-user-rc",
    "no-x11-forwarding",
    "permitlisten",
    "permitopen",
    "port-forwarding",
    "principals",
    "pty",
    "restrict",
    "tunnel",
    "verify-required",
    "x11-forwarding",
];

/// The option that contains an expiry date. The date is kept as well.
const EXPIRY: &str = "expiry-time";

/// First word of a redacted line that contains a key.
const CLEAN: &str = "key";

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(sshd) = g.configuration("sshd", Program::Sshd, super::ssh::SERVER) else {
        return;
    };
    let Some(accounts) = g.read("authorized_keys", PASSWD) else {
        return;
    };
    let authority = sshd.settings().iter().any(|said| {
        let value = said.word().unwrap_or_default();
        said.key == "trustedusercakeys" && !value.eq_ignore_ascii_case("none")
    });
    let strict = sshd.value(ScopeId::ROOT, "strictmodes");
    let strict = strict.and_then(|said| said.word());
    let strict = !strict.is_some_and(|word| word.eq_ignore_ascii_case("no"));
    visit_files(&sshd, &accounts, |account, path| {
        note_file(g, account, &path, authority, strict);
    });
}

/// A file in which sshd searches the keys of an account.
pub(crate) struct OfAccount {
    pub(crate) path: String,
    pub(crate) user: String,
    pub(crate) uid: u32,
    pub(crate) home: String,
}

/// Returns the paths of the files that [`collect`] reads, including paths of missing files.
pub(crate) fn files(host: &dyn Host) -> Vec<OfAccount> {
    let sshd = read_effective(Program::Sshd, Path::new(super::ssh::SERVER), &OfHost(host));
    let (Ok(sshd), Ok(accounts)) = (sshd, host.read_text(Path::new(PASSWD))) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    visit_files(&sshd, &accounts, |account, path| {
        if let Ok(uid) = account.uid.parse() {
            all.push(OfAccount {
                path,
                user: account.name.to_owned(),
                uid,
                home: account.home.to_owned(),
            });
        }
    });
    all
}

/// Calls `take` once for each file, with the first account that uses the file.
fn visit_files(sshd: &Effective, accounts: &str, mut take: impl FnMut(&Account<'_>, String)) {
    let patterns = list_patterns(sshd);
    let mut seen = BTreeSet::new();
    for account in accounts.lines().filter_map(Account::read) {
        for pattern in &patterns {
            let path = account.expand(pattern);
            if seen.len() < MOST && seen.insert(path.clone()) {
                take(&account, path);
            }
        }
    }
}

/// Returns the patterns of AuthorizedKeysFile in all scopes. All are needed, because it is unknown which accounts match
/// a Match block.
fn list_patterns(sshd: &Effective) -> BTreeSet<String> {
    let said = sshd.settings().iter();
    let said = said.filter(|said| said.key == "authorizedkeysfile");
    let mut all: BTreeSet<String> = said
        .clone()
        .flat_map(|said| &said.words)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    if !said.clone().any(|said| said.scope == ScopeId::ROOT) {
        all.extend(DEFAULT.map(str::to_owned));
    }
    all.retain(|pattern| !pattern.eq_ignore_ascii_case("none"));
    all
}

/// An account with its home directory (passwd(5)), whose keys are read.
struct Account<'a> {
    name: &'a str,
    uid: &'a str,
    home: &'a str,
}

impl<'a> Account<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, _, _, home, _] = fields.as_slice() else {
            return None;
        };
        (!name.is_empty() && home.starts_with('/')).then_some(Self { name, uid, home })
    }

    /// Expands the TOKENS of sshd_config(5); relative paths are below the home directory.
    fn expand(&self, pattern: &str) -> String {
        let mut path = String::new();
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            match c {
                '%' => match rest.next() {
                    Some('u') => path.push_str(self.name),
                    Some('h') => path.push_str(self.home),
                    Some('U') => path.push_str(self.uid),
                    Some(other) => path.push(other),
                    None => {}
                },
                other => path.push(other),
            }
        }
        match path.starts_with('/') {
            true => path,
            false => format!("{}/{path}", self.home.trim_end_matches('/')),
        }
    }
}

fn note_file(g: &mut Gather<'_>, account: &Account<'_>, path: &str, authority: bool, strict: bool) {
    let key = format!("authorized_keys.{path}");
    let Some(text) = g.read(&key, path) else {
        return;
    };
    let keys: Vec<(usize, Key<'_>)> = text
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at + 1, Key::read(line)?)))
        .collect();
    let whole = FactPlace::from(path);
    let mut note = |name: &str, value: serde_json::Value| {
        let fact = format!("{key}.{name}");
        g.facts
            .known(fact, value, FactKind::Configured, whole.clone());
    };
    note("user", account.name.into());
    note("root", (account.uid == "0").into());
    note("keys", keys.len().into());
    // If an authority is trusted, a plain key without an expiry date bypasses it.
    let own = keys.iter().any(|(_, key)| key.authority());
    note("authority", (authority || own).into());
    note("strict_modes", strict.into());
    let lasting = keys
        .iter()
        .filter(|(_, key)| !key.authority() && key.expires().is_none());
    note("lasting", lasting.count().into());
    note_writable(g, &key, path, account.home);
    for (line, one) in &keys {
        let subject = format!("{key}.key.{line}");
        let place = FactPlace::File {
            path: path.to_owned(),
            line: Some(*line),
            span: None,
        };
        let mut note = |name: &str, value: serde_json::Value| {
            let fact = format!("{subject}.{name}");
            g.facts
                .known(fact, value, FactKind::Configured, place.clone());
        };
        note("type", one.kind.into());
        if let Some(bits) = one.bits {
            note("bits", bits.into());
        }
        note("authority", one.authority().into());
        note("principals", one.has("principals").into());
        note("from", one.has("from").into());
        note("expires", one.expires().unwrap_or("never").into());
        note("options", one.options.clone().into());
        let line = line.to_string();
        g.about(["authorized_keys", path, "key", &line]);
    }
    g.about(["authorized_keys", path]);
}

/// Notes whether other users may write to the file, or to a directory between the file and the home directory. sshd
/// ignores such a file if StrictModes is yes (sshd(8), FILES).
fn note_writable(g: &mut Gather<'_>, key: &str, path: &str, home: &str) {
    let fact = format!("{key}.others_write");
    let below = Path::new(path).starts_with(home);
    let ends = |dir: &Path| match below {
        true => dir == Path::new(home),
        false => dir == Path::new("/"),
    };
    let mut all = Vec::new();
    for dir in Path::new(path).ancestors() {
        all.push(dir.to_string_lossy().into_owned());
        if ends(dir) {
            break;
        }
    }
    let mut found = false;
    for one in &all {
        let argv = super::certificates::mode_of(one);
        let answer = g.try_ask(&argv);
        let mode = answer.as_ref().ok().and_then(|output| {
            let text = output.text();
            u32::from_str_radix(text.trim(), 8).ok()
        });
        match mode {
            // In a directory with the sticky bit, users cannot replace files of others.
            Some(mode) => found |= mode & 0o002 != 0 && mode & 0o1000 == 0,
            None => {
                let why = match answer {
                    Err(error) => super::certificates::why_mode_unknown(&error),
                    Ok(output) => output.complaint(),
                };
                let place = FactPlace::command(argv);
                let why = format!("who may write {one} is not known: {why}");
                return g.facts.unknown(fact, why, FactKind::Runtime, place);
            }
        }
    }
    g.facts
        .known(fact, found, FactKind::Runtime, FactPlace::from(path));
}

/// A key in the redacted form `key TYPE BITS OPTION…`. BITS is `-` if the type implies the size.
struct Key<'a> {
    kind: &'a str,
    bits: Option<u64>,
    options: Vec<&'a str>,
}

impl<'a> Key<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.split(' ');
        if words.next() != Some(CLEAN) {
            return None;
        }
        let kind = words.next().filter(|kind| TYPES.contains(kind))?;
        let bits = match words.next()? {
            "-" => None,
            bits => Some(bits.parse().ok().filter(|bits| *bits <= 1 << 20)?),
        };
        let options: Vec<&str> = words.collect();
        let known = |option: &&str| {
            OPTIONS.contains(option)
                || option
                    .strip_prefix(EXPIRY)
                    .and_then(|rest| rest.strip_prefix('='))
                    .is_some_and(is_time)
        };
        options.iter().all(known).then_some(Self {
            kind,
            bits,
            options,
        })
    }

    fn has(&self, option: &str) -> bool {
        self.options.contains(&option)
    }

    fn authority(&self) -> bool {
        self.has("cert-authority")
    }

    fn expires(&self) -> Option<&'a str> {
        let mut options = self.options.iter();
        options.find_map(|option| option.strip_prefix(EXPIRY)?.strip_prefix('='))
    }
}

/// Returns whether the text is `YYYYMMDD`, optionally with hours and minutes and with `Z` (sshd(8), expiry-time).
fn is_time(text: &str) -> bool {
    let digits = text.strip_suffix('Z').unwrap_or(text);
    matches!(digits.len(), 8 | 12 | 14) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a path may be an authorized_keys file, according to its name. A false positive reveals nothing,
/// because the redacted text is harmless for any file.
pub(crate) fn may_be(path: &str) -> bool {
    path.split('/')
        .any(|part| part.starts_with("authorized_keys"))
}

/// Redacts a line: keeps the type and size of the key, and the names of its options.
pub(crate) fn redact(line: &str) -> String {
    if Key::read(line).is_some() {
        return line.to_owned();
    }
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return String::new();
    }
    let (options, rest) = match TYPES.iter().any(|kind| split_first_word(line).0 == *kind) {
        true => ("", line),
        false => split_first_word(line),
    };
    let mut words = rest.split_whitespace();
    let Some(kind) = words.next().filter(|kind| TYPES.contains(kind)) else {
        return String::new();
    };
    let bits = match kind {
        "ssh-rsa" => rsa_bits(words.next().unwrap_or_default()),
        _ => None,
    };
    let bits = bits.map_or("-".to_owned(), |bits| bits.to_string());
    let mut out = format!("{CLEAN} {kind} {bits}");
    for option in split(options) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        // Names of options are case-insensitive (sshd(8)).
        let name = name.to_ascii_lowercase();
        let value = value.trim_matches('"');
        if OPTIONS.contains(&name.as_str()) {
            out.push(' ');
            out.push_str(&name);
        } else if name == EXPIRY && is_time(value) {
            out.push_str(&format!(" {EXPIRY}={value}"));
        }
    }
    out
}

/// Splits the line at the first blank outside of quotation marks.
fn split_first_word(line: &str) -> (&str, &str) {
    let at = positions_outside_quotes(line, |c| c == ' ' || c == '\t').next();
    at.map_or((line, ""), |at| (&line[..at], line[at..].trim_start()))
}

/// Splits a list of options at commas outside of quotation marks.
fn split(options: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut from = 0;
    for at in positions_outside_quotes(options, |c| c == ',') {
        all.push(&options[from..at]);
        from = at + 1;
    }
    all.push(&options[from..]);
    all
}

/// Returns the positions of all characters outside of quotation marks. `\"` does not end a quotation.
fn positions_outside_quotes(
    text: &str,
    wanted: impl Fn(char) -> bool,
) -> impl Iterator<Item = usize> {
    let (mut quoted, mut escaped) = (false, false);
    text.char_indices().filter_map(move |(at, c)| {
        let was_escaped = escaped;
        escaped = c == '\\' && !escaped;
        if c == '"' && !was_escaped {
            quoted = !quoted;
        }
        (!quoted && wanted(c)).then_some(at)
    })
}

/// Returns the length of an RSA modulus in bits, from the third field of the key (RFC 4253, section 6.6).
fn rsa_bits(key: &str) -> Option<u64> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(key).ok()?;
    let mut rest = &bytes[..];
    let mut field = || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (field, after) = after.split_at_checked(length)?;
        rest = after;
        Some(field)
    };
    let (_, _) = (field()?, field()?);
    let modulus = field()?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let digits = &modulus[zeros..];
    let top = u64::from(digits.first()?.leading_zeros());
    Some(digits.len() as u64 * 8 - top)
}

/// Redacts a line of passwd: keeps the name, number and home directory, with which the files are found.
pub(crate) fn redact_account(line: &str) -> String {
    let fields: Vec<&str> = line.split(':').collect();
    let plain = |text: &str, more: &[u8]| {
        let byte = |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
        !text.is_empty() && text.len() <= 256 && text.bytes().all(byte)
    };
    match fields.as_slice() {
        [name, _, uid, _, _, home, _]
            if plain(name, b"._-") && plain(uid, b"") && plain(home, b"/._-@+") =>
        {
            format!("{name}:x:{uid}:::{home}:")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Public key of `ssh-keygen -t rsa -b 2048` of OpenSSH 9.2. Its private key was not kept.
    const RSA: &str = include_str!("../../../fixtures/openssh-9.2p1-rsa-2048.pub");

    #[test]
    fn a_line_becomes_what_a_check_asks() {
        let blob = RSA.split_whitespace().nth(1).unwrap();
        for (line, clean) in [
            (RSA.trim().to_owned(), "key ssh-rsa 2048"),
            (format!("  ssh-rsa {blob} alice@box"), "key ssh-rsa 2048"),
            (
                format!("cert-authority,principals=\"a,b c\" ssh-rsa {blob} x"),
                "key ssh-rsa 2048 cert-authority principals",
            ),
            (
                format!(
                    "command=\"echo \\\"a b\\\" ssh-dss\",Expiry-Time=\"20270131Z\",from=\"*\" ssh-rsa {blob}"
                ),
                "key ssh-rsa 2048 command expiry-time=20270131Z from",
            ),
            ("ssh-ed25519 AAAA secret".to_owned(), "key ssh-ed25519 -"),
            ("ssh-dss AAAA".to_owned(), "key ssh-dss -"),
            ("ssh-rsa AAAA".to_owned(), "key ssh-rsa -"),
            ("# ssh-rsa AAAA".to_owned(), ""),
            ("something else".to_owned(), ""),
            ("".to_owned(), ""),
        ] {
            assert_eq!(redact(&line), clean, "{line}");
        }
    }

    #[test]
    fn tokens_are_filled_in() {
        let account = Account::read("bob:x:7:7:Bob:/home/bob:/bin/sh").unwrap();
        for (pattern, path) in [
            (".ssh/authorized_keys", "/home/bob/.ssh/authorized_keys"),
            (
                "/etc/ssh/authorized_keys/%u",
                "/etc/ssh/authorized_keys/bob",
            ),
            ("%h/%U%%", "/home/bob/7%"),
        ] {
            assert_eq!(account.expand(pattern), path);
        }
    }

    proptest! {
        #[test]
        fn what_was_cleaned_is_clean(line in ".{0,80}") {
            let once = redact(&line);
            prop_assert_eq!(redact(&once), once.clone());
            let account = redact_account(&line);
            prop_assert_eq!(redact_account(&account), account);
        }
    }
}
