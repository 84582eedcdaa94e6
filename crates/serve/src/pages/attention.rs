//! Items that need the user's attention: new and severe findings, missed criteria, shifted figures, failed runs, and
//! proved changes that were not kept.

use super::figure_views::{describe_shift, series_href};
use super::{LinkView, MOST_LINKED, TimeView, finding_anchor, join_some, machine_link, short_name};
use crate::fleet_state::{FleetState, RecentShift, short_host};
use crate::query::encode_segment;
use crate::site::Site;
use assay_model::finding::Severity;
use assay_model::result::Change;
use assay_model::run::RunState;
use assay_render::text::escape_line;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum number of machines that an item lists by name. Further machines are counted.
const MOST_MACHINES: usize = 6;
/// Maximum number of characters in the description of a cause.
const MOST_CAUSE: usize = 220;
/// Number of days without a check after which a machine becomes an item, provided that other machines were checked in
/// this time.
const SILENT_DAYS: i64 = 7;

/// One item that needs the user's attention.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AttentionItem {
    /// Kind of the item, in one or two words.
    kind: &'static str,
    class: &'static str,
    title: String,
    href: String,
    detail: String,
    /// File and line of the cause; `None` if unknown.
    place: Option<String>,
    machines: Vec<LinkView>,
    more: usize,
    when: Option<TimeView>,
    is_new: bool,
    #[serde(skip)]
    rank: (u32, usize),
    /// Rule and first machine of a finding, from which its cause is looked up; `None` for items of other kinds.
    #[serde(skip)]
    finding: Option<(String, String)>,
}

/// Time limit for reading the causes of findings. After it, the remaining items show the statement of their advice
/// page.
const READING: Duration = Duration::from_millis(400);

/// Replaces the details of findings by the cause on the first machine, with the file and line of the cause.
pub(super) fn add_causes(site: &Site, state: &FleetState, items: &mut [AttentionItem]) {
    let deadline = Instant::now() + READING;
    for item in items {
        let Some((rule, machine)) = &item.finding else {
            continue;
        };
        if Instant::now() >= deadline {
            return;
        }
        let Some(check) = state
            .machine(machine)
            .and_then(|machine| super::machine::read_check(site, machine).0)
        else {
            continue;
        };
        let found = (check.checked.findings.iter()).find(|finding| finding.rule == *rule);
        if let Some(finding) = found {
            let text: String = finding.text.chars().take(MOST_CAUSE + 1).collect();
            let mut text = escape_line(&text);
            if text.chars().count() > MOST_CAUSE {
                text = text.chars().take(MOST_CAUSE - 1).chain(['…']).collect();
            }
            item.detail = text;
            let place = finding.places.first().map(ToString::to_string);
            item.place = place.map(|place| super::short_name(&place));
        }
    }
}

/// Builds the items, the most urgent first.
pub(super) fn find_items(site: &Site, state: &FleetState) -> Vec<AttentionItem> {
    let mut items = find_findings(site, state);
    items.extend(find_missed(state));
    items.extend(state.shifts.iter().filter_map(|recent| find_shift(recent)));
    items.extend(find_failed(site, state));
    items.extend(find_waiting(state));
    items.extend(find_silent(state));
    items.sort_by_key(|item| std::cmp::Reverse(item.rank));
    items
}

/// Machines on which a check fails, and the time of the newest finding.
#[derive(Default)]
struct RuleState<'a> {
    severity: Option<Severity>,
    is_new: bool,
    newest: Option<Timestamp>,
    machines: Vec<&'a str>,
    subjects: Vec<String>,
}

/// Returns items for findings, grouped by check. Includes findings of severity high or above, and new findings of
/// severity medium or above.
fn find_findings(site: &Site, state: &FleetState) -> Vec<AttentionItem> {
    let mut rules: BTreeMap<&str, RuleState<'_>> = BTreeMap::new();
    for machine in &state.machines {
        for finding in &machine.findings {
            let shown = finding.severity >= Severity::High
                || (finding.is_new && finding.severity >= Severity::Medium);
            if !shown {
                continue;
            }
            let rule = rules.entry(&finding.rule).or_default();
            rule.severity = rule.severity.max(Some(finding.severity));
            rule.is_new |= finding.is_new;
            rule.newest = rule.newest.max(Some(finding.since));
            if rule.machines.last() != Some(&machine.name.as_str()) {
                rule.machines.push(&machine.name);
            }
            if !finding.subject.is_empty() && !rule.subjects.contains(&finding.subject) {
                rule.subjects.push(finding.subject.clone());
            }
        }
    }
    let item = |(id, rule): (&str, RuleState<'_>)| {
        let severity = rule.severity.unwrap_or(Severity::Info);
        let advice = site.find_advice(id);
        let href = match rule.machines.as_slice() {
            [one] => format!("{}#finding-{}", machine_link(one).href, finding_anchor(id)),
            _ if id.len() > MOST_LINKED => "/advice".to_owned(),
            _ => format!("/advice/{}", encode_segment(id)),
        };
        let weight = match severity {
            Severity::Critical => 90,
            Severity::High => 70,
            _ => 50,
        };
        AttentionItem {
            kind: severity.name(),
            class: severity.name(),
            title: advice.map_or_else(|| short_name(id), |advice| short_name(&advice.title)),
            href,
            detail: advice.map_or_else(
                || join_some(&rule.subjects, 3),
                |advice| short_name(&advice.statement),
            ),
            place: None,
            finding: rule
                .machines
                .first()
                .map(|machine| (id.to_owned(), (*machine).to_owned())),
            machines: rule
                .machines
                .iter()
                .take(MOST_MACHINES)
                .map(|name| machine_link(name))
                .collect(),
            more: rule.machines.len().saturating_sub(MOST_MACHINES),
            when: rule.newest.map(TimeView::new),
            is_new: rule.is_new,
            rank: (
                weight + if rule.is_new { 8 } else { 0 },
                rule.machines.len(),
            ),
        }
    };
    rules.into_iter().map(item).collect()
}

fn find_missed(state: &FleetState) -> Vec<AttentionItem> {
    let item = |missed: &crate::fleet_state::MissedRun| {
        let row = state.runs.get(missed.run)?;
        Some(AttentionItem {
            kind: "criterion",
            class: "high",
            title: format!(
                "{} missed {}",
                short_name(&row.plan),
                match missed.criteria.len() {
                    1 => "a criterion".to_owned(),
                    many => format!("{many} criteria"),
                }
            ),
            href: format!("/runs/{}#criteria", row.id),
            detail: join_some(&missed.criteria, 2),
            place: None,
            finding: None,
            machines: row.machine_name().map(machine_link).into_iter().collect(),
            more: 0,
            when: Some(TimeView::new(row.started)),
            is_new: false,
            rank: (74, missed.criteria.len()),
        })
    };
    state.missed.iter().filter_map(item).collect()
}

fn find_shift(recent: &RecentShift) -> Option<AttentionItem> {
    let (series, shift) = (&recent.series, &recent.shift);
    let verdict = series.judge_shift(shift);
    let at = series.points.get(shift.at)?.at;
    Some(AttentionItem {
        kind: match verdict {
            Change::Worse => "slower",
            Change::Better => "faster",
            Change::Same | Change::Unclear => "shifted",
        },
        class: match verdict {
            Change::Worse => "medium",
            Change::Better => "good",
            Change::Same | Change::Unclear => "low",
        },
        title: describe_shift(series, shift),
        href: series_href(&series.key),
        detail: format!(
            "plan {} on {}",
            short_name(&series.key.plan),
            short_name(&series.key.figure.target)
        ),
        place: None,
        finding: None,
        machines: series
            .key
            .machine
            .iter()
            .map(|machine| machine_link(short_host(machine.shown())))
            .collect(),
        more: 0,
        when: Some(TimeView::new(at)),
        is_new: false,
        rank: (
            match verdict {
                Change::Worse => 65,
                Change::Better => 12,
                Change::Same | Change::Unclear => 20,
            },
            series.points.len(),
        ),
    })
}

/// Returns items for the machines whose newest run failed.
fn find_failed(site: &Site, state: &FleetState) -> Vec<AttentionItem> {
    let newest = |machine: &crate::fleet_state::MachineState| {
        let run = state.runs.get(*machine.runs.first()?)?;
        (run.state == RunState::Failed).then_some(run)
    };
    let ids: Vec<_> = state.machines.iter().filter_map(newest).collect();
    let ids: Vec<_> = ids.iter().map(|run| run.id).collect();
    let counts = site.store.read(|store| store.count_samples(&ids));
    let counts = counts.ok().flatten().unwrap_or_default();
    let item = |machine: &crate::fleet_state::MachineState| {
        newest(machine).map(|row| AttentionItem {
            kind: "failed",
            class: "medium",
            title: format!("The newest run of {} failed", short_name(&row.plan)),
            href: format!("/runs/{}", row.id),
            detail: format!(
                "{} of {} samples are stored",
                counts.get(&row.id).copied().unwrap_or(0),
                row.planned
            ),
            place: None,
            finding: None,
            machines: vec![machine_link(&machine.name)],
            more: 0,
            when: Some(TimeView::new(row.started)),
            is_new: false,
            rank: (55, 0),
        })
    };
    state.machines.iter().filter_map(item).collect()
}

/// Returns items for changes that are better but were reverted. Omits a change that was kept by a later trial.
fn find_waiting(state: &FleetState) -> Vec<AttentionItem> {
    let mut seen = std::collections::BTreeSet::new();
    // The newest trial of a change decides.
    let newest = state.trials.iter().filter(|trial| {
        seen.insert((
            trial.machine.clone(),
            trial.advice.clone(),
            trial.target.clone(),
        ))
    });
    newest
        .filter(|trial| trial.waits_for_keep)
        .map(|trial| AttentionItem {
            kind: "keep?",
            class: "keep",
            title: format!("{} helps and is not kept", short_name(&trial.advice)),
            href: format!("/trials/{}", trial.id),
            detail: super::trial_row::describe_change(trial),
            place: None,
            finding: None,
            machines: trial
                .machine
                .as_deref()
                .map(machine_link)
                .into_iter()
                .collect(),
            more: 0,
            when: Some(TimeView::new(trial.started)),
            is_new: false,
            rank: (40, trial.pairs as usize),
        })
        .collect()
}

/// Returns items for the machines that were not checked for [`SILENT_DAYS`] although other machines were.
fn find_silent(state: &FleetState) -> Vec<AttentionItem> {
    let newest = state
        .machines
        .iter()
        .filter_map(|machine| machine.looked)
        .map(|[_, last]| last)
        .max();
    let item = |machine: &crate::fleet_state::MachineState| {
        let [_, last] = machine.looked?;
        let days = newest?.duration_since(last).as_hours() / 24;
        (days >= SILENT_DAYS).then(|| AttentionItem {
            kind: "silent",
            class: "medium",
            title: "Not checked while others were".to_owned(),
            href: machine_link(&machine.name).href,
            detail: format!("the newest check of another machine is {days} days newer"),
            place: None,
            finding: None,
            machines: vec![machine_link(&machine.name)],
            more: 0,
            when: Some(TimeView::new(last)),
            is_new: false,
            rank: (60, 0),
        })
    };
    state.machines.iter().filter_map(item).collect()
}
