//! Load generators, one file each, and the counters read around them.
