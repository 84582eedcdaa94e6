//! Shows the progress of a load on web servers.

use crate::progress::Meter;
use assay_model::Nanos;
use assay_model::units::format_significant;
use assay_model::web::Pace;
use assay_render::units::format_plural;
use assay_web::WebEvent;
use std::time::Duration;

/// Progress display: a bar with the rate of the current step, and a line for each result.
pub struct Progress<'a> {
    meter: Meter,
    urls: &'a [String],
    step: String,
    /// Latest update, as (number of successful responses, time).
    last: (u64, Duration),
}

impl<'a> Progress<'a> {
    /// Creates the display. With `quiet`, shows nothing.
    pub fn new(quiet: bool, urls: &'a [String], estimate: Duration) -> Self {
        let mut meter = Meter::new(quiet, Nanos::from(estimate));
        meter.expect(Nanos::from(estimate));
        Self {
            meter,
            urls,
            step: String::new(),
            last: (0, Duration::ZERO),
        }
    }

    /// Updates the display for an event.
    pub fn tell(&mut self, event: &WebEvent<'_>) {
        match event {
            WebEvent::Begins {
                target,
                connections,
                pace,
                round,
                left,
            } => {
                let pace = match pace {
                    Pace::Closed => {
                        format_plural(u64::from(*connections), "connection", "connections")
                    }
                    Pace::Constant { per_s } | Pace::Poisson { per_s } | Pace::Replay { per_s } => {
                        format!("{} requests/s", format_significant(*per_s))
                    }
                };
                self.step = format!("{}: {pace}, round {}", self.url(*target), round + 1);
                self.last = (0, Duration::ZERO);
                self.meter.expect(Nanos::from(*left));
                self.meter.say(self.step.clone());
            }
            WebEvent::Goes {
                answers,
                failures,
                since,
                left,
            } => {
                let (answers_then, then) = std::mem::replace(&mut self.last, (*answers, *since));
                let seconds = since.saturating_sub(then).as_secs_f64().max(1e-3);
                let rate = answers.saturating_sub(answers_then) as f64 / seconds;
                let failed = match failures {
                    0 => String::new(),
                    failures => format!(", {failures} failed"),
                };
                self.meter.expect(Nanos::from(*left));
                self.meter.say(format!(
                    "{}: {}/s{failed}",
                    self.step,
                    format_significant(rate)
                ));
            }
            WebEvent::Capacity { target, capacity } => self.meter.line(&match capacity {
                Some(capacity) => format!(
                    "{}: {} answers/s from {} on",
                    self.url(*target),
                    format_significant(capacity.rate),
                    format_plural(u64::from(capacity.connections), "connection", "connections")
                ),
                None => format!("{}: no capacity was found", self.url(*target)),
            }),
            WebEvent::Ended(_) => {}
        }
    }

    fn url(&self, target: usize) -> String {
        assay_render::text::escape_line(self.urls.get(target).map_or("", String::as_str))
    }

    pub fn end(&self) {
        self.meter.end();
    }
}
