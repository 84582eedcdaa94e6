//! How much to buy, how it grows, and when it is full.

mod storage_bill;
mod futures;
mod history;
mod question;
mod retention;
mod trend;

pub use storage_bill::{Bill, Factor, compute_bill, default_factors};
pub use futures::Coverage;
pub use history::{
    UsagePoint, SNAPSHOT_COLUMNS, ZfsSnapshot, daily_churn, snapshot_held_bytes, parse_history, parse_snapshots, referenced_series,
};
pub use question::{CapacityAnswer, CapacityQuestion, Grown, Recorded, Simulated, answer_question};
pub use retention::{Policy, Retention, parse_sanoid};
pub use trend::{Forecast, Outlook, Trend, compute_outlook};
