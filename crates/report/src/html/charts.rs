//! Which charts a run has.
