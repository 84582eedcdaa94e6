//! Rare slow slots: on one side only, on both, and what they do to every verdict.

use crate::noise::Noise;
use crate::parallel::repeat;
use crate::tables::{cells, measured, rule};
use assay_judge::trial::decide_verdict;
use assay_model::trial::MAX_PAIRS;
use rand::RngExt as _;
use std::fmt::Write as _;

/// A side in which so many of all slots take so many times as long.
#[derive(Clone, Copy)]
struct Slow {
    share: f64,
    times: f64,
}

const NONE: Slow = Slow {
    share: 0.0,
    times: 1.0,
};

fn slow(share: f64, times: f64) -> Slow {
    Slow { share, times }
}

/// Verdicts by what happens to the slots of each side. The truth in total: how much more work is
/// done in the same time, and how much longer the same work takes.
pub fn stalls(n: usize) -> String {
    let mut out = String::from(
        "| noise | typical gain, % | slow slots of A | of B | change of total work, % | change of total time, % | better, % | worse, % | no difference, % | undecided, % | mean pairs |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let quiet = ("cv 3 %", Noise::Even(0.03));
    let loud = ("cv 15 %", Noise::Even(0.15));
    let cases = [
        (&quiet, 0.05, NONE, slow(0.1, 3.0)),
        (&quiet, 0.1, NONE, slow(0.1, 3.0)),
        (&quiet, 0.0, NONE, slow(0.05, 3.0)),
        (&quiet, 0.05, NONE, slow(0.02, 20.0)),
        (&quiet, 0.0, NONE, slow(0.02, 20.0)),
        (&quiet, 0.05, slow(0.1, 3.0), NONE),
        (&quiet, 0.0, slow(0.05, 3.0), NONE),
        (&quiet, 0.0, slow(0.05, 3.0), slow(0.05, 3.0)),
        (&quiet, 0.05, slow(0.05, 3.0), slow(0.05, 3.0)),
        (&quiet, 0.2, slow(0.05, 3.0), slow(0.05, 3.0)),
        (&loud, 0.05, NONE, slow(0.1, 3.0)),
        (&loud, 0.1, NONE, slow(0.1, 3.0)),
        (&loud, 0.0, slow(0.05, 3.0), slow(0.05, 3.0)),
    ];
    for ((name, noise), gain, a, b) in cases {
        let cell = format!("stalls {name} {gain} {} {} {}", a.share, b.share, b.times);
        let ends = repeat(&cell, n, |seed, random| {
            let mut work = noise.work(random, MAX_PAIRS as usize, f64::ln_1p(gain));
            for pair in &mut work {
                for (slot, of) in pair.iter_mut().zip([a, b]) {
                    if random.random::<f64>() < of.share {
                        *slot -= of.times.ln();
                    }
                }
            }
            decide_verdict(&rule(seed), &measured(&work))
        });
        let more = (1.0 + gain) * done(b) / done(a) - 1.0;
        let longer = took(b) / took(a) / (1.0 + gain) - 1.0;
        let _ = writeln!(
            out,
            "| {name} | {:.0} | {} | {} | {:+.1} | {:+.1} | {}",
            gain * 100.0,
            told(a),
            told(b),
            more * 100.0,
            longer * 100.0,
            cells(&ends)
        );
    }
    out
}

/// Work of a side in the time of what it would be without slow slots.
fn done(of: Slow) -> f64 {
    1.0 - of.share + of.share / of.times
}

/// Time of a side for the same work.
fn took(of: Slow) -> f64 {
    1.0 - of.share + of.share * of.times
}

fn told(of: Slow) -> String {
    match of.share {
        0.0 => "none".to_owned(),
        share => format!("{:.0} %, {:.0} times slower", share * 100.0, of.times),
    }
}
