//! The content of a notebook, section by section, as plain text. The module `renderings` formats the content.

use super::hold_section::{describe_fading, write_hold_section};
use super::limit_section::{describe_purchase, write_limit_section};
use super::repeat_section::write_repeat_section;
use super::tried_section::{write_left_out_section, write_tried_section};
use super::{TuneView, snippets};
use assay_model::criterion::Quantity;
use assay_model::result::Interval;
use assay_model::trial::Judgement;
use assay_render::units::{format_duration, format_timestamp, format_value_with_unit};
use assay_tune::{
    ERROR_STATEMENT, Ending, GoalState, KeptState, Proof, Stage, TOGETHER_STATEMENT, Want,
};

/// The report of a tuning session as headline, introduction and sections.
pub(super) struct Notebook {
    /// Headline: one sentence with one figure.
    pub(super) title: String,
    /// Introduction: time, target, duration, and how to undo the session.
    pub(super) lead: Vec<String>,
    pub(super) sections: Vec<NotebookSection>,
}

/// A section of a notebook: paragraphs, an optional table, and files.
#[derive(Default)]
pub(super) struct NotebookSection {
    pub(super) heading: String,
    pub(super) paragraphs: Vec<String>,
    pub(super) head: Vec<&'static str>,
    /// Cells of the table; empty without a table.
    pub(super) rows: Vec<Vec<String>>,
    /// Files to copy, as (name, text).
    pub(super) files: Vec<(String, String)>,
}

/// Writes the notebook of a session.
pub(super) fn write_notebook(view: &TuneView<'_>) -> Notebook {
    let sections = [
        goal_section(view),
        write_limit_section(view),
        kept_section(view),
        whole_section(view),
        write_hold_section(view),
        write_tried_section(view),
        write_left_out_section(view),
        remaining_section(view),
        Some(certainty_section(view)),
        Some(write_repeat_section(view)),
        snippets_section(view),
    ];
    Notebook {
        title: write_title(view),
        lead: write_lead(view),
        sections: sections.into_iter().flatten().collect(),
    }
}

/// Maximum length of the target or load in a title, in characters. The title replaces a longer one; the section about
/// the goal contains it.
const TITLE_SUBJECT: usize = 40;

fn write_title(view: &TuneView<'_>) -> String {
    let metric = view.session.metric();
    let wants = &view.record.plan.goal.wants;
    let figure = wants.get(view.session.objective());
    let figure = figure.map_or_else(|| metric.to_string(), Want::figure_name);
    let subject = match view.subject() {
        long if long.chars().count() > TITLE_SUBJECT => "The load".to_owned(),
        subject => subject,
    };
    match (view.session.ending(), view.session.wholes().last()) {
        (Some(Ending::Kept { .. }), Some(whole)) => {
            let [before, after] = mean_figures(whole).unwrap_or([0.0, 0.0]);
            let judged = view.session.judge(whole);
            format!(
                "{subject}: {figure} {} → {}, {}{}",
                format_figure(metric.quantity, before),
                format_figure(metric.quantity, after),
                format_gain(judged.ratio, judged.interval),
                view.session
                    .hold()
                    .map_or_else(String::new, describe_fading)
            )
        }
        _ => format!("{subject}: {}", view.outcome()),
    }
}

fn write_lead(view: &TuneView<'_>) -> Vec<String> {
    let record = view.record;
    let spent = view.session.clock().spent.as_secs_f64();
    let mut lead = vec![format!(
        "Session {}, {}, {} of {} used, assay {}.",
        view.id,
        format_timestamp(record.started),
        format_duration(spent),
        record.plan.budget,
        record.assay_version
    )];
    lead.push(match &record.kept {
        KeptState::Kept { .. } => {
            format!(
                "In effect now. Undo all of it: `assay tune --undo {}`.",
                view.id
            )
        }
        KeptState::Undone { at } => format!("Undone at {}.", format_timestamp(*at)),
        KeptState::Nothing => "The machine is as it was before the session.".to_owned(),
    });
    if let Some(error) = &record.error {
        lead.push(format!("The session did not end by itself: {error}."));
    }
    lead.extend(record.remarks.iter().cloned());
    lead
}

fn goal_section(view: &TuneView<'_>) -> Option<NotebookSection> {
    let visits = view.session.visits();
    let row = |(at, want): (usize, &Want)| {
        let values: Vec<f64> = visits
            .iter()
            .filter_map(|visit| visit.figures.get(at))
            .flatten()
            .copied()
            .collect();
        let quantity = want.metric().quantity;
        let now = geometric_mean(&values).map_or_else(
            || "not measured".to_owned(),
            |mean| format_figure(quantity, mean),
        );
        let standing = view.session.standings().get(at);
        let standing = standing.map_or_else(|| "not known".to_owned(), describe_standing);
        vec![want.to_string(), now, standing]
    };
    let wants = &view.record.plan.goal.wants;
    let mut paragraphs = vec![format!("Load: {}.", view.record.load.describe())];
    if let Some(command) = &view.record.guard_command {
        let command = command.join(" ");
        paragraphs.push(format!("Must succeed with every change: `{command}`."));
    }
    let guards = view.session.guards();
    let guards = match guards.is_empty() {
        true => &view.record.plan.goal.guards[..],
        false => guards,
    };
    if !guards.is_empty() {
        let each = guards
            .iter()
            .map(|guard| format!("{} by at most {:.0} %", guard.metric, guard.margin * 100.0));
        let each: Vec<String> = each.collect();
        paragraphs.push(format!(
            "Must not get worse, judged on all kept changes together: {}.",
            each.join(", ")
        ));
    }
    Some(NotebookSection {
        heading: "Goal".to_owned(),
        paragraphs,
        head: vec!["wanted", "before", "standing"],
        rows: wants.iter().enumerate().map(row).collect(),
        ..NotebookSection::default()
    })
}

fn describe_standing(standing: &GoalState) -> String {
    let percent = |probability: f64| probability * 100.0;
    match standing {
        GoalState::Met { probability } => format!("met ({:.1} % sure)", percent(*probability)),
        GoalState::MetForNow { probability } => {
            format!("met for now ({:.1} %)", percent(*probability))
        }
        GoalState::Missed { probability } => {
            format!("missed ({:.1} % sure)", 100.0 - percent(*probability))
        }
        GoalState::Open => "has no end: as good as it gets".to_owned(),
    }
}

fn kept_section(view: &TuneView<'_>) -> Option<NotebookSection> {
    let Some(Ending::Kept { row }) = view.session.ending() else {
        return None;
    };
    let line = |at: &usize| {
        let change = view.record.changes.get(*at)?.as_ref()?;
        let proof = proof_of(view, *at);
        let gain = proof.map_or_else(String::new, |proof| {
            let judged = view.session.judge(proof);
            format_gain(judged.ratio, judged.interval)
        });
        Some(vec![
            view.record.plan.candidates[*at].id.clone(),
            change.name.clone(),
            change.was.clone(),
            change
                .value
                .clone()
                .unwrap_or_else(|| "no line for it".to_owned()),
            gain,
            match view.record.undone.contains(at) {
                true => "undone".to_owned(),
                false => snippets::describe_lifetime(&change.setting).to_owned(),
            },
            format!(
                "assay tune --undo {} --only {}",
                view.id, view.record.plan.candidates[*at].id
            ),
        ])
    };
    Some(NotebookSection {
        heading: "Kept".to_owned(),
        head: vec![
            "advice",
            "setting",
            "was",
            "is",
            "gain by itself",
            "lasts",
            "undo of this alone",
        ],
        rows: row.iter().filter_map(line).collect(),
        ..NotebookSection::default()
    })
}

/// Returns the proof that accepted a candidate; without acceptance, its last proof.
pub(super) fn proof_of<'a>(view: &TuneView<'a>, candidate: usize) -> Option<&'a Proof> {
    let of = |proof: &&Proof| matches!(proof.stage, Stage::Proof { candidate: at, .. } if at == candidate);
    view.session.proofs().iter().rfind(of)
}

fn whole_section(view: &TuneView<'_>) -> Option<NotebookSection> {
    let whole = view.session.wholes().last()?;
    let judged = view.session.judge(whole);
    let mut paragraphs = vec![format!(
        "All of it against the machine as it was, in {} fresh pairs: {}. {}",
        judged.pairs,
        format_gain(judged.ratio, judged.interval),
        judged.reason
    )];
    if let Some(gain) = view.session.gain() {
        let overlap = match gain.is_less_than_its_parts() {
            true => " The changes overlap.",
            false => "",
        };
        if whole.changed.len() > 1 && !view.record.plan.together {
            paragraphs.push(format!(
                "One by one the changes promised {:+.1} % together.{overlap}",
                gain.promised * 100.0
            ));
        }
    }
    Some(NotebookSection {
        heading: "The whole".to_owned(),
        paragraphs,
        head: match judged.guards.is_empty() {
            true => Vec::new(),
            false => vec!["must not get worse", "worsening", "allowed", "held"],
        },
        rows: guard_rows(&judged),
        ..NotebookSection::default()
    })
}

fn guard_rows(judged: &Judgement) -> Vec<Vec<String>> {
    let row = |guard: &assay_model::trial::GuardJudgement| {
        let held = match (guard.held, guard.broken) {
            (true, _) => "proved",
            (_, true) => "broken",
            _ => "not proved",
        };
        vec![
            guard.metric.to_string(),
            format!("{:+.1} %", (guard.worsening - 1.0) * 100.0),
            format!("{:.0} %", guard.margin * 100.0),
            held.to_owned(),
        ]
    };
    judged.guards.iter().map(row).collect()
}

fn remaining_section(view: &TuneView<'_>) -> Option<NotebookSection> {
    let want = view.record.plan.goal.wants.get(view.session.objective())?;
    let criterion = want.criterion()?;
    if let Some(text) = describe_purchase(view) {
        return Some(NotebookSection {
            heading: "What would have to be bought".to_owned(),
            paragraphs: vec![text],
            ..NotebookSection::default()
        });
    }
    let after = match (view.session.ending(), view.session.wholes().last()) {
        (Some(Ending::Kept { .. }), Some(whole)) => mean_figures(whole)?[1],
        _ => return None,
    };
    let quantity = criterion.metric.quantity;
    let text = match criterion.comparison.holds(after, criterion.threshold) {
        true => format!(
            "{} now, wanted {want}: met in the pairs of the last proof.",
            format_figure(quantity, after)
        ),
        false => format!(
            "{} now, wanted {want}: still missed. No further change that is known to assay, allowed and applicable \
             here was proved to help; what is left has to come from other hardware, or from less work.",
            format_figure(quantity, after)
        ),
    };
    Some(NotebookSection {
        heading: "What remains".to_owned(),
        paragraphs: vec![text],
        ..NotebookSection::default()
    })
}

fn certainty_section(view: &TuneView<'_>) -> NotebookSection {
    let statement = match view.record.plan.together {
        true => TOGETHER_STATEMENT,
        false => ERROR_STATEMENT,
    };
    NotebookSection {
        heading: "How sure".to_owned(),
        paragraphs: vec![
            statement.to_owned(),
            "A gain is a ratio of work per time: +25 % means that the same work takes 20 % less time. Only \
             this load was measured."
                .to_owned(),
        ],
        ..NotebookSection::default()
    }
}

fn snippets_section(view: &TuneView<'_>) -> Option<NotebookSection> {
    let row = view.record.row_in_effect(view.session);
    let kept = row
        .iter()
        .filter_map(|at| view.record.changes.get(*at)?.as_ref());
    let files = snippets::write_snippets(view.id, kept);
    (!files.is_empty()).then(|| NotebookSection {
        heading: "To make it last on this and other machines".to_owned(),
        paragraphs: vec![
            "assay does not install these files. Measure on each machine: what helps here may do nothing there."
                .to_owned(),
        ],
        files,
        ..NotebookSection::default()
    })
}

/// Returns the objective's figure in A and in B, as geometric means over the pairs; `None` without pairs.
pub(super) fn mean_figures(proof: &Proof) -> Option<[f64; 2]> {
    let side = |at: usize| {
        let values: Vec<f64> = proof.figures.iter().map(|pair| pair[at]).collect();
        geometric_mean(&values)
    };
    Some([side(0)?, side(1)?])
}

pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

pub(super) fn format_figure(quantity: Quantity, value: f64) -> String {
    format_value_with_unit(quantity, value)
}

/// Formats a gain, such as `+12 % (5 to 19 %)`.
pub(super) fn format_gain(ratio: Option<f64>, interval: Option<Interval>) -> String {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    match (ratio, interval) {
        (Some(ratio), Some(interval)) => format!(
            "{:+.1} % ({:+.1} to {:+.1} %)",
            percent(ratio),
            percent(interval.low),
            percent(interval.high)
        ),
        (Some(ratio), None) => format!("{:+.1} %", percent(ratio)),
        _ => "no figure".to_owned(),
    }
}
