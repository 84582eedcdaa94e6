//! Judges a load from several generators: how much each generator contributed, and the doubts about each.

use crate::doubts::{clean_text, void_doubt};
use assay_model::web::Step;
use assay_model::web::result::Given;
use assay_model::{Doubt, Nanos};

/// Maximum fraction of the measured time during which a generator may be absent. If it is absent longer, the generators
/// did not load the server at the same time.
const APART: f64 = 0.05;

/// Iterates over the generators that returned figures; each is converted to a separate step.
pub(super) fn list_generator_steps(step: &Step) -> impl Iterator<Item = (String, Step)> + '_ {
    let there = step.parts.iter().filter(|part| part.lost.is_none());
    there.map(|part| (clean_text(&part.generator), part.alone(step)))
}

/// Applies a rule to each generator. Returns one doubt that names all generators to which the rule applies.
pub(super) fn name_generator_in_doubt(
    step: &Step,
    rule: fn(&Step) -> Option<Doubt>,
) -> Option<Doubt> {
    let mut found: Option<Doubt> = None;
    for (name, alone) in list_generator_steps(step) {
        let Some(doubt) = rule(&alone) else {
            continue;
        };
        let evidence = format!("{name}: {}", doubt.evidence);
        found = Some(match found {
            Some(before) => Doubt {
                evidence: format!("{}; {evidence}", before.evidence),
                severity: before.severity.max(doubt.severity),
                ..before
            },
            None => Doubt { evidence, ..doubt },
        });
    }
    found
}

/// Checks whether a generator returned no result. Its load reached the server but was not counted.
pub(super) fn doubt_lost_generators(step: &Step) -> Option<Doubt> {
    let all: Vec<String> = step
        .parts
        .iter()
        .filter_map(|part| {
            let why = part.lost.as_ref()?;
            Some(format!(
                "{}: {}",
                clean_text(&part.generator),
                clean_text(why)
            ))
        })
        .collect();
    (!all.is_empty()).then(|| {
        void_doubt(
            "generator-lost",
            format!(
                "what a generator did in this step is not known ({})",
                all.join("; ")
            ),
            "See what ended it there, or leave that machine out.",
        )
    })
}

/// Checks whether the generators ran at different times.
pub(super) fn not_together(step: &Step) -> Option<Doubt> {
    let there = step.parts.iter().filter(|part| part.lost.is_none());
    let worst = there.max_by_key(|part| part.apart_us())?;
    let apart = worst.apart_us().saturating_mul(1000);
    (apart as f64 > APART * step.measured.window.0 as f64).then(|| {
        let shown = |us: i64| Nanos(us.unsigned_abs().saturating_mul(1000));
        let error = worst.clock.map_or(0, |clock| clock.error_us);
        void_doubt(
            "not-together",
            format!(
                "{} began {} {} its time, and its clock was known to {}: of {} that were counted, all loaded together for less",
                clean_text(&worst.generator),
                shown(worst.late_us),
                if worst.late_us < 0 { "before" } else { "after" },
                shown(error),
                step.measured.window
            ),
            "Measure longer (--seconds), or from machines that are nearer.",
        )
    })
}

/// Computes the mean load of each generator over these steps.
pub(super) fn sum_contributions(steps: &[&Step]) -> Vec<Given> {
    let mut all: Vec<(Given, u32)> = Vec::new();
    let answers: f64 = steps.iter().map(|step| step.measured.answers as f64).sum();
    for part in steps.iter().flat_map(|step| &step.parts) {
        let seconds = part.measured.window.as_secs_f64();
        let cpus = match seconds > 0.0 {
            true => part.measured.cpu.as_secs_f64() / seconds,
            false => 0.0,
        };
        let share = part.measured.answers as f64 / answers.max(1.0);
        let (rate, failed) = (part.measured.rate(), part.measured.failed());
        match all
            .iter_mut()
            .find(|(own, _)| own.generator == part.generator)
        {
            Some((own, rounds)) => {
                own.rate += rate;
                own.share += share;
                own.cpus += cpus;
                own.failed = own.failed.saturating_add(failed);
                *rounds += 1;
            }
            None => all.push((
                Given {
                    generator: part.generator.clone(),
                    rate,
                    share,
                    cpus,
                    failed,
                },
                1,
            )),
        }
    }
    all.into_iter()
        .map(|(given, rounds)| Given {
            rate: given.rate / f64::from(rounds),
            cpus: given.cpus / f64::from(rounds),
            ..given
        })
        .collect()
}
