//! The only door to a machine: read, list, run, write; live, captured or faulty.
