//! Figures that are computed from other figures.

use assay_model::study::{Bound, Derived, Figure, Observation, Published, Study};
use std::collections::{BTreeMap, BTreeSet};

/// A value by configuration and figure.
type Values<'a> = BTreeMap<(&'a str, &'a str), f64>;

/// The value of a derived figure of a configuration; none where something it rests on is missing
/// or where it would divide by 0.
///
/// `Weighted` is how the source of the study on KVM's cache modes ranks: "multiply the 4KB random
/// by a factor which, when applied to the bare metal …, would leave a roughly identical value to
/// the sequential", and take the average of the two.
fn value(values: &Values<'_>, derived: &Derived, configuration: &str) -> Option<f64> {
    let of = |configuration: &str, figure: &str| values.get(&(configuration, figure)).copied();
    let ours = |figure: &str| of(configuration, figure);
    let value = match derived {
        Derived::Weighted { a, b, baseline } => {
            let factor = of(baseline, a)? / of(baseline, b)?;
            (ours(a)? + factor * ours(b)?) / 2.0
        }
        Derived::Mean { of } => {
            let all: Option<Vec<f64>> = of.iter().map(|figure| ours(figure)).collect();
            all?.iter().sum::<f64>() / of.len() as f64
        }
        Derived::Largest { of } => {
            let all = of.iter().filter_map(|figure| ours(figure));
            all.reduce(f64::max)?
        }
        Derived::Quotient { of, by } => ours(of)? / ours(by)?,
        Derived::InFlight { rate, latency } => ours(rate)? * ours(latency)? / 1e9,
    };
    value.is_finite().then_some(value)
}

/// The figures that a derived one rests on, configuration and figure.
fn rests_on<'a>(derived: &'a Derived, configuration: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut all: Vec<_> = derived
        .of()
        .into_iter()
        .map(|of| (configuration, of))
        .collect();
    if let Derived::Weighted { a, b, baseline } = derived {
        all.extend([(baseline.as_str(), a.as_str()), (baseline, b)]);
    }
    all
}

fn each(study: &Study) -> impl Iterator<Item = (&Figure, &Derived, &str)> {
    let derived = study.figures.iter();
    let derived = derived.filter_map(|one| Some((one, one.derived.as_ref()?)));
    derived.flat_map(|(figure, derived)| {
        let names = study.configurations.iter().map(|one| one.name.as_str());
        names.map(move |name| (figure, derived, name))
    })
}

/// What was observed, and what is derived from it, round by round. What rests on a void
/// observation is void, and doubts are handed on. What is counted is observed once, and stands for
/// every round; what rests on nothing else is derived once.
pub(super) fn observations(study: &Study, raw: &[Observation]) -> Vec<Observation> {
    let mut all = raw.to_vec();
    let rounds: BTreeSet<u32> = raw.iter().map(|one| one.round).collect();
    for (figure, derived, configuration) in each(study) {
        for round in &rounds {
            let rests_on = rests_on(derived, configuration);
            let under: Vec<&Observation> = rests_on
                .iter()
                .filter_map(|(configuration, figure)| {
                    let exact = study.figure(figure).is_some_and(|figure| figure.exact);
                    let of = all
                        .iter()
                        .filter(|one| one.configuration == *configuration && one.figure == *figure);
                    let mut of = of.filter(|one| one.round == *round || exact);
                    // Its own round, where a counted one was counted again.
                    of.clone().find(|one| one.round == *round).or(of.next())
                })
                .collect();
            if under.iter().all(|one| one.round != *round) {
                continue;
            }
            let values: Values = under
                .iter()
                .map(|one| ((one.configuration.as_str(), one.figure.as_str()), one.value))
                .collect();
            let Some(value) = value(&values, derived, configuration) else {
                continue;
            };
            let doubts: BTreeSet<&String> = under.iter().flat_map(|one| &one.doubts).collect();
            let one = Observation {
                configuration: configuration.to_owned(),
                figure: figure.name.clone(),
                round: *round,
                value,
                doubts: doubts.into_iter().cloned().collect(),
                void: under.iter().any(|one| one.void),
            };
            all.push(one);
        }
    }
    all
}

/// The published figures, and what is derived from those that are figures and not bounds.
pub(super) fn published(study: &Study) -> Vec<Published> {
    let mut all = study.published.clone();
    for (figure, derived, configuration) in each(study) {
        let figures = all
            .iter()
            .filter(|one| matches!(one.is, Bound::Exactly | Bound::About));
        let values: Values = figures
            .map(|one| ((one.configuration.as_str(), one.figure.as_str()), one.value))
            .collect();
        if let Some(value) = value(&values, derived, configuration) {
            all.push(Published {
                configuration: configuration.to_owned(),
                figure: figure.name.clone(),
                value,
                is: Bound::Exactly,
                note: "computed from the published figures".to_owned(),
            });
        }
    }
    all
}
