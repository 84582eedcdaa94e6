//! Combines two sessions of a trial. Some conditions differ only between sessions, so that interleaving cannot cancel
//! them: location of the files, boot, time of day.
//!
//! Both sessions are judged separately, each at its own level; a verdict is confirmed if both sessions have it. A
//! change without effect is then called better in both sessions with a probability of at most α² (1 in 400 at 5 %).
//! Pooling the pairs would be more powerful, but one session that is lucky could decide for both. (Food and Drug
//! Administration 1998, "Providing clinical evidence of effectiveness"; Held 2020, "The harmonic mean χ²-test to
//! substantiate scientific findings", Applied Statistics 69:697–708, compares the rule with combinations of p-values.)

use assay_model::trial::{Judgement, Verdict};

/// Whether the verdicts of two sessions agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionAgreement {
    /// Both sessions have this verdict, which is therefore confirmed.
    Confirmed(Verdict),
    /// The sessions have different verdicts, so neither is confirmed.
    Contradicted,
    /// At least one session has no verdict.
    Open,
}

/// Combines the verdicts of two sessions; the order of the sessions does not matter.
#[must_use]
pub fn combine_verdicts(first: Verdict, second: Verdict) -> SessionAgreement {
    match (first, second) {
        (Verdict::Undecided, _) | (_, Verdict::Undecided) => SessionAgreement::Open,
        (one, other) if one == other => SessionAgreement::Confirmed(one),
        _ => SessionAgreement::Contradicted,
    }
}

/// Describes both sessions in a sentence, with the effect of each.
#[must_use]
pub fn describe_both_sessions(first: &Judgement, second: &Judgement, alpha: (f64, f64)) -> String {
    let one = |judgement: &Judgement| {
        let verdict = match judgement.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoPracticalDifference => "no practical difference",
            Verdict::Undecided => "undecided",
            Verdict::Unsafe => "unsafe",
        };
        match judgement.ratio {
            Some(ratio) => format!("{verdict} ({:+.1} %)", (ratio - 1.0) * 100.0),
            None => verdict.to_owned(),
        }
    };
    let both = format!("first {}, then {}", one(first), one(second));
    match combine_verdicts(first.verdict, second.verdict) {
        SessionAgreement::Confirmed(Verdict::Better | Verdict::Worse) => format!(
            "confirmed: {both}; a change that does nothing gets this verdict in both sessions in at most {} of \
             10,000 cases",
            (alpha.0 * alpha.1 * 10_000.0).ceil()
        ),
        SessionAgreement::Confirmed(_) => format!("confirmed: {both}"),
        SessionAgreement::Contradicted => {
            format!(
                "not confirmed: {both}; the luck of a session was in one of them, or the machine changed"
            )
        }
        SessionAgreement::Open => {
            format!("open: {both}; a session without a verdict confirms nothing")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_equal_verdicts_confirm() {
        let all = [
            Verdict::Better,
            Verdict::Worse,
            Verdict::NoPracticalDifference,
            Verdict::Undecided,
            Verdict::Unsafe,
        ];
        for one in all {
            for other in all {
                let combined = combine_verdicts(one, other);
                assert_eq!(combined, combine_verdicts(other, one));
                assert_eq!(
                    matches!(combined, SessionAgreement::Confirmed(_)),
                    one == other && one != Verdict::Undecided
                );
            }
        }
    }

    /// Two fair sessions of a change without effect: the rate of agreeing verdicts is at most the
    /// product of the levels.
    #[test]
    fn the_rate_of_two_sessions_is_the_product() {
        use rand::{RngExt as _, SeedableRng as _};
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut session = || match random.random::<f64>() {
            p if p < 0.05 => Verdict::Better,
            p if p > 0.95 => Verdict::Worse,
            _ => Verdict::NoPracticalDifference,
        };
        let sessions = 200_000;
        let better = (0..sessions)
            .filter(|_| {
                combine_verdicts(session(), session())
                    == SessionAgreement::Confirmed(Verdict::Better)
            })
            .count();
        // Expected 500, standard deviation 22.
        assert!((400..600).contains(&better), "{better}");
    }
}
