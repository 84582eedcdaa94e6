//! Reads files that include each other. The lines are read in the order in which the program reads them.

use super::builder::{Builder, SourceFile};
use super::files::FileFault;
use super::{ScopeId, SettingPlace, Trouble};
use crate::tree::{Block, Directive, Inclusion, Item};
use assay_model::change::ConfigLanguage as Language;
use std::path::{Path, PathBuf};

/// Rules for reading a configuration that differ between the programs.
pub trait ProgramRules {
    /// Returns the language of all files.
    fn language(&self) -> Language;

    /// Returns whether the program opens an included file. `from` are the files that lead to it by includes, the main
    /// file first.
    fn may_open(&self, path: &Path, from: &[PathBuf]) -> bool;

    /// Returns the patterns of an include line, and whether each pattern must match a file.
    fn patterns(&self, said: &Inclusion) -> (Vec<String>, bool);

    /// Returns the files that a pattern matches, in reading order. The last file of `from` contains the pattern.
    fn included(
        &self,
        builder: &Builder<'_>,
        pattern: &str,
        from: &[PathBuf],
    ) -> Result<Vec<PathBuf>, FileFault>;

    /// Returns the scope for a block with this head.
    fn scope(
        &self,
        b: &mut Builder<'_>,
        around: ScopeId,
        block: &Block,
        (_, place): (&SourceFile, SettingPlace),
    ) -> ScopeId {
        b.scope(around, block.head.clone(), place)
    }

    /// Records the setting of a line in its scope.
    fn setting(
        &self,
        b: &mut Builder<'_>,
        scope: ScopeId,
        said: &Directive,
        at: (&SourceFile, SettingPlace),
    );
}

/// Reads a configuration from its main file.
pub fn walk(
    builder: &mut Builder<'_>,
    rules: &dyn ProgramRules,
    main: &Path,
) -> Result<(), FileFault> {
    let source = builder.open(main)?;
    let mut walk = Walk {
        builder,
        rules,
        open: vec![main.to_owned()],
    };
    walk.file(&source, ScopeId::ROOT);
    Ok(())
}

struct Walk<'a, 'b> {
    builder: &'a mut Builder<'b>,
    rules: &'a dyn ProgramRules,
    /// The files that are open now: the main file first, then the chain of included files.
    open: Vec<PathBuf>,
}

impl Walk<'_, '_> {
    fn file(&mut self, source: &SourceFile, scope: ScopeId) {
        let language = self.rules.language();
        if let Some(root) = self.builder.parsed(language, scope, source) {
            self.items(source, &root, scope);
        }
    }

    fn items(&mut self, source: &SourceFile, block: &Block, scope: ScopeId) {
        for item in &block.items {
            if self.builder.stopped {
                return;
            }
            let place = source.place(item.span());
            match item {
                Item::Directive(said) => {
                    self.rules
                        .setting(self.builder, scope, said, (source, place));
                }
                Item::Inclusion(said) => {
                    let (patterns, wanted) = self.rules.patterns(said);
                    for pattern in patterns {
                        self.include(&pattern, wanted, scope, &place);
                    }
                }
                Item::Block(block) => {
                    let at = (source, place);
                    let scope = self.rules.scope(self.builder, scope, block, at);
                    self.items(source, block, scope);
                }
            }
        }
    }

    fn include(&mut self, pattern: &str, wanted: bool, scope: ScopeId, from: &SettingPlace) {
        let include = pattern.to_owned();
        let trouble = match self.rules.included(self.builder, pattern, &self.open) {
            Ok(paths) if paths.is_empty() && wanted => Trouble::NoMatch { include },
            Ok(paths) => return self.included(paths, scope, from),
            Err(fault) => Trouble::Unread { include, fault },
        };
        self.builder.problem(scope, from.clone(), trouble);
    }

    fn included(&mut self, paths: Vec<PathBuf>, scope: ScopeId, from: &SettingPlace) {
        for path in paths {
            if !self.rules.may_open(&path, &self.open) {
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
