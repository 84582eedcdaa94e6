//! HTML pages of runs, with the job files for repeating them by hand.

pub use assay_serve::record_pages::{find_web_results as web, render_run_record as html};
