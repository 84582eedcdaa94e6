//! Finds causes in the Wi-Fi history: roaming, no access point, a weak signal, or a slower band.

use super::Cause;
use crate::air::{Air, WEAK};
use crate::record::{PersonRecord, RecordEvent};
use crate::role::Role;
use crate::verdict::is_over;
use assay_wifi::channel::Band;

/// Time after a change of access point during which addresses and connections may still recover, in microseconds.
const SETTLES: u64 = 1_000_000;
/// Minimum ratio between the fractions of late events in two periods. A smaller ratio may be chance.
const WORSE: f64 = 2.0;
/// Minimum number of events in each band for a comparison of two bands.
const LEAST: usize = 10;

/// Number of due events, and how many of them were late.
#[derive(Clone, Copy, Default)]
struct Count {
    due: usize,
    over: usize,
}

impl Count {
    fn of<'a>(role: &Role, events: impl Iterator<Item = &'a RecordEvent>) -> Self {
        events.fold(Self::default(), |count, event| Self {
            due: count.due + 1,
            over: count.over + usize::from(is_over(role, event)),
        })
    }

    fn share(self) -> f64 {
        self.over as f64 / self.due.max(1) as f64
    }
}

/// Finds a cause by comparing the fractions of late events in two kinds of periods: with a Wi-Fi event and without one.
pub(super) fn differs(role: &Role, events: &[RecordEvent], record: &PersonRecord) -> Option<Cause> {
    let air = record.air.as_ref()?;
    moved(role, events, air, record.ran_us)
        .or_else(|| weak(role, events, air).filter(|cause| otherwise(cause).is_some()))
        .or_else(|| two_bands(role, events, air))
}

/// Finds a cause that lasted for the whole run. Used only if no other cause was found.
pub(super) fn always(role: &Role, events: &[RecordEvent], record: &PersonRecord) -> Option<Cause> {
    let air = record.air.as_ref()?;
    let heard = || {
        let better = air.better_band()?;
        let slow = Count::of(
            role,
            events
                .iter()
                .filter(|event| band(air, event) == Some(Band::Two)),
        );
        let channel = air.at(events.first()?.due)?.channel?;
        (slow.due == events.len() && slow.over > 0).then_some(Cause::Band {
            channel,
            share: slow.share(),
            other: better.channel,
            other_share: None,
            other_signal: Some(better.signal),
        })
    };
    weak(role, events, air).or_else(heard)
}

fn otherwise(cause: &Cause) -> Option<f64> {
    match cause {
        Cause::Signal { otherwise, .. } => *otherwise,
        _ => None,
    }
}

/// Detects whether most late events were due while the device changed its access point or had none.
fn moved(role: &Role, events: &[RecordEvent], air: &Air, ran: u64) -> Option<Cause> {
    let judged = crate::air::judge(air);
    let roams = judged.roams.iter().map(|roam| (roam.from_us, roam.to_us));
    let alone = judged.away.iter().copied().filter(|away| {
        let within = |roam: &crate::air::Roam| roam.from_us <= away.0 && away.1 <= roam.to_us;
        !judged.roams.iter().any(within)
    });
    let windows: Vec<(u64, u64)> = roams.chain(alone).collect();
    let touches = |event: &RecordEvent, (from, to): (u64, u64)| {
        let end = event.due.saturating_add(event.took.unwrap_or(0));
        event.due < to.saturating_add(SETTLES) && from <= end
    };
    let any = |event: &&RecordEvent| windows.iter().any(|window| touches(event, *window));
    let meanwhile = Count::of(role, events.iter().filter(any));
    let else_ = Count::of(role, events.iter().filter(|event| !any(event)));
    let long = windows.iter().fold(0u64, |sum, (from, to)| {
        sum.saturating_add(to.saturating_sub(*from))
    });
    let most = meanwhile.over * 2 >= meanwhile.over + else_.over && meanwhile.over > 0;
    if !most || meanwhile.share() < WORSE * else_.share() || long.saturating_mul(2) > ran {
        return None;
    }
    let over = |window: (u64, u64)| {
        let late = |event: &&RecordEvent| touches(event, window) && is_over(role, event);
        events.iter().filter(late).count()
    };
    let worst = windows.iter().copied().max_by_key(|window| over(*window))?;
    let share = over(worst) as f64 / (meanwhile.over + else_.over) as f64;
    let roam = judged
        .roams
        .iter()
        .find(|roam| (roam.from_us, roam.to_us) == worst);
    Some(match roam {
        Some(roam) => Cause::Roam {
            from_us: roam.from_us,
            to_us: roam.to_us,
            from: roam.from,
            to: roam.to,
            share,
        },
        None => Cause::Away {
            from_us: worst.0,
            to_us: worst.1,
            share,
        },
    })
}

/// Detects whether a larger fraction of events was late while the signal was weak.
fn weak(role: &Role, events: &[RecordEvent], air: &Air) -> Option<Cause> {
    let signal = |event: &RecordEvent| air.at(event.due).and_then(|sample| sample.signal);
    let is_weak = |event: &&RecordEvent| signal(event).is_some_and(|dbm| dbm < WEAK);
    let weak = Count::of(role, events.iter().filter(is_weak));
    let strong = Count::of(role, events.iter().filter(|event| !is_weak(event)));
    let most = weak.over * 2 >= weak.over + strong.over && weak.over > 0;
    if !most || (strong.due > 0 && weak.share() < WORSE * strong.share()) {
        return None;
    }
    let samples = air
        .samples
        .iter()
        .filter_map(|sample| Some((sample.signal?, sample.at)));
    let (dbm, at_us) = samples.min_by_key(|(dbm, _)| *dbm)?;
    Some(Cause::Signal {
        dbm,
        at_us,
        share: weak.share(),
        otherwise: (strong.due > 0).then(|| strong.share()),
    })
}

fn band(air: &Air, event: &RecordEvent) -> Option<Band> {
    Some(air.at(event.due)?.channel?.band)
}

/// If the device used two bands, checks whether more events were late at 2.4 GHz.
fn two_bands(role: &Role, events: &[RecordEvent], air: &Air) -> Option<Cause> {
    let in_band = |wanted: fn(Band) -> bool| {
        let events = events.iter();
        let within: Vec<&RecordEvent> = events
            .filter(|event| band(air, event).is_some_and(wanted))
            .collect();
        let channel = within.first().and_then(|event| air.at(event.due)?.channel);
        channel.map(|channel| (channel, Count::of(role, within.into_iter())))
    };
    let (channel, slow) = in_band(|band| band == Band::Two)?;
    let (other, fast) = in_band(|band| band > Band::Two)?;
    let enough = slow.due >= LEAST && fast.due >= LEAST && slow.over * 2 >= slow.over + fast.over;
    (enough && slow.share() >= WORSE * fast.share() && slow.over > 0).then_some(Cause::Band {
        channel,
        share: slow.share(),
        other,
        other_share: Some(fast.share()),
        other_signal: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::air::{Heard, Point, Sample};
    use crate::role::builtin;
    use assay_wifi::channel::Channel;

    /// A game of ten seconds. The events that were due in the seconds `late` were late.
    fn game(late: std::ops::Range<u64>) -> (Role, Vec<RecordEvent>) {
        let role = builtin()
            .into_iter()
            .find(|role| role.name == "gaming")
            .unwrap();
        let events = (0..600).map(|i| RecordEvent {
            due: i * 16_667,
            late: 0,
            took: Some(if late.contains(&(i / 60)) {
                300_000
            } else {
                5_000
            }),
        });
        (role, events.collect())
    }

    fn record(samples: impl Fn(u64) -> (Option<u32>, u32, i32)) -> PersonRecord {
        let samples = (0..10).map(|second| {
            let (point, mhz, signal) = samples(second);
            Sample {
                at: second * 1_000_000,
                point,
                channel: point.and(Channel::at(mhz)),
                signal: point.map(|_| signal),
                ..Sample::default()
            }
        });
        PersonRecord {
            ran_us: 10_000_000,
            air: Some(Air {
                points: vec![Point::default(); 2],
                samples: samples.collect(),
                heard: Vec::new(),
            }),
            ..PersonRecord::default()
        }
    }

    #[test]
    fn late_while_it_roamed() {
        let (role, events) = game(4..6);
        let roamed = record(|at| {
            (
                Some(u32::from(at > 4)),
                if at > 4 { 2412 } else { 5180 },
                -60,
            )
        });
        let found = differs(&role, &events, &roamed);
        let Some(Cause::Roam {
            from_us,
            to_us,
            share,
            to,
            ..
        }) = found
        else {
            panic!("{found:?}")
        };
        assert_eq!(
            (from_us, to_us, to),
            (4_000_000, 5_000_000, Channel::at(2412))
        );
        assert!(share > 0.99, "{share}");
        // Events were late at other times, so the roam is not the cause.
        let (role, events) = game(7..10);
        let calm = record(|at| (Some(u32::from(at > 2)), 5180, -60));
        assert_eq!(differs(&role, &events, &calm), None);
        assert_eq!(always(&role, &events, &calm), None);
        // The access point before and after is the same.
        let (role, events) = game(4..6);
        let away = record(|at| ((!(4..6).contains(&at)).then_some(0), 5180, -60));
        assert!(matches!(
            differs(&role, &events, &away),
            Some(Cause::Away {
                from_us: 4_000_000,
                to_us: 6_000_000,
                ..
            })
        ));
    }

    #[test]
    fn late_while_the_signal_was_weak() {
        let (role, events) = game(6..10);
        let weak = record(|at| (Some(0), 5180, if at >= 6 { -80 - at as i32 } else { -50 }));
        let found = differs(&role, &events, &weak);
        assert!(
            matches!(found, Some(Cause::Signal { dbm: -89, at_us: 9_000_000, otherwise: Some(rest), .. }) if rest < 0.01),
            "{found:?}"
        );
        // A signal that is always weak is a cause only if no other is known.
        let weak = record(|_| (Some(0), 5180, -84));
        assert_eq!(differs(&role, &events, &weak), None);
        assert!(matches!(
            always(&role, &events, &weak),
            Some(Cause::Signal {
                otherwise: None,
                ..
            })
        ));
    }

    #[test]
    fn late_in_the_crowded_band() {
        let (role, events) = game(5..10);
        let both = record(|at| (Some(0), if at >= 5 { 2412 } else { 5180 }, -55));
        let found = differs(&role, &events, &both);
        assert!(
            matches!(found, Some(Cause::Band { channel, other, other_share: Some(_), .. })
                if channel.number == 1 && other.number == 36),
            "{found:?}"
        );
        let mut alone = record(|_| (Some(0), 2412, -55));
        assert_eq!(always(&role, &events, &alone), None);
        let channel = Channel::at(5180).unwrap();
        let heard = |signal| Heard {
            address: String::new(),
            channel,
            signal,
        };
        alone.air.as_mut().unwrap().heard = vec![heard(-80)];
        assert_eq!(
            always(&role, &events, &alone),
            None,
            "too weak to be better"
        );
        alone.air.as_mut().unwrap().heard = vec![heard(-58)];
        assert!(matches!(
            always(&role, &events, &alone),
            Some(Cause::Band {
                other_signal: Some(-58),
                ..
            })
        ));
    }
}
