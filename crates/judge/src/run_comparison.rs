//! Compares two runs: the facts that differ, the reasons not to compare them, and the ratio of
//! every figure with its interval. The text of a comparison is in `assay-report`.

mod matching_shapes;
mod web;

use matching_shapes::{find_size_factors, pair_by_shape, shape_name};

use crate::estimate::{PooledValue, interval_on_log_scale};
use crate::odd_round;
use crate::workload_groups::{WorkloadGroup, group_samples};
use assay_model::criterion::{Metric, Quantity};
use assay_model::result::{Change, ComparisonRow, FactDifference, Interval, RunComparison};
use assay_model::{Bytes, Fact, FactValue, Facts, Run, Sample};
use std::collections::BTreeSet;

/// Compares run B with run A.
///
/// Each ratio has a 95 % interval from both standard errors on the log scale, with
/// Welch–Satterthwaite degrees of freedom. Void samples are left out on both sides.
#[must_use]
pub fn compare_runs(a: (&Run, &[Sample]), b: (&Run, &[Sample])) -> RunComparison {
    let (groups_a, groups_b) = (group_samples(a.0, a.1), group_samples(b.0, b.1));
    let mut pairs = pair_groups(&groups_a, &groups_b);
    let by_shape = pairs.is_empty();
    if by_shape {
        pairs = pair_by_shape(&groups_a, &groups_b);
    }
    let mut rows = Vec::new();
    for &(a, b) in &pairs {
        let mut compared = compare_groups(a, b);
        if by_shape && let Some(shape) = shape_name(a) {
            for row in &mut compared {
                row.workload.clone_from(&shape);
            }
        }
        rows.extend(compared);
    }
    let elsewhere = by_shape || pairs.iter().any(|(a, b)| a.target != b.target);
    let factors = match elsewhere {
        true => find_size_factors(&pairs),
        false => Vec::new(),
    };
    let requests = pairs
        .iter()
        .any(|(a, b)| web::is_load(a) && web::is_load(b));
    if requests {
        for &(a, b) in &pairs {
            rows.extend(web::cpu_per_answer(a, b));
        }
        web::judge_rows(&mut rows, &pairs);
    }
    let label = |group: &WorkloadGroup| format!("{} on {}", group.workload, group.target);
    let unpaired = |groups: &[WorkloadGroup], paired: &dyn Fn(&WorkloadGroup) -> bool| {
        let rest = groups.iter().filter(|group| !paired(group));
        rest.map(label).collect::<Vec<_>>()
    };
    RunComparison {
        requests,
        by_shape: by_shape && !pairs.is_empty(),
        factors,
        a: a.0.id,
        b: b.0.id,
        environment: match a.0.facts.map.is_empty() || b.0.facts.map.is_empty() {
            // A run whose facts are unknown differs in none.
            true => Vec::new(),
            false => find_fact_differences(&a.0.facts, &b.0.facts),
        },
        cautions: {
            let mut cautions = find_cautions(a, b, &pairs, by_shape);
            cautions.extend(web::list_obstacles(&pairs));
            cautions
        },
        rows,
        only_a: unpaired(&groups_a, &|g| {
            pairs.iter().any(|(a, _)| std::ptr::eq(*a, g))
        }),
        only_b: unpaired(&groups_b, &|g| {
            pairs.iter().any(|(_, b)| std::ptr::eq(*b, g))
        }),
    }
}

/// Pairs the groups with the same workload and the same target. If each run has a single target,
/// those two are paired whatever their names, because the user then compares two targets.
fn pair_groups<'a, 'r>(
    a: &'a [WorkloadGroup<'r>],
    b: &'a [WorkloadGroup<'r>],
) -> Vec<(&'a WorkloadGroup<'r>, &'a WorkloadGroup<'r>)> {
    let targets = |groups: &[WorkloadGroup]| {
        let names: BTreeSet<String> = groups.iter().map(|g| g.target.clone()).collect();
        names.len()
    };
    let any_target = targets(a) == 1 && targets(b) == 1;
    a.iter()
        .filter_map(|one| {
            let same = |other: &&WorkloadGroup| {
                other.workload == one.workload && (any_target || other.target == one.target)
            };
            Some((one, b.iter().find(same)?))
        })
        .collect()
}

fn compare_groups(a: &WorkloadGroup, b: &WorkloadGroup) -> Vec<ComparisonRow> {
    let (pooled_a, pooled_b) = (a.pool_samples(), b.pool_samples());
    let both = pooled_a
        .iter()
        .filter_map(|(metric, a)| Some((*metric, *a, *pooled_b.get(metric)?)));
    let row = |(metric, left, right): (Metric, PooledValue, PooledValue)| {
        let ratio = right.value / left.value;
        let interval = compute_ratio_interval(left, right);
        ComparisonRow {
            workload: a.workload.clone(),
            target: a.target.clone(),
            metric,
            a: left.to_estimate(),
            b: right.to_estimate(),
            ratio,
            interval,
            verdict: classify_change(metric.quantity, interval),
        }
    };
    both.map(row).collect()
}

/// Computes the interval of B ÷ A on the log scale (Welch 1947; Satterthwaite 1946).
fn compute_ratio_interval(a: PooledValue, b: PooledValue) -> Option<Interval> {
    let (error, freedom) = compute_ratio_error(a, b)?;
    interval_on_log_scale(b.value / a.value, error, freedom)
}

/// Computes the standard error of the log of B ÷ A, and its degrees of freedom.
fn compute_ratio_error(a: PooledValue, b: PooledValue) -> Option<(f64, f64)> {
    let (va, vb) = (a.error?.powi(2), b.error?.powi(2));
    let (na, nb) = (f64::from(a.rounds) - 1.0, f64::from(b.rounds) - 1.0);
    let variance = va + vb;
    let freedom = if variance > 0.0 {
        variance.powi(2) / (va.powi(2) / na + vb.powi(2) / nb)
    } else {
        na + nb
    };
    Some((variance.sqrt(), freedom))
}

fn classify_change(quantity: Quantity, interval: Option<Interval>) -> Change {
    let Some(interval) = interval else {
        return Change::Unclear;
    };
    let (up, down) = if quantity.is_latency() {
        (Change::Worse, Change::Better)
    } else {
        (Change::Better, Change::Worse)
    };
    if interval.low > 1.0 {
        up
    } else if interval.high < 1.0 {
        down
    } else {
        Change::Unclear
    }
}

/// Parts of fact keys whose values change from minute to minute. Differences in these facts explain nothing.
const VOLATILE: [&str; 15] = [
    "available",
    "cached",
    "celsius",
    "current",
    "dirty",
    "free",
    "hits",
    "load",
    "misses",
    "referenced",
    "swap_free",
    "temperature",
    "uptime",
    "used",
    "written",
];

fn is_volatile(key: &str) -> bool {
    key.split('.').skip(1).any(|part| VOLATILE.contains(&part))
}

/// Finds the facts that differ. An unknown value is shown as unknown, which differs from a missing fact.
fn find_fact_differences(a: &Facts, b: &Facts) -> Vec<FactDifference> {
    let keys: BTreeSet<&String> = a.map.keys().chain(b.map.keys()).collect();
    keys.into_iter()
        .filter(|key| !is_volatile(key))
        .filter_map(|key| {
            let (a, b) = (
                a.map.get(key).map(convert_fact),
                b.map.get(key).map(convert_fact),
            );
            (a != b).then(|| FactDifference {
                key: key.clone(),
                a,
                b,
            })
        })
        .collect()
}

fn convert_fact(fact: &Fact) -> serde_json::Value {
    match &fact.value {
        FactValue::Known(value) => value.clone(),
        FactValue::Unknown(why) => format!("unknown ({why})").into(),
    }
}

/// Finds reasons why the ratio may have another cause than the user's change.
fn find_cautions(
    a: (&Run, &[Sample]),
    b: (&Run, &[Sample]),
    pairs: &[(&WorkloadGroup, &WorkloadGroup)],
    by_shape: bool,
) -> Vec<String> {
    let mut out = Vec::new();
    if a.0.uid == b.0.uid {
        out.push("this is the same run twice".to_owned());
        return out;
    }
    out.push(
        "the two runs were made at different times: whatever changed on the machine in between is \
         part of the difference"
            .to_owned(),
    );
    for (name, run) in [("first", a.0), ("second", b.0)] {
        if run.facts.map.is_empty() {
            out.push(format!(
                "the machine and environment of the {name} run are unknown"
            ));
        }
    }
    if by_shape && !pairs.is_empty() {
        out.extend(matching_shapes::describe_other_differences(pairs));
    }
    let mut differ = |what: &str, a: String, b: String| {
        if a != b {
            out.push(format!("{what}: {a} in the first, {b} in the second"));
        }
    };
    differ("plan", a.0.plan.name.clone(), b.0.plan.name.clone());
    differ("load generator", list_tools(a.1), list_tools(b.1));
    differ(
        "assay",
        a.0.assay_version.clone(),
        b.0.assay_version.clone(),
    );
    let target = |run: &Run, name: &str| run.targets.iter().find(|t| t.name == name).cloned();
    let mut seen = BTreeSet::new();
    for (one, other) in pairs {
        if !seen.insert((&one.target, &other.target)) {
            continue;
        }
        differ("target", one.target.clone(), other.target.clone());
        if let (Some(a), Some(b)) = (target(a.0, &one.target), target(b.0, &other.target)) {
            let place = |size: Bytes| size.to_string();
            differ(
                &format!("size of the file or device of {}", one.target),
                place(a.size),
                place(b.size),
            );
            let fs = |fs: Option<String>| fs.unwrap_or_else(|| "none".to_owned());
            differ(
                &format!("file system of {}", one.target),
                fs(a.fs_type),
                fs(b.fs_type),
            );
        }
    }
    for (one, other) in pairs.iter().filter(|_| !by_shape) {
        let (Some(a), Some(b)) = (one.spec, other.spec) else {
            continue;
        };
        let describe = |planned: &assay_model::Planned| {
            let engine = planned.fio().map_or_else(String::new, |fio| {
                format!(", {}", fio.engine.fio().unwrap_or("?"))
            });
            let [runtime, ramp] = [planned.runtime, planned.ramp].map(|time| time.short());
            format!("{}{engine}, {runtime} after {ramp}", planned.describe())
        };
        differ(
            &format!("workload {}", one.workload),
            describe(a),
            describe(b),
        );
    }
    for (one, other) in pairs {
        for (name, group) in [("first", one), ("second", other)] {
            if let Some(odd) = odd_round::find_in_group(group) {
                out.push(format!(
                    "{} on {} of the {name} run, {}",
                    group.workload,
                    group.target,
                    odd.describe()
                ));
            }
        }
    }
    for (name, run) in [("first", a.0), ("second", b.0)] {
        for remark in &run.remarks {
            out.push(format!("of the {name} run: {remark}"));
        }
    }
    out
}

fn list_tools(samples: &[Sample]) -> String {
    let tools: BTreeSet<&str> = samples.iter().map(|sample| sample.tool.as_str()).collect();
    tools.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
