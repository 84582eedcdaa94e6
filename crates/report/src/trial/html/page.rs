//! The values that the template of a trial shows. Everything from outside is cleaned here and
//! escaped by the template.

use super::charts;
use crate::html::doubt::DoubtView;
use crate::html::page::facts;
use crate::trial::View;
use crate::trial::evidence::{self, row_change};
use crate::trial::terminal::{
    became, carried, environment, gain, gains, next, proofs, side, subject,
};
use crate::trial::words::{capital, headline, rate, sentence, share, short_metric};
use assay_model::trial::{Trial, Verdict};
use assay_render::html::{Chart, page};
use assay_render::text::clean;
use assay_render::units::{count, time};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const TRIAL: &str = include_str!("trial.html");
const CAMPAIGN: &str = include_str!("campaign.html");
const OWN_STYLE: &str = include_str!("trial.css");

#[derive(Serialize)]
struct Head {
    name: String,
    title: String,
    word: &'static str,
    class: &'static str,
    sentence: String,
    /// Behind an "unsafe": what it would have gained.
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

/// CSS class of a verdict.
fn class(view: &View) -> &'static str {
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

fn name(trial: &Trial) -> String {
    match trial.id.0 {
        0 => "trial, not stored".to_owned(),
        id => format!("trial {id}"),
    }
}

fn head(view: &View) -> Head {
    let (trial, judgement) = (view.trial, view.judgement);
    let mut tiles = vec![(judgement.pairs.to_string(), "pairs that count".to_owned())];
    if judgement.left_out > 0 {
        tiles.push((judgement.left_out.to_string(), "left out".to_owned()));
    }
    if let Some(sd) = judgement.pair_sd {
        tiles.push((share(sd.exp_m1()), "noise of a pair".to_owned()));
    }
    for (pairs, least) in view.smallest {
        if trial.plan.aa {
            tiles.push((share(*least), format!("could be told in {pairs} pairs")));
        }
    }
    tiles.push((rate(trial.plan.alpha), "false alarms at most".to_owned()));
    Head {
        name: name(trial),
        title: clean(&trial.plan.title),
        word: headline(view),
        class: class(view),
        sentence: capital(&sentence(view)),
        besides: gains(view).then(|| gain(view)),
        became: became(view).iter().map(|line| capital(line)).collect(),
        subject: subject(view)
            .into_iter()
            .filter(|(label, _)| *label != "trial")
            .map(|(label, text)| match label {
                // The title stands above it.
                "advice" => (label, clean(&trial.plan.advice)),
                _ => (label, text),
            })
            .collect(),
        tiles,
        remarks: trial.remarks.iter().map(|remark| clean(remark)).collect(),
    }
}

fn figures(view: &View) -> Vec<FigureRow> {
    let load = &view.trial.plan.load;
    let row = |row: evidence::Row| FigureRow {
        name: short_metric(load, row.metric),
        decides: row.decides,
        now: charts::cell(row.metric, row.now),
        changed: charts::cell(row.metric, row.changed),
        change: row_change(&row),
    };
    evidence::table(view).into_iter().map(row).collect()
}

fn guards(view: &View) -> Vec<GuardView> {
    let row = |row: evidence::GuardRow| GuardView {
        class: match row.state {
            evidence::GuardState::Held => "met",
            evidence::GuardState::Broken => "missed",
            evidence::GuardState::Open | evidence::GuardState::Beyond => "suspect",
            evidence::GuardState::Within => "",
        },
        word: row.state.word(),
        text: row.text,
        name: row.name,
    };
    evidence::bounds(view).into_iter().map(row).collect()
}

fn doubts(view: &View) -> Vec<DoubtView> {
    let doubt = |one: evidence::Carried| DoubtView::new(one.doubt, carried(&one));
    evidence::doubts(view).into_iter().map(doubt).collect()
}

fn left_out(view: &View) -> Vec<(String, String)> {
    evidence::left_out(view)
        .into_iter()
        .map(|(kind, reason, pairs)| {
            (
                capital(&format!("{}, {kind}", evidence::pair_numbers(&pairs))),
                reason,
            )
        })
        .collect()
}

fn provenance(trial: &Trial) -> Vec<(&'static str, String)> {
    let mut rows = vec![("Identity", clean(&trial.uid))];
    rows.push(("Began", time(trial.started)));
    if let Some(ended) = trial.ended {
        rows.push(("Ended", time(ended)));
    }
    rows.push(("Predicted", clean(&trial.plan.predicts)));
    for (key, value) in &trial.plan.parameters {
        rows.push(("Parameter", format!("{} = {}", clean(key), clean(value))));
    }
    rows
}

pub(super) fn trial(view: &View) -> String {
    let plan = &view.trial.plan;
    let decides: Vec<Chart> = [charts::pairs(view), charts::looks(view)]
        .into_iter()
        .flatten()
        .collect();
    let proofs: Vec<ProofView> = proofs(view.trial)
        .into_iter()
        .map(|(which, text, lost)| ProofView {
            side: side(which),
            text: capital(&text),
            lost,
        })
        .collect();
    let head = head(view);
    page(
        &format!("{}: {} ({})", head.word, head.title, head.name),
        OWN_STYLE,
        TRIAL,
        context! {
            head => Serde(head),
            decides => Serde(decides),
            margin => share(plan.margin),
            alpha => rate(plan.alpha),
            aa => plan.aa,
            figures => Serde(figures(view)),
            course => Serde(charts::over_time(view)),
            guards => Serde(guards(view)),
            proved => evidence::proved(view),
            guard_chart => Serde(charts::guards(view)),
            latency => Serde(charts::latencies(view)),
            proofs => Serde(proofs),
            doubts => Serde(doubts(view)),
            left_out => Serde(left_out(view)),
            machine => Serde(environment(view)),
            next => Serde(next(view)),
            provenance => Serde(provenance(view.trial)),
            facts => Serde(facts(&view.trial.facts)),
            slot => plan.slot.to_string(),
            washout => plan.washout.to_string(),
            seed => plan.seed.to_string(),
            version => clean(&view.trial.assay_version),
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

pub(super) fn campaign(views: &[View]) -> String {
    let row = |view: &View| CampaignRow {
        advice: clean(&view.trial.plan.advice),
        title: clean(&view.trial.plan.title),
        word: headline(view),
        class: class(view),
        sentence: capital(&sentence(view)),
        became: became(view).join("; "),
    };
    let first = views.first();
    let title = count(views.len(), "trial");
    page(
        &format!("Campaign of {title}"),
        OWN_STYLE,
        CAMPAIGN,
        context! {
            title => title,
            rows => Serde(views.iter().map(row).collect::<Vec<_>>()),
            chart => Serde(charts::campaign(views)),
            alpha => first.map(|view| rate(view.trial.plan.alpha)),
            together => first.map(|view| rate((view.trial.plan.alpha * views.len() as f64).min(1.0))),
            machine => Serde(first.map(environment).unwrap_or_default()),
            facts => Serde(first.map(|view| facts(&view.trial.facts)).unwrap_or_default()),
        },
    )
}
