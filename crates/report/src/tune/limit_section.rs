//! The sections of a notebook about what limits the load, and about the hardware that a goal would need.

use super::TuneView;
use super::notebook::{NotebookSection, format_figure};
use assay_model::result::LimitKind;
use assay_tune::{Diagnosis, Ending, OperationPart, PartTime};

/// Writes the section about what limits the load: the limit with its evidence, the known parts of an operation, and the
/// lowest layer. Returns `None` before the load was measured.
pub(super) fn write_limit_section(view: &TuneView<'_>) -> Option<NotebookSection> {
    let diagnosis = view.session.diagnosis()?;
    let mut paragraphs = Vec::new();
    if let Some(limit) = &diagnosis.limit {
        paragraphs.push(format!("{}: {}.", limit.what.name(), limit.evidence));
    }
    match (&diagnosis.bottom, &diagnosis.no_bottom) {
        (Some(_), _) => paragraphs.push(describe_bottom(view, diagnosis)?),
        (None, Some(why)) => {
            paragraphs.push(format!(
                "What the lowest layer reaches was not measured: {why}."
            ));
        }
        _ => {}
    }
    Some(NotebookSection {
        heading: "What limits".to_owned(),
        paragraphs,
        head: match diagnosis.parts.is_empty() {
            true => Vec::new(),
            false => vec!["part of an operation", "takes", "of", "share"],
        },
        rows: diagnosis.parts.iter().map(write_part).collect(),
        ..NotebookSection::default()
    })
}

fn write_part(part: &PartTime) -> Vec<String> {
    let name = match part.part {
        OperationPart::Flush => "flush after a write",
        OperationPart::Cpu => "CPU, at most",
    };
    let share = 100.0 * part.takes.as_secs_f64() / part.of.as_secs_f64().max(1e-12);
    vec![
        name.to_owned(),
        part.takes.to_string(),
        part.of.to_string(),
        format!("{share:.0} %"),
    ]
}

fn describe_bottom(view: &TuneView<'_>, diagnosis: &Diagnosis) -> Option<String> {
    let bottom = diagnosis.bottom.as_ref()?;
    let metric = view.session.metric();
    let range =
        [bottom.figure.low, bottom.figure.high].map(|end| format_figure(metric.quantity, end));
    let what = capitalise(&bottom.what);
    let figures = format!("{metric} of {} to {} in eight rounds", range[0], range[1]);
    Some(match bottom.is_tunable {
        true => format!(
            "{what}, under the same load: {figures}. An answer with content takes longer; only a setting that speeds \
             up every answer gets further."
        ),
        false => format!(
            "{what} alone, under the same load: {figures}. No setting above it gets further."
        ),
    })
}

fn capitalise(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Describes the hardware that a goal would need if no setting reaches the goal; `None` if the session ended for
/// another reason.
pub(super) fn describe_purchase(view: &TuneView<'_>) -> Option<String> {
    let want = view.record.plan.goal.wants.get(view.session.objective())?;
    let criterion = want.criterion()?;
    if !matches!(view.session.ending(), Some(Ending::Beyond { .. })) {
        return None;
    }
    let diagnosis = view.session.diagnosis();
    let limit = diagnosis
        .and_then(|one| one.limit.as_ref())
        .map(|limit| limit.what);
    let wanted = format_figure(criterion.metric.quantity, criterion.threshold);
    let metric = criterion.metric;
    Some(match (&view.record.load, limit) {
        (assay_model::Load::Command { .. }, _) => format!(
            "A run of any program takes longer here: {metric} of {wanted} needs a faster CPU, or a load that does not \
             start a process for each operation."
        ),
        (assay_model::Load::Http(_), _) => format!(
            "Even the smallest answer takes longer here: {metric} of {wanted} needs faster or more CPUs for the \
             server, or fewer requests at once."
        ),
        (_, Some(LimitKind::Flush | LimitKind::OneAtATime)) => format!(
            "A device that makes this write durable with {metric} of {wanted} or better: any SSD with power-loss \
             protection, or such a device for the log alone. Or a load that waits for fewer flushes."
        ),
        _ => format!("A device that reaches {metric} of {wanted} under this load, or less work."),
    })
}
