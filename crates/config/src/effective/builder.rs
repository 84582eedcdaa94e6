//! Collects scopes, settings and problems while files are read.

use super::files::{FileFault, Files};
use super::{ConfigProblem, Effective, Program, Scope, ScopeId, Setting, SettingPlace, Trouble};
use crate::languages::parse;
use crate::tree::Block;
use assay_model::Span;
use assay_model::change::ConfigLanguage as Language;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Maximum number of included files. Without this limit, a configuration whose includes double at each level would be
/// read for hours.
const MOST_FILES: usize = 4096;
/// Maximum number of bytes of all files together. The parsed form of a setting takes many times the bytes of its text.
const MOST_BYTES: usize = 16 << 20;

/// Maximum length of a path in bytes (PATH_MAX, path_resolution(7)). The kernel rejects longer paths. This limit also
/// ends a chain of includes that goes one directory deeper each time.
const LONGEST_PATH: usize = 4096;

/// A file that was read, with its text.
pub struct SourceFile {
    pub path: PathBuf,
    pub text: Vec<u8>,
    /// Offsets at which the lines begin. With them, the line of a setting is found quickly.
    starts: Vec<usize>,
}

impl SourceFile {
    pub fn new(path: &Path, text: Vec<u8>) -> Self {
        let newlines = text.iter().enumerate().filter(|&(_, &byte)| byte == b'\n');
        Self {
            path: path.to_owned(),
            starts: std::iter::once(0)
                .chain(newlines.map(|(at, _)| at + 1))
                .collect(),
            text,
        }
    }

    pub fn place(&self, span: &Range<usize>) -> SettingPlace {
        let line = self.starts.partition_point(|&start| start <= span.start);
        let start = self.starts[line.saturating_sub(1)];
        let rest = self.text.get(span.clone()).unwrap_or_default();
        let length = rest.iter().position(|&byte| byte == b'\n');
        SettingPlace {
            path: self.path.clone(),
            line,
            within: Span {
                column: span.start - start + 1,
                length: length.unwrap_or(rest.len()),
            },
            span: span.clone(),
        }
    }
}

pub struct Builder<'a> {
    pub files: &'a dyn Files,
    pub out: Effective,
    /// Whether reading has stopped, because the program would have rejected the configuration.
    pub stopped: bool,
    /// Number of bytes of all files read so far.
    read: usize,
}

impl<'a> Builder<'a> {
    pub fn new(program: Program, main: &Path, files: &'a dyn Files) -> Self {
        let root = Scope {
            parent: None,
            head: Vec::new(),
            place: SourceFile::new(main, Vec::new()).place(&(0..0)),
        };
        let out = Effective {
            program,
            scopes: vec![root],
            settings: Vec::new(),
            by_key: HashMap::new(),
            inner: HashMap::new(),
            problems: Vec::new(),
            files: Vec::new(),
        };
        Self {
            files,
            out,
            stopped: false,
            read: 0,
        }
    }

    pub fn done(self) -> Effective {
        self.out
    }

    /// Reads a file, and adds it to the list of files that were read.
    pub fn open(&mut self, path: &Path) -> Result<SourceFile, FileFault> {
        let text = self.files.read(path)?;
        self.out.files.push(path.to_owned());
        self.read = self.read.saturating_add(text.len());
        Ok(SourceFile::new(path, text))
    }

    /// Returns how many more bytes may be read, or produced by expanding values. The limit is needed because a value
    /// that contains its own name twice doubles with each line.
    pub fn room(&self) -> usize {
        MOST_BYTES.saturating_sub(self.read)
    }

    /// Subtracts the length of an expanded value from the result of `Self::room`.
    pub fn take(&mut self, bytes: usize) {
        self.read = self.read.saturating_add(bytes);
    }

    /// Reads an included file. If this fails, records a problem and returns `None`.
    pub fn open_included(
        &mut self,
        path: &Path,
        scope: ScopeId,
        from: &SettingPlace,
    ) -> Option<SourceFile> {
        if self.stopped {
            return None;
        }
        if self.out.files.len() >= MOST_FILES || self.read >= MOST_BYTES {
            self.stop(scope, from);
            return None;
        }
        let found = match path.as_os_str().len() < LONGEST_PATH {
            true => self.open(path),
            false => Err(FileFault::Unreadable(
                "no path is as long as that".to_owned(),
            )),
        };
        match found {
            Ok(source) => Some(source),
            Err(fault) => {
                let include = path.display().to_string();
                self.problem(scope, from.clone(), Trouble::Unread { include, fault });
                None
            }
        }
    }

    /// Stops reading, and records the problem that the includes do not end.
    pub fn stop(&mut self, scope: ScopeId, from: &SettingPlace) {
        self.stopped = true;
        self.problem(scope, from.clone(), Trouble::Endless);
    }

    /// Parses a file. Records a problem if the text is not of the language.
    pub fn parsed(
        &mut self,
        language: Language,
        scope: ScopeId,
        source: &SourceFile,
    ) -> Option<Block> {
        match parse(language, &source.text) {
            Ok(block) => Some(block),
            Err(error) => {
                let mut place = source.place(&(0..0));
                if let crate::ConfError::Syntax { line, .. } = &error {
                    let start = source.starts.get(*line - 1).copied().unwrap_or_default();
                    place = source.place(&(start..start));
                }
                self.problem(scope, place, Trouble::Syntax(error));
                None
            }
        }
    }

    pub fn problem(&mut self, scope: ScopeId, place: SettingPlace, trouble: Trouble) {
        self.out.problems.push(ConfigProblem {
            place,
            scope,
            trouble,
            before: self.out.settings.len(),
        });
    }

    /// Drops all settings, scopes and problems, because the program reads another file instead. Keeps the list of files
    /// and the number of bytes read.
    pub fn forget(&mut self) {
        let out = &mut self.out;
        out.scopes.truncate(1);
        out.settings.clear();
        out.by_key.clear();
        out.inner.clear();
        out.problems.clear();
    }

    /// Adds a new scope inside the scope `parent`.
    pub fn scope(&mut self, parent: ScopeId, head: Vec<String>, place: SettingPlace) -> ScopeId {
        let id = ScopeId(self.out.scopes.len());
        self.out.inner.entry((parent, head.clone())).or_insert(id);
        self.out.scopes.push(Scope {
            parent: Some(parent),
            head,
            place,
        });
        id
    }

    /// Returns the scope with this head in the parent scope. Adds the scope if it does not exist.
    pub fn same_scope(
        &mut self,
        parent: ScopeId,
        head: Vec<String>,
        place: SettingPlace,
    ) -> ScopeId {
        let known = self.out.inner.get(&(parent, head.clone())).copied();
        known.unwrap_or_else(|| self.scope(parent, head, place))
    }

    pub fn add(&mut self, scope: ScopeId, key: String, value: Vec<u8>, place: SettingPlace) {
        let words = vec![value.clone()];
        self.add_words(scope, key, value, words, place);
    }

    pub fn add_words(
        &mut self,
        scope: ScopeId,
        key: String,
        value: Vec<u8>,
        words: Vec<Vec<u8>>,
        place: SettingPlace,
    ) {
        let number = self.out.settings.len();
        // Most keys occur many times, so the key is copied only once.
        if !self.out.by_key.contains_key(&key) {
            self.out.by_key.insert(key.clone(), BTreeMap::new());
        }
        if let Some(scopes) = self.out.by_key.get_mut(&key) {
            scopes.entry(scope).or_default().push(number);
        }
        self.out.settings.push(Setting {
            scope,
            key,
            value,
            words,
            place,
        });
    }
}
