//! Whole-slide reading: pyramids, physical resolution, tissue mask, window plan.
