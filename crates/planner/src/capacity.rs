//! Computes how much storage to buy, how data grows, and when storage will be full.

mod futures;
mod history;
mod question;
mod retention;
mod storage_bill;
mod trend;

pub use futures::Coverage;
pub use history::{
    SNAPSHOT_COLUMNS, UsagePoint, ZfsSnapshot, daily_churn, parse_history, parse_snapshots,
    referenced_series, snapshot_held_bytes,
};
pub use question::{CapacityAnswer, CapacityQuestion, Grown, Recorded, Simulated, answer_question};
pub use retention::{Policy, Retention, parse_sanoid};
pub use storage_bill::{Bill, Factor, compute_bill, default_factors};
pub use trend::{Forecast, Outlook, Trend, compute_outlook};
