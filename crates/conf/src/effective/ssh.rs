//! sshd and ssh: OpenSSH 9.2's `process_server_config_line_depth` (servconf.c) and
//! `process_config_line_depth` (readconf.c), with `strdelim` of misc.c for the criteria.
//!
//! An include inside a block stays inside it, and a block that begins in an included file ends with
//! that file. Includes that lead more than 16 files deep end the program. A pattern without a file is
//! none of its concern. It brings OpenBSD's glob(3) along, to which `[^a]` is `^` or `a`.

use super::builder::{Builder, Source};
use super::files::{Fault, Files};
use super::{Program, ScopeId, Trouble, glob, ssh_match};
use crate::lang::ssh::words;
use crate::text::lossy;
use crate::tree::{Block, Item};
use assay_model::change::ConfigLanguage as Language;
use std::path::{Path, PathBuf};

/// Relative patterns begin here, wherever the configuration lies (sshd_config(5), Include).
const BASE: &str = "/etc/ssh";
/// SERVCONF_MAX_DEPTH and READCONF_MAX_DEPTH.
const DEEPEST: usize = 16;

pub fn read(builder: &mut Builder<'_>, main: &Path) -> Result<(), Fault> {
    let source = builder.open(main)?;
    let mut reader = Reader { builder, main };
    reader.file(&source, ScopeId::ROOT, 0);
    Ok(())
}

struct Reader<'a, 'b> {
    builder: &'a mut Builder<'b>,
    main: &'a Path,
}

impl Reader<'_, '_> {
    fn file(&mut self, source: &Source, scope: ScopeId, depth: usize) {
        if let Some(root) = self.builder.parsed(Language::Ssh, scope, source) {
            self.items(source, &root, scope, depth);
        }
    }

    fn items(&mut self, source: &Source, block: &Block, scope: ScopeId, depth: usize) {
        for item in &block.items {
            if self.builder.stopped {
                return;
            }
            let place = source.place(item.span());
            match item {
                Item::Directive(directive) => {
                    let key = keyword(self.builder.out.program, &directive.key);
                    let words = match crate::lang::ssh::is_raw(&directive.key) {
                        true => vec![directive.value.clone()],
                        false => words(&directive.value),
                    };
                    let value = directive.value.clone();
                    self.builder.add_words(scope, key, value, words, place);
                }
                Item::Inclusion(inclusion) => {
                    for pattern in words(inclusion.pattern.as_bytes()) {
                        self.include(&lossy(&pattern), scope, &place, depth);
                    }
                }
                Item::Block(block) => {
                    let line = &source.text[block.span.start..block.open];
                    let head = ssh_match::head(&block.head, line);
                    let scope = self.builder.scope(scope, head, place);
                    self.items(source, block, scope, depth);
                }
            }
        }
    }

    fn include(&mut self, pattern: &str, scope: ScopeId, from: &super::Place, depth: usize) {
        let program = self.builder.out.program;
        let paths = match included(program, self.main, pattern, self.builder.files) {
            Ok(paths) => paths,
            Err(fault) => {
                let include = pattern.to_owned();
                let trouble = Trouble::Unread { include, fault };
                return self.builder.problem(scope, from.clone(), trouble);
            }
        };
        for path in paths {
            if depth >= DEEPEST {
                return self.builder.stop(scope, from);
            }
            if let Some(source) = self.builder.open_included(&path, scope, from) {
                self.file(&source, scope, depth + 1);
            }
        }
    }
}

pub fn included(
    program: Program,
    main: &Path,
    pattern: &str,
    files: &dyn Files,
) -> Result<Vec<PathBuf>, Fault> {
    // sshd leaves a `~` as it is, and finds nothing; ssh expands it for files of users.
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
                return Err(Fault::Unreadable(reason.to_owned()));
            };
            format!("{place}/{}", inside_home.unwrap_or(pattern))
        }
    };
    glob::expand(files, &pattern, glob::Style::OpenBsd)
}

/// The keyword in lower case, and the one name of those that have several.
pub fn keyword(program: Program, key: &str) -> String {
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

/// Whether several lines of a keyword add up; of all others the first counts.
pub fn adds_up(program: Program, key: &str) -> bool {
    const SERVER: [&str; 10] = [
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
    const CLIENT: [&str; 6] = [
        "certificatefile",
        "dynamicforward",
        "identityfile",
        "localforward",
        "remoteforward",
        "sendenv",
    ];
    match program {
        Program::Sshd => SERVER.contains(&key),
        _ => CLIENT.contains(&key),
    }
}
