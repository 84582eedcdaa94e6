//! The page of a machine: findings with their evidence, layers, figures, runs, trials, and what changed when.

use super::accepted_findings::list_accepted;
use super::run_row::list_runs;
use super::trial_row::TrialRowView;
use super::{
    TimeView, figure_chart, figure_views, finding_anchor, machine_row, observations, short_name,
};
use crate::answer::{Answer, Refusal};
use crate::fleet_state::{FleetState, MachineState};
use crate::machine_check::MachineCheck;
use crate::query::{encode, encode_segment};
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_model::Facts;
use assay_model::finding::{Certainty, Finding, Fix};
use assay_render::html::Chart;
use assay_render::svg::timeline::HALF_WIDTH;
use assay_render::text::escape_line;
use assay_report::stack::{StackView, draw_stack_picture};
use assay_store::{About, Ask, Span};
use jiff::{SignedDuration, Timestamp};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Maximum number of runs, and of trials, on the page. The lists contain all of them.
const ROWS: usize = 10;
/// Maximum number of charts on the page.
const CHARTS: usize = 4;
/// Maximum number of changes on the page.
const CHANGES: u32 = 120;
/// Maximum age of changes on the page.
const CHANGES_SINCE: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Time limit for reading runs that are not cached.
const READING: Duration = Duration::from_secs(4);

#[derive(Serialize)]
struct FindingView {
    id: String,
    severity: &'static str,
    rule: String,
    rule_href: String,
    title: String,
    about: String,
    text: String,
    since: Option<TimeView>,
    is_new: bool,
    evidence: Vec<(String, String, String)>,
    steps: Vec<String>,
    undo: Vec<String>,
    not_here: Option<String>,
}

#[derive(Serialize)]
struct ChangeView {
    when: TimeView,
    kind: &'static str,
    key: String,
    before: Option<String>,
    value: Option<String>,
}

/// Answers `/machines/{name}` with the page of a machine.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let state = site.fleet_state()?;
    let Some(machine) = state.machine(&request.name) else {
        return Err(Refusal::missing(format!(
            "There is no machine {} in the store. The list of machines has all.",
            short_name(&request.name)
        )));
    };
    let (check, unreadable) = read_check(site, machine);
    let mut findings = match &check {
        Some(check) => list_findings(machine, check),
        None => list_stored_findings(site, machine),
    };
    // Links lead to the first finding of a rule: an id stands on a page once.
    let mut ids = BTreeSet::new();
    for finding in &mut findings {
        if !ids.insert(finding.id.clone()) {
            finding.id.clear();
        }
    }
    let newest = machine.runs.len().min(ROWS);
    let runs = list_runs(site, &state, &machine.runs[..newest])?;
    let trials: Vec<TrialRowView> = machine
        .trials
        .iter()
        .take(ROWS)
        .filter_map(|at| Some(TrialRowView::new(state.trials.get(*at)?)))
        .collect();
    let facts = newest_facts(site, &state, machine, check.as_deref())?;
    let filter = encode(&[("machine", &machine.name)]);
    let page = site.render_page(
        &short_name(&machine.name),
        Section::Machines,
        include_str!("../templates/machine.html"),
        context! {
            name => short_name(&machine.name),
            subject => facts.as_ref().map(describe_machine).unwrap_or_default(),
            looked => Serde(machine.looked.map(|[_, last]| TimeView::new(last))),
            bundle => Serde(check.as_ref().map(|check| TimeView::new(check.at))),
            unreadable,
            counts => Serde(machine_row::count_findings(machine, 1.0)),
            findings => Serde(findings),
            accepted => Serde(check.as_ref().map(|check| list_accepted(&machine.name, check)).unwrap_or_default()),
            remarks => check
                .as_ref()
                .map(|check| check.checked.remarks.iter().map(|text| escape_line(text)).collect::<Vec<_>>())
                .unwrap_or_default(),
            unknown => check.as_ref().map(|check| list_unknown(check)).unwrap_or_default(),
            stack => check.as_ref().and_then(|check| draw_stack(check)),
            charts => Serde(draw_figures(site, &state, machine)?),
            runs => Serde(runs),
            all_runs => machine.runs.len(),
            trials => Serde(trials),
            all_trials => machine.trials.len(),
            observations => Serde(observations::list_of_machine(site, &machine.name)?),
            changes => Serde(list_changes(site, machine)?),
            filter,
            facts => Serde(facts.as_ref().map(assay_report::html::group_facts)),
            json => format!("/api/v1/machines/{}", encode_segment(&machine.name)),
        },
    );
    Ok(Answer::page(page))
}

/// Checks the newest bundle of a machine, which may be stored under any of the machine's names. The second value is the
/// reason why a bundle cannot be read.
pub(crate) fn read_check(
    site: &Site,
    machine: &MachineState,
) -> (Option<std::sync::Arc<MachineCheck>>, Option<String>) {
    let mut unreadable = None;
    for host in &machine.hosts {
        match site.check_machine(host) {
            Ok(Some(check)) => return (Some(check), None),
            Ok(None) => {}
            Err(why) => unreadable = Some(escape_line(&why)),
        }
    }
    (None, unreadable)
}

/// Returns the findings of the newest bundle with their evidence. The time since which each finding exists comes from
/// the store.
fn list_findings(machine: &MachineState, check: &MachineCheck) -> Vec<FindingView> {
    let violated = check
        .checked
        .findings
        .iter()
        .filter(|one| one.certainty == Certainty::Violated);
    let mut all: Vec<&Finding> = violated.collect();
    all.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let view = |finding: &&Finding| {
        let subject = match finding.subject.is_machine() {
            true => String::new(),
            false => finding.subject.to_string(),
        };
        let stored = machine
            .findings
            .iter()
            .find(|stored| stored.rule == finding.rule && stored.subject == subject);
        let lines = |steps: &[String]| steps.iter().map(|step| escape_line(step)).collect();
        let (steps, undo, not_here) = match &finding.fix {
            Fix::Steps(remedy) => (lines(&remedy.steps), lines(&remedy.undo), None),
            Fix::NotHere(why) => (Vec::new(), Vec::new(), Some(escape_line(why))),
            Fix::AfterReading => (Vec::new(), Vec::new(), None),
        };
        let mut evidence: Vec<(String, String, String)> = Vec::new();
        for seen in &finding.evidence {
            let value = match &seen.value {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let row = (
                escape_line(&seen.key),
                short_name(&value),
                escape_line(&seen.place.to_string()),
            );
            evidence.push(row);
        }
        FindingView {
            id: finding_anchor(&finding.rule),
            severity: finding.severity.name(),
            rule_href: super::catalogue::advice_href(&finding.rule, Some(&machine.name)),
            rule: short_name(&finding.rule),
            title: short_name(&finding.title),
            about: short_name(&subject),
            text: escape_line(&finding.text),
            since: stored.map(|stored| TimeView::new(stored.since)),
            is_new: stored.is_some_and(|stored| stored.is_new),
            evidence,
            steps,
            undo,
            not_here,
        }
    };
    all.iter().map(view).collect()
}

/// Returns the findings from the store, without evidence.
fn list_stored_findings(site: &Site, machine: &MachineState) -> Vec<FindingView> {
    let view = |finding: &crate::fleet_state::StandingFinding| {
        let advice = site.find_advice(&finding.rule);
        FindingView {
            id: finding_anchor(&finding.rule),
            severity: finding.severity.name(),
            rule_href: super::catalogue::advice_href(&finding_anchor(&finding.rule), None),
            rule: short_name(&finding.rule),
            title: advice.map_or_else(|| short_name(&finding.rule), |one| short_name(&one.title)),
            about: short_name(&finding.subject),
            text: advice.map_or_else(String::new, |one| escape_line(&one.statement)),
            since: Some(TimeView::new(finding.since)),
            is_new: finding.is_new,
            evidence: Vec::new(),
            steps: Vec::new(),
            undo: Vec::new(),
            not_here: None,
        }
    };
    machine.findings.iter().map(view).collect()
}

fn list_unknown(check: &MachineCheck) -> Vec<String> {
    let unknown = check
        .checked
        .findings
        .iter()
        .filter(|one| one.certainty == Certainty::Unknown);
    let mut texts: Vec<String> = unknown.map(|finding| escape_line(&finding.text)).collect();
    texts.sort();
    texts.dedup();
    texts
}

/// Returns the facts of the newest bundle. If no bundle is stored, returns the facts of the newest run.
fn newest_facts(
    site: &Site,
    state: &FleetState,
    machine: &MachineState,
    check: Option<&MachineCheck>,
) -> Result<Option<Facts>, Refusal> {
    if let Some(check) = check {
        return Ok(Some(check.facts.clone()));
    }
    let Some(row) = machine.runs.first().and_then(|at| state.runs.get(*at)) else {
        return Ok(None);
    };
    let facts = site.store.read(|store| Ok(store.run(row.id)?.facts))?;
    Ok(facts)
}

/// Returns the facts that describe a machine best, each with a label.
fn describe_machine(facts: &Facts) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let mut add = |label, text: Option<String>| {
        rows.extend(text.map(|text| (label, short_name(&text))));
    };
    let text = |key: &str| facts.str(key).map(str::to_owned);
    add("System", text("os.name").or_else(|| text("os.pretty_name")));
    add(
        "Kernel",
        text("kernel.release").map(|release| format!("Linux {release}")),
    );
    let threads = facts
        .u64("cpu.threads")
        .map(|count| format!("{count} threads"));
    add(
        "Processor",
        match (text("cpu.model"), threads) {
            (Some(model), Some(threads)) => Some(format!("{model}, {threads}")),
            (model, threads) => model.or(threads),
        },
    );
    let memory = facts
        .u64("memory.total")
        .map(|bytes| assay_model::Bytes(bytes).to_string());
    add("Memory", memory);
    let guest = text("virtualisation.vm").filter(|kind| kind != "none");
    add(
        "Runs in",
        guest.map(|kind| format!("a virtual machine ({kind})")),
    );
    rows
}

fn draw_stack(check: &MachineCheck) -> Option<String> {
    let stack = check.stack.as_ref()?;
    Some(draw_stack_picture(&StackView {
        stack,
        hints: &[],
        next: &[],
    }))
}

fn draw_figures(
    site: &Site,
    state: &FleetState,
    machine: &MachineState,
) -> Result<Vec<(String, Chart)>, Refusal> {
    let runs = machine.runs.iter().filter_map(|at| state.runs.get(*at));
    let deadline = Instant::now() + READING;
    let found = site
        .store
        .read(|store| site.fleet.series.find_series(store, runs, Some(deadline)))?
        .unwrap_or_default();
    let mut all: Vec<_> = found
        .all
        .into_iter()
        .filter(|series| series.points.len() > 1)
        .collect();
    all.sort_by_key(|series| {
        (
            series.shifts.is_empty(),
            std::cmp::Reverse(series.points.len()),
        )
    });
    let draw = |(number, series): (usize, &crate::figure_series::Series)| {
        let chart = figure_chart::draw_series(series, HALF_WIDTH, number);
        (figure_views::series_href(&series.key), chart)
    };
    Ok(all.iter().take(CHARTS).enumerate().map(draw).collect())
}

fn list_changes(site: &Site, machine: &MachineState) -> Result<Vec<ChangeView>, Refusal> {
    if machine.hosts.is_empty() {
        return Ok(Vec::new());
    }
    let since = Timestamp::now() - CHANGES_SINCE;
    let ask = Ask {
        hosts: &machine.hosts,
        about: None,
        key: None,
        since: Some(since),
        most: CHANGES,
    };
    let spans = site
        .store
        .read(|store| store.spans(&ask))?
        .unwrap_or_default();
    Ok(spans
        .iter()
        .filter(|span| span.changed)
        .map(describe_change)
        .collect())
}

fn describe_change(span: &Span) -> ChangeView {
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => short_name(text),
        other => short_name(&other.to_string()),
    };
    ChangeView {
        when: TimeView::new(span.since),
        kind: match (span.about, &span.value) {
            (About::Finding, Some(_)) => "finding",
            (About::Finding, None) => "fixed",
            (About::Fact, _) => "fact",
        },
        key: short_name(&span.key),
        before: span.before.as_ref().map(text),
        value: span.value.as_ref().map(text),
    }
}
