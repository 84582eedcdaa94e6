//! Finds what limited a workload. The first matching rule decides. The rules start with causes that make later evidence
//! meaningless: data that never reached the device, heat, stolen CPU time. The device comes last, if nothing else
//! explains the rate.

mod limit_evidence;
mod link_bandwidth;
mod rate_limit;

pub(crate) use limit_evidence::{LimitEvidence, SiblingResult};
pub(crate) use rate_limit::find_largest_variation;

use assay_model::result::{Limit, LimitKind};
use assay_model::units::{format_significant, mb_per_s};

/// Utilisation from which a resource counts as full. The counters span the load generator's start
/// and end, during which it does no I/O.
const FULL: f64 = 0.90;
/// Utilisation of all CPUs from which the machine counts as full.
const MACHINE_FULL: f64 = 0.95;
/// Minimum fraction of CPU time that the hypervisor takes (steal) for steal to count as the limit. Normal bookkeeping
/// takes less.
const STOLEN: f64 = 0.10;
/// Fraction of the latency from which a cause counts as the limit.
const HALF: f64 = 0.5;
/// Minimum fraction of fio's requests in flight that must be in the device, and not in software above the device. The
/// device's queue then counts as full.
const QUEUE: f64 = 0.8;
/// A deeper queue counts as an improvement if the rate grows by at least this factor. A smaller gain is noise between
/// samples.
const GAIN: f64 = 1.10;

/// Finds what kept the workload from going faster.
pub(crate) fn find_limit(evidence: &LimitEvidence) -> Limit {
    const DECISIONS: [fn(&LimitEvidence) -> Option<Limit>; 12] = [
        check_nothing_measured,
        check_throttling,
        check_memory,
        check_steal,
        check_flush,
        check_tool_cpu,
        rate_limit::check_rate_limit,
        link_bandwidth::check_link,
        check_one_in_flight,
        check_machine_cpu,
        check_device,
        check_one_cpu,
    ];
    let found = DECISIONS.iter().find_map(|decide| decide(evidence));
    found.unwrap_or_else(|| build_unknown_limit(evidence))
}

fn build_limit(what: LimitKind, evidence: String) -> Option<Limit> {
    Some(Limit { what, evidence })
}

fn format_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Rounds a fraction to the precision with which [`format_percent`] prints it.
fn round_percent(share: f64) -> f64 {
    (share * 100.0).round() / 100.0
}

fn check_nothing_measured(e: &LimitEvidence) -> Option<Limit> {
    (e.rounds == 0).then(|| Limit {
        what: LimitKind::Unknown,
        evidence: "no sample counts".to_owned(),
    })
}

fn check_throttling(e: &LimitEvidence) -> Option<Limit> {
    if let Some(events) = e.throttle_events.filter(|events| *events > 0) {
        let sentence =
            format!("the CPUs were throttled for heat {events} times during the samples");
        return build_limit(LimitKind::Throttling, sentence);
    }
    let (celsius, most) = e
        .celsius
        .filter(|(celsius, most)| *most > 0.0 && celsius >= most)?;
    let sentence = format!("the drive reached {celsius:.0} °C; its limit is {most:.0} °C");
    build_limit(LimitKind::Throttling, sentence)
}

fn check_memory(e: &LimitEvidence) -> Option<Limit> {
    if e.memory_file_system {
        let sentence = "the file system keeps its data in memory".to_owned();
        return build_limit(LimitKind::Memory, sentence);
    }
    let share = e.device_share.filter(|share| *share < HALF)?;
    build_limit(
        LimitKind::Memory,
        format!(
            "only {} of the bytes reached the device; the rest came from memory or went to it",
            format_percent(share)
        ),
    )
}

fn check_steal(e: &LimitEvidence) -> Option<Limit> {
    let steal = e.steal.filter(|steal| *steal >= STOLEN)?;
    let sentence = format!(
        "the hypervisor took {} of the CPU time",
        format_percent(steal)
    );
    build_limit(LimitKind::Steal, sentence)
}

fn check_flush(e: &LimitEvidence) -> Option<Limit> {
    let (flush, whole) = e
        .flush
        .filter(|(flush, whole)| *whole > 0.0 && flush / whole >= HALF)?;
    build_limit(
        LimitKind::Flush,
        format!(
            "the flush after each write takes {} of its {} ({})",
            format_time(flush),
            format_time(whole),
            format_percent(flush / whole)
        ),
    )
}

fn check_tool_cpu(e: &LimitEvidence) -> Option<Limit> {
    let (user, kernel) = e.job_cpu.filter(|(user, kernel)| user + kernel >= FULL)?;
    build_limit(
        LimitKind::ToolCpu,
        format!(
            "fio used {} of a CPU for each job ({} user, {} kernel)",
            format_percent(user + kernel),
            format_percent(user),
            // Rounded so that the two parts add up to the sum beside them.
            format_percent(round_percent(user + kernel) - round_percent(user))
        ),
    )
}

fn check_machine_cpu(e: &LimitEvidence) -> Option<Limit> {
    let busy = e.machine_busy.filter(|busy| *busy >= MACHINE_FULL)?;
    let own = e.job_cpu.map_or_else(String::new, |(user, kernel)| {
        format!(
            "; fio's busiest job used {} of one",
            format_percent(user + kernel)
        )
    });
    build_limit(
        LimitKind::MachineCpu,
        format!(
            "all CPUs together were busy {} of the time{own}",
            format_percent(busy)
        ),
    )
}

/// Checks whether a single CPU was fully busy. This rule comes last, because another program may have kept that CPU
/// busy.
fn check_one_cpu(e: &LimitEvidence) -> Option<Limit> {
    let busiest = e.busiest_cpu.filter(|busy| *busy >= MACHINE_FULL)?;
    build_limit(
        LimitKind::MachineCpu,
        format!(
            "one CPU was busy {} of the time, not with fio alone: an interrupt handler, a kernel \
             thread or another program; nothing else was at its limit",
            format_percent(busiest)
        ),
    )
}

fn check_one_in_flight(e: &LimitEvidence) -> Option<Limit> {
    let occupied = e.latency? / 1e9 * e.iops;
    let starved = e.machine_busy.filter(|busy| *busy >= MACHINE_FULL);
    let starved = starved.map_or_else(String::new, |busy| {
        format!(
            "; all CPUs were busy {} of the time, which makes each slower",
            format_percent(busy)
        )
    });
    let above = e.device_busy.filter(|busy| *busy < HALF);
    let above = above.map_or_else(String::new, |busy| {
        format!(
            "; the device was busy only {} of the time, so most of it is spent above the device",
            format_percent(busy)
        )
    });
    (e.in_flight == 1 && occupied >= FULL).then(|| Limit {
        what: LimitKind::OneAtATime,
        evidence: format!(
            "{} each make {} per second{}{above}{starved}",
            format_time(e.latency.unwrap_or_default()),
            format_significant(e.iops),
            describe_deeper_sibling(e).map_or_else(String::new, |text| format!("; {text}"))
        ),
    })
}

/// Describes how much a deeper queue increased the rate in the same run.
fn describe_deeper_sibling(e: &LimitEvidence) -> Option<String> {
    let best = e.best_deeper()?;
    Some(format!(
        "{} in flight gave {} per second ({})",
        best.in_flight,
        format_significant(best.iops),
        best.workload
    ))
}

fn check_device(e: &LimitEvidence) -> Option<Limit> {
    let busy = e.device_busy.filter(|busy| *busy >= FULL)?;
    let queue = e.device_queue?;
    // The block layer splits a large I/O into several requests, so the queue may be longer than
    // fio's depth.
    if queue < QUEUE * f64::from(e.in_flight) {
        return None;
    }
    let seen = format!(
        "the device was busy {} of the time with {queue:.1} requests in it (fio kept {} in flight)",
        format_percent(busy),
        e.in_flight
    );
    match e.best_deeper() {
        Some(best) if best.iops >= e.iops * GAIN => build_limit(
            LimitKind::Depth,
            format!(
                "{seen}, and it can do more at once: {}",
                describe_deeper_sibling(e).unwrap_or_default()
            ),
        ),
        Some(_) => build_limit(
            LimitKind::Device,
            format!(
                "{seen}, and more depth does not help: {}",
                describe_deeper_sibling(e).unwrap_or_default()
            ),
        ),
        None => build_limit(
            LimitKind::Device,
            format!("{seen}; whether more depth helps was not measured"),
        ),
    }
}

fn build_unknown_limit(e: &LimitEvidence) -> Limit {
    let mut looked = Vec::new();
    let mut seen = |name: &str, value: Option<String>| match value {
        Some(value) => looked.push(format!("{name} {value}")),
        None => looked.push(format!("{name} not known")),
    };
    seen("device busy", e.device_busy.map(format_percent));
    let queue = |queue| format!("{queue:.1} of {}", e.in_flight);
    seen("device queue", e.device_queue.map(queue));
    seen(
        "fio's CPU",
        e.job_cpu
            .map(|(user, kernel)| format_percent(user + kernel)),
    );
    seen("machine's CPUs", e.machine_busy.map(format_percent));
    let deeper = describe_deeper_sibling(e).map_or_else(String::new, |text| format!("; {text}"));
    let rate = mb_per_s(e.bytes_per_s);
    Limit {
        what: LimitKind::Unknown,
        evidence: format!("{rate} MB/s; {}{deeper}", looked.join(", ")),
    }
}

fn format_time(nanos: f64) -> String {
    assay_model::Nanos(nanos.max(0.0) as u64).to_string()
}

#[cfg(test)]
mod tests;
