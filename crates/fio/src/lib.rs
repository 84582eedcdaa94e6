//! fio's languages: command lines, job files, JSON results. Pure.
//!
//! - [`json`] reads what fio 2.x to 3.4x print with `--output-format=json` or `json+`.
//! - [`job`] writes the job files that assay runs and shows.
//! - [`import`] turns a foreign result into a run.
//! - [`options`] reads what a command line or a job file asks for, by fio's own rules.

pub mod import;
pub mod job;
pub mod json;
pub mod options;
