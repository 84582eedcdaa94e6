//! Judges a study: gives every figure an interval next to the published figure, and every conclusion a finding.
//!
//! A figure of a configuration is the mean over its rounds. A ratio of two configurations is the geometric mean of the
//! ratios within each round, so that a disturbance of a whole round cancels out. Each interval is a 95 % interval with
//! Student's t over rounds: on the log scale if every value is above 0, else on the linear scale. A counted figure
//! ([`Figure::exact`]) has no error: its interval goes from its smallest to its largest value.
//!
//! A claim is supported if the whole interval lies within its bounds, contradicted if the whole interval lies outside,
//! else unresolved. The most important claim decides a conclusion.

mod claims;
mod derived_figures;
mod rankings;
mod round_estimates;

use assay_model::study::{
    Cell, Conclusion, JudgedClaim, JudgedConclusion, Needs, Observation, Published, StudyResult,
    StudyRun, Support,
};
use claims::ClaimEvidence;
use std::collections::BTreeMap;

/// Judges a study: estimates every figure, and returns a finding for each conclusion.
#[must_use]
pub fn judge_study(run: &StudyRun) -> StudyResult {
    let observations = derived_figures::derive_observations(&run.study, &run.observations);
    let published = derived_figures::derive_published(&run.study);
    let known = ClaimEvidence {
        run,
        observations: &observations,
        published: &published,
    };
    let conclusions = run.study.conclusions.iter();
    StudyResult {
        cells: build_cells(run, &observations, &published),
        conclusions: conclusions
            .map(|one| judge_conclusion(&known, one))
            .collect(),
        rankings: rankings::build_rankings(&known),
    }
}

fn build_cells(run: &StudyRun, observations: &[Observation], published: &[Published]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for configuration in &run.study.configurations {
        for figure in &run.study.figures {
            let ours = |one: &&Observation| {
                one.configuration == configuration.name && one.figure == figure.name
            };
            let all: Vec<&Observation> = observations.iter().filter(ours).collect();
            let valid: Vec<f64> = all
                .iter()
                .filter(|one| !one.void)
                .map(|one| one.value)
                .collect();
            let mut doubts: BTreeMap<String, u32> = BTreeMap::new();
            for doubt in all.iter().flat_map(|one| &one.doubts) {
                *doubts.entry(doubt.clone()).or_default() += 1;
            }
            let published = published
                .iter()
                .find(|one| one.configuration == configuration.name && one.figure == figure.name);
            if all.is_empty() && published.is_none() {
                continue;
            }
            cells.push(Cell {
                configuration: configuration.name.clone(),
                figure: figure.name.clone(),
                estimate: round_estimates::estimate_mean(&valid, figure.exact),
                rounds_void: (all.len() - valid.len()) as u32,
                doubts,
                published: published.cloned(),
            });
        }
    }
    cells
}

fn judge_conclusion(known: &ClaimEvidence<'_>, conclusion: &Conclusion) -> JudgedConclusion {
    let claims: Vec<JudgedClaim> = conclusion
        .claims
        .iter()
        .map(|one| known.judge_claim(one))
        .collect();
    let finding = claims.iter().map(|claim| claim.finding).max();
    let mut finding = finding.unwrap_or(Support::NotTried);
    let mut why = String::new();
    if conclusion.needs == Some(Needs::Kvm) && known.run.emulated && finding != Support::NotTried {
        finding = Support::Unresolved;
        "the guest was emulated: what its instructions cost there is not what they cost on a \
         processor, and this rests on it"
            .clone_into(&mut why);
    }
    if conclusion.needs == Some(Needs::OwnGenerator) && finding != Support::NotTried {
        finding = Support::Unresolved;
        "the load generator ran on the machine of the servers and took CPUs from them: how far a server \
         goes on more of them cannot be told here"
            .clone_into(&mut why);
    }
    JudgedConclusion {
        says: conclusion.says.clone(),
        finding,
        // A conclusion is not judged if the author shows figures for only a part of it.
        published_finding: claims
            .iter()
            .map(|claim| claim.published_finding)
            .collect::<Option<Vec<Support>>>()
            .and_then(|findings| findings.into_iter().max()),
        why,
        claims,
        today: conclusion.today.clone(),
    }
}

#[cfg(test)]
mod tests;
