//! How much of a hotspot is inside regions.

use crate::area::{Area, Ring};
use mitosis::hotspots::{HotspotRule, Shape};
use mitosis::{Level0, Point, Resolution};

/// Corners of a polygon in place of a circle, of the circle's area; its border is off by 1e-5 of the radius at most.
const CORNERS: u32 = 720;

/// The part of a hotspot inside regions of a slide of this level-0 width and height in px, mm2 to 1e-6: what fields or
/// regions share counts once.
#[must_use]
pub fn hotspot_mm2<'a>(
    rule: &HotspotRule,
    centres: &[Point<Level0>],
    size: [f64; 2],
    regions: impl IntoIterator<Item = &'a Area>,
    resolution: &Resolution,
) -> f64 {
    let mpp = [resolution.x.get(), resolution.y.get()];
    let rings: Vec<Ring> = centres.iter().map(|c| part(rule, *c, mpp)).collect();
    let all = regions.into_iter().fold(Area::default(), |all, r| all.or(r));
    let inside = Area::enclosed(&rings).and(&all).mm2(mpp);
    (inside.min(rule.on_slide_mm2(centres, size, resolution)) * 1e6).round() / 1e6
}

/// The outline of a hotspot, or of one of its fields.
fn part(rule: &HotspotRule, centre: Point<Level0>, mpp: [f64; 2]) -> Ring {
    let far = rule.reach_um();
    let at = |[dx, dy]: [f64; 2]| [centre.x + dx / mpp[0], centre.y + dy / mpp[1]];
    match rule.shape {
        Shape::Square => [[-far, -far], [far, -far], [far, far], [-far, far]].map(at).to_vec(),
        Shape::Circle => {
            let step = std::f64::consts::TAU / f64::from(CORNERS);
            let far = far * (step / step.sin()).sqrt();
            let corner = |k: u32| {
                let (sin, cos) = (f64::from(k) * step).sin_cos();
                at([far * cos, far * sin])
            };
            (0..CORNERS).map(corner).collect()
        }
    }
}
