//! Records facts and findings of a machine in the store when they change.

use crate::context;
use crate::global::Global;
use assay_fleet::collect_seen;
use assay_model::Facts;
use assay_model::finding::Checked;
use assay_render::text::escape_line;
use assay_store::{SpanSurvey, Store};
use jiff::Timestamp;

/// How the survey was made. If a method cannot collect a fact, the fact does not count as removed.
#[derive(Clone, Copy)]
pub enum SurveyMethod {
    /// By the shell collector of this version, over ssh.
    Collector,
    /// By this program on the machine itself.
    Here,
}

/// A survey of the facts and findings of one machine.
pub struct Followed<'a> {
    /// Name of the surveyed machine.
    pub host: &'a str,
    /// Time when the survey was made.
    pub at: Timestamp,
    /// How the survey was made.
    pub way: SurveyMethod,
    /// Facts of the survey.
    pub facts: &'a Facts,
    /// Findings of the whole catalogue, including accepted ones.
    pub checked: &'a Checked,
}

/// Records surveys in the store. A failure is printed, but the verb does not fail, because its own result is complete.
pub fn follow<'a>(global: &Global, all: impl Iterator<Item = Followed<'a>>) {
    let all: Vec<Followed<'a>> = all.collect();
    if all.is_empty() {
        return;
    }
    match context::open_store(global) {
        Ok(mut store) => all.iter().for_each(|one| said(keep(&mut store, one))),
        Err(error) => said(Err(error)),
    }
}

/// Records a survey if a store exists. Never creates a store.
pub fn follow_if_kept(global: &Global, one: &Followed<'_>) {
    said(
        context::existing_store(global).and_then(|store| match store {
            Some(mut store) => keep(&mut store, one),
            None => Ok(()),
        }),
    );
}

fn said(kept: anyhow::Result<()>) {
    if let Err(error) = kept {
        eprintln!("note: since when it is so was not written down: {error:#}");
    }
}

fn keep(store: &mut Store, one: &Followed<'_>) -> anyhow::Result<()> {
    let way = match one.way {
        SurveyMethod::Collector => "collector",
        SurveyMethod::Here => "here",
    };
    let scope = format!("assay {} {way}", env!("CARGO_PKG_VERSION"));
    let (seen, lost) = collect_seen(one.facts, one.checked);
    let look = SpanSurvey {
        host: one.host,
        at: one.at,
        scope: &scope,
        seen,
        lost,
    };
    match store.look(&look) {
        Ok(_) => Ok(()),
        Err(error) => anyhow::bail!("{}: {error}", escape_line(one.host)),
    }
}
