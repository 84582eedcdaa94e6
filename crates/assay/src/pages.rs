//! Renders HTML pages of runs, and includes the job files with which the user can repeat a run.

pub use assay_serve::record_pages::{find_web_results as web, render_run_record as html};
