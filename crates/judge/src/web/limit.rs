//! Finds what limited a step: the server, the generator, the network or something else. The rules are tried in order,
//! and the first match decides. The first rules find causes that invalidate later evidence (no free local port, an
//! accept queue overflow, a busy generator); the last rule applies if nothing else explains the rate.

use super::doubts::{REACHED, generator, is_full, too_late};
use super::{stalls, waits};
use assay_model::units::format_significant;
use assay_model::web::result::{Limit, Limited};
use assay_model::web::{FailureKind, LinkUse, ServerUse, Step};
use assay_model::{Histogram, Nanos};

/// Fraction of the requests from which a kind of failure or waiting counts as the limit.
const MATTERS: f64 = 0.01;
/// Fraction of a network link's speed from which it counts as full. The counters do not include Ethernet headers.
const LINK_FULL: f64 = 0.90;
/// Busy fraction from which a server thread counts as full.
const BUSY: f64 = 0.90;
/// Fraction of its working time that a server thread waits for a CPU, from which the server has too little CPU time.
const STARVED: f64 = 0.60;
/// Busy fraction of all CPUs together from which the machine counts as full.
pub(super) const MACHINE: f64 = 0.95;
/// Fraction of the requests' time below which the server's threads were not the limit, because the server waits for
/// something else.
pub(super) const OWN: f64 = 0.25;
/// Time in nanoseconds of a connection from which its first packet must have been sent twice (retransmission after 1 s,
/// RFC 6298).
const ANOTHER_TRY: u64 = 900_000_000;

/// Finds what limited this step.
#[must_use]
pub fn limit(step: &Step) -> Limit {
    const DECISIONS: [fn(&Step) -> Option<Limit>; 12] = [
        limit_by_ports,
        accept_queue,
        quota_below_rate,
        generator_full,
        limit_by_network,
        limit_by_lateness,
        limit_by_rate,
        limit_by_server,
        waits::limit_by_backend,
        waits::limit_by_unsent_bytes,
        stalls::limit_by_stalls,
        limit_by_schedule,
    ];
    // With several generators, a limit of one generator limits all of them.
    const OWN: [fn(&Step) -> Option<Limit>; 4] = [
        limit_by_ports,
        generator_full,
        limit_by_network,
        limit_by_lateness,
    ];
    let of_one = super::many::list_generator_steps(step).find_map(|(name, alone)| {
        let limit = OWN.iter().find_map(|decide| decide(&alone))?;
        let evidence = format!("{name}: {}", limit.evidence);
        Some(Limit { evidence, ..limit })
    });
    let found = of_one.or_else(|| DECISIONS.iter().find_map(|decide| decide(step)));
    found.unwrap_or_else(|| limit_by_the_rest(step))
}

pub(super) fn format_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

pub(super) fn build_limit(who: Limited, evidence: String) -> Option<Limit> {
    Some(Limit { who, evidence })
}

fn limit_by_ports(step: &Step) -> Option<Limit> {
    let measured = &step.measured;
    let none = measured.failed_by(FailureKind::NoPort);
    (none as f64 > MATTERS * measured.due as f64).then(|| Limit {
        who: Limited::Ports,
        evidence: format!(
            "{none} of {} requests found no local port left (EADDRNOTAVAIL)",
            measured.due
        ),
    })
}

fn accept_queue(step: &Step) -> Option<Limit> {
    let (measured, machine) = (&step.measured, &step.machine);
    let there = step.server.as_ref().ok().and_then(|server| server.machine);
    let full = there.map_or(machine.listen_overflows, |there| there.listen_overflows);
    // The first packet, or the last packet of the handshake, is dropped and sent again. In the second case the
    // client has a connection on which the server does not answer.
    let late = |histogram: &Histogram| {
        histogram
            .percentile(99.0)
            .is_some_and(|p99| p99 > ANOTHER_TRY)
    };
    let timeouts =
        measured.failed_by(FailureKind::ConnectTimeout) + measured.failed_by(FailureKind::TimedOut);
    let matters = full as f64 > MATTERS * measured.connections as f64;
    (full > 0 && matters && (late(&measured.connect) || late(&measured.service) || timeouts > 0)).then(|| Limit {
        who: Limited::AcceptQueue,
        evidence: format!(
            "the accept queue overflowed {full} times while {} connections were made, and {timeouts} requests \
             ran into their limit",
            measured.connections
        ),
    })
}

/// Checks whether a CPU quota stopped the server. The quota is not the limit if the server answered the whole requested
/// rate in spite of it.
fn quota_below_rate(step: &Step) -> Option<Limit> {
    match limit_by_rate(step) {
        Some(_) => None,
        None => waits::limit_by_quota(step),
    }
}

fn generator_full(step: &Step) -> Option<Limit> {
    let (busy, waited) = generator(&step.measured)?;
    if !is_full(busy, waited) {
        return None;
    }
    build_limit(
        Limited::Generator,
        format!(
            "its threads were on a CPU for {} of the time and waited for one for {}",
            format_percent(busy),
            format_percent(waited)
        ),
    )
}

fn limit_by_network(step: &Step) -> Option<Limit> {
    let link = step.link.as_ref().ok()?;
    let (used, speed) = (link.received.max(link.sent), link.speed?);
    (used >= LINK_FULL * speed).then(|| Limit {
        who: Limited::Network,
        evidence: format!(
            "{} carried {} of {}",
            link.interface,
            format_mbit(used),
            format_mbit(speed)
        ),
    })
}

pub(super) fn format_mbit(bits: f64) -> String {
    format!("{} Mbit/s", format_significant(bits / 1e6))
}

/// Checks whether the generator had a CPU but still sent late, because it was stopped or its timers are coarse.
fn limit_by_lateness(step: &Step) -> Option<Limit> {
    let late = too_late(step)?;
    build_limit(
        Limited::Schedule,
        format!("{late}, with a connection at hand"),
    )
}

/// Checks whether the requested rate was reached.
fn limit_by_rate(step: &Step) -> Option<Limit> {
    let asked = step.pace.rate()?;
    let measured = &step.measured;
    let due = measured.due as f64 * 1e9 / measured.window.0.max(1) as f64;
    let waited = measured.waited as f64 > MATTERS * measured.due as f64;
    (measured.failed() == 0 && measured.rate() >= REACHED * due && !waited).then(|| Limit {
        who: Limited::Rate,
        evidence: format!(
            "{:.0} of {asked:.0} requests per second were served, and no connection was lacking",
            measured.rate()
        ),
    })
}

pub(super) fn busiest_thread_share(server: &ServerUse) -> Option<f64> {
    server.busiest.filter(|busiest| *busiest >= BUSY)
}

fn limit_by_server(step: &Step) -> Option<Limit> {
    let server = step.server.as_ref().ok()?;
    let used = server.cpu.0 as f64 / server.window.0.max(1) as f64;
    if let Some(busiest) = busiest_thread_share(server) {
        let evidence = format!(
            "{}: {used:.2} CPUs, its busiest of {} threads {}",
            server.what,
            server.active,
            format_percent(busiest)
        );
        return build_limit(Limited::Server, evidence);
    }
    // Many threads, none of them full, and no CPU is left.
    let (cpus, busy) = step.server_cpus();
    let busy = busy / f64::from(cpus.max(1));
    let waited = server.waited.map_or(0.0, |waited| {
        waited.0 as f64 / server.window.0.max(1) as f64
    });
    if busy >= MACHINE && used >= 0.5 * f64::from(cpus) {
        let evidence = format!(
            "{}: {used:.2} of {cpus} CPUs, all of which were {} busy; its threads waited {waited:.2} CPUs long",
            server.what,
            format_percent(busy)
        );
        return build_limit(Limited::Server, evidence);
    }
    limit_by_other_processes(step, server, used, waited)
}

/// Checks whether the server threads wait for a CPU during most of their working time, because other programs use the
/// CPUs.
fn limit_by_other_processes(
    step: &Step,
    server: &ServerUse,
    used: f64,
    waited: f64,
) -> Option<Limit> {
    let busiest = server.busiest.filter(|busiest| *busiest >= STARVED)?;
    let (busy, lacked) = generator(&step.measured)?;
    (waited >= used && busiest > busy + lacked).then(|| Limit {
        who: Limited::Server,
        evidence: format!(
            "{}: {used:.2} CPUs, and its threads waited for one for {waited:.2}; its busiest of {} threads had work \
             for {}",
            server.what,
            server.active,
            format_percent(busiest)
        ),
    })
}

fn limit_by_schedule(step: &Step) -> Option<Limit> {
    step.pace.rate()?;
    let measured = &step.measured;
    // Without the server's CPU time, a slow server and too few connections are indistinguishable.
    let server = step.server.as_ref().ok()?;
    (measured.waited as f64 > MATTERS * measured.due as f64
        && busiest_thread_share(server).is_none())
    .then(|| Limit {
        who: Limited::Schedule,
        evidence: format!(
            "{} of {} requests waited for one of {} {}, while {} used {:.2} CPUs",
            measured.waited,
            measured.due,
            step.places(),
            name_places(step),
            server.what,
            server.cpu.0 as f64 / server.window.0.max(1) as f64
        ),
    })
}

/// Returns the name of the resource that each request occupies: a connection or a stream.
fn name_places(step: &Step) -> &'static str {
    match step.streams {
        1 => "connections",
        _ => "streams",
    }
}

/// Computes the fraction of the requests' time that the server's threads were on a CPU or waited for one.
pub(super) fn own_share(step: &Step) -> Option<f64> {
    let server = step.server.as_ref().ok()?;
    let waited = server.waited.map_or(0, |waited| waited.0);
    let cpus = (server.cpu.0 + waited) as f64 / server.window.0.max(1) as f64;
    (step.measured.under_way > 0.0).then(|| cpus / step.measured.under_way)
}

/// Returns the limit if no resource is fully used. In a closed loop every request is somewhere: if the generator is
/// idle and the network cannot hold requests, they are in the server, or in a service for which the server waits.
fn limit_by_the_rest(step: &Step) -> Limit {
    let measured = &step.measured;
    let seen = |step: &Step| {
        let busy = generator(measured).map_or(0.0, |(busy, waited)| busy + waited);
        let server = match &step.server {
            Ok(server) => {
                let share = |time: Nanos| time.0 as f64 / server.window.0.max(1) as f64;
                let waited = match server.waited.map(share) {
                    Some(waited) if waited >= 0.05 => format!(" and {waited:.2} waiting for one"),
                    _ => String::new(),
                };
                format!("the server's CPU {:.2}{waited}", share(server.cpu))
            }
            Err(why) => format!("the server's CPU not known ({why})"),
        };
        let link = match &step.link {
            Ok(LinkUse {
                speed: Some(speed),
                received,
                sent,
                ..
            }) => {
                format!("the link {}", format_percent(received.max(*sent) / speed))
            }
            Ok(link) => format!("{} has no speed of its own", link.interface),
            Err(why) => format!("the link not known ({why})"),
        };
        format!("generator {}, {server}, {link}", format_percent(busy))
    };
    if measured.answers == 0 {
        let first = measured
            .failures
            .iter()
            .max_by_key(|failures| failures.count);
        let why = first.map_or("nothing ended", |failures| failures.kind.describe());
        return Limit {
            who: Limited::NotKnown,
            evidence: format!("not one good answer ({why})"),
        };
    }
    let local = step.link.as_ref().is_ok_and(|link| link.interface == "lo");
    let roomy = step.link.as_ref().is_ok_and(|link| {
        link.speed
            .is_some_and(|speed| link.received.max(link.sent) < 0.5 * speed)
    });
    let all_there = measured.under_way >= 0.9 * step.places() as f64;
    if (local || roomy) && all_there && step.server.is_ok() {
        if own_share(step).is_some_and(|share| share < OWN) {
            return Limit {
                who: Limited::NotKnown,
                evidence: format!(
                    "{:.1} of {} {} had a request at the server all the time, and the server used a CPU for little \
                     of it: it waits for something else, such as {}; {}",
                    measured.under_way,
                    step.places(),
                    name_places(step),
                    waits::describe_unexplained_wait(step),
                    seen(step)
                ),
            };
        }
        return Limit {
            who: Limited::Server,
            evidence: format!(
                "{:.1} of {} {} had a request at the server all the time, and no thread of it was full: \
                 {}",
                measured.under_way,
                step.places(),
                name_places(step),
                seen(step)
            ),
        };
    }
    Limit {
        who: Limited::NotKnown,
        evidence: seen(step),
    }
}
