//! How much to buy, how it grows, and when it is full.

mod bill;
mod history;
mod retention;
mod trend;

pub use bill::{Bill, Factor, bill, default_factors};
pub use history::{
    Point, SNAPSHOT_COLUMNS, Snapshot, churn, parse_history, parse_snapshots, series,
};
pub use retention::{Policy, Retention, parse_sanoid};
pub use trend::{Forecast, Trend, forecast, trend};
