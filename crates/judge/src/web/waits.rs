//! Finds what a server waits for if its own CPUs are not the limit: a CPU quota, another server, or a network
//! that does not accept its answers. All other limits are in `limit`.

use super::doubts::generator;
use super::limit::{
    MACHINE, OWN, build_limit, busiest_thread_share, format_mbit, format_percent, own_share,
};
use crate::doubts::clean_text;
use assay_model::units::format_significant;
use assay_model::web::result::{Limit, Limited, StepResult};
use assay_model::web::{Pace, QuotaUse, ServerUse, SocketUse, Step, Upstream};

/// Fraction of the scheduler periods in which the quota stopped the control group, from which the quota is the limit.
const STOPPED: f64 = 0.5;
/// Fraction of the requests that wait for another service, from which that service is the limit.
const HALF: f64 = 0.5;
/// If a generator works or waits for a CPU for at least this fraction of its time, the generator itself may be the
/// reason for unread answers.
const BUSY: f64 = 0.5;
/// Maximum relative difference between byte rates that count as equal.
const FLAT: f64 = 0.05;
/// Factor between two numbers of connections from which the loads count as different.
const RISEN: u32 = 2;

/// Describes a quota that stopped a control group in most of its periods.
fn describe_throttling(quota: Option<&QuotaUse>) -> Option<String> {
    let quota = quota?;
    let share = quota.throttled as f64 / quota.periods.max(1) as f64;
    let cpus = quota
        .cpus
        .map_or_else(String::new, |cpus| format!(" of {cpus:.2} CPUs"));
    (share >= STOPPED).then(|| {
        format!(
            "its quota{cpus} ({}) was used up in {} of {} periods",
            clean_text(&quota.group),
            quota.throttled,
            quota.periods
        )
    })
}

/// Checks whether a CPU quota stops the server. The kernel counts the stopped periods, so this evidence is valid even
/// if the generator lacks CPU time.
pub(super) fn limit_by_quota(step: &Step) -> Option<Limit> {
    let server = step.server.as_ref().ok()?;
    let stopped = describe_throttling(server.quota.as_ref())?;
    let used = count_used_cpus(server);
    build_limit(
        Limited::Quota,
        format!("{}: {used:.2} CPUs; {stopped}", server.what),
    )
}

fn count_used_cpus(server: &ServerUse) -> f64 {
    server.cpu.0 as f64 / server.window.0.max(1) as f64
}

fn find_sockets(step: &Step) -> Option<&SocketUse> {
    step.server.as_ref().ok()?.sockets.as_ref()
}

/// Checks whether at least half of the requests wait for another server.
pub(super) fn limit_by_backend(step: &Step) -> Option<Limit> {
    let (sockets, under_way) = (find_sockets(step)?, step.measured.under_way);
    let all: f64 = sockets
        .upstreams
        .iter()
        .map(|upstream| upstream.waiting)
        .sum();
    if under_way <= 0.0 || all < HALF * under_way {
        return None;
    }
    let most = sockets.upstreams.first()?;
    let evidence = format!(
        "of {under_way:.1} requests under way {:.1} waited for {}: {}",
        most.waiting,
        clean_text(&most.address),
        describe_upstream(step, most)
    );
    build_limit(Limited::Backend, evidence)
}

/// Describes an upstream server, and whether it is full itself.
fn describe_upstream(step: &Step, upstream: &Upstream) -> String {
    let used = match &upstream.used {
        Ok(used) => used,
        Err(why) => return format!("its CPU is not known ({})", clean_text(why)),
    };
    let (name, own) = (clean_text(&used.what), count_used_cpus(used));
    let (all, busy) = step.server_cpus();
    let busy = busy / f64::from(all.max(1));
    if let Some(stopped) = describe_throttling(used.quota.as_ref()) {
        return format!("{name}, {own:.2} CPUs; {stopped}");
    }
    if let Some(busiest) = busiest_thread_share(used) {
        let busiest = format_percent(busiest);
        return format!(
            "{name}, {own:.2} CPUs, its busiest of {} threads {busiest}",
            used.active
        );
    }
    match busy >= MACHINE {
        true => format!(
            "{name}, {own:.2} of {all} CPUs, all of which were {} busy",
            format_percent(busy)
        ),
        false => format!("{name}, {own:.2} CPUs: it waits for something itself"),
    }
}

/// Checks whether the network does not accept answers although the generator is ready to read them.
pub(super) fn limit_by_unsent_bytes(step: &Step) -> Option<Limit> {
    let (sockets, under_way) = (find_sockets(step)?, step.measured.under_way);
    let (busy, waited) = generator(&step.measured)?;
    let idle = own_share(step).is_some_and(|share| share < OWN);
    // With HTTP/2, several requests share a connection.
    let used = (under_way / f64::from(step.streams.max(1))).min(sockets.clients);
    // A kernel acknowledges up to 40 ms later on a connection without a next request: connections at rest may have
    // unacknowledged answers that arrived long ago.
    let sending = sockets.sending - (sockets.clients - used);
    if under_way <= 0.0 || sending < HALF * used || busy + waited >= BUSY || !idle {
        return None;
    }
    let link = step.link.as_ref().map_or_else(
        |_| String::new(),
        |link| {
            format!(
                " while {} carried {}",
                link.interface,
                format_mbit(link.received.max(link.sent))
            )
        },
    );
    build_limit(
        Limited::Network,
        format!(
            "on {:.1} of {:.1} connections the server had sent what nobody had acknowledged{link}; its CPU was {:.2}, \
             the generator's {}",
            sockets.sending,
            sockets.clients,
            step.server.as_ref().map_or(0.0, count_used_cpus),
            format_percent(busy)
        ),
    )
}

/// Describes possible reasons for waiting that were not examined, and those that were ruled out.
pub(super) fn describe_unexplained_wait(step: &Step) -> &'static str {
    match (
        find_sockets(step),
        step.server
            .as_ref()
            .is_ok_and(|server| server.quota.is_some()),
    ) {
        (Some(_), _) => {
            "a disk, a lock or a timer (no other server and no network kept it waiting)"
        }
        (None, true) => "a backend, a disk, a lock or a link slower than its interface says",
        (None, false) => {
            "a backend, a disk, a lock, a CPU quota or a link slower than its interface says"
        }
    }
}

/// Adds evidence to steps that the network limits: bytes per second stay equal while the number of connections
/// increases.
pub(super) fn add_flat_bytes(results: &mut [StepResult]) {
    let flat: Vec<Option<String>> = results
        .iter()
        .map(|result| flat_bytes(result, results))
        .collect();
    for (result, flat) in results.iter_mut().zip(flat) {
        if let Some(flat) = flat {
            result.limit.evidence = format!("{}; {flat}", result.limit.evidence);
        }
    }
}

fn flat_bytes(result: &StepResult, all: &[StepResult]) -> Option<String> {
    let matters = matches!(result.limit.who, Limited::Network | Limited::NotKnown);
    if !matters || result.pace != Pace::Closed || result.bytes_per_s <= 0.0 {
        return None;
    }
    let same = all.iter().filter(|other| {
        other.target == result.target
            && other.pace == Pace::Closed
            && (other.bytes_per_s / result.bytes_per_s - 1.0).abs() <= FLAT
    });
    let (least, most) = same.fold(
        (result.connections, result.connections),
        |(least, most), other| (least.min(other.connections), most.max(other.connections)),
    );
    (most >= RISEN * least).then(|| {
        format!(
            "{} Mbit/s of bodies with {least} connections as with {most}",
            format_significant(result.bytes_per_s * 8.0 / 1e6)
        )
    })
}
