//! Files that other programs read and write back.

mod dicom;
