//! Masks: grey PNG or TIFF over the whole slide, 0 outside, every other value a class.

use super::drawn::broken;
use super::{Drawn, DrawnFile, Frame};
use crate::area::Area;
use crate::error::RegionError;
use image::{ImageFormat, ImageReader, Limits, LumaA};
use slide::PngResolution;
use std::collections::BTreeMap;
use std::io::Cursor;

/// Pixels of the largest mask: 8 um/px over 20 cm x 20 cm.
const MOST_PX: u64 = 1 << 30;
/// Runs of equal pixels, which bounds time: a mask with more is noise.
const MOST_RUNS: usize = 2_000_000;

pub(super) fn read(
    file: &mut DrawnFile,
    bytes: &[u8],
    mpp: Option<f64>,
) -> Result<(), RegionError> {
    file.format = "mask";
    let path = file.path.clone();
    let stated = || stated(bytes).map_err(|e| broken(&path, e));
    let Some(mpp) = mpp.map_or_else(stated, |mpp| Ok(Some(mpp)))? else {
        return Err(RegionError::NoMpp { path });
    };
    if let Some(what) = slide::picture_fault(bytes) {
        return Err(broken(&path, what));
    }
    let fail = |e: &dyn std::fmt::Display| broken(&path, format!("is not a mask: {e}"));
    let format = if bytes.starts_with(b"\x89PNG") { ImageFormat::Png } else { ImageFormat::Tiff };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_PX);
    reader.limits(limits);
    let image = reader.decode().map_err(|e| fail(&e))?;
    // A colour image is a picture of regions, and what its colours mean is not known.
    if image.color().has_color() {
        return Err(broken(
            &path,
            "is not a mask: it has colours; save it as grey, 0 outside and a number per class",
        ));
    }
    // Whether a value that is not seen is meant is not known.
    let hidden = |p: &LumaA<u16>| p.0[0] > 0 && p.0[1] < u16::MAX;
    if image.color().has_alpha() && image.to_luma_alpha16().pixels().any(hidden) {
        return Err(broken(
            &path,
            "is not a mask: it has values that are transparent; save it as grey, 0 outside and a number per class",
        ));
    }
    let image = image.into_luma16();
    let (width, height) = image.dimensions();
    file.frame = Frame::Mask { width, height, mpp };
    let mut runs: BTreeMap<u16, Vec<[f64; 4]>> = BTreeMap::new();
    let mut count = 0;
    for (y, line) in image.as_raw().chunks_exact(width as usize).enumerate() {
        let mut x = 0;
        for run in line.chunk_by(|a, b| a == b) {
            let end = x + run.len();
            if run[0] > 0 {
                let place = [x as f64, y as f64, end as f64, y as f64 + 1.0];
                let list = runs.entry(run[0]).or_default();
                // The same run one row below makes the rectangle taller: few of them are left.
                match list
                    .iter_mut()
                    .rev()
                    .take(64)
                    .find(|r| r[0] == place[0] && r[2] == place[2] && r[3] == place[1])
                {
                    Some(above) => above[3] = place[3],
                    None => {
                        list.push(place);
                        count += 1;
                    }
                }
            }
            x = end;
        }
        if count > MOST_RUNS {
            return Err(broken(
                &path,
                format!("has more than {MOST_RUNS} pieces: smooth it, or draw polygons"),
            ));
        }
    }
    // Eight-bit masks were widened: 1 became 257.
    let eight = runs.keys().all(|v| v % 257 == 0);
    for (value, places) in runs {
        let class = if eight { value / 257 } else { value };
        file.take(Drawn {
            class: class.to_string(),
            area: Area::rectangles(&places),
            ..Drawn::default()
        });
    }
    Ok(())
}

/// um/px that a PNG states. TIFF tags of masks are screen resolutions as a rule.
fn stated(bytes: &[u8]) -> Result<Option<f64>, String> {
    // Screens have some 72 to 600 pixels per inch, which is never the scale of a slide.
    let is_scale = |r: &PngResolution| r.mpp[0] == r.mpp[1] && (0.05..=40.0).contains(&r.mpp[0]);
    let all: Vec<PngResolution> =
        slide::png_resolutions(bytes).into_iter().filter(is_scale).collect();
    let Some(first) = all.first() else { return Ok(None) };
    let um = |r: &PngResolution| format!("{} um/px ({})", r.mpp[0], r.field);
    match all.iter().find(|r| r.contradicts(first)) {
        Some(other) => Err(format!("states {} and {}", um(first), um(other))),
        None => Ok(Some(first.mpp[0])),
    }
}
