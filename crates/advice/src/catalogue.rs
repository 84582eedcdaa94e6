//! The catalogue of advice: built-in pages, and pages that the user adds or replaces.

use crate::nearest_name;
use crate::page::{self, PageError};
use assay_host::{FileKind, Host, HostError};
use assay_model::advice::Advice;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Built-in pages, as (path below `advice/`, front matter as JSON, Markdown).
const BUILTIN: &[(&str, &str, &str)] = &include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Reasons why a catalogue cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// A page is invalid.
    #[error(transparent)]
    Page(#[from] PageError),
    /// Two pages have the same id.
    #[error("{path}: there is already a `{id}` in {other}: an id names one piece of advice")]
    Twice {
        /// Path of the second file.
        path: String,
        /// Id that both pages have.
        id: String,
        /// Path of the first file.
        other: String,
    },
    /// The user's directory, or a file in it, cannot be read.
    #[error("{}: {}; advice lies in DIR/DOMAIN/ID.md", path.display(), error.reason())]
    Read {
        /// Path of the directory or file.
        path: PathBuf,
        /// Reason why it cannot be read.
        #[source]
        error: HostError,
    },
}

/// Error for an id that no advice has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no advice `{id}`{hint}; `assay advice` lists all")]
pub struct UnknownAdvice {
    id: String,
    hint: String,
}

/// All pieces of advice by id.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Each piece of advice with its file.
    entries: BTreeMap<String, (String, Advice)>,
}

impl Catalogue {
    /// Returns the built-in catalogue. Its pages are not validated here, because a test validates them.
    ///
    /// # Errors
    /// A page lacks a field. A test verifies that this does not happen.
    pub fn builtin() -> Result<Self, CatalogueError> {
        let mut catalogue = Self::default();
        for (path, front, text) in BUILTIN {
            let path = format!("advice/{path}");
            let advice = page::read_builtin(&path, front, text)?;
            catalogue.insert(path, advice)?;
        }
        Ok(catalogue)
    }

    /// Adds the pages `DIR/DOMAIN/ID.md` of a user. A page with the id of a built-in page replaces the built-in page.
    ///
    /// # Errors
    /// The directory cannot be read, a page is invalid, or two of the user's pages have the same id.
    pub fn with_dir(mut self, host: &dyn Host, dir: &Path) -> Result<Self, CatalogueError> {
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |error| CatalogueError::Read { path, error }
        };
        let mut own = Self::default();
        for domain in host.list(dir).map_err(fault(dir))? {
            let domain = dir.join(domain);
            if host.stat(&domain).map_err(fault(&domain))?.kind != FileKind::Directory {
                continue;
            }
            for name in host.list(&domain).map_err(fault(&domain))? {
                let path = domain.join(name);
                if path.extension().is_some_and(|extension| extension == "md") {
                    let text = host.read_text(&path).map_err(fault(&path))?;
                    own.add(path.to_string_lossy().into_owned(), &text)?;
                }
            }
        }
        self.entries.extend(own.entries);
        Ok(self)
    }

    fn add(&mut self, path: String, text: &str) -> Result<(), CatalogueError> {
        let advice = page::parse(&path, text)?;
        self.insert(path, advice)
    }

    fn insert(&mut self, path: String, advice: Advice) -> Result<(), CatalogueError> {
        let id = advice.id.clone();
        match self.entries.get(&id) {
            Some((other, _)) => Err(CatalogueError::Twice {
                path,
                id,
                other: other.clone(),
            }),
            None => {
                self.entries.insert(id, (path, advice));
                Ok(())
            }
        }
    }

    /// Returns the page with this id.
    ///
    /// # Errors
    /// The id is unknown; the error contains the most similar id.
    pub fn get(&self, id: &str) -> Result<&Advice, UnknownAdvice> {
        let found = self.entries.get(id).map(|(_, advice)| advice);
        found.ok_or_else(|| UnknownAdvice {
            id: id.to_owned(),
            hint: nearest_name::hint(id, self.entries.keys().map(String::as_str)),
        })
    }

    /// Returns the path of the file of a page.
    #[must_use]
    pub fn file(&self, id: &str) -> Option<&str> {
        self.entries.get(id).map(|(path, _)| path.as_str())
    }

    /// Returns all pages, sorted by domain and id.
    #[must_use]
    pub fn all(&self) -> Vec<&Advice> {
        let mut all: Vec<&Advice> = self.entries.values().map(|(_, advice)| advice).collect();
        all.sort_by(|a, b| (&a.domain, &a.id).cmp(&(&b.domain, &b.id)));
        all
    }

    /// Finds the pages that contain all words of a query as whole words, in the text, the front matter or the synonyms.
    /// Returns the best match first. Words in the id and the synonyms count most, then words in the title and the
    /// statement.
    #[must_use]
    pub fn search(&self, words: &[String]) -> Vec<&Advice> {
        let words: Vec<String> = words.iter().flat_map(|text| split_words(text)).collect();
        let mut found: Vec<(u32, &Advice)> = self
            .all()
            .into_iter()
            .filter_map(|advice| Some((score(advice, &words)?, advice)))
            .collect();
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        found.into_iter().map(|(_, advice)| advice).collect()
    }
}

/// Splits a text into words in lower case.
fn split_words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Returns whether two words are the same, ignoring a plural s.
fn is_same_word(a: &str, b: &str) -> bool {
    a == b || a.strip_suffix('s') == Some(b) || b.strip_suffix('s') == Some(a)
}

/// Returns how well a page matches the words; higher is better. `None` if the page lacks one of the words.
fn score(advice: &Advice, words: &[String]) -> Option<u32> {
    let rest = [
        advice.domain.as_str(),
        &advice.page,
        &advice.predicts,
        &advice.source.who,
        &advice.source.claimed,
        &advice.risk.text,
        &advice.literature.text,
        &advice.literature.references.join(" "),
    ];
    let fields: [(u32, Vec<String>); 5] = [
        (8, split_words(&advice.id)),
        (8, split_words(&advice.synonyms.join(" "))),
        (5, split_words(&advice.title)),
        (3, split_words(&advice.statement)),
        (1, split_words(&rest.join(" "))),
    ];
    let mut sum = 0;
    for word in words {
        let holds = |all: &[String]| all.iter().any(|other| is_same_word(word, other));
        let found = fields.iter().filter(|(_, all)| holds(all));
        let weight: u32 = found.map(|(weight, _)| weight).sum();
        if weight == 0 {
            return None;
        }
        sum += weight;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::PAGE;
    use assay_host::LiveHost;

    #[allow(clippy::disallowed_methods, reason = "tests make the user's directory")]
    fn put(dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn every_builtin_page_is_valid_and_complete() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../advice");
        let read = Catalogue::default()
            .with_dir(&LiveHost, &directory)
            .unwrap();
        let builtin = Catalogue::builtin().unwrap();
        assert!(read.all().len() > 100);
        assert_eq!(read.all(), builtin.all());
    }

    #[test]
    fn a_user_adds_and_replaces() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "kernel/swappiness.md", PAGE);
        put(dir.path(), "images/qcow2-cluster-size.md", PAGE);
        put(dir.path(), "README.md", "not a page");
        put(dir.path(), "kernel/swappiness/fires/vm.json", "{}");
        let builtin = Catalogue::builtin().unwrap();
        let before = builtin.all().len();
        let catalogue = builtin.with_dir(&LiveHost, dir.path()).unwrap();
        assert_eq!(catalogue.all().len(), before + 1);
        assert_eq!(
            catalogue.get("qcow2-cluster-size").unwrap().title,
            "Swappiness"
        );
        assert!(
            catalogue
                .file("swappiness")
                .unwrap()
                .ends_with("kernel/swappiness.md")
        );
        insta::assert_snapshot!(catalogue.get("swapiness").unwrap_err(), @"there is no advice `swapiness`; did you mean `swappiness`?; `assay advice` lists all");
    }

    #[test]
    fn faults_of_a_directory_are_named() {
        let fails = |dir: &Path| {
            let error = Catalogue::default().with_dir(&LiveHost, dir).unwrap_err();
            assay_testing::normalize_output(error, &[(dir, "DIR")])
        };
        let dir = tempfile::tempdir().unwrap();
        insta::assert_snapshot!(fails(&dir.path().join("none")), @"DIR: no such file or directory; advice lies in DIR/DOMAIN/ID.md");
        put(dir.path(), "a/x.md", PAGE);
        put(dir.path(), "b/x.md", PAGE);
        insta::assert_snapshot!(fails(dir.path()), @"DIR/b/x.md: there is already a `x` in DIR/a/x.md: an id names one piece of advice");
        put(dir.path(), "b/x.md", "+++\n");
        insta::assert_snapshot!(fails(dir.path()), @"DIR/b/x.md:1: no second line `+++` ends the front matter");
    }

    #[test]
    fn words_are_searched_in_the_whole_page() {
        let catalogue = Catalogue::builtin().unwrap();
        let ids = |words: &str| -> Vec<&str> {
            let found = catalogue.search(&[words.to_owned()]);
            found.into_iter().map(|advice| advice.id.as_str()).collect()
        };
        assert_eq!(ids("CLUSTER qcow2")[0], "qcow2-cluster-size");
        assert!(ids("gethostbyaddr-that-is-nowhere").is_empty());
        // Words of blogs that the page itself need not contain.
        for (words, id) in [
            ("avahi", "ssh-mdns-before-dns"),
            ("slog", "zfs-log-alone"),
            ("retry", "postfix-queue-lifetime"),
            ("sparse", "zfs-thin-promised"),
            ("thin", "zfs-thin-promised"),
        ] {
            assert!(
                ids(words)[..3.min(ids(words).len())].contains(&id),
                "{words}: {:?}",
                ids(words)
            );
        }
    }
}
