//! The verdict and its evidence for a terminal.

use super::View;
use super::change;
use super::evidence::{self, GuardState, Median, Row, cell, row_change};
use super::words;
use crate::terminal::section;
use assay_model::Nanos;
use assay_model::advice::RiskLevel;
use assay_model::change::Change;
use assay_model::trial::{Kept, Side, Trial, TrialState, Verdict};
use assay_render::Style;
use assay_render::text::{clean, left, right, width, wrap};
use assay_render::units::{NONE, count, time};

/// The verdict first, then what it rests on.
#[must_use]
pub fn terminal(view: &View, style: Style) -> String {
    let mut out = String::new();
    verdict(view, &mut out, style);
    about(view, &mut out, style);
    figures(view, &mut out, style);
    guards(view, &mut out, style);
    durability(view, &mut out, style);
    doubts(view, &mut out, style);
    left_out(view, &mut out, style);
    machine(view, &mut out, style);
    section("What became of it", &mut out, style);
    for line in became(view) {
        style.paragraph(&mut out, "", 2, &line);
    }
    section("Next", &mut out, style);
    let page = format!("assay trial --show {} --html trial.html", named(view.trial));
    let page = [(page, "charts and all evidence")];
    for (command, what) in page.into_iter().chain(next(view)) {
        match width(&command) > 36 {
            true => out.push_str(&format!("  {command}\n      {what}\n")),
            false => out.push_str(&format!("  {}  {what}\n", left(&command, 36))),
        }
    }
    out
}

/// SGR of a verdict: bold, and green, red or yellow.
fn sgr(view: &View) -> &'static str {
    match (view.trial.plan.aa, view.judgement.verdict) {
        (true, Verdict::Better | Verdict::Worse) => "1;33",
        (true, _) => "1",
        (_, Verdict::Better) => "1;32",
        (_, Verdict::Worse | Verdict::Unsafe) => "1;31",
        (_, Verdict::NoPracticalDifference) => "1",
        (_, Verdict::Undecided) => "1;33",
    }
}

fn verdict(view: &View, out: &mut String, style: Style) {
    for (i, line) in wrap(&words::verdict_line(view), style.columns())
        .iter()
        .enumerate()
    {
        let word = words::headline(view);
        let line = match line.strip_prefix(word) {
            Some(rest) if i == 0 => format!("{}{rest}", style.paint(sgr(view), word)),
            _ => line.clone(),
        };
        out.push_str(&line);
        out.push('\n');
    }
    if gains(view) {
        style.paragraph(
            out,
            "",
            0,
            &format!("It does not matter that it measured {}.", gain(view)),
        );
    }
}

/// Whether something unsafe measured better, which then is said to be of no weight.
pub(super) fn gains(view: &View) -> bool {
    let better = view.judgement.ratio.is_some_and(|ratio| ratio > 1.0);
    view.judgement.verdict == Verdict::Unsafe && better
}

/// What the pairs say of the figure, for a verdict that does not rest on it.
pub(super) fn gain(view: &View) -> String {
    let plan = &view.trial.plan;
    view.judgement.ratio.map_or(NONE.to_owned(), |ratio| {
        words::change(&plan.load, plan.metric, ratio, view.judgement.interval)
    })
}

/// The rows above the figures: what was tested, on what, when.
pub(super) fn subject(view: &View) -> Vec<(&'static str, String)> {
    let (trial, plan) = (view.trial, &view.trial.plan);
    let read = |side: Side| {
        let slot = view.slots.iter().find(|slot| slot.side == side);
        slot.map(|slot| clean(&slot.read_back))
            .filter(|text| !text.is_empty())
    };
    let told = change::told(&plan.change, read(Side::Now).as_deref());
    let mut rows = vec![(
        "advice",
        format!("{}: {}", clean(&plan.advice), clean(&plan.title)),
    )];
    if !plan.target.is_empty() {
        rows.push(("target", clean(&plan.target)));
    }
    rows.push(("changed", told.what));
    match plan.aa {
        true => rows.push(("A and B", told.now.unwrap_or_else(|| "as it is".to_owned()))),
        false => {
            rows.push((
                "A, as it is",
                told.now.unwrap_or_else(|| "as it was".to_owned()),
            ));
            rows.push(("B, changed", told.changed));
            rows.extend(read_back_rows(view));
        }
    }
    rows.push(("load", clean(&plan.load.describe())));
    rows.push(("trial", when(trial)));
    rows
}

/// What tells copies apart, as it was read back; for a setting A already says it.
fn read_back_rows(view: &View) -> Option<(&'static str, String)> {
    let copies = matches!(view.trial.plan.change, Change::SideBySide { .. });
    let (a, b) = (read_back(view, Side::Now)?, read_back(view, Side::Changed)?);
    copies.then(|| ("read back", format!("A {a}; B {b}")))
}

/// The value that was read back before the first measurement of a side.
fn read_back(view: &View, side: Side) -> Option<String> {
    let slot = view.slots.iter().find(|slot| slot.side == side)?;
    Some(clean(&slot.read_back)).filter(|text| !text.is_empty())
}

fn when(trial: &Trial) -> String {
    let mut parts = vec![match trial.id.0 {
        0 => "not stored".to_owned(),
        id => id.to_string(),
    }];
    parts.push(time(trial.started));
    if let Some(ended) = trial.ended {
        let seconds = ended.duration_since(trial.started).as_secs_f64();
        parts.push(Nanos::from_secs_f64(seconds).to_string());
    }
    match trial.state {
        TrialState::Complete => {}
        TrialState::Running => parts.push("not finished: still going on, or cut off".to_owned()),
        TrialState::Stopped => parts.push("stopped early".to_owned()),
    }
    parts.join(", ")
}

fn about(view: &View, out: &mut String, style: Style) {
    out.push('\n');
    for (label, text) in subject(view) {
        style.paragraph(out, &format!("  {label}"), 15, &text);
    }
    for remark in &view.trial.remarks {
        style.paragraph(out, "  note", 15, &clean(remark));
    }
}

/// A median with its interval: `12,346 (11,900–12,800)`.
pub(super) fn with_interval(row: &Row, median: Option<Median>) -> String {
    let Some(median) = median else {
        return NONE.to_owned();
    };
    let range = median.interval;
    let range = range.map(|i| format!(" ({})", evidence::range(row.metric, i)));
    format!(
        "{}{}",
        cell(row.metric, median.value),
        range.unwrap_or_default()
    )
}

fn plain(row: &Row, median: Option<Median>) -> String {
    median.map_or(NONE.to_owned(), |median| cell(row.metric, median.value))
}

fn figures(view: &View, out: &mut String, style: Style) {
    let rows = evidence::table(view);
    if !rows
        .iter()
        .any(|row| row.now.is_some() || row.changed.is_some())
    {
        return;
    }
    section(
        "Figures (A, B: median over the pairs; B/A with its interval)",
        out,
        style,
    );
    let load = &view.trial.plan.load;
    let mut lines = vec![[
        String::new(),
        "A".to_owned(),
        "B".to_owned(),
        "B/A".to_owned(),
    ]];
    for row in &rows {
        let mark = if row.decides { "*" } else { "" };
        lines.push([
            format!("{}{mark}", words::short_metric(load, row.metric)),
            plain(row, row.now),
            plain(row, row.changed),
            row_change(row),
        ]);
    }
    columns(&lines, out, style);
    let note = format!(
        "* decides; B/A is the centre of the pairs' own ratios; MB/s = 10^6 bytes per second; \
         {} measured",
        count(view.judgement.pairs as usize, "pair")
    );
    for line in wrap(&note, style.columns() - 2) {
        out.push_str(&format!("  {}\n", style.dim(&line)));
    }
}

/// Columns as wide as they need to be, the first to the left. Lines that do not fit are broken
/// before their last column but one.
fn columns<const N: usize>(lines: &[[String; N]], out: &mut String, style: Style) {
    let widest = |i: usize| lines.iter().map(|line| width(&line[i])).max().unwrap_or(0);
    for (n, line) in lines.iter().enumerate() {
        let mut text = format!("  {}", left(&line[0], widest(0)));
        for (i, cell) in line.iter().enumerate().skip(1) {
            text.push_str(&format!("  {}", right(cell, widest(i))));
        }
        let text = text.trim_end();
        out.push_str(&if n == 0 {
            style.dim(text)
        } else {
            text.to_owned()
        });
        out.push('\n');
    }
}

fn guards(view: &View, out: &mut String, style: Style) {
    let rows = evidence::bounds(view);
    if rows.is_empty() {
        return;
    }
    section("Guardrails", out, style);
    let names = rows.iter().map(|row| width(&row.name)).max().unwrap_or(0);
    for row in rows {
        let code = match row.state {
            GuardState::Held => "32",
            GuardState::Broken => "31",
            GuardState::Open | GuardState::Beyond => "33",
            GuardState::Within => "0",
        };
        let word = style.paint(code, &left(row.state.word(), 10));
        let lead = format!("  {word}  {}  ", left(&row.name, names));
        let indent = names + 16;
        let room = style.columns().saturating_sub(indent).max(20);
        let lines = wrap(&row.text, room);
        out.push_str(&format!(
            "{lead}{}\n",
            lines.join(&format!("\n{}", " ".repeat(indent)))
        ));
    }
    let proved = evidence::proved(view).map(|text| wrap(&text, style.columns() - 2));
    for line in proved.into_iter().flatten() {
        out.push_str(&format!("  {}\n", style.dim(&line)));
    }
}

/// What the flush test found, in words.
pub(super) fn proofs(trial: &Trial) -> Vec<(Side, String, bool)> {
    let told = |proof: &assay_model::trial::DurabilityProof| {
        let text = match (proof.acknowledged, proof.lost) {
            (0, _) => "nothing was acknowledged, so nothing is proved".to_owned(),
            (all, 0) => format!("all {} acknowledged writes were durable", number(all)),
            (all, lost) => format!(
                "{} of {} acknowledged writes were lost at the worst moment",
                number(lost),
                number(all)
            ),
        };
        (
            proof.side,
            format!("{text} ({})", clean(&proof.method)),
            proof.lost > 0,
        )
    };
    trial.durability.iter().map(told).collect()
}

fn number(n: u64) -> String {
    match n {
        n if n < 1000 => n.to_string(),
        n => assay_model::units::significant(n as f64),
    }
}

/// `A` or `B`.
pub(super) fn side(side: Side) -> &'static str {
    match side {
        Side::Now => "A",
        Side::Changed => "B",
    }
}

fn durability(view: &View, out: &mut String, style: Style) {
    let proofs = proofs(view.trial);
    if proofs.is_empty() {
        return;
    }
    section("Are acknowledged writes durable?", out, style);
    for (which, text, lost) in proofs {
        let mut lines = String::new();
        style.paragraph(&mut lines, &format!("  {}", side(which)), 5, &text);
        let lines: Vec<String> = lines
            .lines()
            .map(|line| {
                if lost {
                    style.paint("31", line)
                } else {
                    line.to_owned()
                }
            })
            .collect();
        out.push_str(&format!("{}\n", lines.join("\n")));
    }
}

fn doubts(view: &View, out: &mut String, style: Style) {
    let found = evidence::doubts(view);
    if found.is_empty() {
        return;
    }
    section("Doubts", out, style);
    for one in found {
        let severity = one.doubt.severity.name();
        let code = if severity == "void" { "31" } else { "33" };
        let title = format!("{} ({severity})", clean(&one.doubt.code));
        out.push_str(&format!("  {}\n", style.paint(code, &title)));
        style.paragraph(out, "    seen", 12, &clean(&one.doubt.evidence));
        style.paragraph(out, "    instead", 12, &clean(&one.doubt.remedy));
        style.paragraph(out, "    in", 12, &carried(&one));
    }
}

/// `3 measurements of A, 2 of B`.
pub(super) fn carried(one: &evidence::Carried) -> String {
    let [a, b] = one.slots;
    match (a, b) {
        (0, b) => format!("{} of B", count(b as usize, "measurement")),
        (a, 0) => format!("{} of A", count(a as usize, "measurement")),
        (a, b) => format!("{} of A, {b} of B", count(a as usize, "measurement")),
    }
}

fn left_out(view: &View, out: &mut String, style: Style) {
    let found = evidence::left_out(view);
    if found.is_empty() {
        return;
    }
    section("Left out", out, style);
    for (kind, reason, pairs) in found {
        let text = format!("{}, {kind}: {reason}", evidence::pair_numbers(&pairs));
        style.paragraph(out, "  -", 4, &text);
    }
}

fn machine(view: &View, out: &mut String, style: Style) {
    section("Where", out, style);
    for line in environment(view) {
        style.paragraph(out, "", 2, &line);
    }
}

/// Machine, storage, tools, seed: what somebody needs who repeats it.
pub(super) fn environment(view: &View) -> Vec<String> {
    let trial = view.trial;
    let mut lines: Vec<String> = crate::subject::machine(&trial.facts).into_iter().collect();
    if let Some(target) = &trial.target {
        let parts = [
            crate::subject::storage(&trial.facts, target),
            crate::subject::sizes(&trial.facts, target),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            lines.push(parts.join("; "));
        }
    }
    let mut tools: Vec<String> = view
        .slots
        .iter()
        .map(|slot| clean(&slot.sample.tool))
        .collect();
    tools.sort();
    tools.dedup();
    tools.push(format!("assay {}", clean(&trial.assay_version)));
    tools.push(format!("seed {}", trial.plan.seed));
    lines.push(tools.join(", "));
    lines
}

/// What became of the change, and what the user can do about it.
pub(super) fn became(view: &View) -> Vec<String> {
    let trial = view.trial;
    let plan = &trial.plan;
    let copies = matches!(plan.change, Change::SideBySide { .. });
    match trial.kept {
        Some(Kept::Kept) => {
            let what = match plan.keep.as_ref().unwrap_or(&plan.change) {
                Change::Set { setting, .. } => change::setting(setting),
                Change::SideBySide { .. } => "the change".to_owned(),
            };
            let mut lines = vec![format!("kept: {what} is now as in B")];
            let was = match plan.keep {
                None => read_back(view, Side::Now),
                Some(_) => None,
            };
            lines.push(match was {
                Some(was) => format!("to take it back, set it to {was}, as it was"),
                None => "to take it back, set it to what it was in A".to_owned(),
            });
            lines
        }
        Some(Kept::Reverted) | None if plan.aa => vec!["nothing was changed".to_owned()],
        Some(Kept::Reverted) if copies => {
            let mut lines =
                vec!["nothing of yours was changed: what assay made was removed".to_owned()];
            if view.judgement.verdict == Verdict::Better && plan.keep.is_none() {
                lines.push(
                    "it was tried on copies: to have it, make the change yourself".to_owned(),
                );
            }
            lines
        }
        Some(Kept::Reverted) => {
            vec!["reverted: the machine is as it was, and was read back".to_owned()]
        }
        None => vec!["not known yet: the trial did not get to its end".to_owned()],
    }
}

/// Commands and what they do.
pub(super) fn next(view: &View) -> Vec<(String, &'static str)> {
    let trial = view.trial;
    let id = named(trial);
    let advice = clean(&trial.plan.advice);
    let again = match trial.plan.target.is_empty() {
        true => format!("assay trial {advice}"),
        false => format!("assay trial {advice} {}", quoted(&trial.plan.target)),
    };
    let mut lines = Vec::new();
    // As `assay trial` itself refuses: no gain makes up for data that was acknowledged as safe.
    let safe = trial.plan.safety.is_none() && trial.plan.risk != RiskLevel::DataLoss;
    let keepable =
        safe && (trial.plan.keep.is_some() || matches!(trial.plan.change, Change::Set { .. }));
    match (view.judgement.verdict, trial.kept) {
        (_, Some(Kept::Kept)) => {}
        (_, None) => lines.push(("assay trial --recover".to_owned(), "set everything back")),
        (Verdict::Better, _) if keepable && !trial.plan.aa => {
            lines.push((
                format!("{again} --keep"),
                "once more, and keep it if still better",
            ));
        }
        _ => {}
    }
    if trial.state != TrialState::Complete {
        lines.push((format!("assay trial --resume {id}"), "go on"));
    }
    lines.push((again, "repeat it on another day"));
    lines
}

fn named(trial: &Trial) -> String {
    match trial.id.0 {
        0 => "TRIAL".to_owned(),
        id => id.to_string(),
    }
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", clean(word).replace('\'', "'\\''")),
    }
}
