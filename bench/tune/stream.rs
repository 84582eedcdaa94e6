//! Noise as a stream of slots: made, or recorded and drawn in blocks, so that what hangs together in
//! time still does. Slots last four seconds.

use crate::noise::normal;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

/// Slots of a record that stay together.
const BLOCK: usize = 10;
/// Runs of a record that stay together: about a minute.
const RUNS: usize = 400;
/// Values of 250 ms in a slot.
const STEPS: usize = 16;

/// Which noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Independent, 3 % of variation.
    Even,
    /// Reads on a quiet machine, recorded.
    Quiet,
    /// Direct random writes, recorded.
    Direct,
    /// 30 % down and up every 20 minutes; one slot in 20 takes two to five times as long.
    Drift,
    /// Reads beside compilers and guests, recorded.
    Foreign,
    /// Writes with an fsync each; they collapse in the middle. Recorded.
    Fsync,
    /// Runs of a program that computes for 120 ms, beside compilers and guests. Recorded, each run.
    Command,
}

impl Kind {
    /// All with slots of four seconds.
    pub const ALL: [Self; 6] = [
        Self::Even,
        Self::Quiet,
        Self::Direct,
        Self::Drift,
        Self::Foreign,
        Self::Fsync,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Even => "cv3",
            Self::Quiet => "quiet",
            Self::Direct => "direct",
            Self::Drift => "drift",
            Self::Foreign => "foreign",
            Self::Fsync => "fsync",
            Self::Command => "command",
        }
    }

    /// ln of operations per second and of p99 per slot of the record; nothing for made noise. The
    /// records of 250 ms have no p99: it moves against the rate.
    fn record(self) -> Vec<[f64; 2]> {
        match self {
            Self::Quiet => by_steps(include_str!(
                "../../crates/judge/fixtures/noise/reads-quiet-250ms.txt"
            )),
            Self::Foreign => by_steps(include_str!(
                "../../crates/judge/fixtures/noise/reads-busy-250ms.txt"
            )),
            Self::Direct => by_runs(include_str!(
                "../../crates/judge/fixtures/noise/direct_qd16.jsonl"
            )),
            Self::Fsync => by_runs(include_str!(
                "../../crates/judge/fixtures/noise/buffered_fsync.jsonl"
            )),
            // Each run: seconds, twice.
            Self::Command => by_lines(include_str!(
                "../../crates/judge/fixtures/noise/command-busy-runs.txt"
            )),
            Self::Even | Self::Drift => Vec::new(),
        }
    }
}

fn by_lines(text: &str) -> Vec<[f64; 2]> {
    let values = text.lines().filter_map(|line| line.parse().ok());
    values.map(|ms: f64| [ms / 1e3; 2]).collect()
}

fn by_steps(text: &str) -> Vec<[f64; 2]> {
    let values: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    values
        .chunks_exact(STEPS)
        .map(|slot| {
            let rate = (slot.iter().sum::<f64>() / STEPS as f64).max(1.0).ln();
            [rate, -rate]
        })
        .collect()
}

fn by_runs(text: &str) -> Vec<[f64; 2]> {
    let run = |line: &str| {
        let run: serde_json::Value = serde_json::from_str(line).ok()?;
        Some([run["iops"].as_f64()?.ln(), run["p99"].as_f64()?.ln()])
    };
    text.lines().filter_map(run).collect()
}

/// A stream of slots.
pub struct Stream {
    kind: Kind,
    /// Seconds of a slot of runs of a command.
    pub length: f64,
    record: Vec<[f64; 2]>,
    centre: [f64; 2],
    random: ChaCha8Rng,
    at: usize,
    left: usize,
}

impl Stream {
    /// A stream that begins at a random moment.
    pub fn new(kind: Kind, random: ChaCha8Rng) -> Self {
        let record = kind.record();
        let centre = [0, 1].map(|of| {
            let sum: f64 = record.iter().map(|slot| slot[of]).sum();
            sum / record.len().max(1) as f64
        });
        Self {
            kind,
            length: 1.0,
            record,
            centre,
            random,
            at: 0,
            left: 0,
        }
    }

    /// ln of the rate and of p99 of the next slot, each around 0; `seconds` since the session began.
    pub fn slot(&mut self, seconds: f64) -> [f64; 2] {
        match self.kind {
            Kind::Even => [
                0.03 * normal(&mut self.random),
                0.05 * normal(&mut self.random),
            ],
            Kind::Drift => {
                let phase = (seconds / 1200.0).fract();
                let drift = 0.7f64.ln() * (1.0 - (2.0 * phase - 1.0).abs());
                let slow = match self.random.random::<f64>() < 0.05 {
                    true => -(2.0 + 3.0 * self.random.random::<f64>()).ln(),
                    false => 0.0,
                };
                let rate = drift + slow + 0.05 * normal(&mut self.random);
                [rate, -rate]
            }
            Kind::Command => self.runs(),
            _ => {
                if self.left == 0 {
                    self.at = self.random.random_range(0..self.record.len());
                    self.left = BLOCK;
                }
                let slot = self.record[self.at % self.record.len()];
                self.at += 1;
                self.left -= 1;
                [slot[0] - self.centre[0], slot[1] - self.centre[1]]
            }
        }
    }

    /// Whether its slots are runs of a command.
    pub fn is_command(&self) -> bool {
        self.kind == Kind::Command
    }

    /// One slot of runs: their median and the slowest.
    fn runs(&mut self) -> [f64; 2] {
        let (mut runs, mut passed) = (Vec::new(), 0.0);
        while passed < self.length {
            if self.left == 0 {
                self.at = self.random.random_range(0..self.record.len());
                self.left = RUNS;
            }
            let run = self.record[self.at % self.record.len()][0];
            self.at += 1;
            self.left -= 1;
            passed += run;
            runs.push(run);
        }
        runs.sort_by(f64::total_cmp);
        let median = runs[runs.len() / 2].ln();
        [
            self.centre[0].ln() - median,
            runs[runs.len() - 1].ln() - self.centre[0].ln(),
        ]
    }
}
