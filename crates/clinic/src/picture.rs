//! Pictures on the page: the slide, its hotspot, and the figures that count.

use crate::case::Slide;
use base::text::Many;
use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;
use mithras::export::pictures;
use mitosis::hotspots::{HotspotRule, Shape};
use mitosis::{Level0, Mpp, Point, Rect, RgbTile};

/// A line on a picture, in shares of its width and height.
pub type Outline = Vec<[f64; 2]>;

/// A JPEG with outlines on it.
pub struct Picture {
    /// Bytes of the file.
    pub jpeg: Vec<u8>,
    /// Rings on it.
    pub outlines: Vec<Outline>,
    /// What it shows.
    pub caption: String,
}

/// Side of the picture of a hotspot, px.
const HOTSPOT_SIDE: usize = 640;
/// What is shown around a hotspot, as a share of its side.
const AROUND: f64 = 1.12;
/// Radius of the ring around a figure, um.
const RING_UM: f64 = 14.0;
/// What is shown of one figure, um.
const FIGURE_UM: f64 = 24.0;

/// A slide's hotspot on the page: the one that a reviewer placed, else the densest square.
pub struct Spot {
    /// By which rule.
    pub rule: HotspotRule,
    /// Its centre, or those of its fields, level-0 px.
    pub centres: Vec<Point<Level0>>,
}

impl Spot {
    /// The one that counts on the page. `reviewed`: a reviewer's verdicts count.
    #[must_use]
    pub fn find(slide: &Slide, reviewed: bool) -> Option<Self> {
        if let Some(p) = &slide.placed {
            let centres = p.centres_px.iter().map(|[x, y]| Point::new(*x, *y)).collect();
            return Some(Self { rule: p.rule, centres });
        }
        let centre = match &slide.reviewed {
            Some(r) if reviewed => r.hotspot_px,
            _ => slide.counts.hotspot.map(|h| h.centre_px),
        };
        let [x, y] = centre?;
        Some(Self { rule: HotspotRule::PAPER, centres: vec![Point::new(x, y)] })
    }

    /// Its parts as rings, level-0 px.
    fn rings(&self, mpp: [f64; 2]) -> Vec<Vec<[f64; 2]>> {
        let reach = self.rule.reach_um();
        let outline = |c: &Point<Level0>| match self.rule.shape {
            Shape::Square => {
                let [dx, dy] = mpp.map(|m| reach / m);
                vec![
                    [c.x - dx, c.y - dy],
                    [c.x + dx, c.y - dy],
                    [c.x + dx, c.y + dy],
                    [c.x - dx, c.y + dy],
                ]
            }
            Shape::Circle => circle(c, reach, mpp, 48),
        };
        self.centres.iter().map(outline).collect()
    }
}

fn circle(c: &Point<Level0>, um: f64, mpp: [f64; 2], corners: u32) -> Vec<[f64; 2]> {
    let at = |k: u32| {
        let (sin, cos) = (std::f64::consts::TAU * f64::from(k) / f64::from(corners)).sin_cos();
        [c.x + cos * um / mpp[0], c.y + sin * um / mpp[1]]
    };
    (0..corners).map(at).collect()
}

/// Figures that count, level-0 px: a reviewer's where their places are known, else the network's, highest score first.
#[must_use]
pub fn figures(slide: &Slide, reviewed: bool) -> (Vec<Point<Level0>>, bool) {
    match &slide.reviewed_places {
        Some(places) if reviewed => (places.clone(), true),
        _ => {
            let mut rows: Vec<_> = slide.rows.iter().filter(|r| r.accepted).collect();
            rows.sort_by(|a, b| b.score().total_cmp(&a.score()));
            (rows.iter().map(|r| Point::new(r.x_px, r.y_px)).collect(), false)
        }
    }
}

/// The slide with its regions, and the hotspot with rings around its figures. `unread` gets a sentence for each
/// picture, and for each part of one, that cannot be read.
#[must_use]
pub fn overview(slide: &Slide, reviewed: bool, unread: &mut Vec<String>) -> Vec<Picture> {
    let c = &slide.counts;
    let (w, h) = (c.slide.width as f64, c.slide.height as f64);
    let mpp = [c.resolution.x, c.resolution.y];
    let spot = Spot::find(slide, reviewed);
    let mut lacking = |reason: String| unread.push(format!("{}: {reason}", slide.name));
    let mut all = Vec::new();
    match base::file::read_whole(slide.folder.join(pictures::THUMBNAIL)) {
        Ok(jpeg) => {
            let share = |ring: Vec<[f64; 2]>| {
                let clamped = |[x, y]: [f64; 2]| [(x / w).clamp(0.0, 1.0), (y / h).clamp(0.0, 1.0)];
                ring.into_iter().map(clamped).collect::<Outline>()
            };
            let mut outlines: Vec<Outline> =
                spot.iter().flat_map(|s| s.rings(mpp)).map(share).collect();
            let regions = mithras::regions::outlines(&slide.folder, c.slide.bounds_offset);
            let regions = regions.unwrap_or_else(|e| {
                lacking(format!("its regions are not on the picture: {e}"));
                Vec::new()
            });
            outlines.extend(regions.iter().flat_map(|r| r.area.closed()).flatten().map(share));
            let what = match (spot.is_some(), regions.is_empty()) {
                (true, true) => ": hotspot",
                (true, false) => ": hotspot and regions",
                (false, true) => "",
                (false, false) => ": regions",
            };
            all.push(Picture { jpeg, outlines, caption: format!("{}{what}", slide.name) });
        }
        Err(e) => {
            lacking(format!("no picture of the slide: {} cannot be read: {e}", pictures::THUMBNAIL))
        }
    }
    if let Some(spot) = spot {
        match hotspot(slide, &spot, reviewed) {
            Ok((picture, white)) => {
                all.extend(picture);
                if white > 0 {
                    let tiles = Many(white, "tile");
                    lacking(format!("white on the picture of the hotspot: {tiles} not readable"));
                }
            }
            Err(e) => lacking(format!("no picture of the hotspot: {e}")),
        }
    }
    all
}

/// Why a slide's file cannot be shown.
const NO_FILE: &str = "its file is not in its place, cannot be read, or is not the one of the run";

/// The hotspot, and how many tiles of it are white because they cannot be decoded.
fn hotspot(slide: &Slide, spot: &Spot, reviewed: bool) -> Result<(Option<Picture>, usize), String> {
    let c = &slide.counts;
    let mpp = [c.resolution.x, c.resolution.y];
    // Of several fields the first is shown.
    let rings = spot.rings(mpp);
    let Some((centre, ring)) = spot.centres.first().zip(rings.first()) else {
        return Ok((None, 0));
    };
    let file = slide.file.as_deref().ok_or(NO_FILE)?;
    let file = review::view::opened(file, c).map_err(|e| e.to_string())?;
    // Its part on the slide, um.
    let (at, half) = ([centre.x * mpp[0], centre.y * mpp[1]], spot.rule.reach_um() * AROUND);
    let size = [c.slide.width as f64 * mpp[0], c.slide.height as f64 * mpp[1]];
    let from = [0, 1].map(|k| (at[k] - half).max(0.0));
    let to = [0, 1].map(|k| (at[k] + half).min(size[k]));
    let um = [to[0] - from[0], to[1] - from[1]];
    let scale = Mpp::new(um[0].max(um[1]) / HOTSPOT_SIDE as f64).map_err(|e| e.to_string())?;
    let px = um.map(|v| (v / scale.get()).round().max(1.0) as usize);
    let corner = from.map(|v| (v / scale.get()).round() as i64);
    let read = file.read_partial(scale, Rect::new(corner[0], corner[1], px[0], px[1]));
    let (tile, white) = read.map_err(|e| e.to_string())?;
    let share =
        |p: [f64; 2]| [(p[0] * mpp[0] - from[0]) / um[0], (p[1] * mpp[1] - from[1]) / um[1]];
    let is_inside = |p: &[f64; 2]| share(*p).iter().all(|v| (0.0..=1.0).contains(v));
    let mut outlines: Vec<Outline> = vec![ring.iter().copied().map(share).collect()];
    let (places, _) = figures(slide, reviewed);
    let seen = places.iter().filter(|p| is_inside(&[p.x, p.y]));
    let rings = seen.map(|p| circle(p, RING_UM, mpp, 24).into_iter().map(share).collect());
    outlines.extend(rings);
    let resolution = c.resolution().map_err(|e| e.to_string())?;
    let inside = spot.rule.count(&places, std::slice::from_ref(centre), &resolution);
    let caption = format!(
        "{}{} at x {:.0}, y {:.0} px, {:.2} mm across",
        Many(inside, "figure"),
        if spot.centres.len() > 1 { " in the first field" } else { " in the hotspot" },
        centre.x,
        centre.y,
        2.0 * spot.rule.reach_um() / 1000.0
    );
    Ok((Some(Picture { jpeg: jpeg(&tile)?, outlines, caption }), white.len()))
}

/// Figures that count side by side, those in the hotspot first, and the rows that they fill. `unread` gets a sentence
/// for what cannot be read.
#[must_use]
pub fn gallery(
    slide: &Slide,
    reviewed: bool,
    unread: &mut Vec<String>,
) -> Option<(Picture, usize)> {
    let (places, by_reviewer) = figures(slide, reviewed);
    if places.is_empty() {
        return None;
    }
    let opened = slide.file.as_deref().ok_or_else(|| NO_FILE.to_owned());
    let opened = opened
        .and_then(|f| review::view::opened(f, &slide.counts).map_err(|e| e.to_string()))
        .and_then(|file| from_slide(slide, &file, reviewed));
    match opened {
        Ok((picture, rows, lost)) => {
            unread.extend(lost.map(|e| format!("{}: {e}", slide.name)));
            Some((picture, rows))
        }
        Err(e) => {
            // What detection kept: the network's.
            let shown = pictures::top(&slide.rows).len();
            if shown == 0 {
                unread.push(format!("{}: no pictures of the figures: {e}", slide.name));
                return None;
            }
            let read = base::file::read_whole(slide.folder.join(pictures::FIGURES));
            let jpeg = read.map_err(|e| {
                let file = pictures::FIGURES;
                let why = format!("no pictures of the figures: {file} cannot be read: {e}");
                unread.push(format!("{}: {why}", slide.name));
            });
            let whose =
                if by_reviewer { "by the network, not by the reviewer" } else { "by score" };
            let caption = format!(
                "{} {whose}, 24 \u{b5}m wide each, of {}",
                Many(shown, "figure"),
                slide.name
            );
            let picture = Picture { jpeg: jpeg.ok()?, outlines: Vec::new(), caption };
            Some((picture, shown.div_ceil(pictures::COLUMNS)))
        }
    }
}

/// The figures as the slide has them, the rows that they fill, and what cannot be read of them.
fn from_slide(
    slide: &Slide,
    file: &slide::Slide,
    reviewed: bool,
) -> Result<(Picture, usize, Option<String>), String> {
    let (places, by_reviewer) = figures(slide, reviewed);
    let resolution = slide.counts.resolution().map_err(|e| e.to_string())?;
    let spot = Spot::find(slide, reviewed);
    let inside = |p: &Point<Level0>| {
        spot.as_ref().is_some_and(|s| s.rule.count(&[*p], &s.centres, &resolution) == 1)
    };
    let mut first: Vec<&Point<Level0>> = places.iter().filter(|p| inside(p)).collect();
    first.extend(places.iter().filter(|p| !inside(p)));
    first.truncate(pictures::MOST);
    let (columns, side) = (pictures::COLUMNS, pictures::SIDE);
    let rows = first.len().div_ceil(columns);
    let mut sheet = RgbTile::filled(columns * side, rows * side, [255; 3]);
    let scale = Mpp::new(FIGURE_UM / side as f64).map_err(|e| e.to_string())?;
    let mut lost = Vec::new();
    for (k, place) in first.iter().enumerate() {
        // A place whose surroundings cannot be read stays empty.
        let tile = match read(file, scale, place, side) {
            Ok(tile) => tile,
            Err(e) => {
                lost.push(e.to_string());
                continue;
            }
        };
        let (left, top) = (k % columns * side, k / columns * side);
        for (j, line) in tile.data.chunks_exact(3 * side).enumerate() {
            let at = 3 * ((top + j) * sheet.width + left);
            sheet.data[at..at + 3 * side].copy_from_slice(line);
        }
    }
    if let Some(e) = lost.first().filter(|_| lost.len() == first.len()) {
        return Err(e.clone());
    }
    let lost = lost.first().map(|e| format!("{} left white: {e}", Many(lost.len(), "figure")));
    let all = match first.len() == places.len() {
        true => Many(places.len(), "counted figure").to_string(),
        false => format!("{} of {}", first.len(), Many(places.len(), "counted figure")),
    };
    let caption = format!(
        "{all} of {}, those in the hotspot first, 24 \u{b5}m wide each{}",
        slide.name,
        if reviewed && !by_reviewer { ", by the network, not by the reviewer" } else { "" }
    );
    Ok((Picture { jpeg: jpeg(&sheet)?, outlines: Vec::new(), caption }, rows, lost))
}

/// A square of so many px around a place.
fn read(
    file: &slide::Slide,
    mpp: Mpp,
    at: &Point<Level0>,
    side: usize,
) -> Result<RgbTile, slide::SlideError> {
    let (sx, sy) = file.working_scale(mpp)?;
    let corner = |v: f64, scale: f64| (v / scale).round() as i64 - side as i64 / 2;
    let read = file.read_partial(mpp, Rect::new(corner(at.x, sx), corner(at.y, sy), side, side));
    read.map(|(tile, _)| tile)
}

fn jpeg(tile: &RgbTile) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let (w, h) = (tile.width as u32, tile.height as u32);
    JpegEncoder::new_with_quality(&mut bytes, 85)
        .encode(&tile.data, w, h, ExtendedColorType::Rgb8)
        .map_err(|e| e.to_string())?;
    Ok(bytes)
}
