//! Why not more? A list of decisions, first match wins: from what would make the later evidence
//! meaningless (data that never reached the device, heat, a stolen CPU) to what remains when
//! nothing else explains the rate (the device). Every threshold is named with its reason.

mod evidence;
mod link;
mod rate_limit;

pub(crate) use evidence::{Evidence, Sibling};
pub(crate) use rate_limit::variation;

use assay_model::result::{Limit, LimitKind};
use assay_model::units::{mb_per_s, significant};

/// Share of a resource from which nothing useful is left: counters are read before and after the
/// load generator's start and end, where it does no I/O.
const FULL: f64 = 0.90;
/// Share of busy CPUs from which the machine has none left.
const MACHINE_FULL: f64 = 0.95;
/// A larger share of CPU time taken by the hypervisor is more than its bookkeeping.
const STOLEN: f64 = 0.10;
/// A cause that takes at least half of the latency is the cause.
const HALF: f64 = 0.5;
/// The device's queue counts as full when this share of the requests that fio keeps in flight is in
/// the device, and not on its way through software.
const QUEUE: f64 = 0.8;
/// A deeper queue helps when it gives this much more; less is noise between samples.
const GAIN: f64 = 1.10;

/// What kept the workload from going faster.
pub(crate) fn judge(evidence: &Evidence) -> Limit {
    const DECISIONS: [fn(&Evidence) -> Option<Limit>; 12] = [
        nothing,
        throttling,
        memory,
        steal,
        flush,
        tool_cpu,
        rate_limit::judge,
        link::judge,
        one_at_a_time,
        machine_cpu,
        device,
        one_cpu,
    ];
    let found = DECISIONS.iter().find_map(|decide| decide(evidence));
    found.unwrap_or_else(|| unknown(evidence))
}

fn limit(what: LimitKind, evidence: String) -> Option<Limit> {
    Some(Limit { what, evidence })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn nothing(e: &Evidence) -> Option<Limit> {
    (e.rounds == 0).then(|| Limit {
        what: LimitKind::Unknown,
        evidence: "no sample counts".to_owned(),
    })
}

fn throttling(e: &Evidence) -> Option<Limit> {
    if let Some(events) = e.throttle_events.filter(|events| *events > 0) {
        let said = format!("the CPUs were throttled for heat {events} times during the samples");
        return limit(LimitKind::Throttling, said);
    }
    let (celsius, most) = e
        .celsius
        .filter(|(celsius, most)| *most > 0.0 && celsius >= most)?;
    let said = format!("the drive reached {celsius:.0} °C; its limit is {most:.0} °C");
    limit(LimitKind::Throttling, said)
}

fn memory(e: &Evidence) -> Option<Limit> {
    if e.memory_file_system {
        let said = "the file system keeps its data in memory".to_owned();
        return limit(LimitKind::Memory, said);
    }
    let share = e.device_share.filter(|share| *share < HALF)?;
    limit(
        LimitKind::Memory,
        format!(
            "only {} of the bytes reached the device; the rest came from memory or went to it",
            percent(share)
        ),
    )
}

fn steal(e: &Evidence) -> Option<Limit> {
    let steal = e.steal.filter(|steal| *steal >= STOLEN)?;
    let said = format!("the hypervisor took {} of the CPU time", percent(steal));
    limit(LimitKind::Steal, said)
}

fn flush(e: &Evidence) -> Option<Limit> {
    let (flush, whole) = e
        .flush
        .filter(|(flush, whole)| *whole > 0.0 && flush / whole >= HALF)?;
    limit(
        LimitKind::Flush,
        format!(
            "the flush after each write takes {} of its {} ({})",
            time(flush),
            time(whole),
            percent(flush / whole)
        ),
    )
}

fn tool_cpu(e: &Evidence) -> Option<Limit> {
    let (user, kernel) = e.job_cpu.filter(|(user, kernel)| user + kernel >= FULL)?;
    limit(
        LimitKind::ToolCpu,
        format!(
            "fio used {} of a CPU for each job ({} user, {} kernel)",
            percent(user + kernel),
            percent(user),
            percent(kernel)
        ),
    )
}

fn machine_cpu(e: &Evidence) -> Option<Limit> {
    let busy = e.machine_busy.filter(|busy| *busy >= MACHINE_FULL)?;
    let own = e.job_cpu.map_or_else(String::new, |(user, kernel)| {
        format!("; fio's busiest job used {} of one", percent(user + kernel))
    });
    limit(
        LimitKind::MachineCpu,
        format!(
            "all CPUs together were busy {} of the time{own}",
            percent(busy)
        ),
    )
}

/// Comes last: the busy CPU may have worked for somebody else.
fn one_cpu(e: &Evidence) -> Option<Limit> {
    let busiest = e.busiest_cpu.filter(|busy| *busy >= MACHINE_FULL)?;
    limit(
        LimitKind::MachineCpu,
        format!(
            "one CPU was busy {} of the time, not with fio alone: an interrupt handler, a kernel thread or another program; nothing else was at its limit",
            percent(busiest)
        ),
    )
}

fn one_at_a_time(e: &Evidence) -> Option<Limit> {
    let occupied = e.latency? / 1e9 * e.iops;
    let starved = e.machine_busy.filter(|busy| *busy >= MACHINE_FULL);
    let starved = starved.map_or_else(String::new, |busy| {
        format!(
            "; all CPUs were busy {} of the time, which makes each slower",
            percent(busy)
        )
    });
    let above = e.device_busy.filter(|busy| *busy < HALF);
    let above = above.map_or_else(String::new, |busy| {
        format!(
            "; the device was busy only {} of the time, so most of it is spent above the device",
            percent(busy)
        )
    });
    (e.in_flight == 1 && occupied >= FULL).then(|| Limit {
        what: LimitKind::OneAtATime,
        evidence: format!(
            "{} each make {} per second{}{above}{starved}",
            time(e.latency.unwrap_or_default()),
            significant(e.iops),
            deeper(e).map_or_else(String::new, |text| format!("; {text}"))
        ),
    })
}

/// What more depth gave in the same run.
fn deeper(e: &Evidence) -> Option<String> {
    let best = e.best_deeper()?;
    Some(format!(
        "{} in flight gave {} per second ({})",
        best.in_flight,
        significant(best.iops),
        best.workload
    ))
}

fn device(e: &Evidence) -> Option<Limit> {
    let busy = e.device_busy.filter(|busy| *busy >= FULL)?;
    let queue = e.device_queue?;
    // A large I/O is split into several requests, so the queue may be longer than what fio asked.
    if queue < QUEUE * f64::from(e.in_flight) {
        return None;
    }
    let seen = format!(
        "the device was busy {} of the time with {queue:.1} requests in it (fio kept {} in flight)",
        percent(busy),
        e.in_flight
    );
    match e.best_deeper() {
        Some(best) if best.iops >= e.iops * GAIN => limit(
            LimitKind::Depth,
            format!(
                "{seen}, and it can do more at once: {}",
                deeper(e).unwrap_or_default()
            ),
        ),
        Some(_) => limit(
            LimitKind::Device,
            format!(
                "{seen}, and more depth does not help: {}",
                deeper(e).unwrap_or_default()
            ),
        ),
        None => limit(
            LimitKind::Device,
            format!("{seen}; whether more depth helps was not measured"),
        ),
    }
}

fn unknown(e: &Evidence) -> Limit {
    let mut looked = Vec::new();
    let mut seen = |name: &str, value: Option<String>| match value {
        Some(value) => looked.push(format!("{name} {value}")),
        None => looked.push(format!("{name} not known")),
    };
    seen("device busy", e.device_busy.map(percent));
    let queue = |queue| format!("{queue:.1} of {}", e.in_flight);
    seen("device queue", e.device_queue.map(queue));
    seen(
        "fio's CPU",
        e.job_cpu.map(|(user, kernel)| percent(user + kernel)),
    );
    seen("machine's CPUs", e.machine_busy.map(percent));
    let deeper = deeper(e).map_or_else(String::new, |text| format!("; {text}"));
    let rate = mb_per_s(e.bytes_per_s);
    Limit {
        what: LimitKind::Unknown,
        evidence: format!("{rate} MB/s; {}{deeper}", looked.join(", ")),
    }
}

fn time(nanos: f64) -> String {
    assay_model::Nanos(nanos.max(0.0) as u64).to_string()
}

#[cfg(test)]
mod tests;
