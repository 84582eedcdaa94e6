//! What a server waits for while its own CPUs are not the limit: a CPU quota, another server, or a network that does
//! not take its answers. Everything else that may limit is in `limit`.

use super::doubts::generator;
use super::limit::{MACHINE, OWN, because, busiest, mbit, own_share, percent};
use crate::doubts::clean_text;
use assay_model::units::format_significant;
use assay_model::web::result::{Limit, Limited, StepResult};
use assay_model::web::{Pace, QuotaUse, ServerUse, SocketUse, Step, Upstream};

/// A group that is stopped in this share of its periods has no quota left.
const STOPPED: f64 = 0.5;
/// Where this share of the requests waits is where the time goes.
const HALF: f64 = 0.5;
/// A generator that works or waits for a CPU longer than this may be why nobody takes what the server sends.
const BUSY: f64 = 0.5;
/// Bytes per second that differ by less are the same.
const FLAT: f64 = 0.05;
/// A load is another one with so many times the connections.
const RISEN: u32 = 2;

/// Describes a quota that stopped a group in most of its periods.
fn stopped(quota: Option<&QuotaUse>) -> Option<String> {
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

/// The server is stopped by a CPU quota.
pub(super) fn quota(step: &Step) -> Option<Limit> {
    let server = step.server.as_ref().ok()?;
    let stopped = stopped(server.quota.as_ref())?;
    let used = cpus(server);
    because(
        Limited::Quota,
        format!("{}: {used:.2} CPUs; {stopped}", server.what),
    )
}

fn cpus(server: &ServerUse) -> f64 {
    server.cpu.0 as f64 / server.window.0.max(1) as f64
}

fn sockets(step: &Step) -> Option<&SocketUse> {
    step.server.as_ref().ok()?.sockets.as_ref()
}

/// Half of the requests or more wait for another server.
pub(super) fn backend(step: &Step) -> Option<Limit> {
    let (sockets, under_way) = (sockets(step)?, step.measured.under_way);
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
    because(Limited::Backend, evidence)
}

/// What is known of a server that is waited for: whether it is full itself.
fn describe_upstream(step: &Step, upstream: &Upstream) -> String {
    let used = match &upstream.used {
        Ok(used) => used,
        Err(why) => return format!("its CPU is not known ({})", clean_text(why)),
    };
    let (name, own) = (clean_text(&used.what), cpus(used));
    let (all, busy) = step.server_cpus();
    let busy = busy / f64::from(all.max(1));
    if let Some(stopped) = stopped(used.quota.as_ref()) {
        return format!("{name}, {own:.2} CPUs; {stopped}");
    }
    if let Some(busiest) = busiest(used) {
        let busiest = percent(busiest);
        return format!(
            "{name}, {own:.2} CPUs, its busiest of {} threads {busiest}",
            used.active
        );
    }
    match busy >= MACHINE {
        true => format!(
            "{name}, {own:.2} of {all} CPUs, all of which were {} busy",
            percent(busy)
        ),
        false => format!("{name}, {own:.2} CPUs: it waits for something itself"),
    }
}

/// The server has answers that the network does not take, and the generator is there to take them.
pub(super) fn unsent(step: &Step) -> Option<Limit> {
    let (sockets, under_way) = (sockets(step)?, step.measured.under_way);
    let (busy, waited) = generator(&step.measured)?;
    let idle = own_share(step).is_some_and(|share| share < OWN);
    if under_way <= 0.0 || sockets.sending < HALF * under_way || busy + waited >= BUSY || !idle {
        return None;
    }
    let link = step.link.as_ref().map_or_else(
        |_| String::new(),
        |link| {
            format!(
                " while {} carried {}",
                link.interface,
                mbit(link.received.max(link.sent))
            )
        },
    );
    because(
        Limited::Network,
        format!(
            "on {:.1} of {:.1} connections the server had sent what nobody had acknowledged{link}; its CPU was {:.2}, \
             the generator's {}",
            sockets.sending,
            sockets.clients,
            step.server.as_ref().map_or(0.0, cpus),
            percent(busy)
        ),
    )
}

/// What a server may wait for that was not looked at, or was and is not the cause.
pub(super) fn unexplained(step: &Step) -> &'static str {
    match (
        sockets(step),
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

/// Adds to steps that the network limited that the bytes per second stay the same while the connections rise.
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
