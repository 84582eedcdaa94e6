//! Facts of a machine with their provenance, one collector per source.
