//! Runs and samples in SQLite.
