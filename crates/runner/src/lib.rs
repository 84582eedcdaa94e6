//! Carries a plan out: layout, slots in order, every sample stored; resume.
