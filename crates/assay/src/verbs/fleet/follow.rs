//! What was seen of a machine, into the store: facts and findings, written when they change.

use crate::context;
use crate::global::Global;
use assay_fleet::collect_seen;
use assay_model::Facts;
use assay_model::finding::Checked;
use assay_render::text::escape_line;
use assay_store::{SpanLook, Store};
use jiff::Timestamp;

/// How a machine was looked at: what one way does not see is not gone because of it.
#[derive(Clone, Copy)]
pub enum Way {
    /// By the collector of this version.
    Collector,
    /// By this program on the machine itself.
    Here,
}

/// A machine and what was seen of it.
pub struct Followed<'a> {
    /// What it is called.
    pub host: &'a str,
    /// When.
    pub at: Timestamp,
    /// How.
    pub way: Way,
    /// What is true of it.
    pub facts: &'a Facts,
    /// What the whole catalogue finds, also what was accepted.
    pub checked: &'a Checked,
}

/// Keeps it. That it could not be kept is said and is no reason to fail: what was asked for is there.
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

/// The same where there is a store already: none is made by looking at a machine.
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
        Way::Collector => "collector",
        Way::Here => "here",
    };
    let scope = format!("assay {} {way}", env!("CARGO_PKG_VERSION"));
    let (seen, lost) = collect_seen(one.facts, one.checked);
    let look = SpanLook {
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
