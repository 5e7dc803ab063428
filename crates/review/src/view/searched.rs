//! What was searched of a slide: where a figure can be added, and how much of a hotspot was looked at.

use base::json::JsonError;
use base::text::{Many, Shown};
use mithras::export::CountsFile;
use mithras::regions::{self, RegionOutline};
use mitosis::hotspots::HotspotRule;
use mitosis::{Level0, Point, Resolution};
use roi::{Area, Inside};
use std::fmt;
use std::path::{Path, PathBuf};

/// Why it is not known what was searched.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum SearchedError {
    /// The outlines.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// Outlines that are not there: without them the whole slide would seem to be searched.
    #[error(
        "{}: has {} and counts.json {}: put back the file that was written with it if you \
         have it, or search the slide again",
        Shown(path), Many(*outlines, "outline"), Many(*regions, "region")
    )]
    Outlines {
        /// The file of outlines.
        path: PathBuf,
        outlines: usize,
        /// Regions that were searched.
        regions: usize,
    },
}

/// Where a place is that was not searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside {
    /// Beyond the slide's edge.
    Slide,
    /// On the slide, and in none of the regions that were searched.
    Regions,
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slide => "not on the slide",
            Self::Regions => "outside the regions that were searched",
        })
    }
}

/// The part of a slide that was searched.
pub struct SearchedArea {
    /// Level-0 width and height, px.
    size: [f64; 2],
    /// The regions that were searched; empty where that was the whole slide.
    regions: Vec<Area>,
    inside: Vec<Inside>,
}

impl SearchedArea {
    /// The whole of a slide of this level-0 width and height, px.
    #[must_use]
    pub fn whole((width, height): (u64, u64)) -> Self {
        Self { size: [width as f64, height as f64], regions: Vec::new(), inside: Vec::new() }
    }

    /// The regions of a counted slide; all of it where it was searched whole.
    #[must_use]
    pub fn new(counts: &CountsFile, regions: &[RegionOutline]) -> Self {
        let whole = Self::whole((counts.slide.width, counts.slide.height));
        match counts.regions {
            Some(_) => whole.within(regions),
            None => whole,
        }
    }

    fn within(self, regions: &[RegionOutline]) -> Self {
        let inside = regions.iter().map(|r| r.area.index()).collect();
        Self { regions: regions.iter().map(|r| r.area.clone()).collect(), inside, ..self }
    }

    /// Of a slide's folder in a run.
    ///
    /// # Errors
    /// [`SearchedError`].
    pub fn read(folder: &Path, counts: &CountsFile) -> Result<Self, SearchedError> {
        let Some(searched) = &counts.regions else { return Ok(Self::new(counts, &[])) };
        let all = regions::outlines(folder, counts.slide.bounds_offset)?;
        let (outlines, regions) = (all.len(), searched.list.len());
        if outlines != regions {
            let path = folder.join(regions::FILE);
            return Err(SearchedError::Outlines { path, outlines, regions });
        }
        Ok(Self::new(counts, &all))
    }

    /// Checks that a place, level-0 px, was searched. The slide's edge is part of it.
    ///
    /// # Errors
    /// [`Outside`].
    pub fn check(&self, [x, y]: [f64; 2]) -> Result<(), Outside> {
        let on_slide = (0.0..=self.size[0]).contains(&x) && (0.0..=self.size[1]).contains(&y);
        let found = self.inside.iter().any(|i| i.contains(Point::new(x, y)));
        match (on_slide, found || self.inside.is_empty()) {
            (false, _) => Err(Outside::Slide),
            (true, false) => Err(Outside::Regions),
            (true, true) => Ok(()),
        }
    }

    /// The part of a hotspot that was searched, mm2 to 1e-6: what fields share counts once.
    ///
    /// # Errors
    /// [`Outside`] where nothing was searched.
    pub fn hotspot_mm2(
        &self,
        rule: &HotspotRule,
        centres: &[Point<Level0>],
        resolution: &Resolution,
    ) -> Result<f64, Outside> {
        let stated = |mm2: f64| (mm2 * 1e6).round() / 1e6;
        let on_slide = rule.on_slide_mm2(centres, self.size, resolution);
        if stated(on_slide) == 0.0 {
            return Err(Outside::Slide);
        }
        if self.regions.is_empty() {
            return Ok(stated(on_slide));
        }
        let mm2 = roi::hotspot_mm2(rule, centres, self.size, &self.regions, resolution);
        if mm2 > 0.0 { Ok(mm2) } else { Err(Outside::Regions) }
    }
}

/// Places as a message has them: the first few, level-0 px.
pub(super) fn places(all: &[[f64; 2]]) -> String {
    /// More are counted.
    const MOST: usize = 5;
    let shown: Vec<String> =
        all.iter().take(MOST).map(|[x, y]| format!("x {x:.0}, y {y:.0} px")).collect();
    match all.len().saturating_sub(MOST) {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mitosis::hotspots::Shape;
    use mitosis::{Mpp, ResolutionSource};

    fn resolution() -> Resolution {
        let mpp = |v| Mpp::new(v).unwrap();
        Resolution { x: mpp(0.25), y: mpp(0.5), source: ResolutionSource::User }
    }

    /// A slide of 20 x 20 mm, and a region that ends at 10 mm from its left edge.
    fn area(regions: &[[f64; 4]]) -> SearchedArea {
        let outline = |[x0, y0, x1, y1]: &[f64; 4]| RegionOutline {
            name: String::new(),
            area: Area::rectangle([x0 * 4000.0, y0 * 2000.0], [x1 * 4000.0, y1 * 2000.0]),
        };
        let regions: Vec<_> = regions.iter().map(outline).collect();
        SearchedArea::whole((80_000, 40_000)).within(&regions)
    }

    fn at([x, y]: [f64; 2]) -> Point<Level0> {
        Point::new(x * 4000.0, y * 2000.0)
    }

    const CIRCLE: HotspotRule =
        HotspotRule { shape: Shape::Circle, fields: 10, field_mm2: 0.237, apart: false };

    #[test]
    fn only_the_searched_part_of_a_hotspot_counts() {
        let near = |got: Result<f64, Outside>, expected: f64| {
            assert!((got.unwrap() - expected).abs() < 2e-6, "{got:?}, not {expected}");
        };
        // Two regions that overlap, and one apart from them.
        let left = area(&[[0.0, 0.0, 6.0, 20.0], [5.0, 0.0, 10.0, 20.0], [15.0, 0.0, 20.0, 20.0]]);
        let mm2 = |rule: &HotspotRule, places: &[[f64; 2]]| {
            let centres: Vec<_> = places.iter().map(|p| at(*p)).collect();
            left.hotspot_mm2(rule, &centres, &resolution())
        };
        near(mm2(&CIRCLE, &[[5.5, 10.0]]), 2.37);
        near(mm2(&CIRCLE, &[[10.0, 10.0]]), 1.185);
        near(mm2(&CIRCLE, &[[0.0, 10.0]]), 1.185);
        near(mm2(&HotspotRule::PAPER, &[[10.0, 10.0]]), 1.0);
        near(mm2(&HotspotRule::PAPER, &[[10.0, 0.0]]), 0.5);
        // Fields: two that share a half, one half outside, one outside.
        let fields = HotspotRule { shape: Shape::Square, fields: 4, field_mm2: 1.0, apart: true };
        near(mm2(&fields, &[[3.0, 5.0], [3.5, 5.0], [10.0, 9.0], [12.0, 12.0]]), 2.0);
        assert_eq!(mm2(&CIRCLE, &[[12.5, 10.0]]), Err(Outside::Regions));
        assert_eq!(mm2(&CIRCLE, &[[30.0, 10.0]]), Err(Outside::Slide));
        // Without regions it is as on the slide, to the last digit.
        let whole = area(&[]).hotspot_mm2(&CIRCLE, &[at([0.1, 3.0])], &resolution()).unwrap();
        let on_slide = CIRCLE.on_slide_mm2(&[at([0.1, 3.0])], [80_000.0, 40_000.0], &resolution());
        assert_eq!(whole, (on_slide * 1e6).round() / 1e6);
    }

    #[test]
    fn a_place_is_searched_on_the_slide_and_in_a_region() {
        let (left, whole) = (area(&[[0.0, 0.0, 10.0, 20.0]]), area(&[]));
        for (place, in_left, in_whole) in [
            ([4.0, 4.0], Ok(()), Ok(())),
            ([12.0, 4.0], Err(Outside::Regions), Ok(())),
            ([20.0, 20.0], Err(Outside::Regions), Ok(())),
            ([20.1, 4.0], Err(Outside::Slide), Err(Outside::Slide)),
            ([-0.1, 4.0], Err(Outside::Slide), Err(Outside::Slide)),
        ] {
            let Point { x, y, .. } = at(place);
            assert_eq!((left.check([x, y]), whole.check([x, y])), (in_left, in_whole), "{place:?}");
        }
    }
}
