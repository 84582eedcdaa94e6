//! Formats of fio: command lines, job files and results. No I/O.
//!
//! - [`json`] parses the output of fio 2.x to 3.4x with `--output-format=json` or `json+`.
//! - [`text_result`] parses the output for people, [`terse`] the output for scripts.
//! - [`job`] writes the job files that assay runs and shows.
//! - [`import`] converts a result that assay did not measure to a run.
//! - [`options`] parses the options of a command line or job file by fio's own rules.

pub mod import;
pub mod job;
pub mod json;
pub mod options;
pub mod terse;
pub mod text_result;
