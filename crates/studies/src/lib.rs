//! Published benchmarks as experiments that anybody can run again: the author's figures beside
//! ours, and a verdict on what was concluded from them.

use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};

/// Carries out the configurations of a study. One bench serves every study that needs the same
/// kind of things: guests with virtual disks, pools in a guest, file systems on loop devices.
pub trait Bench {
    /// Why one of its things failed.
    type Error;

    /// Makes what has to be there before the first round, once: guests, pools, files. What cannot
    /// be tried here is returned with its reason and not asked for.
    ///
    /// # Errors
    /// When nothing can be tried.
    fn begin(&mut self, study: &Study, form: &Form) -> Result<Vec<NotTried>, Self::Error>;

    /// Measures some figures of one configuration, those that belong together, in one round.
    ///
    /// # Errors
    /// When it could not be measured; others may still be.
    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, Self::Error>;

    /// What it ran on: versions, sizes, whether emulated; a name and a value each.
    fn machine(&self) -> Vec<(String, String)>;
}
