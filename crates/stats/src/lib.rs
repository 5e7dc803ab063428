//! Metrics, intervals, bootstrap, survival. No I/O, no sibling.
