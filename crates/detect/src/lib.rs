//! Two-stage detection: segment, stitch, extract, classify, accept.
