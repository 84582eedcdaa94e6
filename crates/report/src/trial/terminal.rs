//! The terminal report of a trial: the verdict and its evidence. Shared text is in `trial_text`
//! and `trial_tables`.

use super::TrialView;
use super::change_text;
use super::trial_tables::{
    self, ComparedFigure, GuardState, PairMedian, format_cell, format_row_change,
};
use super::trial_text;
use crate::terminal::write_section_heading;
use assay_model::Nanos;
use assay_model::advice::RiskLevel;
use assay_model::change::Change;
use assay_model::trial::{Kept, Side, Trial, TrialState, Verdict};
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_left, pad_right, wrap_lines};
use assay_render::units::{NONE, format_count, format_timestamp};

/// Renders the verdict, followed by its evidence.
#[must_use]
pub fn render_trial_text(view: &TrialView, style: Style) -> String {
    let mut out = String::new();
    write_verdict(view, &mut out, style);
    write_subject(view, &mut out, style);
    write_figures(view, &mut out, style);
    write_guards(view, &mut out, style);
    write_durability(view, &mut out, style);
    write_doubts(view, &mut out, style);
    write_left_out_pairs(view, &mut out, style);
    write_machine(view, &mut out, style);
    write_section_heading("What became of it", &mut out, style);
    for line in describe_change_state(view) {
        style.write_paragraph(&mut out, "", 2, &line);
    }
    write_section_heading("Next", &mut out, style);
    let page = format!(
        "assay trial --show {} --html trial.html",
        choose_command_name(view.trial)
    );
    let page = [(page, "charts and all evidence")];
    for (command, what) in page.into_iter().chain(list_next_commands(view)) {
        match measure_width(&command) > 36 {
            true => out.push_str(&format!("  {command}\n      {what}\n")),
            false => out.push_str(&format!("  {}  {what}\n", pad_right(&command, 36))),
        }
    }
    out
}

/// Returns the ANSI style of a verdict: bold, and green, red or yellow.
fn verdict_sgr(view: &TrialView) -> &'static str {
    match (view.trial.plan.aa, view.judgement.verdict) {
        (true, Verdict::Better | Verdict::Worse) => "1;33",
        (true, _) => "1",
        (_, Verdict::Better) => "1;32",
        (_, Verdict::Worse | Verdict::Unsafe) => "1;31",
        (_, Verdict::NoPracticalDifference) => "1",
        (_, Verdict::Undecided) => "1;33",
    }
}

fn write_verdict(view: &TrialView, out: &mut String, style: Style) {
    for (i, line) in wrap_lines(&trial_text::format_verdict_line(view), style.columns())
        .iter()
        .enumerate()
    {
        let word = trial_text::headline_word(view);
        let line = match line.strip_prefix(word) {
            Some(rest) if i == 0 => format!("{}{rest}", style.paint(verdict_sgr(view), word)),
            _ => line.clone(),
        };
        out.push_str(&line);
        out.push('\n');
    }
    if has_unproved_gain(view) {
        style.write_paragraph(
            out,
            "",
            0,
            &format!(
                "It does not matter that it measured {}.",
                describe_unproved_gain(view)
            ),
        );
    }
}

/// Whether a change with the verdict `unsafe` measured better. The report then states that the gain does not count.
pub(super) fn has_unproved_gain(view: &TrialView) -> bool {
    let better = view.judgement.ratio.is_some_and(|ratio| ratio > 1.0);
    view.judgement.verdict == Verdict::Unsafe && better
}

/// Describes the measured gain of a change whose verdict is `unsafe`.
pub(super) fn describe_unproved_gain(view: &TrialView) -> String {
    let plan = &view.trial.plan;
    view.judgement.ratio.map_or(NONE.to_owned(), |ratio| {
        trial_text::describe_metric_change(&plan.load, plan.metric, ratio, view.judgement.interval)
    })
}

/// Returns the rows above the figures: what was tested, on which target, and when.
pub(super) fn build_subject_rows(view: &TrialView) -> Vec<(&'static str, String)> {
    let (trial, plan) = (view.trial, &view.trial.plan);
    let read = |side: Side| {
        let slot = view.slots.iter().find(|slot| slot.side == side);
        slot.map(|slot| escape_line(&slot.read_back))
            .filter(|text| !text.is_empty())
    };
    let described = change_text::describe_change(&plan.change, read(Side::Now).as_deref());
    let mut rows = vec![(
        "advice",
        format!(
            "{}: {}",
            escape_line(&plan.advice),
            escape_line(&plan.title)
        ),
    )];
    if !plan.target.is_empty() {
        rows.push(("target", escape_line(&plan.target)));
    }
    rows.push(("changed", described.what));
    match plan.aa {
        true => rows.push((
            "A and B",
            described.now.unwrap_or_else(|| "as it is".to_owned()),
        )),
        false => {
            rows.push((
                "A, as it is",
                described.now.unwrap_or_else(|| "as it was".to_owned()),
            ));
            rows.push(("B, changed", described.changed));
            rows.extend(read_back_row(view));
        }
    }
    rows.push(("load", escape_line(&plan.load.describe())));
    rows.push(("trial", format_time(trial)));
    rows
}

/// Returns the property of copies that was read back; `None` for a setting, because row A already contains its value.
fn read_back_row(view: &TrialView) -> Option<(&'static str, String)> {
    let copies = matches!(view.trial.plan.change, Change::SideBySide { .. });
    let (a, b) = (
        read_back_value(view, Side::Now)?,
        read_back_value(view, Side::Changed)?,
    );
    copies.then(|| ("read back", format!("A {a}; B {b}")))
}

/// Returns the value read back before the first slot of a side.
fn read_back_value(view: &TrialView, side: Side) -> Option<String> {
    let slot = view.slots.iter().find(|slot| slot.side == side)?;
    Some(escape_line(&slot.read_back)).filter(|text| !text.is_empty())
}

fn format_time(trial: &Trial) -> String {
    let mut parts = vec![match trial.id.0 {
        0 => "not stored".to_owned(),
        id => id.to_string(),
    }];
    parts.push(format_timestamp(trial.started));
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

fn write_subject(view: &TrialView, out: &mut String, style: Style) {
    out.push('\n');
    for (label, text) in build_subject_rows(view) {
        style.write_paragraph(out, &format!("  {label}"), 15, &text);
    }
    for remark in &view.trial.remarks {
        style.write_paragraph(out, "  note", 15, &escape_line(remark));
    }
}

/// Formats a median with its interval, such as `12,346 (11,900–12,800)`.
pub(super) fn format_median_with_interval(
    row: &ComparedFigure,
    median: Option<PairMedian>,
) -> String {
    let Some(median) = median else {
        return NONE.to_owned();
    };
    let range = median.interval;
    let range = range.map(|i| format!(" ({})", trial_tables::format_range(row.metric, i)));
    format!(
        "{}{}",
        format_cell(row.metric, median.value),
        range.unwrap_or_default()
    )
}

fn format_median(row: &ComparedFigure, median: Option<PairMedian>) -> String {
    median.map_or(NONE.to_owned(), |median| {
        format_cell(row.metric, median.value)
    })
}

fn write_figures(view: &TrialView, out: &mut String, style: Style) {
    let rows = trial_tables::build_figure_rows(view);
    if !rows
        .iter()
        .any(|row| row.now.is_some() || row.changed.is_some())
    {
        return;
    }
    write_section_heading(
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
            format!("{}{mark}", trial_text::short_metric_name(load, row.metric)),
            format_median(row, row.now),
            format_median(row, row.changed),
            format_row_change(row),
        ]);
    }
    write_columns(&lines, out, style);
    let note = format!(
        "* decides; B/A is the centre of the pairs' own ratios; MB/s = 10^6 bytes per second; \
         {} measured",
        format_count(view.judgement.pairs as usize, "pair")
    );
    for line in wrap_lines(&note, style.columns() - 2) {
        out.push_str(&format!("  {}\n", style.dim(&line)));
    }
}

/// Writes columns as wide as needed, the first left-aligned. A line that does not fit is broken before its second-last
/// column.
fn write_columns<const N: usize>(lines: &[[String; N]], out: &mut String, style: Style) {
    let widest = |i: usize| {
        lines
            .iter()
            .map(|line| measure_width(&line[i]))
            .max()
            .unwrap_or(0)
    };
    for (n, line) in lines.iter().enumerate() {
        let mut text = format!("  {}", pad_right(&line[0], widest(0)));
        for (i, cell) in line.iter().enumerate().skip(1) {
            text.push_str(&format!("  {}", pad_left(cell, widest(i))));
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

fn write_guards(view: &TrialView, out: &mut String, style: Style) {
    let rows = trial_tables::build_guard_and_total_rows(view);
    if rows.is_empty() {
        return;
    }
    write_section_heading("Guardrails", out, style);
    let names = rows
        .iter()
        .map(|row| measure_width(&row.name))
        .max()
        .unwrap_or(0);
    for row in rows {
        let code = match row.state {
            GuardState::Held => "32",
            GuardState::Broken => "31",
            GuardState::Open | GuardState::Beyond => "33",
            GuardState::Within => "0",
        };
        let word = style.paint(code, &pad_right(row.state.word(), 10));
        let lead = format!("  {word}  {}  ", pad_right(&row.name, names));
        let indent = names + 16;
        let room = style.columns().saturating_sub(indent).max(20);
        let lines = wrap_lines(&row.text, room);
        out.push_str(&format!(
            "{lead}{}\n",
            lines.join(&format!("\n{}", " ".repeat(indent)))
        ));
    }
    let proved =
        trial_tables::describe_proof(view).map(|text| wrap_lines(&text, style.columns() - 2));
    for line in proved.into_iter().flatten() {
        out.push_str(&format!("  {}\n", style.dim(&line)));
    }
}

/// Describes the results of the flush test for each side.
pub(super) fn describe_flush_tests(trial: &Trial) -> Vec<(Side, String, bool)> {
    let described = |proof: &assay_model::trial::DurabilityProof| {
        let text = match (proof.acknowledged, proof.lost) {
            (0, _) => "nothing was acknowledged, so nothing is proved".to_owned(),
            (all, 0) => format!(
                "all {} acknowledged writes were durable",
                format_number(all)
            ),
            (all, lost) => format!(
                "{} of {} acknowledged writes were lost at the worst moment",
                format_number(lost),
                format_number(all)
            ),
        };
        (
            proof.side,
            format!("{text} ({})", escape_line(&proof.method)),
            proof.lost > 0,
        )
    };
    trial.durability.iter().map(described).collect()
}

fn format_number(n: u64) -> String {
    match n {
        n if n < 1000 => n.to_string(),
        n => assay_model::units::format_significant(n as f64),
    }
}

/// Returns the letter of a side, `A` or `B`.
pub(super) fn side_letter(side: Side) -> &'static str {
    match side {
        Side::Now => "A",
        Side::Changed => "B",
    }
}

fn write_durability(view: &TrialView, out: &mut String, style: Style) {
    let proofs = describe_flush_tests(view.trial);
    if proofs.is_empty() {
        return;
    }
    write_section_heading("Are acknowledged writes durable?", out, style);
    for (which, text, lost) in proofs {
        let mut lines = String::new();
        style.write_paragraph(&mut lines, &format!("  {}", side_letter(which)), 5, &text);
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

fn write_doubts(view: &TrialView, out: &mut String, style: Style) {
    let found = trial_tables::count_doubts(view);
    if found.is_empty() {
        return;
    }
    write_section_heading("Doubts", out, style);
    for one in found {
        let severity = one.doubt.severity.name();
        let code = if severity == "void" { "31" } else { "33" };
        let title = format!("{} ({severity})", escape_line(&one.doubt.code));
        out.push_str(&format!("  {}\n", style.paint(code, &title)));
        style.write_paragraph(out, "    seen", 12, &escape_line(&one.doubt.evidence));
        style.write_paragraph(out, "    instead", 12, &escape_line(&one.doubt.remedy));
        style.write_paragraph(out, "    in", 12, &describe_carriers(&one));
    }
}

/// Formats the extent of a doubt, such as `3 measurements of A, 2 of B`.
pub(super) fn describe_carriers(one: &trial_tables::SideDoubt) -> String {
    let [a, b] = one.slots;
    match (a, b) {
        (0, b) => format!("{} of B", format_count(b as usize, "measurement")),
        (a, 0) => format!("{} of A", format_count(a as usize, "measurement")),
        (a, b) => format!("{} of A, {b} of B", format_count(a as usize, "measurement")),
    }
}

fn write_left_out_pairs(view: &TrialView, out: &mut String, style: Style) {
    let found = trial_tables::list_left_out_pairs(view);
    if found.is_empty() {
        return;
    }
    write_section_heading("Left out", out, style);
    for (kind, reason, pairs) in found {
        let text = format!(
            "{}, {kind}: {reason}",
            trial_tables::format_pair_numbers(&pairs)
        );
        style.write_paragraph(out, "  -", 4, &text);
    }
}

fn write_machine(view: &TrialView, out: &mut String, style: Style) {
    write_section_heading("Where", out, style);
    for line in describe_environment(view) {
        style.write_paragraph(out, "", 2, &line);
    }
}

/// Describes what a repetition of the trial needs: machine, storage, tools, seed.
pub(super) fn describe_environment(view: &TrialView) -> Vec<String> {
    let trial = view.trial;
    let mut lines: Vec<String> = crate::run_description::describe_machine(&trial.facts)
        .into_iter()
        .collect();
    if let Some(target) = &trial.target {
        let parts = [
            crate::run_description::describe_storage(&trial.facts, target),
            crate::run_description::describe_sizes(&trial.facts, target),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            lines.push(parts.join("; "));
        }
    }
    let mut tools: Vec<String> = view
        .slots
        .iter()
        .map(|slot| escape_line(&slot.sample.tool))
        .collect();
    tools.sort();
    tools.dedup();
    tools.push(format!("assay {}", escape_line(&trial.assay_version)));
    tools.push(format!("seed {}", trial.plan.seed));
    lines.push(tools.join(", "));
    lines
}

/// Describes whether the change is in effect now, and what the user can do about it.
pub(super) fn describe_change_state(view: &TrialView) -> Vec<String> {
    let trial = view.trial;
    let plan = &trial.plan;
    let copies = matches!(plan.change, Change::SideBySide { .. });
    match trial.kept {
        Some(Kept::Kept) => {
            let what = match plan.keep.as_ref().unwrap_or(&plan.change) {
                Change::Set { setting, .. } => change_text::describe_setting(setting),
                Change::SideBySide { .. } => "the change".to_owned(),
            };
            let mut lines = vec![format!("kept: {what} is now as in B")];
            if trial.kept_in.is_some() {
                lines.push(format!(
                    "`assay trial --undo {}` reverts it",
                    choose_command_name(trial)
                ));
                return lines;
            }
            let was = match plan.keep {
                None => read_back_value(view, Side::Now),
                Some(_) => None,
            };
            lines.push(match was {
                Some(was) => format!("to revert it, set it to {was}, as it was"),
                None => "to revert it, set it to what it was in A".to_owned(),
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

/// Returns the commands that a user may run next, with their descriptions.
pub(super) fn list_next_commands(view: &TrialView) -> Vec<(String, &'static str)> {
    let trial = view.trial;
    let id = choose_command_name(trial);
    let advice = escape_line(&trial.plan.advice);
    let again = match trial.plan.target.is_empty() {
        true => format!("assay trial {advice}"),
        false => format!(
            "assay trial {advice} {}",
            quote_for_shell(&trial.plan.target)
        ),
    };
    let mut lines = Vec::new();
    // Follows `assay trial`, which never keeps an unsafe change: no gain outweighs lost data.
    let safe = trial.plan.safety.is_none() && trial.plan.risk != RiskLevel::DataLoss;
    let keepable =
        safe && (trial.plan.keep.is_some() || matches!(trial.plan.change, Change::Set { .. }));
    match (view.judgement.verdict, trial.kept) {
        (_, Some(Kept::Kept)) if trial.kept_in.is_some() => {
            lines.push((format!("assay trial --undo {id}"), "revert it"));
        }
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

fn choose_command_name(trial: &Trial) -> String {
    match trial.id.0 {
        0 => "TRIAL".to_owned(),
        id => id.to_string(),
    }
}

/// Quotes a word for a POSIX shell.
fn quote_for_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", escape_line(word).replace('\'', "'\\''")),
    }
}
