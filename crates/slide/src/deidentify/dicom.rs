//! The files of a DICOM slide, with clean headers and the stored pixels.

use super::DeidentifyError;
use super::error::disk;
use super::written::Written;
use crate::file::Stream;
use crate::format::dicom_files;
use crate::inventory::dicom_texts;
use crate::limits::Fault;
use crate::{OpenOptions, Slide, SlideError};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes copied at once.
const CHUNK: usize = 1 << 20;

pub(super) fn write(
    slide: &Slide,
    output: &Path,
    options: &OpenOptions,
) -> Result<Written, DeidentifyError> {
    let wrong = |fault: Fault| match fault {
        Fault::Limit(breach) => SlideError::limit(&slide.path, breach),
        Fault::Read(reason) => SlideError::read(&slide.path, reason),
        other => SlideError::Malformed { path: slide.path.clone(), reason: other.reason() },
    };
    let found = dicom_files::clean(&slide.path, &slide.file, &options.limits).map_err(wrong)?;
    std::fs::create_dir(output).map_err(disk(output))?;
    let mut copied = Sha256::new();
    let mut written: Vec<PathBuf> = Vec::new();
    let mut tiles = 0;
    // Comments within frames: no decoder needs them.
    let blank = found.files.iter().map(|clean| dicom_texts(&clean.frames));
    let blank = blank.collect::<Result<Vec<_>, Fault>>().map_err(wrong)?;
    for (i, (clean, blank)) in found.files.iter().zip(&blank).enumerate() {
        // Names of files are often those of patients or cases.
        let path = output.join(format!("{i}.dcm"));
        let file = File::create_new(&path).map_err(disk(&path))?;
        let mut out = BufWriter::with_capacity(CHUNK, file);
        out.write_all(&clean.header).map_err(disk(&path))?;
        let mut pixels = Blanked::new(clean, blank);
        let mut buffer = vec![0; CHUNK];
        loop {
            let n =
                pixels.read(&mut buffer).map_err(|e| wrong(Fault::read(clean.pixels.start, &e)))?;
            if n == 0 {
                break;
            }
            out.write_all(&buffer[..n]).map_err(disk(&path))?;
        }
        let file = out.into_inner().map_err(|e| disk(&path)(e.into_error()))?;
        file.sync_all().map_err(disk(&path))?;
        copied.update(behind(&path, clean.header.len())?.finalize());
        tiles += clean.frames.count;
        written.push(path);
    }
    // Of each file its own digest, so that both sides read one file at a time.
    let mut own = Sha256::new();
    for (clean, blank) in found.files.iter().zip(&blank) {
        own.update(
            of_pixels(clean, blank).map_err(|e| wrong(Fault::read(clean.pixels.start, &e)))?,
        );
    }
    let main = written.first().cloned().ok_or_else(|| DeidentifyError::Check {
        path: slide.path.clone(),
        reason: "no image of the slide itself".into(),
    })?;
    Ok(Written {
        output: written,
        main,
        removed: found.removed,
        tiles,
        sha256: base::digest::hex(&own.finalize()),
        copied: base::digest::hex(&copied.finalize()),
    })
}

/// The stored pixels of a file, with zeros for the comments within them.
struct Blanked<'a> {
    pixels: Stream<'a>,
    at: u64,
    blank: &'a [Range<u64>],
}

impl<'a> Blanked<'a> {
    fn new(clean: &'a dicom_files::Clean, blank: &'a [Range<u64>]) -> Self {
        let pixels = clean.file.part(clean.pixels.start, clean.pixels.end);
        Self { pixels, at: clean.pixels.start, blank }
    }
}

impl Read for Blanked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.pixels.read(buffer)?;
        let (from, to) = (self.at, self.at + n as u64);
        self.at = to;
        let gone = self.blank.iter().take_while(|r| r.end <= from).count();
        self.blank = &self.blank[gone..];
        for part in self.blank.iter().take_while(|r| r.start < to) {
            let (start, end) = (part.start.max(from), part.end.min(to));
            buffer[(start - from) as usize..(end - from) as usize].fill(0);
        }
        Ok(n)
    }
}

/// SHA-256 of the stored pixels of a file, without comments.
fn of_pixels(
    clean: &dicom_files::Clean,
    blank: &[Range<u64>],
) -> std::io::Result<sha2::digest::Output<Sha256>> {
    let mut digest = Sha256::new();
    let mut pixels = Blanked::new(clean, blank);
    let mut buffer = vec![0; CHUNK];
    loop {
        let n = pixels.read(&mut buffer)?;
        if n == 0 {
            return Ok(digest.finalize());
        }
        digest.update(&buffer[..n]);
    }
}

/// SHA-256 of what a written file holds behind its header.
fn behind(path: &Path, header: usize) -> Result<Sha256, DeidentifyError> {
    let mut file = std::io::BufReader::new(base::file::open_regular(path).map_err(disk(path))?);
    std::io::copy(&mut (&mut file).take(header as u64), &mut std::io::sink())
        .map_err(disk(path))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        let n = file.read(&mut buffer).map_err(disk(path))?;
        if n == 0 {
            return Ok(digest);
        }
        digest.update(&buffer[..n]);
    }
}
