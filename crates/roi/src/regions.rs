//! The regions of one slide, chosen by class and checked against the slide.

use crate::area::Area;
use crate::error::RegionError;
use crate::overlap::overlap_notes;
use crate::read::{Drawn, DrawnFile, Frame};
pub use crate::region::Region;
use base::digest::sha256;
use base::table::bare;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Share of a region that may be off the slide; with more, it is a region of another slide.
pub const MOST_OUTSIDE: f64 = 0.01;
/// How far um/px that a file states may differ from the slide's, as a share.
const MPP_TOLERANCE: f64 = 0.02;
/// How far a mask's extent may differ from the slide's, as a share; two pixels of the mask are always allowed.
const EXTENT_TOLERANCE: f64 = 0.01;

/// Which classes count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// Regions of these classes are searched; empty: of all that are not excluded.
    pub include: Vec<String>,
    /// Regions of these classes are left out, even where another region covers them.
    pub exclude: Vec<String>,
}

/// Words that begin names of areas to leave out: `Ignore*` of QuPath, `Exclude region`.
const EXCLUDING: [&str; 4] = ["exclude", "excluded", "exclusion", "ignore"];

impl Classes {
    fn excludes(&self, drawn: &Drawn) -> bool {
        let class = bare(&drawn.class);
        let mut words = class.split(|c: char| !c.is_alphanumeric());
        drawn.negative
            || self.exclude.iter().any(|c| same(c, &drawn.class))
            || words.next().is_some_and(|first| EXCLUDING.contains(&first))
    }

    fn includes(&self, drawn: &Drawn) -> bool {
        self.include.is_empty() || self.include.iter().any(|c| same(c, &drawn.class))
    }

    /// Refuses a class that none of the files has.
    ///
    /// # Errors
    /// [`RegionError::Class`].
    pub fn check<'a>(
        &self,
        files: impl IntoIterator<Item = &'a DrawnFile>,
    ) -> Result<(), RegionError> {
        let regions = files.into_iter().flat_map(|f| &f.regions);
        let known: BTreeSet<&str> = regions.map(|d| d.class.as_str()).collect();
        for class in self.include.iter().chain(&self.exclude) {
            if !known.iter().any(|k| same(k, class)) {
                let shown =
                    |k: &&str| if k.is_empty() { "(none)".to_owned() } else { (*k).to_owned() };
                let known = known.iter().map(shown).collect();
                return Err(RegionError::Class { class: class.clone(), known });
            }
        }
        Ok(())
    }
}

/// Whether two class names are the same but for their spelling.
fn same(a: &str, b: &str) -> bool {
    bare(a) == bare(b)
}

/// What must be known of a slide to place regions on it.
#[derive(Clone, Debug, PartialEq)]
pub struct SlideFrame {
    /// Its name.
    pub name: String,
    /// Level-0 width, px.
    pub width: u64,
    /// Level-0 height, px.
    pub height: u64,
    /// Upper left corner of the slide's bounds, level-0 px, which QuPath counts from.
    pub bounds_offset: [i64; 2],
    /// um/px, across and down.
    pub mpp: [f64; 2],
    /// SHA-256 that names its content; empty where that is not known.
    pub digest: String,
}

/// Where regions came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// File name, without its folder.
    pub file: String,
    /// `geojson`, `asap`, `imagescope` or `mask`.
    pub format: String,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// The regions of one slide.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// Where they came from.
    pub source: Source,
    /// Every region, in the file's order.
    pub list: Vec<Region>,
    /// All of them together; where they overlap counts once.
    pub all: Area,
    /// What was drawn to be left out, on the slide.
    pub excluded: Area,
    /// What is to be known of them, in sentences.
    pub notes: Vec<String>,
}

impl Regions {
    /// The regions of a file on a slide.
    ///
    /// # Errors
    /// [`RegionError::OtherSlide`] where the file states another slide or another resolution, or more than 1 % of a
    /// region is off the slide; [`RegionError::Nothing`] where nothing is left.
    pub fn for_slide(
        file: &DrawnFile,
        classes: &Classes,
        slide: &SlideFrame,
    ) -> Result<Self, RegionError> {
        agrees(file, slide)?;
        let offset = match file.frame {
            Frame::Bounds => slide.bounds_offset.map(|v| v as f64),
            Frame::Level0 | Frame::Mask { .. } => [0.0, 0.0],
        };
        let scale = match file.frame {
            Frame::Mask { mpp, .. } => [mpp / slide.mpp[0], mpp / slide.mpp[1]],
            _ => [1.0, 1.0],
        };
        let whole = Area::rectangle([0.0, 0.0], [slide.width as f64, slide.height as f64]);
        let mut notes = Vec::new();
        let (mut list, mut excluded, mut left) = (Vec::new(), Area::default(), BTreeMap::new());
        let mut drawn_of_slide = 0;
        for (i, drawn) in file.regions.iter().enumerate() {
            if !drawn.fits_slide(&slide.name) {
                continue;
            }
            drawn_of_slide += 1;
            let area = drawn.area.scaled(scale).moved(offset);
            let (on_slide, described) = (area.and(&whole), describe(i + 1, drawn, &area));
            if classes.excludes(drawn) {
                // An area to leave out may hang over the edge: nothing is counted there.
                excluded = excluded.or(&on_slide);
            } else if classes.includes(drawn) {
                let outside = 1.0 - on_slide.px2() / area.px2();
                // The last pixels of a mask, whose extent was compared with the slide's, may hang over the edge.
                let is_mask = matches!(file.frame, Frame::Mask { .. });
                if outside > MOST_OUTSIDE && !is_mask {
                    let reason = format!(
                        "{:.0} % of {described} is off the slide ({} x {} px)",
                        (100.0 * outside).ceil(),
                        slide.width,
                        slide.height
                    );
                    return Err(other(file, slide, reason));
                }
                let (name, class) = (drawn.name.clone(), drawn.class.clone());
                list.push((described, Region { name, class, area: on_slide }));
            } else {
                *left.entry(drawn.class.as_str()).or_insert(0) += 1;
            }
        }
        let nothing = |reason: &str| RegionError::Nothing {
            path: file.path.clone(),
            slide: slide.name.clone(),
            reason: reason.to_owned(),
        };
        if drawn_of_slide == 0 {
            return Err(nothing("the file contains none of this slide"));
        }
        notes.extend(left.into_iter().map(|(class, n)| note_left_out(class, n)));
        for (what, n) in &file.passed_over {
            notes.push(format!("{n} {what} in {} are not areas and were passed over", file.name()));
        }
        if list.is_empty() {
            return Err(nothing("every region is excluded or of a class that was not asked for"));
        }
        let mut kept = Vec::new();
        for (described, mut region) in list {
            region.area = region.area.minus(&excluded);
            match region.area.is_empty() {
                true => notes.push(format!("{described} is excluded altogether")),
                false => kept.push(region),
            }
        }
        let all = kept.iter().fold(Area::default(), |all, r| all.or(&r.area));
        if all.is_empty() {
            return Err(nothing("every region is excluded altogether"));
        }
        let source = Source {
            file: file.name(),
            format: file.format.to_owned(),
            sha256: file.sha256.clone(),
        };
        let list = named_apart(kept);
        notes.extend(overlap_notes(&list, slide.mpp));
        Ok(Self { source, list, all, excluded, notes })
    }

    /// SHA-256 over everything that changes a number: names, classes and corners.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut text = String::new();
        for r in &self.list {
            text += &format!("{:?} {:?} {:?}\n", r.name, r.class, r.area.closed());
        }
        sha256(text)
    }
}

/// A region in a message: its name, or its number in the file with its class and its place on the slide, level-0 px.
fn describe(number: usize, drawn: &Drawn, area: &Area) -> String {
    let class = drawn.class.trim();
    let class = if class.is_empty() { String::new() } else { format!(" of class `{class}`") };
    match (drawn.name.trim(), area.bounds()) {
        ("", Some(([x0, y0], [x1, y1]))) => {
            format!("region {number}{class}, from {x0:.0}, {y0:.0} to {x1:.0}, {y1:.0} px,")
        }
        ("", None) => format!("region {number}{class}"),
        (name, _) => format!("region `{name}`"),
    }
}

fn note_left_out(class: &str, n: usize) -> String {
    let class =
        if class.is_empty() { "without a class".into() } else { format!("of class `{class}`") };
    format!("{n} region{} {class} left out", if n == 1 { "" } else { "s" })
}

fn other(file: &DrawnFile, slide: &SlideFrame, reason: String) -> RegionError {
    RegionError::OtherSlide { path: file.path.clone(), slide: slide.name.clone(), reason }
}

/// Refuses a file that states another slide than this one.
fn agrees(file: &DrawnFile, slide: &SlideFrame) -> Result<(), RegionError> {
    if let Some(digest) =
        file.slide_digest.as_ref().filter(|d| !slide.digest.is_empty() && **d != slide.digest)
    {
        let short = |d: &str| d.chars().take(12).collect::<String>();
        let reason = format!(
            "they were drawn on the file {}..., this one is {}...",
            short(digest),
            short(&slide.digest)
        );
        return Err(other(file, slide, reason));
    }
    let apart = |a: f64, b: f64| (a / b - 1.0).abs();
    if let Some(mpp) = file.mpp.filter(|m| apart(*m, slide.mpp[0]) > MPP_TOLERANCE) {
        let reason =
            format!("they were drawn at {mpp} um/px, the slide has {} um/px", slide.mpp[0]);
        return Err(other(file, slide, reason));
    }
    if let Frame::Mask { width, height, mpp } = file.frame {
        let sides = [(width, slide.width, slide.mpp[0]), (height, slide.height, slide.mpp[1])];
        for (mask, side, own) in sides {
            let (mask, side) = (mask as f64 * mpp, side as f64 * own);
            if (mask - side).abs() > (2.0 * mpp).max(EXTENT_TOLERANCE * side) {
                let reason = format!(
                    "the mask covers {:.3} x {:.3} mm, the slide {:.3} x {:.3} mm",
                    width as f64 * mpp / 1000.0,
                    height as f64 * mpp / 1000.0,
                    slide.width as f64 * slide.mpp[0] / 1000.0,
                    slide.height as f64 * slide.mpp[1] / 1000.0
                );
                return Err(other(file, slide, reason));
            }
        }
    }
    Ok(())
}

/// Gives regions of the same name a number, and those without a name their class or `region`.
fn named_apart(mut list: Vec<Region>) -> Vec<Region> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for region in &mut list {
        let base = match (region.name.trim(), region.class.trim()) {
            ("", "") => "region".to_owned(),
            ("", class) => class.to_owned(),
            (name, _) => name.to_owned(),
        };
        let names = std::iter::once(base.clone()).chain((2..).map(|n| format!("{base} {n}")));
        region.name = names.into_iter().find(|n| !taken.contains(n)).unwrap_or(base);
        taken.insert(region.name.clone());
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn slide() -> SlideFrame {
        SlideFrame {
            name: "a".into(),
            width: 1000,
            height: 800,
            bounds_offset: [100, 50],
            mpp: [0.5, 0.25],
            digest: "ab".repeat(32),
        }
    }

    fn drawn(name: &str, class: &str, [x0, y0, x1, y1]: [f64; 4]) -> Drawn {
        let area = Area::rectangle([x0, y0], [x1, y1]);
        Drawn { name: name.into(), class: class.into(), area, ..Drawn::default() }
    }

    fn file(frame: Frame, regions: Vec<Drawn>) -> DrawnFile {
        DrawnFile {
            path: PathBuf::from("a.geojson"),
            format: "geojson",
            sha256: "00".into(),
            frame,
            mpp: None,
            slide_digest: None,
            regions,
            passed_over: BTreeMap::new(),
        }
    }

    #[test]
    fn areas_are_added_once_and_exclusions_hold_everywhere() {
        let regions = vec![
            drawn("", "Tumour", [0.0, 0.0, 100.0, 100.0]),
            drawn("", "Tumour", [50.0, 0.0, 150.0, 100.0]),
            drawn("", "Necrosis", [0.0, 0.0, 20.0, 100.0]),
            drawn("", "Ignore*", [140.0, 0.0, 150.0, 100.0]),
            drawn("", "Stroma", [500.0, 500.0, 600.0, 600.0]),
        ];
        let classes = Classes { include: vec!["tumour".into()], exclude: vec!["Necrosis".into()] };
        let on = Regions::for_slide(&file(Frame::Bounds, regions), &classes, &slide()).unwrap();
        let sizes: Vec<f64> = on.list.iter().map(|r| r.area.px2().round()).collect();
        assert_eq!(sizes, [8000.0, 9000.0]);
        assert_eq!((on.all.px2().round(), on.excluded.px2().round()), (12_000.0, 3000.0));
        let names: Vec<&str> = on.list.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["Tumour", "Tumour 2"]);
        // 50 x 100 px of 0.5 x 0.25 um are in both.
        assert_eq!(
            on.notes,
            [
                "1 region of class `Stroma` left out",
                "regions `Tumour` and `Tumour 2` (Tumour) overlap in 0.0006 mm2: figures there count in both, and \
                 once in all together"
            ]
        );
        // QuPath counts from the bounds: 100, 50.
        let inside = on.all.index();
        assert!(inside.contains(mitosis::Point::new(121.0, 51.0)));
        assert!(!inside.contains(mitosis::Point::new(119.0, 51.0)));
        // um/px of both axes: 12,000 px2 are 0.0015 mm2.
        assert!((on.all.mm2(slide().mpp) - 0.0015).abs() < 1e-12);
    }

    /// A blank of no width, a letter of Cyrillic, and a name of two words.
    #[test]
    fn areas_to_leave_out_are_left_out_however_they_are_spelt() {
        for class in
            ["Ignore*", "ignore\u{200B}", "\u{406}gnore", "Exclude region", "exclusion_zone"]
        {
            let regions = vec![
                drawn("", "Tumour", [0.0, 0.0, 100.0, 100.0]),
                drawn("", class, [0.0, 0.0, 50.0, 100.0]),
            ];
            let file = file(Frame::Bounds, regions);
            let on = Regions::for_slide(&file, &Classes::default(), &slide()).unwrap();
            assert_eq!(on.all.px2().round(), 5000.0, "{class}");
        }
        let regions = vec![
            drawn("", "Tumour", [0.0, 0.0, 100.0, 100.0]),
            drawn("", "Tumour\u{AD}", [100.0, 0.0, 150.0, 100.0]),
        ];
        let classes = Classes { include: vec!["tumour".into()], exclude: Vec::new() };
        let on = Regions::for_slide(&file(Frame::Bounds, regions), &classes, &slide()).unwrap();
        assert_eq!(on.all.px2().round(), 15_000.0);
    }

    #[test]
    fn regions_of_another_slide_are_refused() {
        let ok = || vec![drawn("r", "", [0.0, 0.0, 100.0, 100.0])];
        let refused = |file: &DrawnFile| {
            Regions::for_slide(file, &Classes::default(), &slide()).unwrap_err().to_string()
        };
        let off = file(Frame::Level0, vec![drawn("r", "", [950.0, 0.0, 1050.0, 100.0])]);
        assert!(
            refused(&off).contains("50 % of region `r` is off the slide (1000 x 800 px)"),
            "{}",
            refused(&off)
        );
        // One without a name is found by its number, class and place.
        for (class, words) in [
            ("", "100 % of region 2, from 5000, 7 to 5100, 100 px, is off the slide"),
            ("Tumour", "100 % of region 2 of class `Tumour`, from 5000, 7 to 5100, 100 px, is off"),
        ] {
            let mut regions = ok();
            regions.push(drawn(" ", class, [5000.0, 7.0, 5100.0, 100.0]));
            let text = refused(&file(Frame::Level0, regions));
            assert!(text.contains(words), "{text}");
        }
        let far = file(Frame::Level0, vec![drawn("r", "", [5000.0, 0.0, 5100.0, 100.0])]);
        assert!(refused(&far).contains("100 %"));
        let digest = DrawnFile { slide_digest: Some("cd".repeat(32)), ..file(Frame::Level0, ok()) };
        assert!(refused(&digest).contains("drawn on the file cdcdcdcdcdcd"));
        let mpp = DrawnFile { mpp: Some(0.25), ..file(Frame::Level0, ok()) };
        assert!(refused(&mpp).contains("drawn at 0.25 um/px, the slide has 0.5 um/px"));
        let mask = Frame::Mask { width: 100, height: 50, mpp: 4.0 };
        assert!(
            refused(&file(mask, ok()))
                .contains("the mask covers 0.400 x 0.200 mm, the slide 0.500 x 0.200 mm")
        );
        let named = Drawn { image: Some("b.svs".into()), ..ok().remove(0) };
        assert!(refused(&file(Frame::Level0, vec![named])).contains("none of this slide"));
        // A hair over the edge is cut off.
        let hair = file(Frame::Level0, vec![drawn("r", "", [-1.0, 0.0, 999.0, 100.0])]);
        let on = Regions::for_slide(&hair, &Classes::default(), &slide()).unwrap();
        assert_eq!(on.all.px2().round(), 99_900.0);
    }

    #[test]
    fn a_region_without_a_name_that_is_excluded_altogether_is_noted_by_its_place() {
        let regions = vec![
            drawn("", "Tumour", [0.0, 0.0, 100.0, 100.0]),
            drawn("", "Tumour", [200.0, 0.0, 300.0, 100.0]),
            drawn("r", "Ignore*", [0.0, 0.0, 150.0, 100.0]),
        ];
        let on = Regions::for_slide(&file(Frame::Level0, regions), &Classes::default(), &slide());
        let note = "region 1 of class `Tumour`, from 0, 0 to 100, 100 px, is excluded altogether";
        assert_eq!(on.unwrap().notes, [note]);
    }

    #[test]
    fn an_excluded_region_leaves_nothing() {
        let all = file(Frame::Level0, vec![drawn("r", "Tumour", [0.0, 0.0, 10.0, 10.0])]);
        let refused =
            |classes| Regions::for_slide(&all, &classes, &slide()).unwrap_err().to_string();
        let exclude = Classes { exclude: vec!["tumour".into()], ..Classes::default() };
        assert!(refused(exclude).contains("every region is excluded"));
        let include = Classes { include: vec!["stroma".into()], ..Classes::default() };
        assert!(include.check([&all]).unwrap_err().to_string().contains("the classes are: Tumour"));
        assert!(refused(include).contains("not asked for"));
    }
}
