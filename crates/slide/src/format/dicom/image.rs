//! One image of a slide, in one file or in several: its grid of frames.

use super::coding::Coding;
use super::frames::Frames;
use super::header::Header;
use crate::file::SlideFile;
use crate::format::roles::agree;
use crate::limits::{Fault, Limits, SMALL, check};
use crate::source::{Decoded, Level, TileState};
use crate::tiff::downsample;
use mitosis::RgbTile;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest decoded frame, bytes of RGB.
const MAX_FRAME_BYTES: u64 = 64 << 20;
/// Largest associated image, bytes of RGB.
const MAX_ASSOCIATED: u64 = 256 << 20;
const MAX_SIDE: u64 = 1 << 31;

/// A file of a slide.
pub(super) struct Member {
    pub(super) path: PathBuf,
    pub(super) file: Arc<SlideFile>,
    pub(super) header: Header,
}

impl Member {
    /// Its file's name.
    pub(super) fn name(&self) -> String {
        name(&self.path)
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

pub(super) struct Image {
    pub(super) size: (u64, u64),
    frame: (u64, u64),
    grid: (u64, u64),
    parts: Vec<(Frames, Coding)>,
    /// Number of each place's frame, counted through all parts, from 1 on; none: they are in order.
    places: Option<Vec<u32>>,
}

impl Image {
    /// Puts an image together from its files.
    pub(super) fn new(members: &[&Member], limits: &Limits) -> Result<Self, Fault> {
        let first = &members.first().ok_or("an image without files")?.header;
        let (size, frame) = (first.size, first.frame);
        let side = |n: u64, what: &str| match n {
            0 => Err(Fault::Damaged(format!("{what} is missing or 0"))),
            n if n < MAX_SIDE => Ok(n),
            n => Err(format!("{what} is {n}").into()),
        };
        side(size.0, "Total Pixel Matrix Columns")?;
        side(size.1, "Total Pixel Matrix Rows")?;
        side(frame.0, "Columns")?;
        side(frame.1, "Rows")?;
        let bytes = 3 * u128::from(frame.0) * u128::from(frame.1);
        if bytes > u128::from(MAX_FRAME_BYTES) {
            let (w, h) = frame;
            let what = format!("frames of {w} x {h} pixels, more than is read at once");
            return Err(Fault::Unsupported(what));
        }
        let grid = (size.0.div_ceil(frame.0), size.1.div_ceil(frame.1));
        let tiles = u128::from(grid.0) * u128::from(grid.1);
        // What is left out is listed by its place.
        check("fields", limits.fields, 64 * tiles, || format!("the places of {tiles} frames"))?;
        alike(members)?;
        let mut parts = Vec::new();
        let (mut stored, mut len) = (0, 0);
        for m in members {
            let within = |fault: Fault| named(m, members, fault);
            let coding = Coding::from_header(&m.header).map_err(within)?;
            let what = || format!("decoding {} x {} pixels in one piece", frame.0, frame.1);
            limits.working(what, bytes / 3 * u128::from(coding.bytes_per_pixel()))?;
            let frames = Frames::find(&m.file, &m.header, limits).map_err(within)?;
            stored += frames.count;
            len += m.file.len;
            parts.push((frames, coding));
        }
        let decoded = bytes.saturating_mul(stored.into());
        if decoded > u128::from(SMALL) {
            check("expansion", limits.expansion, decoded / u128::from(len.max(1)), || {
                format!("{decoded} bytes of RGB in {len} of DICOM")
            })?;
        }
        let full = match first.organization.as_str() {
            "TILED_FULL" => true,
            "TILED_SPARSE" => false,
            _ => first.positions.is_empty(),
        };
        connected(members)?;
        let places = if full {
            in_order(members, tiles)?;
            counted(members)?;
            agreed(members, grid, frame)?;
            None
        } else {
            complete(members)?;
            counted(members)?;
            Some(sparse(members, grid, frame)?)
        };
        Ok(Self { size, frame, grid, parts, places })
    }

    /// The level this image makes below a base.
    pub(super) fn level(&self, base: (u64, u64)) -> Level {
        let (downsample_x, downsample_y) = downsample(base, self.size);
        Level {
            width: self.size.0,
            height: self.size.1,
            downsample_x,
            downsample_y,
            tile_width: self.frame.0 as u32,
            tile_height: self.frame.1 as u32,
        }
    }

    /// The part and the frame in it of a place; `None` where nothing was scanned.
    fn frame_at(&self, column: u64, row: u64) -> Result<Option<(usize, u64)>, String> {
        if column >= self.grid.0 || row >= self.grid.1 {
            return Err(format!("outside the grid of {} x {}", self.grid.0, self.grid.1));
        }
        let index = row * self.grid.0 + column;
        let mut number = match &self.places {
            None => index,
            Some(places) => match places[index as usize].checked_sub(1) {
                None => return Ok(None),
                Some(number) => number.into(),
            },
        };
        for (i, (frames, _)) in self.parts.iter().enumerate() {
            if number < frames.count {
                return Ok(Some((i, number)));
            }
            number -= frames.count;
        }
        Err("no such frame".into())
    }

    /// Decodes one frame, cut to the image. One that was not scanned is white.
    pub(super) fn tile(&self, column: u64, row: u64) -> Result<Decoded, Fault> {
        let found = self.frame_at(column, row)?;
        let width = self.frame.0.min(self.size.0 - column * self.frame.0) as usize;
        let height = self.frame.1.min(self.size.1 - row * self.frame.1) as usize;
        let Some((part, frame)) = found else {
            let tile = RgbTile::filled(width, height, [crate::source::BACKGROUND; 3]);
            return Ok(Decoded { tile: Arc::new(tile), state: TileState::Absent });
        };
        let (frames, coding) = &self.parts[part];
        let raw = frames.read(frame)?;
        let stored = (self.frame.0 as usize, self.frame.1 as usize);
        let (data, doubt) = coding.decode(raw, stored, (width, height))?;
        let state = doubt.map_or(TileState::Sound, TileState::Suspect);
        Ok(Decoded { tile: Arc::new(RgbTile { width, height, data }), state })
    }

    /// Whether nothing was scanned at a place.
    pub(super) fn absent(&self, column: u64, row: u64) -> bool {
        let index = (row * self.grid.0 + column) as usize;
        self.places.as_ref().is_some_and(|p| p.get(index) == Some(&0))
    }

    /// Bytes of the frame at a place.
    pub(super) fn stored_bytes(&self, column: u64, row: u64) -> Option<u64> {
        let (part, frame) = self.frame_at(column, row).ok()??;
        let pieces = self.parts[part].0.pieces(frame).ok()?;
        Some(pieces.iter().map(|p| p.end - p.start).sum())
    }

    /// Places where nothing was scanned.
    pub(super) fn left_out(&self) -> Vec<(u64, u64)> {
        let Some(places) = &self.places else { return Vec::new() };
        let missing = places.iter().enumerate().filter(|(_, n)| **n == 0);
        missing.map(|(i, _)| (i as u64 % self.grid.0, i as u64 / self.grid.0)).collect()
    }

    pub(super) fn working_bytes(&self) -> u64 {
        let most = self.parts.iter().map(|(_, c)| c.bytes_per_pixel()).max().unwrap_or(3);
        self.frame.0 * self.frame.1 * most
    }

    /// Decodes all of it (for small ones).
    pub(super) fn whole(&self) -> Result<RgbTile, Fault> {
        let bytes = 3 * u128::from(self.size.0) * u128::from(self.size.1);
        if bytes > u128::from(MAX_ASSOCIATED) {
            let most = MAX_ASSOCIATED;
            return Err(format!("{bytes} bytes, more than the {most} of such images").into());
        }
        let (w, h) = (self.size.0 as usize, self.size.1 as usize);
        let mut out = RgbTile::filled(w, h, [crate::source::BACKGROUND; 3]);
        for row in 0..self.grid.1 {
            for column in 0..self.grid.0 {
                let t = self.tile(column, row)?.tile;
                let (x, y) = ((column * self.frame.0) as usize, (row * self.frame.1) as usize);
                for (k, line) in t.data.chunks_exact(3 * t.width).enumerate() {
                    let to = 3 * ((y + k) * w + x);
                    out.data[to..to + line.len()].copy_from_slice(line);
                }
            }
        }
        Ok(out)
    }
}

/// The fault of a file of an image; of several files it names the one at fault.
fn named(m: &Member, members: &[&Member], fault: Fault) -> Fault {
    match members.len() {
        1 => fault,
        _ => fault.within(&m.name()),
    }
}

/// Whether the files of an image agree about what they state of it, and each is of one depth and one light.
fn alike(members: &[&Member]) -> Result<(), Fault> {
    let Some(first) = members.first().map(|m| &m.header) else { return Ok(()) };
    // What is not a spacing is refused where it is needed.
    let differ = |a: f64, b: f64| a > 0.0 && b > 0.0 && !agree(a, b);
    for m in members {
        let within = |fault: Fault| named(m, members, fault);
        single(&m.header).map_err(within)?;
        if (m.header.size, m.header.frame) != (first.size, first.frame) {
            let shown = |h: &Header| {
                let ((w, height), (fw, fh)) = (h.size, h.frame);
                format!("{w} x {height} px in frames of {fw} x {fh} px")
            };
            let what = format!(
                "its files disagree about the sizes of image and frames: {} and {}",
                shown(first),
                shown(&m.header)
            );
            return Err(within(what.into()));
        }
        if m.header.photometric != first.photometric {
            let (one, other) = (&first.photometric, &m.header.photometric);
            let what =
                format!("its files disagree about PhotometricInterpretation: {one} and {other}");
            return Err(within(what.into()));
        }
        if let Some((own, other)) = m.header.spacing.zip(first.spacing)
            && (differ(own.0, other.0) || differ(own.1, other.1))
        {
            let (one, other) = (&first.spacing_written, &m.header.spacing_written);
            let what =
                format!("its files disagree about the spacing of pixels: {one} and {other} mm");
            return Err(within(what.into()));
        }
    }
    Ok(())
}

/// One depth and one light: which of several is meant, nobody here can know.
fn single(header: &Header) -> Result<(), Fault> {
    for (n, what) in
        [(header.focal_planes, "focal planes"), (header.optical_paths, "optical paths")]
    {
        if n > 1 {
            return Err(Fault::Unsupported(format!("{n} {what}, where one is read")));
        }
    }
    Ok(())
}

/// Whether every file of a concatenation begins where the one before it ends.
fn connected(members: &[&Member]) -> Result<(), Fault> {
    let mut next = 0;
    for m in members {
        if m.header.concatenation.is_some() && m.header.first_frame != next {
            let (name, first) = (m.name(), m.header.first_frame);
            return Err(format!(
                "{name} starts with frame {first} where {next} is due: a file is missing"
            )
            .into());
        }
        next += m.header.frames;
    }
    Ok(())
}

/// Whether a concatenation has all its files, where its frames do not show that: those of a sparse image leave places
/// out. Of a slide on a server one file is read.
fn complete(members: &[&Member]) -> Result<(), Fault> {
    let Some(first) = members.first().filter(|m| m.header.concatenation.is_some()) else {
        return Ok(());
    };
    let (name, n, remote) = (first.name(), members.len() as u64, first.file.is_remote());
    let stated = members.iter().filter_map(|m| m.header.concatenated).max();
    if stated.map_or(!remote, |all| all <= n) {
        return Ok(());
    }
    let all = stated.map_or("several".to_owned(), |all| all.to_string());
    let what = match remote {
        true => {
            "of a slide on a server only the named one is read, so copy all of them to this machine"
                .into()
        }
        false => format!("only {n} can be read: a file is missing"),
    };
    Err(format!("{name} is of an image in {all} files; {what}").into())
}

/// Whether the files of a concatenation are as many as each of them states. Of a slide on a server one file is read.
fn counted(members: &[&Member]) -> Result<(), Fault> {
    let here = members.len() as u64;
    for m in members.iter().filter(|m| m.header.concatenation.is_some()) {
        let is_remote = m.file.is_remote();
        if let Some(all) = m.header.concatenated.filter(|all| *all != here && !is_remote) {
            let what = "InConcatenationTotalNumber";
            return Err(format!(
                "{}: {what} is {all}, and {here} files of the image are there",
                m.name()
            )
            .into());
        }
    }
    Ok(())
}

/// Whether there are as many frames as the grid has places.
fn in_order(members: &[&Member], tiles: u128) -> Result<(), Fault> {
    let frames: u128 = members.iter().map(|m| u128::from(m.header.frames)).sum();
    match frames.cmp(&tiles) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => {
            Err(format!("{frames} frames of {tiles} are there: a file is missing or cut").into())
        }
        std::cmp::Ordering::Greater => {
            let what = format!("{frames} frames for {tiles} places, where one each is read");
            Err(Fault::Unsupported(what))
        }
    }
}

/// Frames in the order of the grid may state their places as well: the same ones.
fn agreed(members: &[&Member], grid: (u64, u64), frame: (u64, u64)) -> Result<(), Fault> {
    let mut before = 0;
    for m in members {
        let (stated, frames) = (m.header.positions.len() as u64, m.header.frames);
        if stated > 0 && stated != frames {
            return Err(format!("{}: places of {stated} frames, {frames} frames", m.name()).into());
        }
        for (i, position) in m.header.positions.iter().enumerate() {
            let number = before + i as u64;
            let (column, row) = (number % grid.0, number / grid.0);
            let place = [column * frame.0 + 1, row * frame.1 + 1].map(|v| v as i64);
            let (Some(x), Some(y)) = *position else { continue };
            if [x, y] != place {
                let [column, row] = place;
                return Err(format!(
                    "{}: frame {i} states column {x} and row {y}, and TILED_FULL puts it at column {column} \
                     and row {row}",
                    m.name()
                )
                .into());
            }
        }
        before += m.header.frames;
    }
    Ok(())
}

/// Where the frames that state their places belong.
fn sparse(members: &[&Member], grid: (u64, u64), frame: (u64, u64)) -> Result<Vec<u32>, Fault> {
    let mut places = vec![0u32; (grid.0 * grid.1) as usize];
    let mut number = 0u32;
    for m in members {
        let stated = &m.header.positions;
        if stated.len() as u64 != m.header.frames {
            let (name, n, frames) = (m.name(), stated.len(), m.header.frames);
            return Err(format!("{name}: places of {n} frames, {frames} frames").into());
        }
        for (i, position) in stated.iter().enumerate() {
            let (Some(x), Some(y)) = *position else {
                return Err(format!("{}: frame {i} does not state where it is", m.name()).into());
            };
            let place = |v: i64, side: u64, most: u64| {
                let v = u64::try_from(v - 1).ok()?;
                (v % side == 0 && v / side < most).then_some(v / side)
            };
            let column = place(x, frame.0, grid.0);
            let Some((column, row)) = column.zip(place(y, frame.1, grid.1)) else {
                let name = m.name();
                return Err(Fault::Unsupported(format!(
                    "{name}: frame {i} is at column {x} and row {y}, on no grid of its frames"
                )));
            };
            number += 1;
            let slot = &mut places[(row * grid.0 + column) as usize];
            if *slot != 0 {
                return Err(Fault::Unsupported(format!(
                    "{}: frame {i} is where another does (focal planes or optical paths?)",
                    m.name()
                )));
            }
            *slot = number;
        }
    }
    Ok(places)
}
