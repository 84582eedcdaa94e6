//! How much to buy, how it grows, and when it is full.

mod bill;
mod futures;
mod history;
mod question;
mod retention;
mod trend;

pub use bill::{Bill, Factor, bill, default_factors};
pub use futures::Coverage;
pub use history::{
    Point, SNAPSHOT_COLUMNS, Snapshot, churn, held, parse_history, parse_snapshots, series,
};
pub use question::{Answer, Asked, Grown, Recorded, Simulated, answer};
pub use retention::{Policy, Retention, parse_sanoid};
pub use trend::{Forecast, Outlook, Trend, outlook};
