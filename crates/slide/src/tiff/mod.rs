//! TIFF and BigTIFF as slides use them.
//!
//! The structure is read here and not with the `tiff` crate, which (0.11) reads the first image
//! before its limits can be raised (tile tables above 1 MiB, i.e. slides above about 90 000 px, are
//! refused), refuses descriptions that are not ASCII, and needs `&mut` for every read, while tiles
//! are read here from several threads at once.

mod codec;
mod ifd;
mod image;
pub(crate) mod jp2k;
mod unpack;

pub(crate) use codec::{cut_rgb, over_white};
pub(crate) use ifd::{Field, Ifd, TiffFile, is_tiff, tag};
pub(crate) use image::{TiffImage, downsample};
pub(crate) use unpack::packbits;
