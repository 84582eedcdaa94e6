//! Formats samples as CSV (RFC 4180), in base units.

use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::Judged;
use assay_model::sample::Outcome;
use assay_model::{Run, Sample};

/// Returns a header with units, and one line for each sample. A missing figure is an empty field.
pub fn table(run: &Run, samples: &[Sample], judged: &Judged) -> String {
    let metrics: Vec<Metric> = [
        Direction::All,
        Direction::Read,
        Direction::Write,
        Direction::Flush,
    ]
    .into_iter()
    .flat_map(|direction| {
        Quantity::ALL.map(|quantity| Metric {
            direction,
            quantity,
        })
    })
    .filter(|metric| {
        *metric
            != Metric {
                direction: Direction::Flush,
                quantity: Quantity::Throughput,
            }
    })
    .collect();
    let mut heads: Vec<String> = [
        "run_uid", "workload", "target", "round", "slot", "started", "wall_ns", "outcome", "tool",
        "validity", "doubts",
    ]
    .map(str::to_owned)
    .to_vec();
    heads.extend(metrics.iter().map(|metric| {
        let unit = match metric.quantity {
            Quantity::Iops => "per_s",
            Quantity::Throughput => "bytes_per_s",
            _ => "ns",
        };
        format!("{metric}_{unit}")
    }));
    let mut out = line(&heads);
    for (sample, one) in samples.iter().zip(&judged.samples) {
        let codes: Vec<&str> = one.doubts.iter().map(|doubt| doubt.code.as_str()).collect();
        let mut cells = vec![
            text(&run.uid),
            text(&sample.workload),
            text(&sample.target),
            sample.round.to_string(),
            sample.slot.to_string(),
            sample.started.to_string(),
            sample.wall.0.to_string(),
            outcome(&sample.outcome).to_owned(),
            text(&sample.tool),
            validity(one.validity).to_owned(),
            codes.join(" "),
        ];
        let figure = |metric| {
            one.figures
                .get(metric)
                .map_or_else(String::new, f64::to_string)
        };
        cells.extend(metrics.iter().map(figure));
        out.push_str(&line(&cells));
    }
    out
}

/// Returns the name of a sample's outcome in the CSV file.
pub fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Interrupted => "interrupted",
        Outcome::Failed { .. } => "failed",
        Outcome::TimedOut { .. } => "timed-out",
    }
}

/// Returns the name of a sample's validity in the CSV file.
pub fn validity(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => "valid",
        Validity::Suspect => "suspect",
        Validity::Void => "void",
    }
}

/// Escapes text that assay did not write. Spreadsheets interpret a text as a formula if it begins with one of these
/// characters. A leading apostrophe prevents this (OWASP, "CSV Injection").
fn text(value: &str) -> String {
    match value.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        true => format!("'{value}"),
        false => value.to_owned(),
    }
}

fn line(cells: &[String]) -> String {
    let quoted: Vec<String> = cells
        .iter()
        .map(|cell| match cell.contains([',', '"', '\r', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        })
        .collect();
    quoted.join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text_and_separators_are_quoted() {
        for (value, cell) in [
            (
                "=HYPERLINK(\"http://x\")",
                "\"'=HYPERLINK(\"\"http://x\"\")\"\r\n",
            ),
            ("@SUM(A1)", "'@SUM(A1)\r\n"),
            ("-2+3", "'-2+3\r\n"),
            ("\t=1", "'\t=1\r\n"),
            ("/srv/a, b", "\"/srv/a, b\"\r\n"),
            ("two\nlines", "\"two\nlines\"\r\n"),
            ("/srv", "/srv\r\n"),
        ] {
            assert_eq!(line(&[text(value)]), cell);
        }
    }
}
