//! Trials of many machines: what a trial contributes, the signed bundle it travels in, and what all
//! of them amount to together. Pure: bytes and time are passed in.

pub mod stats;
