//! Estimates the progress of an image build, from the output of mmdebstrap and the duration of earlier builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How far a build is.
#[derive(Clone, Copy, Debug)]
pub struct BuildProgress<'a> {
    /// Name of the current step of the build.
    pub step: &'a str,
    /// Estimated remaining time; `None` while the build runs in another process.
    pub left: Option<Duration>,
    /// Completed fraction, 0 to 1.
    pub done: f64,
}

/// Steps of a build, as (log text at which the step starts, name, typical duration in seconds). The durations were
/// measured on two idle cores, 330 s in total. After a build on this machine, its own durations are used instead.
const STEPS: [(&str, &str, f64); 5] = [
    ("", "fetching the base system", 15.0),
    (
        "I: installing essential",
        "installing the base system",
        12.0,
    ),
    ("I: installing remaining", "installing packages", 60.0),
    ("Loading new zfs", "compiling ZFS", 200.0),
    ("I: running --customize-hook", "making the image", 43.0),
];
/// Fraction of the usual build time that must have passed before the estimate considers the current speed.
const ENOUGH: f64 = 0.05;
/// Name of the file next to the images that stores the duration of each step of the last build.
const RECORD: &str = "build-times.json";

/// Progress of a running build. Times are parameters that are measured from the start of the build.
pub(crate) struct Steps {
    usual: [f64; STEPS.len()],
    /// Start time of each step so far, in seconds; the last step is still running.
    began: Vec<f64>,
    shown: f64,
    record: PathBuf,
}

impl Steps {
    /// Starts to track a build of an image in `cache`.
    pub(crate) fn new(cache: &Path) -> Self {
        let record = cache.join(RECORD);
        let known = fs::read(&record)
            .ok()
            .and_then(|text| serde_json::from_slice::<[f64; STEPS.len()]>(&text).ok())
            .filter(|steps| steps.iter().all(|step| *step > 0.0 && *step < 1e6));
        Self {
            usual: known.unwrap_or(STEPS.map(|step| step.2)),
            began: vec![0.0],
            shown: 0.0,
            record,
        }
    }

    /// Returns the expected duration of the whole build.
    pub(crate) fn usual_time(&self) -> Duration {
        Duration::from_secs_f64(self.usual.iter().sum())
    }

    fn at(&self) -> usize {
        self.began.len() - 1
    }

    /// Searches new log text for the beginning of the next steps.
    pub(crate) fn read(&mut self, text: &str, now: Duration) {
        for (index, (begin, _, _)) in STEPS.iter().enumerate().skip(self.at() + 1) {
            if text.contains(begin) {
                // A step that was not seen took no time.
                self.began.resize(index + 1, now.as_secs_f64());
            }
        }
    }

    /// Returns the expected slowdown of the remaining steps as a factor: 1 is as usual, and the result is between 0.5
    /// and 4. The factor is the square root of the slowdown so far, because network-bound steps predict CPU-bound steps
    /// poorly.
    fn pace(&self) -> f64 {
        let usual: f64 = self.usual[..self.at()].iter().sum();
        match usual < ENOUGH * self.usual.iter().sum::<f64>() {
            true => 1.0,
            false => (self.began[self.at()] / usual).sqrt().clamp(0.5, 4.0),
        }
    }

    pub(crate) fn progress(&mut self, now: Duration) -> BuildProgress<'static> {
        let (now, at, pace) = (now.as_secs_f64(), self.at(), self.pace());
        let here = now - self.began[at];
        let expected = self.usual[at] * pace;
        // A step that exceeds its estimate needs a little more.
        let left = (expected - here).max(here / 10.0);
        let left = left + pace * self.usual[at + 1..].iter().sum::<f64>();
        self.shown = self.shown.max(now / (now + left.max(1.0)));
        BuildProgress {
            step: STEPS[at].1,
            left: Some(Duration::from_secs_f64(left.max(1.0))),
            done: self.shown,
        }
    }

    /// Stores the durations of the steps for the next build.
    pub(crate) fn ended(&self, now: Duration) {
        let ends = self.began[1..].iter().copied().chain([now.as_secs_f64()]);
        let took: Vec<f64> = self
            .began
            .iter()
            .zip(ends)
            .map(|(from, to)| to - from)
            .collect();
        if took.len() == STEPS.len()
            && let Ok(text) = serde_json::to_vec(&took)
        {
            // Only a cache: without it the next estimate uses typical times.
            let _ = fs::write(&self.record, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: f64) -> Duration {
        Duration::from_secs_f64(count)
    }

    /// Simulates a build whose steps take `took` seconds. Returns the estimated remaining time at the start of
    /// each step.
    fn build(cache: &Path, took: [f64; 5]) -> Vec<f64> {
        let mut steps = Steps::new(cache);
        let (mut now, mut done) = (0.0, 0.0);
        let mut said = Vec::new();
        for (index, took) in took.into_iter().enumerate() {
            if index > 0 {
                steps.read(&format!("noise\n{}…\n", STEPS[index].0), seconds(now));
            }
            for part in 0..10 {
                let shown = steps.progress(seconds(now + took * f64::from(part) / 10.0));
                assert_eq!(shown.step, STEPS[index].1);
                assert!(shown.done >= done && shown.done < 1.0);
                done = shown.done;
                if part == 0 {
                    said.extend(shown.left.map(|left| left.as_secs_f64()));
                }
            }
            now += took;
        }
        steps.ended(seconds(now));
        said
    }

    #[test]
    fn the_second_build_is_estimated_from_the_first() {
        let cache = tempfile::tempdir().unwrap();
        let took = [20.0, 10.0, 120.0, 240.0, 60.0];
        build(cache.path(), took);
        let said = build(cache.path(), took);
        for (index, said) in said.iter().enumerate() {
            let left: f64 = took[index..].iter().sum();
            assert!((said - left).abs() < 1.0, "{index}: {said} {left}");
        }
    }

    #[test]
    fn a_slow_network_does_not_stretch_the_compiler_by_as_much() {
        let cache = tempfile::tempdir().unwrap();
        let usual = STEPS.map(|step| step.2);
        let mut slow = usual;
        slow[0] *= 10.0;
        let said = build(cache.path(), slow);
        let left: f64 = usual[3..].iter().sum();
        assert!(said[3] > left && said[3] < 2.0 * left, "{said:?} {left}");
    }

    #[test]
    fn a_damaged_record_is_not_believed() {
        let cache = tempfile::tempdir().unwrap();
        for text in ["", "[1,2]", "[0,1,1,1,1]", "{}"] {
            fs::write(cache.path().join(RECORD), text).unwrap();
            assert_eq!(Steps::new(cache.path()).usual, STEPS.map(|step| step.2));
        }
    }
}
