//! Collects the certificates that programs are configured to use, the certificates of certbot, and the permissions of
//! private keys.
//!
//! A certificate contains host names. [`redact`] therefore reduces each certificate to one line with the properties
//! that checks need. The collector parses these lines, both on the machine and in a capture.

mod apache;
mod line;

pub(crate) use apache::{is_of_apache, of_apache};
pub(crate) use line::redact;

use crate::gather::{Gather, lossy};
use crate::harmless::{PATH_WITHHELD, is_path};
use assay_config::effective::{Effective, Program, Setting};
use assay_model::{FactKind, FactPlace, FactValue};
use jiff::Timestamp;
use line::{Line, Then};
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) const CERTBOT: &str = "/etc/letsencrypt/live";
pub(crate) const STAT: &str = "/proc/stat";
pub(crate) const UPTIME: &str = "/proc/uptime";

/// File name endings of certificates. Some of these files also contain the private key.
const ENDINGS: [&str; 4] = [".pem", ".crt", ".cer", ".cert"];

/// Keywords for the path of a certificate and the path of its key, for each program.
const NGINX: (&str, &str) = ("ssl_certificate", "ssl_certificate_key");
const POSTFIX: (&str, &str) = ("smtpd_tls_cert_file", "smtpd_tls_key_file");
/// Parameter for files that contain a key and its certificates. The parameter overrides the two keywords (postconf(5),
/// since 3.4).
pub(crate) const POSTFIX_CHAINS: &str = "smtpd_tls_chain_files";

/// Permission bits: other users may read a file (`OTHERS_READ`), other users may enter a directory (`OTHERS_ENTER`).
const OTHERS_READ: u32 = 0o004;
const OTHERS_ENTER: u32 = 0o001;

/// Reason why a file is not read: the capture does not contain the path of this file.
const WITHHELD: &str = "a file is named with blanks, quotes, variables or without its directory, which is not kept: look at \
    this line and at the file on the machine";

const DAY: i64 = 86_400;

/// For each file, the programs that use the file, each with the line that refers to it.
type Uses = BTreeMap<String, Vec<(&'static str, FactPlace)>>;

pub(crate) fn collect(g: &mut Gather<'_>) {
    let (mut certificates, mut keys) = (Uses::new(), Uses::new());
    let nginx = crate::collectors::nginx::FILE;
    let programs = [
        ("nginx", Program::Nginx, nginx, NGINX, "/etc/nginx"),
        (
            "postfix",
            Program::Postfix,
            super::postfix::MAIN,
            POSTFIX,
            "/etc/postfix",
        ),
    ];
    for (name, program, file, keywords, dir) in programs {
        if let Some(all) = g.configuration(name, program, file) {
            add_named_files(&all, keywords.0, name, dir, &mut certificates);
            add_named_files(&all, keywords.1, name, dir, &mut keys);
            if program == Program::Postfix {
                add_chains(&all, &mut certificates, &mut keys);
            }
        }
        note_hidden(g, name);
    }
    add_files_of_dovecot(g, &mut certificates, &mut keys);
    apache::apache(g, &mut certificates, &mut keys);
    // The directory contains a README beside the sites.
    for site in g.list("certificate", CERTBOT) {
        let dir = format!("{CERTBOT}/{}", lossy(&site));
        certificates
            .entry(format!("{dir}/fullchain.pem"))
            .or_default();
        keys.entry(format!("{dir}/privkey.pem")).or_default();
    }
    note_hidden(g, "certificate");
    let now = now(g);
    for (kind, all) in [("certificate", &mut certificates), ("key_file", &mut keys)] {
        for (_, place) in all.remove(PATH_WITHHELD).into_iter().flatten() {
            g.facts.unknown(kind, WITHHELD, FactKind::Configured, place);
        }
    }
    for (path, uses) in certificates {
        note_certificate(g, &path, &uses, now.as_ref());
    }
    for (path, uses) in keys {
        note_key(g, &path, &uses);
    }
}

/// Notes that certificates and keys are unknown if the configuration of the program `name` cannot be read, because this
/// configuration may refer to certificates.
fn note_hidden(g: &mut Gather<'_>, name: &str) {
    let Some(fact) = g.facts.map.get(name) else {
        return;
    };
    if let FactValue::Unknown(why) = &fact.value {
        let (why, place) = (why.clone(), fact.place.clone());
        for kind in ["certificate", "key_file"] {
            g.facts
                .unknown(kind, why.clone(), FactKind::Configured, place.clone());
        }
    }
}

/// Adds the files to which a keyword refers in any scope.
fn add_named_files(all: &Effective, keyword: &str, who: &'static str, dir: &str, uses: &mut Uses) {
    let said = all.settings().iter().filter(|said| said.key == keyword);
    for said in said {
        if let Some(path) = absolute_path(&said.word().unwrap_or_else(|| said.text()), dir) {
            note(uses, path, who, said);
        }
    }
}

fn note(uses: &mut Uses, path: String, who: &'static str, said: &Setting) {
    uses.entry(path)
        .or_default()
        .push((who, FactPlace::from(&said.place)));
}

/// Returns the absolute form of a path in a configuration; a relative path is below `dir`.
fn absolute_path(value: &str, dir: &str) -> Option<String> {
    let value = value.trim().trim_matches('"');
    let path = match value.starts_with('/') {
        true => value.to_owned(),
        false => format!("{dir}/{value}"),
    };
    match value == PATH_WITHHELD {
        true => Some(value.to_owned()),
        false => is_path(&path).then_some(path),
    }
}

/// Adds files that contain a key and its certificates.
fn add_chains(all: &Effective, certificates: &mut Uses, keys: &mut Uses) {
    let said = all.settings().iter();
    for said in said.filter(|said| said.key == POSTFIX_CHAINS) {
        for word in said.text().split([' ', ',', '\t', '\n', '\r']) {
            if let Some(path) = absolute_path(word, "/etc/postfix").filter(|_| !word.is_empty()) {
                note(certificates, path.clone(), "postfix", said);
                note(keys, path, "postfix", said);
            }
        }
    }
}

/// Adds the files of `ssl_cert = </path` of Dovecot 2.3 and of `ssl_server_cert_file = /path` of 2.4.
fn add_files_of_dovecot(g: &mut Gather<'_>, certificates: &mut Uses, keys: &mut Uses) {
    for line in super::dovecot::lines(g, "certificate") {
        let Some((is_key, path)) = super::dovecot::certificate(&line.text) else {
            continue;
        };
        let uses = if is_key {
            &mut *keys
        } else {
            &mut *certificates
        };
        uses.entry(path.to_owned())
            .or_default()
            .push(("dovecot", line.place.clone()));
    }
}

/// Returns the current time of the machine in seconds since 1970: boot time plus uptime. Fails for a plain copy of a
/// file tree, which contains neither.
pub(crate) fn now(g: &mut Gather<'_>) -> Result<i64, String> {
    let read = |path: &str| {
        let text = g.host.read_text(std::path::Path::new(path));
        text.map_err(|error| format!("the machine's time is not known: {}", error.reason()))
    };
    let (stat, uptime) = (read(STAT)?, read(UPTIME)?);
    let started = stat.lines().find_map(|line| line.strip_prefix("btime "));
    let since = uptime.split(['.', ' ']).next();
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<i64>().ok());
    match (number(started), number(since)) {
        (Some(started), Some(since)) => Ok(started.saturating_add(since)),
        _ => Err("the machine's time is not known".to_owned()),
    }
}

fn note_certificate(
    g: &mut Gather<'_>,
    path: &str,
    uses: &[(&'static str, FactPlace)],
    now: Result<&i64, &String>,
) {
    let subject = format!("certificate.{path}");
    // The key may precede its certificates.
    let Some(text) = g.read(&subject, path) else {
        g.about(["certificate", path]);
        return;
    };
    let all: Vec<Line<'_>> = text.lines().filter_map(Line::read).collect();
    let Some(own) = all.first() else {
        g.facts
            .unknown(&subject, "no certificate in it", FactKind::Runtime, path);
        g.about(["certificate", path]);
        return;
    };
    let mut known = |name: &str, value: Value| {
        let key = format!("{subject}.{name}");
        g.facts.known(key, value, FactKind::Runtime, path);
    };
    known("from", format_day(own.from).into());
    known("until", format_day(own.until).into());
    known("key", own.key.into());
    if own.key == "RSA" {
        known("rsa_bits", own.bits.into());
    }
    known("signature", own.signature.into());
    known("self_signed", own.self_signed.into());
    // The self-signature of a root certificate is not verified.
    let weak: Vec<Value> = all
        .iter()
        .filter(|one| !one.self_signed && is_weak(one.signature))
        .map(|one| one.signature.into())
        .collect();
    known("weak_signatures", weak.into());
    known("certificates", all.len().into());
    // Clients build the chain in the order of the file (RFC 5246, section 7.4.2); those of TLS 1.3
    // should accept any order (RFC 8446, section 4.4.2).
    let gap = all.iter().position(|one| one.then == Then::Gap);
    known("in_order", gap.is_none().into());
    let short = all.len() == 1 && !own.self_signed && own.issuer_elsewhere;
    known("issuer_missing", short.into());
    let lives = (own.until - own.from).div_euclid(DAY);
    known("lives_days", lives.into());
    let key = format!("{subject}.ends_in_days");
    match now {
        Ok(now) => {
            let left = own.until.saturating_sub(*now).div_euclid(DAY);
            g.facts.known(key, left, FactKind::Runtime, path);
        }
        Err(why) => g.facts.unknown(key, why, FactKind::Runtime, STAT),
    }
    for (who, place) in uses {
        let key = format!("{subject}.used_by");
        g.facts
            .known(key, *who, FactKind::Configured, place.clone());
    }
    g.about(["certificate", path]);
}

fn format_day(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(
        |_| seconds.to_string(),
        |time| time.strftime("%Y-%m-%d").to_string(),
    )
}

/// Notes `key_file.PATH`: whether other users may read the key.
fn note_key(g: &mut Gather<'_>, path: &str, uses: &[(&'static str, FactPlace)]) {
    let subject = format!("key_file.{path}");
    match g.host.exists(std::path::Path::new(path)) {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => {
            g.fault(&subject, &error, FactKind::Runtime, path);
            g.about(["key_file", path]);
            return;
        }
    }
    let argv = mode_of(path);
    let Some(output) = g.ask(&subject, &argv) else {
        g.about(["key_file", path]);
        return;
    };
    let text = output.text();
    let place = FactPlace::command(argv);
    match parse_permissions(&text) {
        Some(mode) => {
            let key = format!("{subject}.mode");
            let text = format!("{mode:04o}");
            g.facts.known(key, text, FactKind::Runtime, place.clone());
            let key = format!("{subject}.others_read");
            let reached = match mode & OTHERS_READ {
                0 => Ok(false),
                _ => way_is_open(g, path),
            };
            match reached {
                Ok(reached) => g.facts.known(key, reached, FactKind::Runtime, place),
                Err(why) => g.facts.unknown(key, why, FactKind::Runtime, place),
            }
        }
        None => g
            .facts
            .unknown(&subject, "no mode in the answer", FactKind::Runtime, place),
    }
    for (who, place) in uses {
        let key = format!("{subject}.used_by");
        g.facts
            .known(key, *who, FactKind::Configured, place.clone());
    }
    g.about(["key_file", path]);
}

/// Returns whether other users may enter every directory above the file. Symbolic links are resolved first, because
/// certbot links the key of a site.
fn way_is_open(g: &Gather<'_>, path: &str) -> Result<bool, String> {
    let real = g
        .host
        .realpath(std::path::Path::new(path))
        .map_err(|error| error.reason())?;
    for dir in real.ancestors().skip(1) {
        let dir = dir.to_string_lossy();
        let argv = mode_of(&dir);
        let output = g.try_ask(&argv).map_err(|error| {
            format!(
                "who may enter {dir} is not known: {}",
                why_mode_unknown(&error)
            )
        })?;
        match parse_permissions(&output.text()) {
            Some(mode) if mode & OTHERS_ENTER == 0 => return Ok(false),
            Some(_) => {}
            None => return Err(format!("who may enter {dir} is not known")),
        }
    }
    Ok(true)
}

/// Parses permission bits as printed by stat(1).
fn parse_permissions(text: &str) -> Option<u32> {
    let mode = u32::from_str_radix(text.trim(), 8).ok()?;
    Some(mode & 0o7777)
}

/// Returns the command that prints the owner and permissions of a file or directory, following
/// links.
pub(crate) fn mode_of(path: &str) -> [&str; 5] {
    ["stat", "--dereference", "--format=%a", "--", path]
}

/// Returns the reason why the owner or mode of a file is unknown. Copied files do not preserve owner and mode.
pub(crate) fn why_mode_unknown(error: &assay_host::HostError) -> String {
    match error {
        assay_host::HostError::NoCommand { .. } => {
            "copies of files do not tell; look on the machine itself".to_owned()
        }
        error => error.reason(),
    }
}

/// Returns whether the command is [`mode_of`] with some path.
pub(crate) fn is_mode_of(argv: &[&str]) -> bool {
    argv.last().is_some_and(|path| argv == mode_of(path))
}

/// Returns whether the signature uses a hash with known collisions.
fn is_weak(signature: &str) -> bool {
    let name = signature.to_ascii_lowercase();
    ["md2", "md5", "sha1"]
        .iter()
        .any(|hash| name.contains(hash))
}

/// Returns whether a file may contain certificates, according to its name.
pub(crate) fn may_be(path: &str) -> bool {
    ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// Redacts /proc/stat: keeps the boot time.
pub(crate) fn redact_stat(line: &str) -> String {
    let started = line
        .strip_prefix("btime ")
        .is_some_and(|number| number.parse::<i64>().is_ok());
    if started { line } else { "" }.to_owned()
}
