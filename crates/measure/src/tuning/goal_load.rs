//! Finds the load of a goal from the name of a workload.

use assay_model::Bytes;
use assay_model::plan::{PlanSpec, Settings, builtin_plan};
use assay_model::workload::{Durability, Engine, Pattern, Workload};

/// Built-in plans whose workloads can be goals. All their workloads have different names.
const PLANS: [&str; 8] = [
    "quick",
    "sync",
    "web",
    "database",
    "log",
    "throughput",
    "device",
    "matrix",
];

/// Returns the workload with this name. The name belongs to a built-in plan, or it describes the workload fully, such
/// as `randwrite-16k-qd1-fsync` or `randrw70-4k-qd4`.
#[must_use]
pub fn find_goal_workload(name: &str) -> Option<Workload> {
    parse_workload_name(name).or_else(|| PLANS.iter().find_map(|plan| workload_of(plan, name)))
}

fn workload_of(plan: &str, name: &str) -> Option<Workload> {
    let spec: PlanSpec = builtin_plan(plan)?;
    let settings = Settings {
        targets: vec!["/".to_owned()],
        engine: Engine::Auto,
        seed: 1,
    };
    let plan = spec.resolve(&settings).ok()?;
    let found = plan.workloads.iter().find(|planned| planned.name == name)?;
    found.load.fio().cloned()
}

/// Parses a name in the form of [`Workload::default_name`].
fn parse_workload_name(name: &str) -> Option<Workload> {
    let mut words = name.split('-');
    let (pattern, read_percent) = parse_pattern(words.next()?)?;
    let block_size: Bytes = words.next()?.parse().ok()?;
    let queue_depth = words.next()?.strip_prefix("qd")?.parse().ok()?;
    let mut workload = Workload {
        name: name.to_owned(),
        pattern,
        block_size,
        queue_depth,
        jobs: 1,
        read_percent,
        engine: Engine::Auto,
        direct: true,
        durability: Durability::None,
        runtime: None,
        ramp: None,
    };
    for word in words {
        match word {
            "buffered" => workload.direct = false,
            "dsync" => workload.durability = Durability::Dsync,
            "fdatasync" => workload.durability = Durability::Fdatasync,
            "fsync" => workload.durability = Durability::Fsync,
            jobs => workload.jobs = jobs.strip_prefix('j')?.parse().ok()?,
        }
    }
    let is_usable = block_size.0 >= 512 && queue_depth >= 1 && workload.jobs >= 1;
    (is_usable && workload.default_name() == name).then_some(workload)
}

fn parse_pattern(word: &str) -> Option<(Pattern, Option<u8>)> {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let pattern = match letters {
        "read" => Pattern::Read,
        "write" => Pattern::Write,
        "randread" => Pattern::RandRead,
        "randwrite" => Pattern::RandWrite,
        "rw" => Pattern::Rw,
        "randrw" => Pattern::RandRw,
        _ => return None,
    };
    let digits = &word[letters.len()..];
    let percent = match digits.is_empty() {
        true => None,
        false => Some(digits.parse::<u8>().ok().filter(|share| *share <= 100)?),
    };
    (percent.is_none() || pattern.mixed()).then_some((pattern, percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_done() {
        for name in [
            "randwrite-16k-qd1-fsync",
            "randrw70-4k-qd4",
            "read-1m-qd4",
            "randread-4k-qd1-j4-buffered",
            "randwrite-4k-qd1-dsync",
        ] {
            let found = find_goal_workload(name).unwrap();
            assert_eq!(found.default_name(), name);
        }
        for wrong in [
            "",
            "rand",
            "randwrite",
            "randwrite-4k",
            "randwrite70-4k-qd1",
            "randwrite-4k-qd0",
            "randwrite-x-qd1",
            "randrw101-4k-qd1",
            "randwrite-4k-qd1-sync",
        ] {
            assert_eq!(find_goal_workload(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn workloads_of_plans_are_known_by_name() {
        let spec = builtin_plan("web").unwrap();
        let settings = Settings {
            targets: vec!["/".to_owned()],
            engine: Engine::Auto,
            seed: 1,
        };
        let plan = spec.resolve(&settings).unwrap();
        let name = &plan.workloads[0].name;
        assert!(find_goal_workload(name).is_some(), "{name}");
    }
}
