//! The sections below the figures: criteria, limits, steadiness, failures, next steps. The figures
//! are in `result_tables` and `grid_table`.

use super::{format_share, format_some_names, write_section_heading};
use assay_model::Run;
use assay_model::doubt::Validity;
use assay_model::result::{CriterionResult, Judged, LimitKind, Steadiness, WorkloadResult};
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_right};
use assay_render::units::{format_range, format_value_with_unit};

/// Returns the name of a kind of limit.
pub(crate) fn limit_name(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::OneAtATime => "one request at a time",
        LimitKind::Flush => "flush after each write",
        LimitKind::ToolCpu => "CPU of the load generator",
        LimitKind::MachineCpu => "CPU of the machine",
        LimitKind::Steal => "CPU taken by the hypervisor",
        LimitKind::Depth => "requests in flight",
        LimitKind::Device => "device at its limit",
        LimitKind::Link => "link or bus",
        LimitKind::RateLimit => "rate limit",
        LimitKind::Throttling => "throttling",
        LimitKind::Memory => "memory",
        LimitKind::RateAsked => "the rate asked for",
        LimitKind::Server => "server",
        LimitKind::Backend => "backend of the server",
        LimitKind::AcceptQueue => "accept queue of the server",
        LimitKind::Network => "network",
        LimitKind::Schedule => "schedule",
        LimitKind::Ports => "local ports",
        LimitKind::Unknown => "not known",
    }
}

/// Describes whether a criterion was met: the verdict, and how certain it is.
pub(crate) fn describe_criterion(result: &CriterionResult) -> (&'static str, String) {
    let quantity = result.criterion.metric.quantity;
    let verdict = match result.met {
        true => "met",
        false => "missed",
    };
    let Some(value) = &result.value else {
        return (verdict, "no valid figure".to_owned());
    };
    let mut text = format_value_with_unit(quantity, value.value);
    match value.interval {
        Some(interval) => text.push_str(&format!(" ({})", format_range(quantity, &interval))),
        None => text.push_str(" (one round, no interval)"),
    }
    if !result.clear && value.interval.is_some() {
        text.push_str(
            "; too close to tell: the interval contains the threshold, more rounds may turn it",
        );
    }
    (verdict, text)
}

pub(super) fn write_criteria(judged: &Judged, out: &mut String, style: Style) {
    if judged.criteria.is_empty() {
        return;
    }
    write_section_heading("Criteria", out, style);
    let several = super::list_targets(judged).len() > 1;
    for result in &judged.criteria {
        let (verdict, why) = describe_criterion(result);
        let (sgr, mark) = match (result.met, result.clear) {
            (true, true) => ("32", "met"),
            (true, false) => ("33", "met?"),
            (false, true) => ("31", "missed"),
            (false, false) if result.value.is_some() => ("33", "missed?"),
            (false, false) => ("31", verdict),
        };
        let mut name = escape_line(&result.criterion.to_string());
        if several && result.criterion.target.is_none() {
            name.push_str(&format!(" on {}", escape_line(&result.target)));
        }
        out.push_str(&format!(
            "  {}{name}\n",
            style.paint(sgr, &pad_right(mark, 9))
        ));
        style.write_paragraph(out, "", 11, &why);
    }
}

/// Writes what limited the results. Writes one line for each result, or with `grouped` one line for each kind of limit.
pub(super) fn write_limits(judged: &Judged, grouped: bool, out: &mut String, style: Style) {
    let counted: Vec<&WorkloadResult> = judged
        .results
        .iter()
        .filter(|result| result.validity != Validity::Void)
        .collect();
    if counted.is_empty() {
        return;
    }
    write_section_heading("Why not more?", out, style);
    let mut parts: Vec<&str> = counted
        .iter()
        .map(|result| result.limit.evidence.as_str())
        .collect();
    parts.sort_unstable();
    parts.dedup();
    let repeats = parts.len() * 2 <= counted.len();
    if grouped || repeats || counted.len() > 12 {
        for (kind, members) in group_by_limit(&counted) {
            let names: Vec<String> = members
                .iter()
                .map(|result| escape_line(&result.workload))
                .collect();
            let title = format!(
                "{}: {}",
                limit_name(kind),
                format_share(names.len(), counted.len())
            );
            out.push_str(&format!("  {title}\n"));
            style.write_paragraph(out, "", 4, &format_some_names(&names, 6));
            if let Some(first) = members.first() {
                let evidence = escape_line(&first.limit.evidence);
                let same = members
                    .iter()
                    .all(|other| other.limit.evidence == first.limit.evidence);
                let text = match same {
                    true => evidence,
                    false => format!("e.g. {}: {evidence}", names[0]),
                };
                style.write_paragraph(out, "", 4, &text);
            }
        }
        return;
    }
    let several = super::list_targets(judged).len() > 1;
    let name = |result: &WorkloadResult| match several {
        true => format!(
            "{} on {}",
            escape_line(&result.workload),
            escape_line(&result.target)
        ),
        false => escape_line(&result.workload),
    };
    let longest = counted
        .iter()
        .map(|result| measure_width(&name(result)))
        .max()
        .unwrap_or(0);
    let indent = longest + 4;
    for result in counted {
        let text = format!(
            "{}: {}",
            limit_name(result.limit.what),
            escape_line(&result.limit.evidence)
        );
        if indent * 2 > style.columns() {
            out.push_str(&format!("  {}\n", name(result)));
            style.write_paragraph(out, "", 6, &text);
        } else {
            style.write_paragraph(out, &format!("  {}", name(result)), indent, &text);
        }
    }
}

/// Groups results by their limit, the most frequent first.
pub(crate) fn group_by_limit<'a>(
    results: &[&'a WorkloadResult],
) -> Vec<(LimitKind, Vec<&'a WorkloadResult>)> {
    let mut groups: Vec<(LimitKind, Vec<&WorkloadResult>)> = Vec::new();
    for result in results {
        match groups
            .iter_mut()
            .find(|(kind, _)| *kind == result.limit.what)
        {
            Some((_, members)) => members.push(result),
            None => groups.push((result.limit.what, vec![result])),
        }
    }
    groups.sort_by_key(|(kind, members)| {
        (
            *kind == LimitKind::Unknown,
            std::cmp::Reverse(members.len()),
        )
    });
    groups
}

/// Describes why a figure counts as a burst: its range and slope, or why these are unknown.
pub(crate) fn describe_burst(steadiness: &Steadiness) -> String {
    match (steadiness.range, steadiness.slope) {
        (Some(range), Some(slope)) if !steadiness.steady => {
            format!("range {:.0} %, slope {:.0} %", range * 100.0, slope * 100.0)
        }
        _ => escape_line(&steadiness.reason),
    }
}

/// Writes which figures are steady and which are bursts.
pub(super) fn write_steadiness(judged: &Judged, out: &mut String, style: Style) {
    let counted: Vec<&WorkloadResult> = judged
        .results
        .iter()
        .filter(|result| result.validity != Validity::Void)
        .collect();
    if counted.is_empty() {
        return;
    }
    let burst: Vec<&&WorkloadResult> = counted.iter().filter(|r| !r.steadiness.steady).collect();
    write_section_heading("Steady or burst?", out, style);
    if burst.is_empty() {
        let text = match counted.len() {
            1 => "steady over its rounds".to_owned(),
            n => format!("all {n} workloads were steady over their rounds"),
        };
        out.push_str(&format!("  {text}\n"));
        return;
    }
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for result in &burst {
        let name = escape_line(&result.workload);
        let why = describe_burst(&result.steadiness);
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    let title = format!(
        "burst: {}; the others were steady",
        format_share(burst.len(), counted.len())
    );
    let title = match burst.len() == counted.len() {
        true => format!("burst: {}", format_share(burst.len(), counted.len())),
        false => title,
    };
    out.push_str(&format!("  {}\n", style.paint("33", &title)));
    if burst.iter().any(|result| result.steadiness.range.is_some()) {
        let limits = "steady is a range of at most 20 % and a slope of at most 10 % of the mean over the last 5 rounds";
        style.write_paragraph(out, "", 4, limits);
    }
    for (reason, names) in reasons.iter().take(6) {
        style.write_paragraph(
            out,
            "",
            4,
            &format!("{}: {}", format_some_names(names, 3), reason),
        );
    }
    if reasons.len() > 6 {
        style.write_paragraph(
            out,
            "",
            4,
            &format!("and {} more, see the HTML report", reasons.len() - 6),
        );
    }
}

/// Writes the missing samples: samples that were planned but not taken, or taken without a figure.
pub(super) fn write_failures(run: &Run, judged: &Judged, out: &mut String, style: Style) {
    let planned = run.plan.order.len();
    let taken = judged.samples.len();
    let empty = judged
        .samples
        .iter()
        .filter(|sample| sample.figures.is_empty())
        .count();
    let mut parts = Vec::new();
    if taken < planned {
        parts.push(format!("{taken} of {planned} samples were taken"));
    }
    if empty > 0 {
        parts.push(format!(
            "{empty} of {taken} samples have no figures (see the doubts above)"
        ));
    }
    if !parts.is_empty() {
        write_section_heading("Missing", out, style);
        style.write_paragraph(out, "", 2, &parts.join("; "));
    }
}

pub(super) fn write_next_commands(run: &Run, grid: bool, out: &mut String, style: Style) {
    if run.id.0 == 0 {
        return;
    }
    let id = run.id;
    write_section_heading("Next", out, style);
    out.push_str(&format!(
        "  assay report {id} --html report.html   charts, environment, job files\n"
    ));
    if grid {
        out.push_str(&format!(
            "  assay report show {id} --samples       every workload and every sample\n"
        ));
    }
    out.push_str(&format!(
        "  assay report compare {id} RUN          the same figures beside another run\n"
    ));
}
