//! A second session of a trial: what interleaving cannot cancel (where the files lie, the boot, the hour)
//! is another one then.
//!
//! The rule is that of two trials: both sessions are judged on their own, at the level of each, and a
//! verdict is confirmed when both have it. A change that does nothing is then called better in both in at
//! most α² of the cases (1 in 400 at 5 %), and what looks so through the luck of one session needs the same
//! luck twice. Pooling the pairs would be more powerful and would let one lucky session decide for both.
//! (Food and Drug Administration 1998, "Providing clinical evidence of effectiveness"; Held 2020, "The
//! harmonic mean χ²-test to substantiate scientific findings", Applied Statistics 69:697–708, compares it
//! with combinations of p-values.)

use assay_model::trial::{Judgement, Verdict};

/// What two sessions say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// Both have this verdict.
    Confirmed(Verdict),
    /// They have different verdicts.
    Contradicted,
    /// At least one has none.
    Open,
}

/// The verdicts of two sessions, combined. The order does not matter.
#[must_use]
pub fn together(first: Verdict, second: Verdict) -> Together {
    match (first, second) {
        (Verdict::Undecided, _) | (_, Verdict::Undecided) => Together::Open,
        (one, other) if one == other => Together::Confirmed(one),
        _ => Together::Contradicted,
    }
}

/// The same in a sentence, with the effect of each session.
#[must_use]
pub fn sentence(first: &Judgement, second: &Judgement, alpha: (f64, f64)) -> String {
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
    match together(first.verdict, second.verdict) {
        Together::Confirmed(Verdict::Better | Verdict::Worse) => format!(
            "confirmed: {both}; a change that does nothing gets this verdict in both sessions in at most {} of \
             10,000 cases",
            (alpha.0 * alpha.1 * 10_000.0).ceil()
        ),
        Together::Confirmed(_) => format!("confirmed: {both}"),
        Together::Contradicted => {
            format!(
                "not confirmed: {both}; the luck of a session was in one of them, or the machine changed"
            )
        }
        Together::Open => format!("open: {both}; a session without a verdict confirms nothing"),
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
                let said = together(one, other);
                assert_eq!(said, together(other, one));
                assert_eq!(
                    matches!(said, Together::Confirmed(_)),
                    one == other && one != Verdict::Undecided
                );
            }
        }
    }

    /// Two fair sessions of a change that does nothing: verdicts at the level of each, by arithmetic of
    /// coins, agree as often as the sentence says at most.
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
            .filter(|_| together(session(), session()) == Together::Confirmed(Verdict::Better))
            .count();
        // 500 expected, sd 22.
        assert!((400..600).contains(&better), "{better}");
    }
}
