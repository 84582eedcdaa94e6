//! Builds the values for the template of a trial's page. Untrusted text is cleaned here and escaped by the template.

use super::trial_charts;
use crate::html::doubt_view::DoubtView;
use crate::html::run_page::group_facts;
use crate::trial::TrialView;
use crate::trial::terminal::{
    build_subject_rows, describe_carriers, describe_change_state, describe_environment,
    describe_flush_tests, describe_unproved_gain, has_unproved_gain, list_next_commands,
    side_letter,
};
use crate::trial::trial_tables::{self, format_row_change};
use crate::trial::trial_text::{
    capitalize, describe_verdict, format_error_rate, format_share, headline_word, short_metric_name,
};
use assay_model::trial::{Trial, Verdict};
use assay_render::html::{Chart, render_page};
use assay_render::text::escape_line;
use assay_render::units::{format_count, format_timestamp};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const TRIAL: &str = include_str!("trial.html");
const CAMPAIGN: &str = include_str!("campaign.html");
const OWN_STYLE: &str = include_str!("trial.css");

#[derive(Serialize)]
struct TrialHead {
    name: String,
    title: String,
    word: &'static str,
    class: &'static str,
    sentence: String,
    /// Measured gain of a change with the verdict `unsafe`; the page shows it after the verdict.
    besides: Option<String>,
    became: Vec<String>,
    subject: Vec<(&'static str, String)>,
    tiles: Vec<(String, String)>,
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct FigureRow {
    name: String,
    decides: bool,
    now: (String, String),
    changed: (String, String),
    change: String,
}

#[derive(Serialize)]
struct GuardView {
    name: String,
    class: &'static str,
    word: &'static str,
    text: String,
}

#[derive(Serialize)]
struct ProofView {
    side: &'static str,
    text: String,
    lost: bool,
}

/// Returns the CSS class of a verdict.
fn verdict_class(view: &TrialView) -> &'static str {
    match (view.trial.plan.aa, view.judgement.verdict) {
        (true, Verdict::Better | Verdict::Worse) => "undecided",
        (true, _) => "same",
        (_, Verdict::Better) => "better",
        (_, Verdict::Worse) => "worse",
        (_, Verdict::Unsafe) => "unsafe",
        (_, Verdict::NoPracticalDifference) => "same",
        (_, Verdict::Undecided) => "undecided",
    }
}

fn display_name(trial: &Trial) -> String {
    match trial.id.0 {
        0 => "trial, not stored".to_owned(),
        id => format!("trial {id}"),
    }
}

fn build_head(view: &TrialView) -> TrialHead {
    let (trial, judgement) = (view.trial, view.judgement);
    let mut tiles = vec![(judgement.pairs.to_string(), "pairs that count".to_owned())];
    if judgement.left_out > 0 {
        tiles.push((judgement.left_out.to_string(), "left out".to_owned()));
    }
    if let Some(sd) = judgement.pair_sd {
        tiles.push((format_share(sd.exp_m1()), "noise of a pair".to_owned()));
    }
    for (pairs, least) in view.smallest {
        if trial.plan.aa {
            tiles.push((
                format_share(*least),
                format!("could be told in {pairs} pairs"),
            ));
        }
    }
    tiles.push((
        format_error_rate(trial.plan.alpha),
        "false alarms at most".to_owned(),
    ));
    TrialHead {
        name: display_name(trial),
        title: escape_line(&trial.plan.title),
        word: headline_word(view),
        class: verdict_class(view),
        sentence: capitalize(&describe_verdict(view)),
        besides: has_unproved_gain(view).then(|| describe_unproved_gain(view)),
        became: describe_change_state(view)
            .iter()
            .map(|line| capitalize(line))
            .collect(),
        subject: build_subject_rows(view)
            .into_iter()
            .filter(|(label, _)| *label != "trial")
            .map(|(label, text)| match label {
                // The title stands above it.
                "advice" => (label, escape_line(&trial.plan.advice)),
                _ => (label, text),
            })
            .collect(),
        tiles,
        remarks: trial
            .remarks
            .iter()
            .map(|remark| escape_line(remark))
            .collect(),
    }
}

fn build_figure_rows(view: &TrialView) -> Vec<FigureRow> {
    let load = &view.trial.plan.load;
    let row = |row: trial_tables::ComparedFigure| FigureRow {
        name: short_metric_name(load, row.metric),
        decides: row.decides,
        now: trial_charts::format_median_cell(row.metric, row.now),
        changed: trial_charts::format_median_cell(row.metric, row.changed),
        change: format_row_change(&row),
    };
    trial_tables::build_figure_rows(view)
        .into_iter()
        .map(row)
        .collect()
}

fn build_guard_views(view: &TrialView) -> Vec<GuardView> {
    let row = |row: trial_tables::GuardRow| GuardView {
        class: match row.state {
            trial_tables::GuardState::Held => "met",
            trial_tables::GuardState::Broken => "missed",
            trial_tables::GuardState::Open | trial_tables::GuardState::Beyond => "suspect",
            trial_tables::GuardState::Within => "",
        },
        word: row.state.word(),
        text: row.text,
        name: row.name,
    };
    trial_tables::build_guard_and_total_rows(view)
        .into_iter()
        .map(row)
        .collect()
}

fn build_doubt_views(view: &TrialView) -> Vec<DoubtView> {
    let doubt = |one: trial_tables::SideDoubt| DoubtView::new(one.doubt, describe_carriers(&one));
    trial_tables::count_doubts(view)
        .into_iter()
        .map(doubt)
        .collect()
}

fn list_left_out_pairs(view: &TrialView) -> Vec<(String, String)> {
    trial_tables::list_left_out_pairs(view)
        .into_iter()
        .map(|(kind, reason, pairs)| {
            (
                capitalize(&format!(
                    "{}, {kind}",
                    trial_tables::format_pair_numbers(&pairs)
                )),
                reason,
            )
        })
        .collect()
}

fn list_provenance(trial: &Trial) -> Vec<(&'static str, String)> {
    let mut rows = vec![("Identity", escape_line(&trial.uid))];
    rows.push(("Began", format_timestamp(trial.started)));
    if let Some(ended) = trial.ended {
        rows.push(("Ended", format_timestamp(ended)));
    }
    rows.push(("Predicted", escape_line(&trial.plan.predicts)));
    for (key, value) in &trial.plan.parameters {
        rows.push((
            "Parameter",
            format!("{} = {}", escape_line(key), escape_line(value)),
        ));
    }
    rows
}

pub(super) fn render_trial(view: &TrialView) -> String {
    let plan = &view.trial.plan;
    let decides: Vec<Chart> = [
        trial_charts::build_pairs_chart(view),
        trial_charts::build_looks_chart(view),
    ]
    .into_iter()
    .flatten()
    .collect();
    let proofs: Vec<ProofView> = describe_flush_tests(view.trial)
        .into_iter()
        .map(|(which, text, lost)| ProofView {
            side: side_letter(which),
            text: capitalize(&text),
            lost,
        })
        .collect();
    let head = build_head(view);
    render_page(
        &format!("{}: {} ({})", head.word, head.title, head.name),
        OWN_STYLE,
        TRIAL,
        context! {
            head => Serde(head),
            decides => Serde(decides),
            margin => format_share(plan.margin),
            alpha => format_error_rate(plan.alpha),
            aa => plan.aa,
            figures => Serde(build_figure_rows(view)),
            course => Serde(trial_charts::build_course_charts(view)),
            guards => Serde(build_guard_views(view)),
            proved => trial_tables::describe_proof(view),
            guard_chart => Serde(trial_charts::build_guards_chart(view)),
            latency => Serde(trial_charts::build_latencies_chart(view)),
            proofs => Serde(proofs),
            doubts => Serde(build_doubt_views(view)),
            left_out => Serde(list_left_out_pairs(view)),
            machine => Serde(describe_environment(view)),
            next => Serde(list_next_commands(view)),
            provenance => Serde(list_provenance(view.trial)),
            facts => Serde(group_facts(&view.trial.facts)),
            slot => plan.slot.to_string(),
            washout => plan.washout.to_string(),
            seed => plan.seed.to_string(),
            version => escape_line(&view.trial.assay_version),
        },
    )
}

#[derive(Serialize)]
struct CampaignRow {
    advice: String,
    title: String,
    word: &'static str,
    class: &'static str,
    sentence: String,
    became: String,
}

pub(super) fn render_campaign(views: &[TrialView]) -> String {
    let row = |view: &TrialView| CampaignRow {
        advice: escape_line(&view.trial.plan.advice),
        title: escape_line(&view.trial.plan.title),
        word: headline_word(view),
        class: verdict_class(view),
        sentence: capitalize(&describe_verdict(view)),
        became: describe_change_state(view).join("; "),
    };
    let first = views.first();
    let title = format_count(views.len(), "trial");
    render_page(
        &format!("Campaign of {title}"),
        OWN_STYLE,
        CAMPAIGN,
        context! {
            title => title,
            rows => Serde(views.iter().map(row).collect::<Vec<_>>()),
            chart => Serde(trial_charts::build_campaign_chart(views)),
            alpha => first.map(|view| format_error_rate(view.trial.plan.alpha)),
            together => first.map(|view| format_error_rate((view.trial.plan.alpha * views.len() as f64).min(1.0))),
            machine => Serde(first.map(describe_environment).unwrap_or_default()),
            facts => Serde(first.map(|view| group_facts(&view.trial.facts)).unwrap_or_default()),
        },
    )
}
