//! sshd and ssh: follows `process_server_config_line_depth` (servconf.c) and `process_config_line_depth` (readconf.c)
//! of OpenSSH 9.2, with `strdelim` of misc.c for the criteria.
//! If an include is inside a block, its lines belong to this block. A block that begins in an included file ends with
//! that file. If includes are more than 16 files deep, the program exits. A pattern that matches no file is ignored.
//! OpenSSH contains OpenBSD's glob(3), in which `[^a]` matches `^` or `a`.

use super::builder::{Builder, SourceFile};
use super::files::{FileFault, Files};
use super::lookup::Rule;
use super::walk::ProgramRules;
use super::{Effective, Program, ScopeId, SettingPlace, Trouble, glob, ssh_match};
use crate::languages::ssh::{is_raw, split_words};
use crate::text::to_lossy_text;
use crate::tree::{Block, Directive, Inclusion};
use assay_model::change::ConfigLanguage as Language;
use std::path::{Path, PathBuf};

/// Directory for relative patterns, wherever the configuration file is (sshd_config(5), Include).
const BASE: &str = "/etc/ssh";
/// Maximum number of nested files: SERVCONF_MAX_DEPTH or READCONF_MAX_DEPTH, plus one for the main file.
const DEEPEST: usize = 16 + 1;

pub struct Ssh;

impl ProgramRules for Ssh {
    fn language(&self) -> Language {
        Language::Ssh
    }

    fn may_open(&self, _path: &Path, from: &[PathBuf]) -> bool {
        from.len() < DEEPEST
    }

    fn patterns(&self, said: &Inclusion) -> (Vec<String>, bool) {
        let patterns = split_words(said.pattern.as_bytes());
        (
            patterns
                .iter()
                .map(|pattern| to_lossy_text(pattern))
                .collect(),
            false,
        )
    }

    fn included(
        &self,
        builder: &Builder<'_>,
        pattern: &str,
        from: &[PathBuf],
    ) -> Result<Vec<PathBuf>, FileFault> {
        let main = from.first().map_or(Path::new(BASE), |main| main);
        included_files(builder.out.program, main, pattern, builder.files)
    }

    fn scope(
        &self,
        builder: &mut Builder<'_>,
        around: ScopeId,
        block: &Block,
        (source, place): (&SourceFile, SettingPlace),
    ) -> ScopeId {
        let line = &source.text[block.span.start..block.open];
        builder.scope(around, ssh_match::split_head(&block.head, line), place)
    }

    fn setting(
        &self,
        builder: &mut Builder<'_>,
        scope: ScopeId,
        said: &Directive,
        (_, place): (&SourceFile, SettingPlace),
    ) {
        let words = match is_raw(&said.key) {
            true => vec![said.value.clone()],
            false => split_words(&said.value),
        };
        let key = normalize_keyword(builder.out.program, &said.key);
        if is_global(builder.out.program, &key) && is_conditional(&builder.out, scope) {
            let keyword = key;
            return builder.problem(scope, place, Trouble::Refused { keyword });
        }
        builder.add_words(scope, key, said.value.clone(), words, place);
    }
}

/// Returns whether sshd accepts this keyword only outside of Match blocks: `SSHCFG_GLOBAL` in servconf.c of OpenSSH
/// 9.2. The list does not contain `Subsystem`, which 9.5 also accepts in Match blocks, nor keywords that only older
/// versions reject there.
#[must_use]
pub fn is_global(program: Program, key: &str) -> bool {
    program == Program::Sshd && GLOBAL.contains(&key)
}

/// Keywords for which [`is_global`] returns true.
pub const GLOBAL: [&str; 49] = [
    "addressfamily",
    "checkmail",
    "ciphers",
    "compression",
    "debianbanner",
    "fingerprinthash",
    "gssapicleanupcredentials",
    "gssapikexalgorithms",
    "gssapikeyexchange",
    "gssapistorecredentialsonrekey",
    "gssapistrictacceptorcheck",
    "hostcertificate",
    "hostkey",
    "hostkeyagent",
    "hostkeyalgorithms",
    "ignoreuserknownhosts",
    "kerberosorlocalpasswd",
    "kerberosticketcleanup",
    "kexalgorithms",
    "keyregenerationinterval",
    "listenaddress",
    "logingracetime",
    "macs",
    "maxstartups",
    "modulifile",
    "pamauthenticationviakbdint",
    "permituserenvironment",
    "persourcemaxstartups",
    "persourcenetblocksize",
    "pidfile",
    "port",
    "printlastlog",
    "printmotd",
    "protocol",
    "reversemappingcheck",
    "rhostsauthentication",
    "securitykeyprovider",
    "serverkeybits",
    "strictmodes",
    "syslogfacility",
    "tcpkeepalive",
    "usedns",
    "uselogin",
    "usepam",
    "useprivilegeseparation",
    "verifyreversemapping",
    "versionaddendum",
    "xauthlocation",
    "kerberosgetafstoken",
];

/// Returns whether a scope is a Match block that sshd skips while it starts. `Match all` in the main file ends such a
/// block: the lines after it are read as if they were outside of blocks (`match_cfg_line` and `SSHCFG_NEVERMATCH`).
fn is_conditional(all: &Effective, scope: ScopeId) -> bool {
    let path = all.path(scope);
    let always = |head: &[String]| matches!(head, [_, one] if one.eq_ignore_ascii_case("all"));
    !path.iter().all(|head| always(head))
}

pub fn included_files(
    program: Program,
    main: &Path,
    pattern: &str,
    files: &dyn Files,
) -> Result<Vec<PathBuf>, FileFault> {
    // sshd does not expand `~` and finds no file; ssh expands it in the users' files.
    let user = program == Program::Ssh && !main.starts_with(BASE);
    let dir = main.parent().filter(|dir| dir.ends_with(".ssh"));
    let pattern = match (pattern.strip_prefix("~/"), user) {
        _ if pattern.starts_with('/') => pattern.to_owned(),
        (None, false) if !pattern.starts_with('~') => format!("{BASE}/{pattern}"),
        (_, false) => return Ok(Vec::new()),
        (inside_home, true) => {
            let place = match inside_home {
                Some(_) => dir.and_then(Path::parent),
                None => dir.filter(|_| !pattern.starts_with('~')),
            };
            let Some(place) = place.and_then(Path::to_str) else {
                let reason = "whose home directory it means is not known";
                return Err(FileFault::Unreadable(reason.to_owned()));
            };
            format!("{place}/{}", inside_home.unwrap_or(pattern))
        }
    };
    glob::expand(files, &pattern, glob::Style::OpenBsd)
}

/// Returns the keyword in lower case. For a keyword with several names, always returns the same name.
pub fn normalize_keyword(program: Program, key: &str) -> String {
    let key = key.to_ascii_lowercase();
    let one = match (program, &key[..]) {
        (_, "challengeresponseauthentication" | "skeyauthentication") => {
            "kbdinteractiveauthentication"
        }
        (_, "dsaauthentication") => "pubkeyauthentication",
        (_, "hostbasedacceptedkeytypes" | "hostbasedkeytypes") => "hostbasedacceptedalgorithms",
        (_, "pubkeyacceptedkeytypes") => "pubkeyacceptedalgorithms",
        (_, "keepalive") => "tcpkeepalive",
        (Program::Sshd, "hostdsakey") => "hostkey",
        _ => return key,
    };
    one.to_owned()
}

/// Returns the rule that selects which of several lines of a keyword take effect. According to the manual, this is the
/// first line. In OpenSSH 9.2, a later line overwrites some keywords. Later versions fixed this: `PerSourceMaxStartups`
/// 9.5, `MaxStartups` and `PerSourceNetBlockSize` 10.1, `IPQoS` 10.3, `FingerprintHash` 10.4. `MaxStartups 5` keeps the
/// rate of an earlier line. `RekeyLimit` takes the size and the interval each from the first line that has one.
pub(super) fn rule(program: Program, key: &str) -> Rule {
    const SERVER_ALL: [&str; 10] = [
        "acceptenv",
        "allowgroups",
        "allowusers",
        "denygroups",
        "denyusers",
        "hostcertificate",
        "hostkey",
        "listenaddress",
        "port",
        "subsystem",
    ];
    const SERVER_LAST: [&str; 6] = [
        "authorizedprincipalscommand",
        "fingerprinthash",
        "ipqos",
        "persourcemaxstartups",
        "persourcenetblocksize",
        "streamlocalbindmask",
    ];
    const CLIENT_ALL: [&str; 6] = [
        "certificatefile",
        "dynamicforward",
        "identityfile",
        "localforward",
        "remoteforward",
        "sendenv",
    ];
    let (all, last) = match program {
        Program::Sshd => (&SERVER_ALL[..], &SERVER_LAST[..]),
        _ => (&CLIENT_ALL[..], &[EVERYWHERE][..]),
    };
    match key {
        _ if all.contains(&key) => Rule::All,
        _ if last.contains(&key) => Rule::Last,
        "unusedconnectiontimeout" => Rule::NoneOrFirst,
        "rekeylimit" => Rule::Halves,
        "maxstartups" => Rule::LastWithRate,
        _ => Rule::First,
    }
}

/// Returns whether only the first of several lines for a keyword in a block takes effect.
#[must_use]
pub fn first_counts(program: Program, key: &str) -> bool {
    rule(program, key) == Rule::First
}

/// Returns the keyword whose lines make sshd ignore later lines of `key`; empty if there is none. `parse_command` in
/// servconf.c of OpenSSH 9.2 tests `AuthorizedKeysCommand` where it should test the other keyword.
pub fn hidden_by(program: Program, key: &str) -> &'static str {
    match (program, key) {
        (Program::Sshd, "authorizedprincipalscommand") => "authorizedkeyscommand",
        _ => "",
    }
}

/// The keyword that ssh reads even from blocks that do not match (`oStreamLocalBindMask` of readconf.c).
pub const EVERYWHERE: &str = "streamlocalbindmask";
