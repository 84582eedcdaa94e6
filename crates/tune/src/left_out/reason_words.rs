//! Describes the reasons why candidates are not tried, in one line each.

use super::LeftOut;
use assay_model::advice::RiskLevel;
use std::fmt;

/// Returns the value of `--may` that permits a risk. For a risk that is never permitted, returns a description of the
/// possible damage.
fn risk_word(level: RiskLevel) -> &'static str {
    match level {
        RiskLevel::None => "none",
        RiskLevel::Low => "low",
        RiskLevel::Service => "service",
        RiskLevel::Lockout => "it may lock you out",
        RiskLevel::DataLoss => "data may be lost",
    }
}

fn first_sentence(text: &str) -> &str {
    match text.find(". ") {
        Some(end) => &text[..=end],
        None => text,
    }
}

/// Shortens a text to about two lines of output.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 150;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => {
            let kept = &text[..end];
            let kept = kept.rsplit_once(' ').map_or(kept, |(words, _)| words);
            format!("{kept} …")
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotApply { because } => {
                write!(f, "does not apply: {}", shorten(because))
            }
            Self::AlreadySo { value } => write!(f, "already so: {value}"),
            Self::Never { setting, because } if because.is_empty() => {
                write!(f, "{setting} is never touched")
            }
            Self::Never { setting, because } => write!(f, "{setting} is never touched: {because}"),
            Self::Risk { level } => write!(
                f,
                "its risk is more than --may allows: {}",
                risk_word(*level)
            ),
            Self::NeverKept { because } => write!(f, "never kept, so not tried: {because}"),
            Self::NeedsReboot => f.write_str("takes effect at the next boot only"),
            Self::Literature { standing, because } => {
                let standing = format!("{standing:?}").to_lowercase();
                write!(f, "{standing}: {}", first_sentence(because))
            }
            Self::OtherLoad { loads, kind } => {
                write!(
                    f,
                    "makes sense under {}; the load is {kind}",
                    loads.join(", ")
                )
            }
            Self::OtherFigure { figures, wanted } => {
                write!(f, "acts on {}; the goal is {wanted}", figures.join(", "))
            }
            Self::CacheOnly => f.write_str("acts on the page cache; the load goes around it"),
            Self::OtherOperations { because } => f.write_str(because),
            Self::Ceiling {
                part,
                takes,
                of,
                gain,
                margin,
            } => write!(
                f,
                "{part} takes {takes} of {of}: a gain of {:.1} % at most, {:.0} % matter",
                gain * 100.0,
                margin * 100.0
            ),
            Self::MeasuredBefore { verdict, when } => {
                write!(f, "measured here before: {verdict:?} ({when})")
            }
            Self::FailsLoad { error } => write!(f, "it fails here: {error}"),
            Self::ScreenedOut { effect, error } => write!(
                f,
                "the screen shows {:+.1} % (standard error {:.1}): not worth a proof",
                effect.exp_m1() * 100.0,
                error * 100.0
            ),
            Self::Excluded { by } => write!(f, "cannot be on beside {by}"),
            Self::NoTime { needs, left } => {
                write!(f, "no time: needs about {needs}, {left} is left")
            }
        }
    }
}
