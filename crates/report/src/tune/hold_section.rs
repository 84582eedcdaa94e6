//! The section of a notebook on whether the gain lasts while the changes stay in effect.

use super::TuneView;
use super::notebook::{NotebookSection, format_gain};
use assay_render::units::format_duration;
use assay_tune::{HOLD_ERROR, Hold, HoldEnd, ProofEnd};

/// Writes the section about the hold of the proved changes. Returns `None` if no changes were proved together.
pub(super) fn write_hold_section(view: &TuneView<'_>) -> Option<NotebookSection> {
    let proved = |end: &ProofEnd| matches!(end, ProofEnd::Better);
    let whole = view.session.wholes().last()?;
    // Objects are created for each comparison.
    if !whole.end.as_ref().is_some_and(proved) || view.record.arms.is_some() {
        return None;
    }
    view.session.ending()?;
    let text = match view.session.hold() {
        Some(hold) => {
            let judged = view.session.judge(whole);
            describe_hold(hold, &format_gain(judged.ratio, None))
        }
        None => format!(
            "The gain was not observed for longer than a slot ({}), because the session had no time to hold the \
             changes. A longer --budget shows whether the gain wears off.",
            view.record.slot
        ),
    };
    Some(NotebookSection {
        heading: "Does the gain last".to_owned(),
        paragraphs: vec![text],
        ..NotebookSection::default()
    })
}

fn describe_hold(hold: &Hold, in_proof: &str) -> String {
    let after = format_duration(hold.lasted.as_secs_f64());
    let error = format!(
        "A gain that lasts is taken for such a gain in at most {:.0} % of sessions",
        HOLD_ERROR * 100.0
    );
    let result = match &hold.end {
        None => return "The hold did not end.".to_owned(),
        Some(HoldEnd::Fails { error }) => {
            return format!(
                "The load failed twice while the changes stayed in effect, so assay reverted them: {error}"
            );
        }
        Some(HoldEnd::Lasts) => "The gain lasts for this time.".to_owned(),
        Some(HoldEnd::Fades) => {
            "A part of the gain seems to wear off; the rest is still relevant.".to_owned()
        }
        Some(HoldEnd::WearsOff) => {
            format!("The gain wears off, so assay reverted the changes. {error}.")
        }
        Some(HoldEnd::Open) => {
            "The machine is too noisy to tell whether the gain lasts.".to_owned()
        }
    };
    format!(
        "In the short slots of the last proof: {in_proof}. After the changes were in effect for {after}, measured {} \
         times: {}. {result}",
        hold.pairs.len(),
        format_gain(hold.gain().map(f64::exp), None)
    )
}

/// Returns the lasting part of a gain that wears off in part, to add to a headline; otherwise an empty text.
pub(super) fn describe_fading(hold: &Hold) -> String {
    match hold.end {
        Some(HoldEnd::Fades) => format!(
            ", but {} after {}",
            format_gain(hold.gain().map(f64::exp), None),
            format_duration(hold.lasted.as_secs_f64())
        ),
        _ => String::new(),
    }
}

/// Returns the name of the result of a hold for JSON documents.
pub(super) fn name_hold_end(hold: &Hold) -> &'static str {
    match hold.end {
        Some(HoldEnd::Lasts) => "lasts",
        Some(HoldEnd::Fades) => "fades",
        Some(HoldEnd::WearsOff) => "wears-off",
        Some(HoldEnd::Fails { .. }) => "fails",
        Some(HoldEnd::Open) | None => "open",
    }
}

/// Describes the result of a hold in a few words.
pub(super) fn describe_hold_end(hold: &Hold) -> &'static str {
    match hold.end {
        Some(HoldEnd::Lasts) => "the gain lasts",
        Some(HoldEnd::Fades) => "a part of the gain seems to wear off",
        Some(HoldEnd::WearsOff) => "the gain wears off",
        Some(HoldEnd::Fails { .. }) => "the load fails",
        Some(HoldEnd::Open) | None => "too noisy to tell whether the gain lasts",
    }
}
