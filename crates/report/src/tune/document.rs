//! The notebook of a tuning session as JSON.

use super::TuneView;
use super::hold_section::name_hold_end;
use super::notebook::write_notebook;
use super::tried_section::describe_end;
use assay_model::SCHEMA_VERSION;
use assay_tune::{KeptState, OperationPart, Stage};
use serde::Serialize;

/// JSON document of a tuning session.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Tune")]
pub struct TuneDocument {
    schema: u32,
    /// Number of the session in the store.
    session: i64,
    /// Unique name of the session: 128 random bits in hex.
    uid: String,
    /// Name of the target; empty if the load has no target.
    target: String,
    /// State of the session: `running`, `complete` or `stopped`.
    state: String,
    /// How the session ended; null while it runs.
    ending: Option<String>,
    /// Headline of the notebook, one sentence with one figure.
    headline: String,
    /// Start time, RFC 3339.
    started: String,
    /// End time, RFC 3339; null while the session runs.
    ended: Option<String>,
    /// Seconds that the session has used.
    seconds: f64,
    /// Seconds that the session may use.
    budget_seconds: f64,
    /// Seed of all random choices of the session.
    seed: u64,
    wanted: Vec<String>,
    /// What limits the load; null before the load was measured.
    limit: Option<LimitPiece>,
    /// Parts of an operation whose time is known.
    parts: Vec<PartPiece>,
    /// The figure that the lowest layer alone reaches under the same load.
    bottom: Option<BottomPiece>,
    /// Candidates in the order in which they will be tried.
    planned: Vec<PlannedPiece>,
    kept: Vec<KeptPiece>,
    /// Whether the kept settings are in effect.
    in_effect: bool,
    /// Proved gain of all accepted changes together, 0.2 for 20 %; null if it was not proved.
    gain: Option<f64>,
    /// 90 % interval of the gain.
    gain_interval: Option<[f64; 2]>,
    /// Whether the gain lasts while the changes stay in effect; null if it was not observed for longer than a slot.
    hold: Option<HoldPiece>,
    tried: Vec<TriedPiece>,
    left_out: Vec<LeftOutPiece>,
    /// Remarks, such as settings that another program changed.
    remarks: Vec<String>,
    /// All observations of the session, as they are stored.
    seen: serde_json::Value,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct LimitPiece {
    /// Code of the limit, such as `flush`, `one-at-a-time` or `machine-cpu`.
    code: String,
    evidence: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct PartPiece {
    /// Name of the part: `flush` or `cpu`.
    part: String,
    seconds: f64,
    /// Duration of the whole operation in seconds.
    of_seconds: f64,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct BottomPiece {
    what: String,
    /// Range of the deciding figure over the rounds: seconds, or operations or bytes per second.
    range: [f64; 2],
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct HoldPiece {
    /// `lasts`, `fades` (a part of the gain wears off), `wears-off`, `fails` (the load fails), or `open` (too noisy).
    result: String,
    /// Seconds for which the changes were in effect before each measurement.
    seconds: f64,
    /// Number of measurements.
    pairs: u32,
    /// Gain after this time, 0.2 for 20 %; null without a figure.
    gain: Option<f64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct KeptPiece {
    advice: String,
    setting: String,
    was: String,
    is: Option<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct PlannedPiece {
    advice: String,
    setting: String,
    is: String,
    would_be: Option<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct TriedPiece {
    advice: String,
    result: String,
    /// Gain as measured in the pairs up to the verdict.
    gain: Option<f64>,
    pairs: u32,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct LeftOutPiece {
    advice: String,
    reason: String,
}

/// Builds the JSON document of a session.
#[must_use]
pub fn tune_document(view: &TuneView<'_>) -> TuneDocument {
    let (record, session) = (view.record, view.session);
    let candidates = &record.plan.candidates;
    let kept = record.row_in_effect(session).into_iter();
    let kept = kept.filter_map(|at: usize| {
        let change = record.changes.get(at)?.as_ref()?;
        Some(KeptPiece {
            advice: candidates[at].id.clone(),
            setting: change.name.clone(),
            was: change.was.clone(),
            is: change.value.clone(),
        })
    });
    let tried = session.proofs().iter().filter_map(|proof| {
        let Stage::Proof { candidate, .. } = proof.stage else {
            return None;
        };
        let judged = session.judge(proof);
        Some(TriedPiece {
            advice: candidates[candidate].id.clone(),
            result: describe_end(session, proof),
            gain: judged.ratio.map(|ratio| ratio - 1.0),
            pairs: judged.pairs,
        })
    });
    let (order, known) = record.plan.diagnose(session.objective());
    let planned = order.iter().filter_map(|at| {
        let change = record.shown_change(*at)?;
        Some(PlannedPiece {
            advice: candidates[*at].id.clone(),
            setting: change.name,
            is: change.was,
            would_be: change.value,
        })
    });
    // Before the search begins: candidates that are left out without a measurement.
    let left_out = match session.left_out().is_empty() {
        true => &known,
        false => session.left_out(),
    };
    let was_tried = |at: usize| {
        let of = |proof: &assay_tune::Proof| matches!(proof.stage, Stage::Proof { candidate, .. } if candidate == at);
        session.proofs().iter().any(of)
    };
    let left_out = left_out.iter().filter(|(at, _)| !was_tried(**at));
    let left_out = left_out.map(|(at, why)| LeftOutPiece {
        advice: candidates[*at].id.clone(),
        reason: why.to_string(),
    });
    let diagnosis = session.diagnosis();
    let limit = diagnosis.and_then(|one| one.limit.as_ref());
    let parts = diagnosis.map_or(&[][..], |one| &one.parts);
    let is_time = session.metric().quantity.is_latency();
    let bottom = diagnosis.and_then(|one| one.bottom.as_ref());
    let bottom = bottom.map(|rung| BottomPiece {
        what: rung.what.clone(),
        range: [rung.figure.low, rung.figure.high].map(|end| match is_time {
            true => end / 1e9,
            false => end,
        }),
    });
    let gain = session.gain();
    let interval = gain.and_then(|gain| gain.interval);
    let state = serde_json::to_value(record.state).unwrap_or_default();
    TuneDocument {
        schema: SCHEMA_VERSION,
        session: view.id.0,
        uid: record.uid.clone(),
        target: record.target.clone(),
        state: state.as_str().unwrap_or_default().to_owned(),
        ending: session.ending().map(ToString::to_string),
        headline: write_notebook(view).title,
        started: record.started.to_string(),
        ended: record.ended.map(|at| at.to_string()),
        seconds: session.clock().spent.as_secs_f64(),
        budget_seconds: record.plan.budget.as_secs_f64(),
        seed: record.plan.seed,
        wanted: (record.plan.goal.wants.iter())
            .map(ToString::to_string)
            .collect(),
        limit: limit.map(|limit| LimitPiece {
            code: limit.what.name().to_owned(),
            evidence: limit.evidence.clone(),
        }),
        parts: parts
            .iter()
            .map(|one| PartPiece {
                part: match one.part {
                    OperationPart::Flush => "flush",
                    OperationPart::Cpu => "cpu",
                }
                .to_owned(),
                seconds: one.takes.as_secs_f64(),
                of_seconds: one.of.as_secs_f64(),
            })
            .collect(),
        bottom,
        planned: planned.collect(),
        kept: kept.collect(),
        in_effect: matches!(record.kept, KeptState::Kept { .. }),
        gain: gain.map(|gain| gain.said),
        gain_interval: interval.map(|interval| [interval.low, interval.high]),
        hold: session.hold().map(|hold| HoldPiece {
            result: name_hold_end(hold).to_owned(),
            seconds: hold.lasted.as_secs_f64(),
            pairs: hold.pairs.len() as u32,
            gain: hold.gain().map(f64::exp_m1),
        }),
        tried: tried.collect(),
        left_out: left_out.collect(),
        remarks: record.remarks.clone(),
        seen: serde_json::to_value(&record.seen).unwrap_or_default(),
    }
}

/// JSON document of all tuning sessions, newest first.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "TuneList")]
pub struct TuneListDocument {
    schema: u32,
    sessions: Vec<TuneDocument>,
}

/// Builds the JSON document of a list of sessions.
#[must_use]
pub fn tune_list_document(views: &[TuneView<'_>]) -> TuneListDocument {
    TuneListDocument {
        schema: SCHEMA_VERSION,
        sessions: views.iter().map(tune_document).collect(),
    }
}
