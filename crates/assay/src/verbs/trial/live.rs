//! Shows the progress of a running trial: an overwritten line for the current step, and a permanent line for each pair.

use crate::context::shown;
use assay_judge::trial::{find_next_look, forecast};
use assay_measure::trials::MeasureEvent;
use assay_model::Nanos;
use assay_model::trial::{Side, TrialPlan};
use assay_render::Style;
use assay_report::trial::{LivePair, format_live_heading, format_live_line};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// The display on standard error.
pub(super) struct Shown {
    plan: TrialPlan,
    style: Style,
    quiet: bool,
    bar: Option<ProgressBar>,
    headed: bool,
    /// Start of the first pair, and number of pairs that were evaluated since then.
    pairs: Option<(Instant, u32)>,
}

#[allow(
    clippy::disallowed_methods,
    reason = "progress shows the time that passes"
)]
fn now() -> Instant {
    Instant::now()
}

impl Shown {
    pub(super) fn new(quiet: bool, plan: &TrialPlan, style: Style) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::new_spinner().with_style(style);
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Self {
            plan: plan.clone(),
            style,
            quiet,
            bar,
            headed: false,
            pairs: None,
        }
    }

    /// Updates the display after an event of the trial.
    pub(super) fn tell(&mut self, event: &MeasureEvent<'_>) {
        match event {
            MeasureEvent::Making(what) => self.doing(format!("making what is measured: {what}")),
            MeasureEvent::Layout { written, size, .. } => {
                self.doing(format!("writing the test file: {written} of {size}"));
            }
            MeasureEvent::Durability(proof) => self.line(&format!(
                "flush test of {}: {} of {} acknowledged writes would be lost in a power cut",
                side(proof.side),
                proof.lost,
                proof.acknowledged
            )),
            MeasureEvent::Noise {
                pair_sd,
                pairs,
                slot,
            } => self.noise(*pair_sd, *pairs, *slot),
            MeasureEvent::Side { pair: 0, .. } => {
                self.doing("measuring the noise of the machine as it is".to_owned());
            }
            MeasureEvent::Side { pair, side: which } => {
                self.pairs.get_or_insert_with(|| (now(), 0));
                self.doing(format!("pair {pair}, {}", side(*which)));
            }
            MeasureEvent::Judged {
                pair,
                first,
                figures: [a, b],
                outcome,
                judgement,
            } => {
                let each = self.a_pair();
                let time = |pairs: u32| Nanos(each.0.saturating_mul(u64::from(pairs)));
                let measured = judgement.pairs;
                let next =
                    find_next_look(self.plan.max_pairs, measured).filter(|_| !judgement.done);
                let rest = self.plan.max_pairs.saturating_sub(*pair);
                let live = LivePair {
                    pair: *pair,
                    first: *first,
                    now: *a,
                    changed: *b,
                    outcome,
                    judgement,
                    next_look: next.map(|next| time(next - measured)),
                    at_most: time(rest),
                };
                if !self.headed {
                    self.headed = true;
                    self.line(&format_live_heading(&self.plan, self.style));
                }
                self.line(&format_live_line(&self.plan, &live, self.style));
            }
            MeasureEvent::MovedFile(astray) => self.always(&astray.to_string()),
            MeasureEvent::SettingBack => self.doing("setting everything back".to_owned()),
            _ => {}
        }
    }

    /// Estimates the duration of one more pair from the pairs so far.
    fn a_pair(&mut self) -> Nanos {
        match &mut self.pairs {
            Some((since, judged)) => {
                *judged += 1;
                Nanos::from((now() - *since) / *judged)
            }
            None => Nanos(2 * (self.plan.slot.0 + self.plan.washout.0)),
        }
    }

    fn noise(&mut self, sd: f64, pairs: u32, slot: Option<Nanos>) {
        if let Some(slot) = slot {
            self.plan.slot = slot;
            self.line(&format!("slots of {slot}: an answer comes soonest so"));
        }
        self.line(&format!(
            "noise of this machine: neighbours differ by about {:.1} % ({pairs} seen)",
            (sd.exp() - 1.0) * 100.0
        ));
        for effect in [0.1, 0.03] {
            let needed = forecast::forecast_pairs_for_difference(
                sd,
                f64::ln_1p(effect),
                self.plan.margin.max(0.0).ln_1p(),
            );
            let time = forecast::forecast_time(&self.plan, needed.min(self.plan.max_pairs)).time;
            let whole = Nanos(time.0 / 1_000_000_000 * 1_000_000_000);
            self.line(&match needed <= self.plan.max_pairs {
                true => format!(
                    "  a difference of {:.0} % takes about {needed} pairs, {whole}",
                    effect * 100.0
                ),
                false => format!(
                    "  a difference of {:.0} % would take about {needed} pairs: use longer slots (--slot)",
                    effect * 100.0,
                ),
            });
        }
    }

    fn doing(&self, what: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(shown(&what).into_owned());
        }
    }

    fn line(&self, line: &str) {
        if !self.quiet {
            self.always(line);
        }
    }

    /// Prints a line even in quiet mode.
    fn always(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(shown(line.trim_end_matches('\n'))),
            None => eprintln!("{}", line.trim_end_matches('\n')),
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Now => "A, as it is",
        Side::Changed => "B, with the change",
    }
}
