//! Each sentence under "When it does not apply" must have a fixture under `quiet` or `not-applicable` whose ORIGIN
//! quotes the sentence. A list contains the number of sentences without a fixture. The numbers may only decrease.
#![allow(
    clippy::disallowed_methods,
    reason = "reads the catalogue's own directories"
)]

#[path = "exceptions/without_fixture.rs"]
mod without_fixture;

use assay_advice::Catalogue;
use assay_model::advice::Advice;
use std::collections::BTreeMap;
use std::path::Path;
use without_fixture::WITHOUT_FIXTURE;

const HEADING: &str = "## When it does not apply";
/// Prefix of the line in ORIGIN that quotes a sentence.
const EXCEPTION: &str = "exception: ";

/// Returns the sentences of the section "When it does not apply", one per line.
fn exceptions(page: &Advice) -> Vec<String> {
    let Some((_, section)) = page.page.split_once(HEADING) else {
        return Vec::new();
    };
    let section = section.split("\n## ").next().unwrap_or_default();
    let words: Vec<&str> = section.split_whitespace().collect();
    let mut sentences = vec![String::new()];
    for (at, word) in words.iter().enumerate() {
        let sentence = sentences.last_mut().unwrap();
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        let next = words.get(at + 1).and_then(|next| next.chars().next());
        let begins = next.is_some_and(|letter| letter.is_uppercase() || letter == '`');
        if word.ends_with('.') && begins {
            sentences.push(String::new());
        }
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Returns the sentences that the fixtures of a page quote.
fn shown(page: &Advice) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../advice");
    let own = root.join(&page.domain).join(&page.id);
    let mut shown = Vec::new();
    for case in ["quiet", "not-applicable"] {
        let entries = std::fs::read_dir(own.join(case)).into_iter().flatten();
        for entry in entries {
            let origin = entry.unwrap().path().join("ORIGIN");
            let text = std::fs::read_to_string(origin).unwrap_or_default();
            let said = text.lines().filter_map(|line| line.strip_prefix(EXCEPTION));
            shown.extend(said.map(str::to_owned));
        }
    }
    shown
}

#[test]
fn every_exception_has_a_fixture_or_is_on_the_list_that_shrinks() {
    let catalogue = Catalogue::builtin().unwrap();
    let listed: BTreeMap<&str, usize> = WITHOUT_FIXTURE.iter().copied().collect();
    assert_eq!(listed.len(), WITHOUT_FIXTURE.len(), "a page stands twice");
    let mut wrong = Vec::new();
    let mut pages = catalogue.all();
    pages.retain(|page| page.check.is_some());
    for page in &pages {
        let (sentences, shown) = (exceptions(page), shown(page));
        for text in &shown {
            if !sentences.iter().any(|one| one.starts_with(&**text)) {
                wrong.push(format!("{}: no sentence begins with {text:?}", page.id));
            }
        }
        let is_shown = |one: &&String| shown.iter().any(|text| one.starts_with(&**text));
        let missing: Vec<&String> = sentences.iter().filter(|one| !is_shown(one)).collect();
        let most = listed.get(&*page.id).copied().unwrap_or(0);
        if missing.len() != most {
            wrong.push(format!(
                "(\"{}\", {}): listed {most}: {missing:#?}",
                page.id,
                missing.len()
            ));
        }
    }
    for page in listed.keys() {
        if !pages.iter().any(|known| known.id == *page) {
            wrong.push(format!("{page}: no such page"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
