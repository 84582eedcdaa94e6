//! What samples mean: doubts, statistics, criteria, attribution. Pure.

pub mod doubts;
