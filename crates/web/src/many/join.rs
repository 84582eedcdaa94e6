//! Combines several generators: checks that all of them reached the same servers, and that their results are plausible.

use super::{Generator, GeneratorOrder, Joint, Line, Many, Reached, Word};
use crate::server::ServerProcesses;
use crate::step::{Manner, Shape};
use assay_model::web::{Measured, Pace, Part, Step};
use assay_render::text::escape_line;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum number of remarks that one generator may send about one server, and maximum number of characters in a
/// remark.
const REMARKS: (usize, usize) = (20, 400);
/// Maximum number of characters in a text that a generator sends about a step.
const TEXT: usize = 200;
/// Maximum number of addresses that one host name may have.
const ADDRESSES: usize = 64;
/// Maximum count in a step. JSON numbers are exact up to this value.
const MOST: u64 = 1 << 53;

impl Many {
    /// Waits until each generator is ready, and compares the servers that they reached. `servers` contains the
    /// processes of each server whose CPU time is counted. A generator that sends nothing for `silence` during a step
    /// counts as lost. Returns `None` if `stop` returns true first.
    ///
    /// # Errors
    /// A generator cannot load a server, or is not permitted to. The text is for users.
    pub fn join(
        lines: Vec<(String, Box<dyn Line>)>,
        servers: Vec<ServerProcesses>,
        silence: Duration,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Self>, String> {
        let mut generators = Vec::new();
        let mut found: Vec<Vec<Reached>> = Vec::new();
        let mut machines: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, line) in lines {
            let mut one = Generator {
                name,
                line,
                clock: None,
                lost: None,
            };
            let said = |why: String| format!("{}: {why}", one.name);
            let (targets, machine) = loop {
                match one.line.hear(super::LOOK).map_err(said)? {
                    Some((_, line)) => match serde_json::from_str(&line) {
                        Ok(Word::Ready { targets, machine }) => break (targets, machine),
                        Ok(Word::Failed(why)) => return Err(said(why)),
                        _ => return Err(said(super::NONSENSE.to_owned())),
                    },
                    None if stop() => return Ok(None),
                    None => {}
                }
            };
            let whole = targets.len() == servers.len()
                && targets
                    .iter()
                    .all(|target| (1..=ADDRESSES).contains(&target.addresses.len()));
            if !whole {
                return Err(said(
                    "it found other servers than it was asked for".to_owned(),
                ));
            }
            if let Some(machine) = machine {
                machines.entry(machine).or_default().push(one.name.clone());
            }
            generators.push(one);
            found.push(targets);
        }
        let names: Vec<&str> = generators.iter().map(|one| one.name.as_str()).collect();
        let mut targets = Vec::new();
        for (at, server) in servers.into_iter().enumerate() {
            let each: Vec<(&str, &Reached)> = names
                .iter()
                .copied()
                .zip(found.iter().map(|targets| &targets[at]))
                .collect();
            let mut joint = joint(&each, server)?;
            for same in machines.values().filter(|names| names.len() > 1) {
                joint.remarks.push(format!(
                    "{} are one machine, and share what it has",
                    same.join(", ")
                ));
            }
            targets.push(joint);
        }
        Ok(Some(Self {
            generators,
            targets,
            begin: Instant::now(),
            silence: silence.min(super::PATIENCE),
        }))
    }
}

/// Merges the properties of one server that the generators reported.
fn joint(each: &[(&str, &Reached)], server: ServerProcesses) -> Result<Joint, String> {
    let Some((_, first)) = each.first() else {
        return Err("no machine to load from".to_owned());
    };
    let here = |reached: &Reached| {
        let mut all = reached.addresses.iter();
        all.any(|address| address.ip().to_canonical().is_loopback())
    };
    if each.len() > 1 && each.iter().any(|(_, reached)| here(reached)) {
        return Err(
            "the address of the server is one that means another machine on each of several (127.0.0.1, ::1, \
             localhost): name it as all of them reach it"
                .to_owned(),
        );
    }
    if let Some((name, _)) = each
        .iter()
        .find(|(_, one)| (one.protocol, one.streams) != (first.protocol, first.streams))
    {
        return Err(format!(
            "{name}: the server speaks something else with it than with {}",
            each[0].0
        ));
    }
    let agreed = each.iter().filter_map(|(_, reached)| reached.consent);
    let consent = agreed.reduce(|a, b| a.stricter(&b));
    let names: Vec<&str> = each.iter().map(|(name, _)| *name).collect();
    let mut remarks = vec![format!("loaded from {} at once", names.join(", "))];
    if each.iter().any(|(_, one)| one.addresses != first.addresses) {
        let where_to = each.iter().map(|(name, one)| {
            let all: Vec<String> = one.addresses.iter().map(ToString::to_string).collect();
            format!("{name} loads {}", all.join(", "))
        });
        let all: Vec<String> = where_to.collect();
        remarks.push(format!(
            "its name has several addresses: {}",
            all.join("; ")
        ));
    }
    let mut said: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, one) in each {
        for remark in one.remarks.iter().take(REMARKS.0) {
            let remark: String = remark.chars().take(REMARKS.1).collect();
            said.entry(escape_line(&remark)).or_default().push(name);
        }
    }
    remarks.extend(
        said.into_iter()
            .map(|(remark, by)| match by.len() == each.len() {
                true => remark,
                false => format!("{}: {remark}", by.join(", ")),
            }),
    );
    if let Some(consent) = &consent {
        remarks.push(format!(
            "the server agrees to a load until {}, and all generators together keep to it",
            consent.until
        ));
    }
    Ok(Joint {
        consent,
        protocol: first.protocol,
        streams: first.streams,
        server,
        remarks,
    })
}

/// Returns a generator's result if it is plausible, because another machine may send any text. Escapes the texts in the
/// result.
pub(super) fn accepted(order: &GeneratorOrder, mut step: Step) -> Option<Step> {
    if !can_be(order, &step) {
        return None;
    }
    let harmless = |text: &mut String| {
        let short: String = text.chars().take(TEXT).collect();
        *text = escape_line(&short);
    };
    step.measured
        .failures
        .iter_mut()
        .for_each(|failures| harmless(&mut failures.first));
    match &mut step.link {
        Ok(link) => harmless(&mut link.interface),
        Err(why) => harmless(why),
    }
    match &mut step.server {
        Ok(server) => harmless(&mut server.what),
        Err(why) => harmless(why),
    }
    Some(step)
}

/// Parses the answer of a generator to an order for one second with four connections. For tests.
#[doc(hidden)]
#[must_use]
pub fn told(line: &str) -> Option<Step> {
    let manner = Manner {
        shuffled: false,
        requests_per_connection: None,
        washout: Duration::ZERO,
        window: Duration::from_secs(1),
        limit: Duration::from_secs(1),
        threads: None,
        seed: 0,
    };
    let shape = Shape {
        target: 0,
        round: 0,
        connections: 4,
        pace: Pace::Closed,
        share: None,
    };
    let order = GeneratorOrder::Step {
        shape,
        manner,
        at_us: 0,
    };
    let elsewhere = ServerProcesses::Unknown("it is on another machine".to_owned());
    match serde_json::from_str(line).ok()? {
        Word::Ready { targets, .. } => {
            let first = targets.first()?;
            let _ = joint(&[("a", first), ("b", first)], elsewhere);
            None
        }
        Word::Step { late_us, step } => {
            let seen = accepted(&order, *step)?;
            let part = |generator: &str| Part {
                generator: generator.to_owned(),
                connections: 2,
                pace: shape.pace,
                clock: None,
                late_us,
                lost: None,
                measured: seen.measured.clone(),
                link: seen.link.clone(),
                machine: seen.machine.clone(),
            };
            let parts = vec![part("a"), part("b")];
            Some(Step {
                measured: Measured::together(parts.iter().map(|part| &part.measured)),
                parts,
                ..seen
            })
        }
        Word::Clock(_) | Word::Live(..) | Word::Failed(_) => None,
    }
}

fn can_be(order: &GeneratorOrder, step: &Step) -> bool {
    let GeneratorOrder::Step { manner, shape, .. } = order else {
        return false;
    };
    // A consent may change the limits of a step but not its target and round.
    if (step.target, step.round) != (shape.target, shape.round) {
        return false;
    }
    let seen = &step.measured;
    let window = manner.window.as_nanos();
    let counts = [
        seen.answers,
        seen.bytes,
        seen.received,
        seen.due,
        seen.unsent,
        seen.waited,
        seen.connections,
        seen.reopened,
        seen.resumed,
        seen.latency.count(),
        seen.service.count(),
        seen.lateness.count(),
        seen.connect.count(),
        seen.failures
            .iter()
            .fold(0, |sum, one| one.count.saturating_add(sum)),
        seen.statuses
            .iter()
            .fold(0, |sum, one| one.count.saturating_add(sum)),
    ];
    let bins = [&seen.latency, &seen.service, &seen.lateness, &seen.connect];
    // A count may be lower only for requests that were interrupted or never answered.
    let whole = u128::from(seen.window.0) == window;
    let ended = seen.interrupted || (seen.gave_up && seen.answers == 0);
    u128::from(seen.window.0) <= window
        && (whole || ended)
        && (seen.window.0 > 0 || seen.answers == 0)
        && counts.iter().all(|count| *count < MOST)
        && bins.iter().all(|one| one.bins().count() <= 200_000)
        && seen.seconds.len() as u128 <= window / 1_000_000_000 + 1
        && seen.failures.len() <= assay_model::web::FailureKind::ALL.len()
        && seen.statuses.len() <= 900
        && seen.statuses.is_sorted_by_key(|one| one.status)
        // Sums of larger values are not finite and could not be read from the store.
        && (0.0..MOST as f64).contains(&seen.under_way)
        && step.parts.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Consent;
    use assay_model::web::Protocol;

    fn reached(address: &str, most: Option<f64>) -> Reached {
        Reached {
            addresses: vec![address.parse().unwrap()],
            consent: most.map(|most| Consent {
                until: "2030-01-01".parse().unwrap(),
                most_requests_per_second: Some(most),
                most_connections: None,
            }),
            protocol: Protocol::Http1,
            streams: 1,
            remarks: vec!["x".to_owned()],
        }
    }

    fn joined(all: &[Reached]) -> Result<Joint, String> {
        let names = ["a", "b", "c"];
        let each: Vec<(&str, &Reached)> = names.into_iter().zip(all).collect();
        joint(&each, ServerProcesses::Unknown("elsewhere".to_owned()))
    }

    #[test]
    fn all_keep_to_the_strictest_and_load_one_server() {
        let all = [
            reached("192.0.2.1:80", None),
            reached("192.0.2.1:80", Some(500.0)),
            reached("192.0.2.1:80", Some(100.0)),
        ];
        let joint = joined(&all).unwrap();
        assert_eq!(joint.consent.unwrap().most_requests_per_second, Some(100.0));
        assert!(
            joint.remarks.contains(&"x".to_owned()),
            "{:?}",
            joint.remarks
        );
        let two = [reached("192.0.2.1:80", None), reached("192.0.2.2:80", None)];
        insta::assert_snapshot!(joined(&two).unwrap().remarks[1], @"its name has several addresses: a loads 192.0.2.1:80; b loads 192.0.2.2:80");
        let local = [reached("127.0.0.1:80", None), reached("127.0.0.1:80", None)];
        assert!(joined(&local).is_err());
        assert!(joined(&local[..1]).is_ok());
        let mut other = reached("192.0.2.1:80", None);
        other.streams = 2;
        assert!(joined(&[reached("192.0.2.1:80", None), other]).is_err());
    }

    #[test]
    fn attack_a_generator_that_counts_what_cannot_be() {
        let said = |change: &dyn Fn(&mut Measured)| {
            let mut measured = Measured {
                window: assay_model::Nanos(1_000_000_000),
                answers: 3,
                under_way: 0.5,
                ..Measured::default()
            };
            change(&mut measured);
            let step = Step {
                target: 0,
                round: 0,
                connections: 4,
                protocol: Protocol::Http1,
                streams: 1,
                pace: Pace::Closed,
                share: None,
                measured,
                server: Err("elsewhere".to_owned()),
                link: Err("unknown".to_owned()),
                machine: Default::default(),
                parts: Vec::new(),
            };
            let word = Word::Step {
                late_us: i64::MIN,
                step: Box::new(step),
            };
            told(&serde_json::to_string(&word).unwrap()).is_some()
        };
        assert!(said(&|_| ()));
        let second = assay_model::Nanos(1_000_000_000);
        let short = assay_model::Nanos(1_000_000);
        // A thousandth of the time would multiply the rate by a thousand.
        assert!(!said(&|one| one.window = short));
        assert!(!said(&|one| one.window.0 = 2 * second.0));
        assert!(!said(&|one| (one.window, one.gave_up) = (short, true)));
        assert!(said(&|one| (one.window, one.interrupted) = (short, true)));
        assert!(said(
            &|one| (one.window, one.gave_up, one.answers) = (short, true, 0)
        ));
        assert!(!said(&|one| (one.window.0, one.interrupted) = (0, true)));
        assert!(!said(&|one| one.under_way = f64::MAX));
        assert!(!said(&|one| one.reopened = u64::MAX));
    }
}
