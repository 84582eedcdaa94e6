//! Sentences about each person: what the person experienced, and the cause.

use super::link_sentences::{describe_losses, describe_queue};
use super::radio::{describe_radio as radio, format_channel_change, format_dbm};
use super::{format_mbit, format_ms, format_percent};
use assay_net::cause::Cause;
use assay_net::player::Played;
use assay_net::role::{Role, Workload};
use assay_net::verdict::{Grade, PersonVerdict, RoleVerdict};
use assay_net::wire::{ClientSeen, Status};
use assay_render::text::escape_line;
use assay_render::units::{format_latency, format_plural};

/// Minimum fraction of late events for which the report uses the word "hopeless".
const HOPELESS: f64 = 0.8;

/// Describes in plain words what a person experienced: the worst role and its cause.
#[must_use]
pub fn headline(
    person: &PersonVerdict,
    roles: &[Role],
    missing: Option<&str>,
    clock: &dyn Fn(u64) -> String,
) -> String {
    if let Some(why) = missing {
        return format!("{}.", capitalize(&escape_line(why)));
    }
    let pairs = roles.iter().zip(&person.roles);
    let mut said: Vec<String> = Vec::new();
    let mut causes: Vec<&Cause> = Vec::new();
    for (role, verdict) in pairs.filter(|(_, verdict)| verdict.grade == person.grade) {
        said.push(capitalize(&describe_role(role, verdict, clock)));
        // Equal causes are reported once, with the evidence of the first.
        let kind = |why: &Cause| std::mem::discriminant(why);
        let known = |why: &Cause| causes.iter().any(|own| kind(own) == kind(why));
        causes.extend(verdict.cause.as_ref().filter(|why| !known(why)));
    }
    // Unknown roles of a person with other known roles.
    let unknown = roles
        .iter()
        .zip(&person.roles)
        .filter(|(_, verdict)| verdict.grade == Grade::Unknown && person.grade != Grade::Unknown);
    said.extend(unknown.map(|(role, verdict)| capitalize(&describe_role(role, verdict, clock))));
    // The queue of the person has more evidence than that of one role.
    let in_queue = |why: &&&Cause| person.queue.is_some() && matches!(why, Cause::Queue { .. });
    let losses = describe_losses(person);
    let in_losses = |why: &&&Cause| losses.is_some() && matches!(why, Cause::Loss { .. });
    let rest = causes
        .iter()
        .filter(|why| !in_queue(why) && !in_losses(why));
    said.extend(rest.map(|why| cause(why, clock)));
    said.extend(person.queue.as_ref().map(describe_queue));
    said.extend(losses);
    let air = person.air.as_ref();
    said.extend(air.and_then(|air| radio(air, &causes, clock)));
    match said.is_empty() {
        true => "Nothing was measured.".to_owned(),
        false => said.join(" "),
    }
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

/// Describes one role of a person.
fn describe_role(role: &Role, verdict: &RoleVerdict, clock: &dyn Fn(u64) -> String) -> String {
    let thing = escape_line(&role.thing);
    let within = format_ms(role.within_us());
    let share = verdict.share_over().unwrap_or(0.0);
    let rate = verdict.bit_per_s.map_or_else(String::new, format_mbit);
    match (verdict.grade, &role.workload) {
        (Grade::Unknown, _) if verdict.at_ceiling => format!(
            "{}: it was not as it should be, but this page could hardly have taken in more.",
            escape_line(&role.name)
        ),
        (Grade::Unknown, _) if verdict.void > 0 => format!(
            "{}: {} of {} do not count, because the device itself was late or asleep.",
            escape_line(&role.name),
            verdict.void,
            format_plural(
                verdict.void + verdict.counted,
                "measurement",
                "measurements"
            )
        ),
        (Grade::Unknown, _) => format!("{}: too little was measured.", escape_line(&role.name)),
        (grade, Workload::Bulk { .. }) => {
            let words = if grade == Grade::Good {
                &role.fine
            } else {
                &role.trouble
            };
            match verdict.bit_per_s {
                Some(bits) if bits > 0.0 => format!("{} at {rate}.", escape_line(words)),
                _ => format!("{}.", escape_line(&role.hopeless)),
            }
        }
        (_, Workload::Responsiveness { .. }) => match verdict.rpm {
            Some(rpm) => format!(
                "{} at {rate}, and new connections made {rpm:.0} round trips a minute meanwhile.",
                escape_line(&role.fine)
            ),
            None => format!("{}.", escape_line(&role.hopeless)),
        },
        (Grade::Good, _) => {
            let slow = verdict.latency.p99.or(verdict.latency.p90);
            let most = if verdict.latency.p99.is_some() {
                99
            } else {
                90
            };
            match slow {
                Some(_) => format!(
                    "{}: {most} % of {thing} within {}.",
                    escape_line(&role.fine),
                    format_ms(slow)
                ),
                None => format!("{}.", escape_line(&role.fine)),
            }
        }
        (_, Workload::Stream { .. }) => describe_film(role, verdict, clock),
        _ if share >= HOPELESS => format!(
            "{}: {} of {thing} took longer than {within} or were lost; half took {} or more.",
            escape_line(&role.hopeless),
            format_percent(share),
            format_ms(verdict.latency.p50)
        ),
        _ => {
            let broke = describe_breaks(&role.trouble, &verdict.breaks, clock);
            format!(
                "{broke} ({} of {thing} over {within}).",
                format_percent(share)
            )
        }
    }
}

/// Describes the number of breaks and the longest break, such as `the call broke up 3 times, 14:02:11 the longest, 2.1
/// s`.
fn describe_breaks(words: &str, breaks: &[(u64, u64)], clock: &dyn Fn(u64) -> String) -> String {
    let words = escape_line(words);
    let long = |(from, to): &(u64, u64)| format_latency(to.saturating_sub(*from) as f64 * 1e3);
    let longest = breaks
        .iter()
        .max_by_key(|(from, to)| to.saturating_sub(*from));
    match (breaks.len(), longest) {
        (0, _) | (_, None) => format!("{words} now and then"),
        (1, Some(one)) => format!("{words} once, at {}, for {}", clock(one.0), long(one)),
        (n, Some(one)) => {
            format!(
                "{words} {n} times, {} the longest, {}",
                clock(one.0),
                long(one)
            )
        }
    }
}

fn describe_film(role: &Role, verdict: &RoleVerdict, clock: &dyn Fn(u64) -> String) -> String {
    let began = verdict
        .played
        .as_ref()
        .is_some_and(|played| played.began_us.is_some());
    let stood = verdict.played.as_ref().map_or(0, Played::stood_us);
    match (began, verdict.breaks.len()) {
        (false, _) => format!("{}.", escape_line(&role.hopeless)),
        (true, 0) => format!(
            "the film ran without a stop, but {} of {} came slower than they should.",
            format_percent(verdict.share_over().unwrap_or(0.0)),
            escape_line(&role.thing)
        ),
        (true, n) => {
            let all = match n {
                1 => String::new(),
                _ => format!("; it stood {} in all", format_latency(stood as f64 * 1e3)),
            };
            format!(
                "{}{all}.",
                describe_breaks(&role.trouble, &verdict.breaks, clock)
            )
        }
    }
}

/// Describes a cause with its evidence.
#[must_use]
pub fn cause(cause: &Cause, clock: &dyn Fn(u64) -> String) -> String {
    match cause {
        Cause::Queue {
            during_us,
            before_us,
        } => format!(
            "It waited in a queue on the way that is too long: a round trip took {} before the run, and {} when it was late.",
            format_ms(Some(*before_us)),
            format_ms(Some(*during_us))
        ),
        Cause::Loss { share } => format!("{} was lost on the way.", format_percent(*share)),
        Cause::Far { before_us } => format!(
            "The server is too far away: a round trip took {} before the run.",
            format_ms(Some(*before_us))
        ),
        Cause::Rate { bit_per_s, needs } => {
            format!(
                "The link gave {}, and this needs {}.",
                format_mbit(*bit_per_s),
                format_mbit(*needs)
            )
        }
        Cause::Cut { from_us } => format!("From {} on nothing came through.", clock(*from_us)),
        Cause::Roam {
            from_us,
            to_us,
            from,
            to,
            share,
        } => format!(
            "{} of what was late was due while the device roamed at {} {}, which took at most {}.",
            format_percent(*share),
            clock(*to_us),
            format_channel_change(*from, *to),
            format_latency(to_us.saturating_sub(*from_us) as f64 * 1e3)
        ),
        Cause::Away {
            from_us,
            to_us,
            share,
        } => format!(
            "{} of what was late was due while the device was with no access point, from {} on for {}.",
            format_percent(*share),
            clock(*from_us),
            format_latency(to_us.saturating_sub(*from_us) as f64 * 1e3)
        ),
        Cause::Signal {
            dbm: weakest,
            at_us,
            share,
            otherwise,
        } => {
            let rest = match otherwise {
                Some(rest) => format!(
                    "{} was late while it was weak, and {} at other times",
                    format_percent(*share),
                    format_percent(*rest)
                ),
                None => "it was weak all the time".to_owned(),
            };
            format!(
                "The access point was heard with {} at {}: {rest}.",
                format_dbm(*weakest),
                clock(*at_us)
            )
        }
        Cause::Band {
            channel,
            share,
            other,
            other_share,
            other_signal,
        } => {
            let better = match (other_share, other_signal) {
                (Some(rest), _) => format!("{} while it was on {other}", format_percent(*rest)),
                (None, Some(signal)) => {
                    format!(
                        "its network is heard on {other} with {}",
                        format_dbm(*signal)
                    )
                }
                (None, None) => format!("its network is on {other} as well"),
            };
            format!(
                "{} was late on {channel}, and {better}: nothing steered the device there.",
                format_percent(*share)
            )
        }
    }
}

/// Describes which people have problems at the moment, for a status line.
#[must_use]
pub fn live(status: &Status) -> String {
    let mut suffering = Vec::new();
    for person in &status.people {
        let roles = person.live.iter().flat_map(|live| &live.roles);
        let worst = roles.filter(|role| role.over > 0).max_by(|a, b| {
            a.over
                .saturating_mul(b.ended)
                .cmp(&b.over.saturating_mul(a.ended))
        });
        if let Some(role) = worst {
            suffering.push(format!(
                "{} ({}: {}/{} late)",
                escape_line(&person.person),
                escape_line(&role.role),
                role.over,
                role.ended
            ));
        } else if person.vanished {
            suffering.push(format!("{} (gone)", escape_line(&person.person)));
        }
    }
    match suffering.is_empty() {
        true => "nobody suffers".to_owned(),
        false => format!("suffering now: {}", suffering.join(", ")),
    }
}

/// Lists the connected devices.
#[must_use]
pub fn clients(clients: &[ClientSeen]) -> String {
    let rows: Vec<Vec<String>> = clients
        .iter()
        .map(|client| {
            vec![
                escape_line(&client.name),
                escape_line(&client.address),
                escape_line(&client.agent),
                format_latency(client.silent_ms as f64 * 1e6),
            ]
        })
        .collect();
    match rows.is_empty() {
        true => "No client is there.\n".to_owned(),
        false => assay_render::table::render_table(
            0,
            "lllr",
            &["client", "address", "what", "heard"],
            &rows,
        ),
    }
}

/// Formats a person's role as a label of the timeline.
#[must_use]
pub fn cross(person: &str, role: &str) -> String {
    format!("{}: {}", escape_line(person), escape_line(role))
}
