//! Computes figures that a study derives from other figures. Estimates over rounds are in `round_estimates`.

use assay_model::study::{Bound, Derived, Figure, Observation, Published, Study};
use std::collections::{BTreeMap, BTreeSet};

/// Values by (configuration, figure).
type FigureValues<'a> = BTreeMap<(&'a str, &'a str), f64>;

/// Computes the value of a derived figure of a configuration; `None` if an input is missing or a divisor is 0.
///
/// `Weighted` is the ranking in the article that the study of KVM's cache modes tests: "multiply the 4KB random by a
/// factor which, when applied to the bare metal …, would leave a roughly identical value to the sequential", and take
/// the average of the two.
fn derive_value(values: &FigureValues<'_>, derived: &Derived, configuration: &str) -> Option<f64> {
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

/// Lists the inputs of a derived figure as (configuration, figure).
fn list_inputs<'a>(derived: &'a Derived, configuration: &'a str) -> Vec<(&'a str, &'a str)> {
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

fn list_derived_figures(study: &Study) -> impl Iterator<Item = (&Figure, &Derived, &str)> {
    let derived = study.figures.iter();
    let derived = derived.filter_map(|one| Some((one, one.derived.as_ref()?)));
    derived.flat_map(|(figure, derived)| {
        let names = study.configurations.iter().map(|one| one.name.as_str());
        names.map(move |name| (figure, derived, name))
    })
}

/// Returns the observations together with the figures derived from them, round by round. A figure that is derived from
/// a void observation is void and has the same doubts. A counted figure (without noise) is observed once and applies to
/// every round; a figure derived only from counted figures is derived once.
pub(super) fn derive_observations(study: &Study, raw: &[Observation]) -> Vec<Observation> {
    let mut all = raw.to_vec();
    let rounds: BTreeSet<u32> = raw.iter().map(|one| one.round).collect();
    for (figure, derived, configuration) in list_derived_figures(study) {
        for round in &rounds {
            let rests_on = list_inputs(derived, configuration);
            let under: Vec<&Observation> = rests_on
                .iter()
                .filter_map(|(configuration, figure)| {
                    let exact = study.figure(figure).is_some_and(|figure| figure.exact);
                    let of = all
                        .iter()
                        .filter(|one| one.configuration == *configuration && one.figure == *figure);
                    let mut of = of.filter(|one| one.round == *round || exact);
                    // A counted figure that was counted again in this round uses the new value.
                    of.clone().find(|one| one.round == *round).or(of.next())
                })
                .collect();
            if under.iter().all(|one| one.round != *round) {
                continue;
            }
            let values: FigureValues = under
                .iter()
                .map(|one| ((one.configuration.as_str(), one.figure.as_str()), one.value))
                .collect();
            let Some(value) = derive_value(&values, derived, configuration) else {
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

/// Returns the published figures together with the figures derived from them. Published bounds, as opposed to values,
/// are not used.
pub(super) fn derive_published(study: &Study) -> Vec<Published> {
    let mut all = study.published.clone();
    for (figure, derived, configuration) in list_derived_figures(study) {
        let figures = all
            .iter()
            .filter(|one| matches!(one.is, Bound::Exactly | Bound::About));
        let values: FigureValues = figures
            .map(|one| ((one.configuration.as_str(), one.figure.as_str()), one.value))
            .collect();
        if let Some(value) = derive_value(&values, derived, configuration) {
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
