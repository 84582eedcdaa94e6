//! Dovecot 2.3: `src/config/config-parser.c` of 2.3.19.
//!
//! Blocks with a name are one with those of the same name, and so are `plugin` and `dict`; other blocks
//! without a name are each their own.
//! `protocol`, `local`, `remote` and `local_name` are filters: what stands in them wins over what
//! stands outside, whichever comes first. A `$name` as a word of a value without quotes is what the
//! setting, which belongs to no other block, says up to that line: its own name there or outside of
//! the filter, any other name in this filter alone. One that is not set stays as it is written, since
//! its default is Dovecot's. Dovecot 2.4 has another language; its files are
//! known by `dovecot_config_version` and told as a problem.

use super::builder::{Builder, Source};
use super::files::{Fault, Files};
use super::{Effective, Place, ScopeId, Trouble, glob};
use crate::lang::merges;
use crate::tree::{Block, Directive, Item};
use assay_model::change::ConfigLanguage as Language;
use std::path::{Path, PathBuf};

const FILTERS: [&str; 4] = ["protocol", "local", "remote", "local_name"];

pub fn read(builder: &mut Builder<'_>, main: &Path) -> Result<(), Fault> {
    let source = builder.open(main)?;
    let mut reader = Reader {
        builder,
        open: vec![main.to_owned()],
    };
    reader.file(&source, ScopeId::ROOT);
    Ok(())
}

struct Reader<'a, 'b> {
    builder: &'a mut Builder<'b>,
    /// The files that include each other at this moment.
    open: Vec<PathBuf>,
}

impl Reader<'_, '_> {
    fn file(&mut self, source: &Source, scope: ScopeId) {
        if let Some(root) = self.builder.parsed(Language::Dovecot, scope, source) {
            self.items(source, &root, scope);
        }
    }

    fn items(&mut self, source: &Source, block: &Block, scope: ScopeId) {
        for item in &block.items {
            if self.builder.stopped {
                return;
            }
            let place = source.place(item.span());
            match item {
                Item::Directive(directive) => self.directive(source, directive, scope, place),
                Item::Inclusion(inclusion) => {
                    let wanted = inclusion.key == "!include";
                    self.include(&inclusion.pattern, wanted, &source.path, scope, &place);
                }
                Item::Block(block) => {
                    let head = block.head.clone();
                    let scope = match merges(Language::Dovecot, &head) {
                        false => self.builder.scope(scope, head, place),
                        true => self.builder.same_scope(scope, head, place),
                    };
                    self.items(source, block, scope);
                }
            }
        }
    }

    fn directive(&mut self, source: &Source, said: &Directive, scope: ScopeId, place: Place) {
        if said.key == "dovecot_config_version" {
            let what = "this is a configuration of Dovecot 2.4, whose language is not understood";
            let trouble = Trouble::Unknown(what.to_owned());
            self.builder.problem(ScopeId::ROOT, place.clone(), trouble);
        }
        let written = source.text.get(said.value_span.start);
        let quoted = matches!(written, Some(b'"' | b'\''));
        let file = said.quote.is_none() && said.value.starts_with(b"<");
        let value = match !quoted && !file && said.value.contains(&b'$') {
            true => self.expanded(&said.key, &said.value, scope),
            false => said.value.clone(),
        };
        self.builder.add(scope, said.key.clone(), value, place);
    }

    /// `config_write_keyvariable`: words that begin with `$`.
    fn expanded(&self, key: &str, value: &[u8], scope: ScopeId) -> Vec<u8> {
        let so_far = &self.builder.out;
        let mut filter = scope;
        while let (Some(parent), false) = (
            so_far.scope(filter).parent,
            is_filter(&so_far.scope(filter).head),
        ) {
            filter = parent;
        }
        let known = |name: &str| {
            let known = so_far.value(filter, name)?;
            (name == key || known.scope == filter).then_some(&known.value)
        };
        let words = value.split(|byte| matches!(byte, b' ' | b'\t'));
        let mut out = Vec::new();
        for word in words.filter(|word| !word.is_empty()) {
            if !out.is_empty() {
                out.push(b' ');
            }
            let name = word.strip_prefix(b"$");
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            out.extend(name.and_then(known).map_or(word, |known| &known[..]));
        }
        out
    }

    fn include(
        &mut self,
        pattern: &str,
        wanted: bool,
        including: &Path,
        scope: ScopeId,
        from: &Place,
    ) {
        let include = pattern.to_owned();
        let paths = match included(including, pattern, self.builder.files) {
            Ok(paths) => paths,
            Err(fault) => {
                let trouble = Trouble::Unread { include, fault };
                return self.builder.problem(scope, from.clone(), trouble);
            }
        };
        if paths.is_empty() && wanted {
            let trouble = Trouble::NoMatch { include };
            return self.builder.problem(scope, from.clone(), trouble);
        }
        for path in paths {
            if self.open.contains(&path) {
                return self.builder.stop(scope, from);
            }
            if let Some(source) = self.builder.open_included(&path, scope, from) {
                self.open.push(path);
                self.file(&source, scope);
                self.open.pop();
            }
        }
    }
}

pub fn included(including: &Path, pattern: &str, files: &dyn Files) -> Result<Vec<PathBuf>, Fault> {
    let dir = including.parent().unwrap_or(Path::new("/"));
    match dir.join(pattern).to_str() {
        Some(pattern) => glob::expand(files, pattern, glob::Style::Braces),
        None => Err(Fault::Unreadable("its directory is not UTF-8".to_owned())),
    }
}

/// A scope, then the same one with one filter less after the other, the innermost first.
pub fn chain(all: &Effective, scope: ScopeId) -> Vec<ScopeId> {
    let path: Vec<&[String]> = all.path(scope);
    let mut chain = vec![scope];
    let mut rest: Vec<&[String]> = path.clone();
    while let Some(at) = rest.iter().rposition(|head| is_filter(head)) {
        rest.remove(at);
        // A block without a name is nobody else's, so it is none of those outside.
        if rest.iter().any(|head| !merges(Language::Dovecot, head)) {
            break;
        }
        chain.extend(descend(all, &rest));
    }
    chain
}

fn is_filter(head: &[String]) -> bool {
    head.first()
        .is_some_and(|name| FILTERS.contains(&&name[..]))
}

fn descend(all: &Effective, path: &[&[String]]) -> Option<ScopeId> {
    let mut at = ScopeId::ROOT;
    for head in path {
        let mut scopes = all.scopes();
        at = scopes
            .find(|(_, scope)| scope.parent == Some(at) && scope.head == *head)?
            .0;
    }
    Some(at)
}
