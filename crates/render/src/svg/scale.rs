//! Axes: map values to pixels, and determine the positions of ticks. Axes of effects are in `trial_effects`.

/// An axis over a range of values.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisScale {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

/// Finds the lowest and the highest finite value. For a logarithmic scale, only positive values count.
fn find_extent(values: impl Iterator<Item = f64>, log: bool) -> Option<(f64, f64)> {
    let usable = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
    usable.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// Rounds a step up to 1, 2 or 5 times a power of ten.
pub(super) fn round_step_up(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|m| m * power >= rough * 0.999_999);
    step.unwrap_or(10.0) * power
}

impl AxisScale {
    /// Creates a linear axis from zero to a round number above the largest value. `from` and `to` are the pixels of its
    /// ends.
    #[must_use]
    pub fn from_zero(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let highest = find_extent(values, false)
            .map_or(0.0, |(_, high)| high)
            .clamp(0.0, 1e300);
        let high = if highest > 1e-300 { highest } else { 1.0 };
        let step = round_step_up(high / 4.0);
        let high = (high / step - 1e-9).ceil().max(1.0) * step;
        Self {
            low: 0.0,
            high,
            log: false,
            from,
            to,
        }
    }

    /// Creates a linear axis with exactly these ends.
    #[must_use]
    pub fn linear(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            log: false,
            from,
            to,
        }
    }

    /// Creates a logarithmic axis that contains all positive values with a margin. The axis spans at least a factor of
    /// two.
    #[must_use]
    pub fn log(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = find_extent(values, true).unwrap_or((1.0, 10.0));
        let (low, high) = (
            low.clamp(1e-300, 1e299) / 1.15,
            high.clamp(1e-300, 1e299) * 1.15,
        );
        let widen = (2.0 / (high / low)).max(1.0).sqrt();
        Self {
            low: low / widen,
            high: high * widen,
            log: true,
            from,
            to,
        }
    }

    /// Creates an axis that contains all positive values. It is logarithmic if the largest value is many times the
    /// smallest, else linear from zero.
    #[must_use]
    pub fn fitting(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        match find_extent(values.clone(), true) {
            Some((low, high)) if high / low > 8.0 => Self::log(values, from, to),
            _ => Self::from_zero(values, from, to),
        }
    }

    /// Returns the pixel of a value. A value beyond an end, or a value that is not finite, is placed at an end.
    #[must_use]
    pub fn pixel_of(&self, value: f64) -> f64 {
        self.from + self.fraction_of(value) * (self.to - self.from)
    }

    /// Returns the position of a value between the ends, 0–1.
    #[must_use]
    pub fn fraction_of(&self, value: f64) -> f64 {
        let share = match self.log {
            true if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            true => 0.0,
            false => (value - self.low) / (self.high - self.low),
        };
        if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        }
    }

    /// Returns the lowest and the highest value of the axis.
    #[must_use]
    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Returns round values within the ends in ascending order. Their number is about `most`, and at most one and a
    /// half times `most`.
    #[must_use]
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let most = most.max(2);
        // Below a factor of four, powers of ten are too coarse.
        match self.log && self.high / self.low >= 4.0 {
            false => self.linear_ticks(most),
            true => self.log_ticks(most),
        }
    }

    fn linear_ticks(&self, most: usize) -> Vec<f64> {
        let step = round_step_up((self.high - self.low) / most as f64);
        let first = (self.low / step).ceil() as i64;
        let within = |value: &f64| *value <= self.high + step * 1e-6;
        (first..)
            .map(|i| i as f64 * step)
            .take_while(within)
            .take(most + 2)
            .collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let with = |multiples: &[f64], every: i32| -> Vec<f64> {
            decades
                .clone()
                .filter(|decade| decade.rem_euclid(every) == 0)
                .flat_map(|decade| multiples.iter().map(move |m| m * 10f64.powi(decade)))
                .filter(|tick| (self.low..=self.high).contains(tick))
                .collect()
        };
        let candidates = [
            with(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 1),
            with(&[1.0, 2.0, 3.0, 5.0], 1),
            with(&[1.0, 2.0, 5.0], 1),
            with(&[1.0, 3.0], 1),
            with(&[1.0], 1),
            with(&[1.0], 2),
            with(&[1.0], 3),
        ];
        let fitting = candidates.iter().find(|ticks| ticks.len() <= most);
        match fitting {
            Some(ticks) if !ticks.is_empty() => ticks.clone(),
            _ => with(
                &[1.0],
                (decades.end() - decades.start()).max(1) / most as i32 + 1,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn round_numbers() {
        assert_eq!(
            AxisScale::from_zero([870.0].into_iter(), 0.0, 1.0).ends(),
            (0.0, 1000.0)
        );
        assert_eq!(
            AxisScale::linear(0.0, 10.0, 0.0, 1.0).ticks(5),
            [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        );
        let log = AxisScale::log([90.0, 11_000.0].into_iter(), 0.0, 1.0);
        assert_eq!(log.ticks(4), [100.0, 1000.0, 10_000.0]);
    }

    proptest! {
        #[test]
        fn any_values_make_a_sane_axis(
            values in prop::collection::vec(any::<f64>(), 0..12),
            probe in any::<f64>(),
            most in 2usize..12,
        ) {
            for scale in [
                AxisScale::from_zero(values.iter().copied(), 40.0, 300.0),
                AxisScale::log(values.iter().copied(), 300.0, 40.0),
            ] {
                let (low, high) = scale.ends();
                prop_assert!(low.is_finite() && high.is_finite() && low < high, "{scale:?}");
                prop_assert!((40.0..=300.0).contains(&scale.pixel_of(probe)));
                let ticks = scale.ticks(most);
                prop_assert!(ticks.len() <= most + most / 2 + 2, "{} of {most}", ticks.len());
                prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "{ticks:?}");
                prop_assert!(ticks.iter().all(|tick| tick.is_finite()));
            }
        }

        #[test]
        fn ordinary_values_lie_within_and_in_order(mut values in prop::collection::vec(1e-6f64..1e12, 2..12)) {
            values.sort_by(f64::total_cmp);
            for scale in [
                AxisScale::from_zero(values.iter().copied(), 0.0, 100.0),
                AxisScale::log(values.iter().copied(), 0.0, 100.0),
            ] {
                prop_assert!(values.windows(2).all(|pair| scale.pixel_of(pair[0]) <= scale.pixel_of(pair[1])));
                prop_assert!(values.last().is_some_and(|last| *last <= scale.ends().1 * 1.000_001));
            }
        }
    }
}
