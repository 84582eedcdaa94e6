//! Finds the doubts about the figures of an HTTP step.

use super::limit::format_percent;
use super::many;
use crate::doubts::{suspect_doubt, void_doubt};
use assay_model::web::{FailureKind, Measured, Pace, StatusCount, Step};
use assay_model::{Doubt, Nanos};

/// Codes of all rules; the book contains a section for each.
pub const ALL: [&str; 14] = [
    "nothing-answered",
    "interrupted",
    "requests-failed",
    "late-sends",
    "generator-full",
    "littles-law",
    "rate-not-reached",
    "rounds-differ",
    "drift",
    "stalls",
    "few-answers",
    "foreign-work",
    "generator-lost",
    "not-together",
];

/// Fraction of the latency from which the generator's own delay makes the latency void.
const LATE_VOID: f64 = 0.50;
/// Fraction of the median latency from which the median send delay affects it visibly.
const LATE_MEDIAN: f64 = 0.05;
/// Fraction of p99 from which the send delay at p99 affects it visibly. It is higher than for the median, because one
/// pause of the machine affects both.
const LATE_TAIL: f64 = 0.20;
/// Busy fraction of a generator thread from which it may send late; the kernel uses the rest of the time.
const FULL: f64 = 0.90;
/// Fraction of the time waiting for a CPU from which a thread gets too little CPU time, even if it runs rarely.
const STARVED: f64 = 0.5;
/// Maximum relative deviation from Little's law: requests in flight = rate × time. Apart from requests at the edges of
/// the window ([`count_edge_requests`]), the counts are exact except for the rounding of the histogram (0.1 %). A
/// larger deviation means that one of the three figures is wrong.
const LITTLE: f64 = 0.02;
/// Fraction of the requested rate that an open loop must achieve.
pub(super) const REACHED: f64 = 0.995;
/// Fraction of failed requests from which failures are no accident.
const FAILED: f64 = 0.001;
/// Fraction of failed requests from which the successful ones are not representative.
pub(super) const FAILED_MOST: f64 = 0.10;
/// Minimum number of answers for a p99.
const FEW: u64 = 100;
/// Fraction of the time of all CPUs from which the use by other programs affects the measurement.
const FOREIGN: f64 = 0.10;
/// Fraction of CPU time from which the time taken by the hypervisor affects the measurement.
const STOLEN: f64 = 0.05;

/// Finds all doubts about a step.
#[must_use]
pub fn doubts(step: &Step) -> Vec<Doubt> {
    const RULES: [fn(&Step) -> Option<Doubt>; 11] = [
        nothing_answered,
        doubt_interruption,
        requests_failed,
        late_sends,
        generator_full,
        littles_law,
        rate_not_reached,
        few_answers,
        foreign_work,
        super::drift::doubt_drift,
        super::stalls::doubt_stalls,
    ];
    // With several generators, a doubt about one of them contains its name.
    const OWN: [fn(&Step) -> Option<Doubt>; 4] =
        [nothing_answered, late_sends, generator_full, foreign_work];
    let mut found: Vec<Doubt> = RULES.iter().filter_map(|rule| rule(step)).collect();
    if !step.parts.is_empty() {
        found.retain(|doubt| !["late-sends", "generator-full"].contains(&doubt.code.as_str()));
        found.extend(
            OWN.iter()
                .filter_map(|rule| many::name_generator_in_doubt(step, *rule)),
        );
        found.extend(many::doubt_lost_generators(step));
        found.extend(many::not_together(step));
    }
    found
}

fn nothing_answered(step: &Step) -> Option<Doubt> {
    let measured = &step.measured;
    let first = measured
        .failures
        .iter()
        .max_by_key(|failures| failures.count);
    (measured.answers == 0).then(|| {
        let why = match first {
            Some(first) => format!(
                "{} ({})",
                first.kind.describe(),
                crate::doubts::clean_text(&first.first)
            ),
            None => "no request ended in the time that was counted".to_owned(),
        };
        void_doubt(
            "nothing-answered",
            format!("not one good answer: {why}"),
            "Ask the server once by hand, with curl, and mend what it says.",
        )
    })
}

fn doubt_interruption(step: &Step) -> Option<Doubt> {
    step.measured.interrupted.then(|| {
        suspect_doubt(
            "interrupted",
            format!(
                "it was interrupted after {} of counting",
                step.measured.window
            ),
            "Let it run to its end.",
        )
    })
}

fn requests_failed(step: &Step) -> Option<Doubt> {
    let measured = &step.measured;
    let share = measured.failed() as f64 / measured.due.max(1) as f64;
    if measured.answers == 0 || share <= FAILED {
        return None;
    }
    let mut kinds: Vec<String> = measured
        .failures
        .iter()
        .map(|failures| match failures.kind {
            FailureKind::WrongStatus if !measured.statuses.is_empty() => {
                by_status(&measured.statuses)
            }
            kind => format!("{} {}", failures.count, kind.describe()),
        })
        .collect();
    if measured.unsent > 0 {
        kinds.push(format!("{} never sent", measured.unsent));
    }
    let evidence = format!(
        "{} of {} requests did not succeed: {}{}",
        measured.failed(),
        measured.due,
        kinds.join(", "),
        describe_first_failure(measured)
    );
    let remedy = "The rate counts good answers alone, and a failed request is slower than any other in \
                  the percentiles. Find out why they fail before comparing.";
    Some(match share > FAILED_MOST && step.pace == Pace::Closed {
        true => void_doubt("requests-failed", evidence, remedy),
        false => suspect_doubt("requests-failed", evidence, remedy),
    })
}

/// Describes when the failures began, if the first quarter of the step had none.
fn describe_first_failure(measured: &Measured) -> String {
    let points = measured.over_time();
    let first = points.iter().position(|point| point.failures > 0.0);
    match first {
        Some(first) if first * 4 >= points.len() => {
            // A point is the middle of its stretch.
            let begin = points[first - 1].at.0.midpoint(points[first].at.0);
            format!("; none in the first {}", Nanos(begin))
        }
        _ => String::new(),
    }
}

/// Describes answers with an unexpected status: `43 with status 503`, the most frequent first.
#[must_use]
pub fn by_status(statuses: &[StatusCount]) -> String {
    let mut sorted = statuses.to_vec();
    sorted.sort_by_key(|one| std::cmp::Reverse(one.count));
    let each = sorted
        .iter()
        .take(4)
        .map(|one| format!("{} with status {}", one.count, one.status));
    let mut text = each.collect::<Vec<_>>().join(", ");
    if sorted.len() > 4 {
        let rest: u64 = sorted[4..].iter().map(|one| one.count).sum();
        text.push_str(&format!(", {rest} with others"));
    }
    text
}

/// Send delay of an open loop, and the reported latency, at one percentile.
pub(super) struct Lateness {
    percent: f64,
    late: Nanos,
    latency: Nanos,
}

impl Lateness {
    /// Returns delay and latency at the median and at p99, if measured.
    fn of(measured: &Measured) -> Vec<Self> {
        let at = |percent: f64| {
            Some(Self {
                percent,
                late: Nanos(measured.lateness.percentile(percent)?),
                latency: Nanos(measured.latency.percentile(percent)?),
            })
        };
        [50.0, 99.0].into_iter().filter_map(at).collect()
    }

    fn share(&self) -> f64 {
        self.late.0 as f64 / self.latency.0.max(1) as f64
    }

    fn describe(&self) -> String {
        format!(
            "p{:.0} of the lateness of the sends is {}, {} of the p{:.0} latency of {}",
            self.percent,
            self.late,
            format_percent(self.share()),
            self.percent,
            self.latency
        )
    }
}

/// Describes send delays that are so large that the measured latency is mostly caused by the generator; `None` if the
/// delays are smaller.
pub(super) fn too_late(step: &Step) -> Option<String> {
    step.pace.rate()?;
    let found = Lateness::of(&step.measured);
    let found = found.iter().find(|one| one.share() > LATE_VOID);
    found.map(Lateness::describe)
}

fn late_sends(step: &Step) -> Option<Doubt> {
    step.pace.rate()?;
    if let Some(evidence) = too_late(step) {
        let remedy =
            "Give the generator CPUs of its own, another machine or more threads, or ask for less.";
        return Some(void_doubt("late-sends", evidence, remedy));
    }
    let found = Lateness::of(&step.measured);
    let seen = found.iter().find(|one| {
        let most = match one.percent < 90.0 {
            true => LATE_MEDIAN,
            false => LATE_TAIL,
        };
        one.share() > most
    });
    seen.map(|seen| {
        suspect_doubt(
            "late-sends",
            seen.describe(),
            "Read the service time beside it, which begins when a request was really sent.",
        )
    })
}

/// Returns two fractions of the time of the generator's threads, 0 to 1: on a CPU, and waiting for a CPU.
pub(super) fn generator(measured: &Measured) -> Option<(f64, f64)> {
    let time = measured.window.0 as f64 * f64::from(measured.threads);
    (time > 0.0).then(|| {
        let waited = measured.cpu_waited.map_or(0, |waited| waited.0);
        (measured.cpu.0 as f64 / time, waited as f64 / time)
    })
}

/// Whether the threads are fully busy, or wait too long for a CPU.
pub(super) fn is_full(busy: f64, waited: f64) -> bool {
    busy + waited >= FULL || waited >= STARVED
}

fn generator_full(step: &Step) -> Option<Doubt> {
    let (busy, waited) = generator(&step.measured)?;
    is_full(busy, waited).then(|| {
        void_doubt(
            "generator-full",
            format!(
                "the generator's threads (it has {}) were on a CPU for {} of the time and waited for one for {}",
                step.measured.threads,
                format_percent(busy),
                format_percent(waited)
            ),
            "Give it more threads (--threads) or CPUs of its own, or measure from another machine.",
        )
    })
}

/// Computes the number of requests in flight by which Little's law may be violated at the edges of the window. At each
/// edge, at most as many requests as connections can be counted inconsistently. Each of them takes at most the longest
/// time of any request, and is counted only in the time or only in the answers. A pause of the machine at an edge
/// causes such a deviation without any error.
fn count_edge_requests(step: &Step) -> f64 {
    let measured = &step.measured;
    // Requests that began before the window are in no histogram, but in the second in which they ended.
    let seconds = measured.seconds.iter().map(|second| second.longest.0);
    let longest = seconds.chain(measured.service.percentile(100.0)).max();
    let longest = longest.unwrap_or(0) as f64;
    2.0 * step.places() as f64 * longest / (measured.window.0 as f64).max(1.0)
}

fn littles_law(step: &Step) -> Option<Doubt> {
    let measured = &step.measured;
    let mean = measured.service.mean()?;
    if measured.failed() > 0 || measured.interrupted {
        return None;
    }
    let law = measured.rate() * mean / 1e9;
    let off = (law - measured.under_way).abs();
    (off > LITTLE * measured.under_way + count_edge_requests(step)).then(|| {
        void_doubt(
            "littles-law",
            format!(
                "{:.2} requests were under way on average, and rate × time says {law:.2}; requests at the \
                 edges of the window explain {:.2} of it at most",
                measured.under_way,
                count_edge_requests(step)
            ),
            "A rate, a latency or a count is wrong; please report this with the --json output.",
        )
    })
}

fn rate_not_reached(step: &Step) -> Option<Doubt> {
    let asked = step.pace.rate()?;
    let measured = &step.measured;
    // Random send times vary by themselves, so the number of due requests counts, not the requested rate.
    let due = measured.due as f64 * 1e9 / measured.window.0.max(1) as f64;
    // Requests that failed immediately took no time; rule `requests-failed` reports them.
    let in_time = measured.failed() - measured.unsent - measured.failed_by(FailureKind::TimedOut);
    let ended = measured.rate() + in_time as f64 * 1e9 / measured.window.0.max(1) as f64;
    (measured.answers > 0 && ended < REACHED * due).then(|| {
        suspect_doubt(
            "rate-not-reached",
            format!(
                "{:.0} of {due:.0} requests per second were answered in time ({asked:.0} asked for)",
                measured.rate()
            ),
            "Latencies at this rate grow with the time that it lasts. Ask for less.",
        )
    })
}

fn few_answers(step: &Step) -> Option<Doubt> {
    let count = step.measured.latency.count();
    (count > 0 && count < FEW).then(|| {
        suspect_doubt(
            "few-answers",
            format!("{count} answers have no p99"),
            "Measure longer (--seconds).",
        )
    })
}

fn foreign_work(step: &Step) -> Option<Doubt> {
    let machine = &step.machine;
    // With several generators the local machine may not generate load; it then has no window.
    let time = machine.window.0 as f64 * f64::from(machine.cpus);
    let stolen = machine.stolen.0 as f64 / time.max(1.0);
    let foreign = step
        .foreign_cpus()
        .map(|cpus| cpus / f64::from(machine.cpus.max(1)));
    let remedy = "Stop other work, or measure when the machine is quiet.";
    if let Some(foreign) = foreign.filter(|foreign| *foreign > FOREIGN) {
        let evidence = format!(
            "neither the server nor the generator used {} of this machine's CPUs",
            format_percent(foreign)
        );
        return Some(suspect_doubt("foreign-work", evidence, remedy));
    }
    let there = step.foreign_cpus_there();
    let there = there.map(|(foreign, cpus)| foreign / f64::from(cpus.max(1)));
    if let Some(foreign) = there.filter(|foreign| *foreign > FOREIGN) {
        let evidence = format!(
            "others than the server used {} of the CPUs of its machine",
            format_percent(foreign)
        );
        return Some(suspect_doubt("foreign-work", evidence, remedy));
    }
    if stolen > STOLEN {
        let evidence = format!(
            "the hypervisor took {} of the CPU time",
            format_percent(stolen)
        );
        return Some(suspect_doubt("foreign-work", evidence, remedy));
    }
    let server = step.server.as_ref().ok()?;
    let machine = server.machine.as_ref()?;
    let time = server.window.0 as f64 * f64::from(machine.cpus);
    let stolen = machine.stolen.0 as f64 / time.max(1.0);
    (stolen > STOLEN).then(|| {
        let evidence = format!(
            "the hypervisor took {} of the CPU time of the server's machine",
            format_percent(stolen)
        );
        suspect_doubt("foreign-work", evidence, remedy)
    })
}
