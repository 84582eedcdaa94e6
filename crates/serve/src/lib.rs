//! The store in a browser. It shows machines, runs, trials and the catalogue as pages, and provides the same documents
//! as JSON, and metrics for Prometheus. The pages use the design and the rendering code of the reports.
//!
//! Everything is read-only, unless [`ActionOptions`] are given. With these options, visitors can start and stop
//! commands of assay. Names and texts of machines are untrusted. Therefore templates escape them, and the content
//! security policy forbids inline scripts.
#![allow(
    clippy::disallowed_methods,
    reason = "a server reads its clock, and the identity of the store's file"
)]

mod action_request;
mod answer;
mod api;
mod connection;
mod demo_bundle;
pub mod demo_fleet;
mod demo_observations;
mod demo_records;
mod demo_trials;
mod demo_tuning;
mod drawn_pages;
mod figure_series;
mod fleet_run;
mod fleet_state;
mod jobs;
mod live_events;
mod live_state;
mod live_watch;
mod machine_check;
mod markdown_html;
mod pages;
mod prometheus;
mod query;
pub mod record_pages;
mod request_guard;
mod routes;
mod server;
mod shared_trials;
mod site;
mod site_page;
mod store_access;
mod stored_trial;

pub use jobs::ActionOptions;
pub use server::{ServeError, Server};
pub use site::SiteOptions;
pub use stored_trial::StoredTrial;

/// Locks a mutex, even if another thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
