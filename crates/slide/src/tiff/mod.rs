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
pub(crate) use ifd::{Ifd, TiffFile, is_tiff, tag};
pub(crate) use image::{TiffImage, downsample};
pub(crate) use unpack::packbits;

use std::fs::File;
use std::io;

/// Reads exactly `buf.len()` bytes at `offset` without moving a shared cursor.
pub(crate) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_exact_at(file, buf, offset)
    }
    #[cfg(windows)]
    {
        use std::os::windows::fs::FileExt;
        let mut done = 0;
        while done < buf.len() {
            match file.seek_read(&mut buf[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => done += n,
            }
        }
        Ok(())
    }
}

/// Writes all of `buf` at `offset` without moving a shared cursor.
pub(crate) fn write_at(file: &File, buf: &[u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::write_all_at(file, buf, offset)
    }
    #[cfg(windows)]
    {
        use std::os::windows::fs::FileExt;
        let mut done = 0;
        while done < buf.len() {
            match file.seek_write(&buf[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n => done += n,
            }
        }
        Ok(())
    }
}
