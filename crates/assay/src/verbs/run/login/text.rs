//! What was measured of logins, for a terminal.

use super::Measured;
use assay_login::many::Crowd;
use assay_model::Nanos;
use assay_page::Style;
use assay_page::table::table;
use assay_page::text::clean;
use assay_page::units::{latency, plural};
use std::fmt::Write as _;

fn nanos(time: Nanos) -> String {
    latency(time.0 as f64)
}

/// Everything, in the order in which a reader asks.
pub fn of(measured: &Measured, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.bold(&clean(&measured.target)));
    if measured.logins.is_empty() && measured.failed.is_none() {
        out.push_str("Interrupted before a login had ended.\n");
        return out;
    }
    let whole: u64 = measured.parts.iter().map(|part| part.median.0).sum();
    let rows: Vec<Vec<String>> = measured
        .parts
        .iter()
        .map(|part| {
            let share = part.median.0 as f64 / whole.max(1) as f64 * 100.0;
            vec![
                part.part.name(),
                nanos(part.median),
                nanos(part.longest),
                format!("{share:.0} %"),
            ]
        })
        .collect();
    out.push_str(&table(
        2,
        "lrrr",
        &["part", "median", "longest", "share"],
        &rows,
    ));
    out.push('\n');
    if let Some(failed) = &measured.failed {
        style.paragraph(&mut out, "", 0, &format!("Failed: {}", clean(failed)));
    }
    let logins = plural(measured.logins.len() as u64, "login", "logins");
    match &measured.waits {
        Some(part) => {
            let text = format!("{logins}: they wait in {}.", part.name());
            style.paragraph(&mut out, "", 0, &text);
        }
        // One that failed at once did not wait, and was no whole login either.
        None if measured.failed.is_some() => {}
        None => {
            let text = format!(
                "{logins}, {} altogether: no part waits.",
                nanos(Nanos(whole))
            );
            style.paragraph(&mut out, "", 0, &text);
        }
    }
    if !measured.causes.is_empty() {
        out.push_str("\nLikely causes\n");
    }
    for cause in &measured.causes {
        let seen = match &cause.seen {
            Some(place) => format!("seen in {}", clean(place)),
            None => "not looked at".to_owned(),
        };
        let mut text = format!("{} ({seen})", clean(&cause.what));
        if !cause.then.is_empty() {
            let _ = write!(text, ". {}", capital(&clean(&cause.then)));
        }
        style.paragraph(&mut out, "- ", 2, &text);
    }
    if let Some(middle) = middle(&measured.control) {
        let text = format!(
            "\nOver a control socket (ControlMaster) a command takes {} instead of {}.",
            nanos(middle),
            nanos(Nanos(command(measured)))
        );
        out.push('\n');
        style.paragraph(&mut out, "", 0, text.trim());
    }
    crowds(&mut out, &measured.crowds, style);
    out
}

/// With a capital letter at the start.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).collect()
}

/// Time of a login without a shell for a person.
fn command(measured: &Measured) -> u64 {
    let parts = measured.parts.iter();
    let own = parts.filter(|part| part.part != assay_login::Part::Prompt);
    own.map(|part| part.median.0).sum()
}

fn middle(times: &[Nanos]) -> Option<Nanos> {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len().checked_sub(1)? / 2).copied()
}

fn crowds(out: &mut String, crowds: &[Crowd], style: Style) {
    if crowds.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = crowds
        .iter()
        .map(|crowd| {
            let time = |time: Option<Nanos>| time.map_or_else(|| "-".to_owned(), nanos);
            vec![
                crowd.size.to_string(),
                crowd.took.len().to_string(),
                time(crowd.median()),
                time(crowd.took.last().copied()),
            ]
        })
        .collect();
    out.push('\n');
    out.push_str(&table(
        2,
        "rrrr",
        &["at once", "got in", "median", "longest"],
        &rows,
    ));
    for crowd in crowds {
        for (why, count) in &crowd.refused {
            let text = format!("{} at once: {count} failed: {}", crowd.size, clean(why));
            style.paragraph(out, "", 2, &text);
        }
    }
    let turned_away = crowds.iter().flat_map(|crowd| &crowd.refused);
    let dropped = |why: &str| {
        [
            "kex_exchange",
            "ssh_exchange",
            "Connection reset",
            "Connection closed",
        ]
        .iter()
        .any(|said| why.contains(said))
    };
    if turned_away.clone().any(|(why, _)| dropped(why)) {
        let text = "sshd turns connections away before the login: MaxStartups (10:30:100 unless it is set) \
                    is the usual reason, and PerSourceMaxStartups.";
        style.paragraph(out, "", 0, text);
    }
}
