//! What is wrong with the slides of a cohort: measured on a sample of each, compared with the others and with the
//! training data.

mod files;
mod measure;
mod page;
pub mod stain;

pub use files::write;
pub use measure::{Measured, measure};

use base::progress::{Listener, Piece};
use base::text::{Many, plain};
use mithras::export::{HOTSPOT_MM2, OUT_OF_FOCUS_SHARE};
use mithras::input::{Input, InputDigest};
use mitosis::Mpp;
use rayon::prelude::*;
use serde::Serialize;
use stain::{Stains, median};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Median stain vectors of the ICPR 2012 Aperio frames that the bundled detectors were trained on, by
/// [`Stains::estimate`] as `mithras quality` measures them.
pub const TRAINING: Stains =
    Stains { haematoxylin: [0.3758, 0.7928, 0.4798], eosin: [0.1193, 0.8365, 0.5349] };

/// From here on the stain is reported as different, degrees.
const OTHER_STAIN: f64 = 15.0;
/// Shares from which pen, dirt and folds are reported.
const PEN: f64 = 0.002;
const DIRT: f64 = 0.002;
const FOLDS: f64 = 0.05;
/// So many median deviations from the cohort's middle make an outlier.
const FAR: f64 = 5.0;
/// Fewest slides that are a cohort.
const COHORT: usize = 5;
/// um/px beyond which the bundled detectors miss figures.
const COARSE: f64 = 0.36;

/// One slide.
#[derive(Clone, Debug, Serialize)]
pub struct Looked {
    /// In the cohort.
    pub name: String,
    /// Path or address.
    #[serde(serialize_with = "base::json::lossy")]
    pub file: PathBuf,
    /// What was measured; none of a slide that cannot be read.
    pub measured: Option<Measured>,
    /// Angle of its stain from the cohort's middle, degrees.
    pub stain_from_cohort: Option<f64>,
    /// Angle of its stain from the training data's, degrees.
    pub stain_from_training: Option<f64>,
    /// What is wrong with it, as text; empty for a slide like the others.
    pub flags: Vec<String>,
    /// How far it is from the cohort: the largest of its measures' distances from the middle, in median absolute
    /// deviations.
    pub distance: f64,
}

/// All slides, outliers first.
#[derive(Clone, Debug, Serialize)]
pub struct Cohort {
    /// `mithras.quality/1`.
    pub schema: &'static str,
    /// Those with most flags first.
    pub slides: Vec<Looked>,
    /// The cohort's stain vectors.
    pub stains: Option<[[f64; 3]; 2]>,
}

/// Measures slides, several at once. `listener` gets a line per slide, with its seconds.
pub fn cohort(slides: &[Input], mpp: Option<Mpp>, listener: &mut dyn Listener) -> Cohort {
    let total = slides.len();
    let progress = Mutex::new((0, Piece::begin(listener, "quality", "quality", "slides")));
    let look = |Input { name, path: file, .. }: &Input| {
        let started = std::time::Instant::now();
        // A resolution for all fills the gaps of slides that state none.
        let read = measure(file, mpp);
        let seconds = started.elapsed().as_secs_f64();
        {
            let (done, piece) = &mut *progress.lock().unwrap_or_else(PoisonError::into_inner);
            *done += 1;
            piece.report(&format!("{done} of {total}: {}, {seconds:.1} s", plain(name)));
            piece.update(*done, total as u64);
        }
        let (measured, flags) = match read {
            Ok(measured) => (Some(measured), Vec::new()),
            Err(e) => (None, vec![plain(&e.to_string()).into_owned()]),
        };
        Looked {
            name: name.clone(),
            file: file.clone(),
            measured,
            flags,
            stain_from_cohort: None,
            stain_from_training: None,
            distance: 0.0,
        }
    };
    let looked = slides.par_iter().map(look).collect();
    progress.into_inner().unwrap_or_else(PoisonError::into_inner).1.finish();
    compared(looked)
}

/// The digests of slides that are files here; none of those on servers, and of what cannot be read.
fn digests(slides: &[Looked]) -> Vec<Option<InputDigest>> {
    let digest = |s: &Looked| {
        let here = s.measured.is_some() && s.file.is_file();
        here.then(|| InputDigest::from_file(&s.file).ok()).flatten()
    };
    slides.iter().map(digest).collect()
}

/// Flags slides that are one file under several names: each counts in the cohort.
fn flag_same_files(slides: &mut [Looked], digests: &[Option<InputDigest>]) {
    for (k, own) in digests.iter().enumerate() {
        let same = |(i, other): &(usize, &Option<InputDigest>)| {
            *i != k && own.as_ref().zip(other.as_ref()).is_some_and(|(a, b)| a.same_content(b))
        };
        let others = digests.iter().enumerate().filter(same);
        let names: Vec<String> = others.map(|(i, _)| slides[i].name.clone()).collect();
        if !names.is_empty() {
            slides[k].flags.push(format!("the same file as {}", names.join(", ")));
        }
    }
}

/// Compares slides with each other and sorts them.
fn compared(mut slides: Vec<Looked>) -> Cohort {
    let stains: Vec<Stains> = slides.iter().filter_map(|s| s.measured.as_ref()?.stain()).collect();
    let middle = Stains::middle(&stains);
    for s in &mut slides {
        let Some(own) = s.measured.as_ref().and_then(Measured::stain) else { continue };
        let round = |v: f64| (v * 100.0).round() / 100.0;
        s.stain_from_cohort = middle.map(|m| round(own.degrees_from(&m)));
        s.stain_from_training = Some(round(own.degrees_from(&TRAINING)));
    }
    let far = distances(&slides);
    for (s, far) in slides.iter_mut().zip(far) {
        s.distance = far.iter().map(|(_, d)| *d).fold(0.0, f64::max);
        if let Some(m) = &s.measured {
            s.flags = flags(m, s.stain_from_training);
            let others = far.iter().filter(|(_, d)| *d > FAR);
            s.flags.extend(others.map(|(name, _)| format!("{name} unlike the cohort's")));
        }
    }
    let digests = digests(&slides);
    flag_same_files(&mut slides, &digests);
    slides.sort_by(|a, b| {
        let key = |s: &Looked| (s.measured.is_none(), s.flags.len());
        key(b)
            .cmp(&key(a))
            .then(b.distance.total_cmp(&a.distance))
            .then_with(|| a.name.cmp(&b.name))
    });
    let stains = middle.map(|m| [m.haematoxylin, m.eosin]);
    Cohort { schema: "mithras.quality/1", slides, stains }
}

struct Measure {
    name: &'static str,
    value: fn(&Looked) -> Option<f64>,
}

/// What is compared within a cohort.
const MEASURES: [Measure; 4] = [
    Measure { name: "resolution", value: |s| Some(s.measured.as_ref()?.mpp?[0].ln()) },
    Measure { name: "share out of focus", value: |s| s.measured.as_ref()?.out_of_focus },
    Measure { name: "share of folds", value: |s| s.measured.as_ref()?.folds },
    Measure { name: "stain", value: |s| s.stain_from_cohort },
];

/// Of each slide its distance in each measure that it has.
fn distances(slides: &[Looked]) -> Vec<Vec<(&'static str, f64)>> {
    let mut all = vec![Vec::new(); slides.len()];
    for Measure { name, value } in MEASURES {
        let mut values: Vec<f64> = slides.iter().filter_map(value).collect();
        if values.len() < COHORT {
            continue;
        }
        values.sort_by(f64::total_cmp);
        let middle = median(&values);
        let mut off: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
        off.sort_by(f64::total_cmp);
        // Nothing is far where differences cannot be seen: a hundredth of a share, a degree.
        let least = if name == "stain" { 1.0 } else { 0.01 };
        let deviation = (1.4826 * median(&off)).max(least);
        for (s, out) in slides.iter().zip(&mut all) {
            if let Some(v) = value(s) {
                out.push((name, (v - middle).abs() / deviation));
            }
        }
    }
    all
}

fn flags(m: &Measured, from_training: Option<f64>) -> Vec<String> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut flags = Vec::new();
    let mut flag = |holds: bool, text: String| {
        if holds {
            flags.push(text);
        }
    };
    flag(m.mpp.is_none(), "no um/px in the file: it has to be given".into());
    let coarse = m.mpp.map_or(0.0, |[x, y]| x.max(y));
    flag(coarse > COARSE, format!("{coarse:.3} um/px, coarser than {COARSE}: figures are missed"));
    let tissue = m.tissue_mm2.unwrap_or(HOTSPOT_MM2);
    flag(tissue == 0.0, "no tissue".into());
    flag(
        tissue > 0.0 && tissue < HOTSPOT_MM2,
        format!("{tissue:.2} mm2 of tissue, less than a hotspot"),
    );
    let blurred = m.out_of_focus.unwrap_or(0.0);
    flag(blurred > OUT_OF_FOCUS_SHARE, format!("{} out of focus", percent(blurred)));
    // A slide without any contrast is not a sharp one.
    let unknown = m.mpp.is_some() && tissue > 0.0 && m.out_of_focus.is_none();
    flag(unknown, "focus not known: no place on the tissue has enough contrast".into());
    flag(
        m.unread_places > 0,
        format!("{} on tissue not decodable", Many(m.unread_places, "place")),
    );
    flag(m.pen > PEN, format!("{} under pen", percent(m.pen)));
    flag(m.dirt > DIRT, format!("{} dirt", percent(m.dirt)));
    let folds = m.folds.unwrap_or(0.0);
    flag(folds > FOLDS, format!("{} of the tissue as dense as folds", percent(folds)));
    let stain = from_training.unwrap_or(0.0);
    flag(stain > OTHER_STAIN, format!("stain {stain:.0} degrees from the training data's"));
    flag(m.missing_tiles > 0, format!("{} missing", Many(m.missing_tiles, "tile")));
    flag(m.label, "the label is in the file".into());
    flags
}

impl fmt::Display for Cohort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for s in self.slides.iter().filter(|s| !s.flags.is_empty()) {
            writeln!(f, "{}: {}", plain(&s.name), plain(&s.flags.join("; ")))?;
        }
        let sound = self.slides.iter().filter(|s| s.flags.is_empty()).count();
        writeln!(f, "{sound} of {} without a finding", Many(self.slides.len(), "slide"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(name: &str, out_of_focus: f64) -> Looked {
        let stains = Some([TRAINING.haematoxylin, TRAINING.eosin]);
        let measured = Measured {
            mpp: Some([0.25; 2]),
            vendor: "made".into(),
            scanner: None,
            size: [1000; 2],
            levels: 3,
            tissue_mm2: Some(50.0),
            out_of_focus: Some(out_of_focus),
            unread_places: 0,
            pen: 0.0,
            dirt: 0.0,
            folds: Some(0.01),
            stains,
            missing_tiles: 0,
            label: false,
            personal: 0,
            seconds: 0.5,
            thumbnail: Vec::new(),
        };
        Looked {
            name: name.into(),
            file: format!("{name}.svs").into(),
            measured: Some(measured),
            stain_from_cohort: None,
            stain_from_training: None,
            flags: Vec::new(),
            distance: 0.0,
        }
    }

    #[test]
    fn what_is_wrong_comes_first() {
        let mut slides: Vec<Looked> =
            (0..6).map(|k| looked(&format!("s{k}"), 0.01 * f64::from(k) / 6.0)).collect();
        slides.push(looked("blurred", 0.4));
        let broken =
            Looked { measured: None, flags: vec!["damaged".into()], ..looked("broken", 0.0) };
        slides.push(broken);
        let mut coarse = looked("coarse", 0.0);
        coarse.measured.as_mut().unwrap().mpp = Some([0.5; 2]);
        slides.push(coarse);
        let cohort = compared(slides);
        let names: Vec<&str> = cohort.slides.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names[0], "broken");
        assert!(names[1..3].contains(&"blurred") && names[1..3].contains(&"coarse"), "{names:?}");
        let of = |name: &str| cohort.slides.iter().find(|s| s.name == name).unwrap();
        assert_eq!(
            of("blurred").flags,
            ["40.0 % out of focus", "share out of focus unlike the cohort's"]
        );
        assert!(of("coarse").flags.iter().any(|f| f == "resolution unlike the cohort's"));
        assert!(of("s3").flags.is_empty() && of("s3").distance < 3.0, "{:?}", of("s3"));
        assert_eq!(of("s3").stain_from_training, Some(0.0));
        // What cannot be judged is not sound.
        let mut flat = looked("flat", 0.0);
        let m = flat.measured.as_mut().unwrap();
        (m.out_of_focus, m.unread_places) = (None, 2);
        let flags = &compared(vec![flat]).slides[0].flags;
        assert!(flags[0].starts_with("focus not known"), "{flags:?}");
        assert_eq!(flags[1], "2 places on tissue not decodable");
        // Few slides do not make a cohort; what is wrong by itself is still reported.
        let few = compared(vec![looked("a", 0.4), looked("b", 0.0)]);
        assert_eq!(few.slides[0].flags, ["40.0 % out of focus"]);
    }

    #[test]
    fn slides_that_differ_between_their_ends_are_different_files() {
        let dir = tempfile::tempdir().unwrap();
        let slides = [("a", 0), ("b", 7), ("c", 0)].map(|(name, middle)| {
            let file = dir.path().join(name);
            let mut bytes = vec![255_u8; 4 << 20];
            bytes[1 << 20..3 << 20].fill(middle);
            std::fs::write(&file, bytes).unwrap();
            Looked { file, ..looked(name, 0.0) }
        });
        let cohort = compared(slides.into());
        let flags = |name: &str| {
            let slide = cohort.slides.iter().find(|s| s.name == name).unwrap();
            slide
                .flags
                .iter()
                .filter(|f| f.starts_with("the same file"))
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (flags("a"), flags("c")),
            (vec!["the same file as c".to_owned()], vec!["the same file as a".to_owned()])
        );
        assert!(flags("b").is_empty());
    }
}
