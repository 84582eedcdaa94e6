//! The sections of a notebook about the candidates that were tried, and about those that were not tried and why.

use super::TuneView;
use super::notebook::{NotebookSection, format_gain, proof_of};
use assay_tune::{LeftOut, Proof, ProofEnd, Stage, TuneSession};

/// Writes the section on the candidates that were tried, with one row for each proof.
pub(super) fn write_tried_section(view: &TuneView<'_>) -> Option<NotebookSection> {
    let candidates = &view.record.plan.candidates;
    let row = |proof: &Proof| {
        let Stage::Proof { candidate, .. } = proof.stage else {
            return None;
        };
        let judged = view.session.judge(proof);
        Some(vec![
            candidates[candidate].id.clone(),
            describe_end(view.session, proof),
            format_gain(judged.ratio, judged.interval),
            judged.pairs.to_string(),
        ])
    };
    let rows: Vec<_> = view.session.proofs().iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| NotebookSection {
        heading: "Tried".to_owned(),
        paragraphs: vec![
            "Each by itself, against everything accepted before it. The gain is that of the pairs until the verdict: \
             it is no estimate of what remains."
                .to_owned(),
        ],
        head: vec!["advice", "result", "gain in these pairs", "pairs"],
        rows,
        ..NotebookSection::default()
    })
}

/// Describes how a proof ended.
pub(super) fn describe_end(session: &TuneSession, proof: &Proof) -> String {
    match &proof.end {
        None => "not ended".to_owned(),
        Some(ProofEnd::Better) if is_worn_off(session, proof) => {
            "better in short slots, but the gain wears off".to_owned()
        }
        Some(ProofEnd::Better) => "better, proved".to_owned(),
        Some(ProofEnd::Verdict { verdict }) => match verdict {
            assay_model::trial::Verdict::Worse => "worse, proved".to_owned(),
            assay_model::trial::Verdict::NoPracticalDifference => {
                "no practical difference".to_owned()
            }
            assay_model::trial::Verdict::Unsafe => "unsafe: the load fails with it".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        },
        Some(ProofEnd::GivenUp) if session.may_gain(proof) => {
            "given up: too noisy to prove a gain".to_owned()
        }
        Some(ProofEnd::GivenUp) => "given up: a relevant gain is unlikely".to_owned(),
        Some(ProofEnd::GuardHarm { metric }) => format!("better, but {metric} looks worse"),
        Some(ProofEnd::Open) => "open: the pairs did not suffice".to_owned(),
        Some(ProofEnd::NoFigure { error }) => format!("no figure: {error}"),
    }
}

fn is_worn_off(session: &TuneSession, proof: &Proof) -> bool {
    matches!(proof.stage, Stage::Proof { candidate, .. } if session.wears_off(candidate))
}

/// Writes the section about the candidates that were not tried, with the reasons.
pub(super) fn write_left_out_section(view: &TuneView<'_>) -> Option<NotebookSection> {
    let candidates = &view.record.plan.candidates;
    // What was proved to be useless stands among those that were tried.
    let tried = |at: usize| proof_of(view, at).is_some();
    let row = |(at, why): (&usize, &LeftOut)| vec![candidates[*at].id.clone(), why.to_string()];
    let mut known: Vec<(usize, LeftOut)> = match view.session.left_out().is_empty() {
        // The search did not begin: what was known before.
        true => view.record.plan.diagnose(0).1.into_iter().collect(),
        false => view
            .session
            .left_out()
            .iter()
            .map(|(at, why)| (*at, why.clone()))
            .collect(),
    };
    known.retain(|(at, _)| !tried(*at));
    let rows: Vec<_> = known.iter().map(|(at, why)| row((at, why))).collect();
    (!rows.is_empty()).then(|| NotebookSection {
        heading: "Not tried, and why".to_owned(),
        head: vec!["advice", "reason"],
        rows,
        ..NotebookSection::default()
    })
}
