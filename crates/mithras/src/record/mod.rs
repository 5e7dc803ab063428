//! One slide's result: every candidate, the count and what it rests on. [`crate::Detector::run`] gives
//! it, the exports write it.

mod row;
mod subtype;

pub use row::DetectionRow;
pub use subtype::{COLUMNS, SubtypeModel, Subtypes};

use crate::regions::Searched;
use detect::{Flawed, SlideCandidate, SlideResult, UnreadWindow};
use infer::ModelCard;
use infer::card::{ScaleCard, ScreenCard};
use mitosis::count::Hotspot;
use mitosis::{Count, Mm2, OperatingPoint, Point, Resolution};
use serde::{Deserialize, Serialize};

/// Version of the numbers: raised when the same slide, model and settings may give other numbers than
/// before, and only then. Results of the same version may be combined and resumed,
/// whatever release made them.
///
/// Version 2: which image of a file is the slide, tiles that a level leaves out, levels that contradict finer ones and
/// undeclared opacity are settled by the rules of the crate `slide`.
/// Version 3: black parts and dark frames are neither tissue nor glass; regions below other objects count.
pub const RESULTS_VERSION: u32 = 3;

/// SHA-256 of the detections of two drawn slides by this version, one of them with tiles left out: the test
/// `numbers_change_only_with_their_version` compares them. Where it fails, numbers have changed: raise
/// [`RESULTS_VERSION`], and state in `docs/upgrading.md` which results of the version before are kept.
#[doc(hidden)]
pub const RESULTS_GOLDEN: (u32, &str) =
    (3, "774fa6b3855de8c502a2d4b2627317a0929692cc66d381a4768e648cd304f284");

/// Words of the note on a slide whose resolution is outside the model's range.
pub(crate) const MEANINGLESS: &str = "the counts mean nothing";

/// Name of a package's own threshold pair where its card has none by name with the same numbers.
pub const OWN_POINT: &str = "package";
/// Name of a threshold pair that was given in numbers.
pub const GIVEN_POINT: &str = "given";

/// Which file was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlideEntry {
    /// Name of the slide's folder: the file name without its suffix.
    pub name: String,
    /// File name, without its folder.
    pub file: String,
    /// Vendor by the slide's reader, e.g. `aperio`.
    pub vendor: String,
    /// Level-0 width, px.
    pub width: u64,
    /// Level-0 height, px.
    pub height: u64,
    /// Upper left corner of `openslide.bounds-*`, which QuPath counts from; 0, 0 without bounds.
    pub bounds_offset: [i64; 2],
    /// SHA-256 over size, first and last MiB.
    pub digest: String,
}

/// The package whose weights ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelEntry {
    /// Package name.
    pub name: String,
    /// SHA-256 of the first stage.
    pub segmenter_sha256: String,
    /// SHA-256 of the second stage; none when segmentation ran alone.
    pub classifier_sha256: Option<String>,
    /// How the package scales the second stage's scores; none where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classifier_scale: Option<ScaleCard>,
    /// Score from which the package asks for further symmetric copies; none where it always does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classifier_symmetries_from: Option<f32>,
    /// The screen in front of the second stage; none where the package has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<ScreenEntry>,
    /// Digest of what feeds and reads the networks ([`ModelCard::networks_sha256`]); absent in earlier entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networks_sha256: Option<String>,
    /// Licence of the weights.
    pub license: String,
}

impl ModelEntry {
    /// Whether candidates of these weights are what a package gives: the same networks, fed and read alike, and scores
    /// on the same scale and of the same copies. A run with one stage agrees with a package of two.
    #[must_use]
    pub fn matches_card(&self, card: &ModelCard) -> bool {
        let first = card.segmenter.as_ref().map(|s| s.sha256.as_str());
        let second = card.classifier.as_ref();
        let fed = card.networks_sha256(self.classifier_sha256.is_some()).ok();
        first == Some(self.segmenter_sha256.as_str())
            && (self.networks_sha256.is_none() || self.networks_sha256 == fed)
            && self.classifier_sha256.as_deref().is_none_or(|own| {
                second.is_some_and(|c| {
                    c.sha256 == own
                        && c.scale == self.classifier_scale
                        && c.symmetries_from == self.classifier_symmetries_from
                        && card.screen.as_ref().map(ScreenEntry::from) == self.screen
                })
            })
    }

    /// The digests of all weights that ran, one after the other.
    #[must_use]
    pub fn weights(&self) -> String {
        let screen = self.screen.as_ref().map(|s| s.sha256.as_str());
        let rest = [self.classifier_sha256.as_deref(), screen];
        rest.into_iter().flatten().fold(self.segmenter_sha256.clone(), |all, one| all + one)
    }
}

/// The network in front of the second stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScreenEntry {
    /// SHA-256 of its file.
    pub sha256: String,
    /// Probability from which on it passes a candidate on.
    pub passes_from: f32,
}

impl From<&ScreenCard> for ScreenEntry {
    fn from(card: &ScreenCard) -> Self {
        Self { sha256: card.sha256.clone(), passes_from: card.passes_from }
    }
}

/// A threshold pair with its name: one of the package's card, [`OWN_POINT`] or [`GIVEN_POINT`].
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPoint {
    /// As results and messages show it.
    pub name: String,
    /// The thresholds.
    pub point: OperatingPoint,
}

/// What is known of the pixels that were read, and of their resolution.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Condition {
    /// Area of the tiles that the file marks as missing; they are read as white.
    pub absent_mm2: f64,
    /// Area of the tiles that were decoded though something about their data is wrong.
    pub suspect_mm2: f64,
    /// What is wrong with them, each reason once.
    pub suspect_reasons: Vec<String>,
    /// Why the counts are to be taken with care at this resolution.
    pub resolution_note: Option<String>,
    /// Maker of the scanner, where the file states it.
    pub scanner: Option<String>,
    /// Why the counts are to be taken with care on slides of this scanner.
    pub scanner_note: Option<String>,
    /// That the slide has one channel of grey, in a sentence.
    pub colour_note: Option<String>,
    /// Levels of the slide that contradict finer ones or cannot be decoded, in sentences.
    pub level_notes: Vec<String>,
}

/// Everything found on one slide.
///
/// Positions are level-0 pixels and micrometres from the level-0 origin; areas are mm2.
#[derive(Clone, Debug, Serialize)]
pub struct SlideRecord {
    /// Name, size and digest of the slide's file.
    pub slide: SlideEntry,
    /// Level-0 resolution with its source.
    pub resolution: Resolution,
    /// Package, digests and licence of the weights.
    pub model: ModelEntry,
    /// The frozen threshold pair.
    pub point: OperatingPoint,
    /// Its name: one of the package's card, [`OWN_POINT`] or [`GIVEN_POINT`].
    pub point_name: String,
    /// Every candidate, in reading order.
    pub rows: Vec<DetectionRow>,
    /// The count; `None` without analysed tissue, where a density has no meaning.
    pub count: Option<Count>,
    /// Tissue found on the slide.
    pub tissue: Mm2,
    /// Windows on tissue, those left out included.
    pub windows: usize,
    /// Windows that could not be read, with reasons.
    pub unread: Vec<UnreadWindow>,
    /// Candidates whose crop could not be read.
    pub unclassified: usize,
    /// What cannot be trusted of what was read.
    pub flawed: Flawed,
    /// What is known of the pixels.
    pub condition: Condition,
    /// The weights of the subtypes in `rows`, after `--subtypes`.
    pub subtypes: Option<Vec<SubtypeModel>>,
    /// The regions that were searched; none where that was the whole slide.
    #[serde(skip)]
    pub regions: Option<Searched>,
}

/// mm2 as files have them, to a square micrometre: what is computed from them can be computed again.
fn mm2(area: Mm2) -> Mm2 {
    Mm2((area.0 * 1e6).round() / 1e6)
}

impl SlideRecord {
    /// Gathers a result. Positions are rounded to 0.01 px and areas to 1e-6 mm2 before anything is counted, so that
    /// counting again from the files gives the same numbers.
    #[must_use]
    pub fn new(
        slide: SlideEntry,
        resolution: Resolution,
        model: ModelEntry,
        NamedPoint { name: point_name, point }: NamedPoint,
        tissue: Mm2,
        result: &SlideResult,
    ) -> Self {
        let row = |c: &SlideCandidate| DetectionRow {
            outside_tissue: c.outside_tissue,
            flaw: c.flaw,
            ..DetectionRow::new(&c.detection, &resolution, c.counts(&point))
        };
        let rows: Vec<DetectionRow> = result.candidates.iter().map(row).collect();
        let mut record = Self {
            slide,
            resolution,
            model,
            point,
            point_name,
            rows,
            count: None,
            tissue: mm2(tissue),
            windows: result.windows,
            unread: result.unread.clone(),
            unclassified: result.unclassified.len(),
            flawed: result.flawed.clone(),
            condition: Condition::default(),
            subtypes: None,
            regions: None,
        };
        record.recount(mm2(result.analysed), mm2(result.unread_area));
        record
    }

    /// Counts the accepted rows over so much analysed and unread tissue.
    pub(crate) fn recount(&mut self, analysed: Mm2, unread: Mm2) {
        let figures: Vec<_> = self.places().collect();
        self.count = Count::new(&figures, &self.resolution, analysed, unread).ok();
    }

    /// The same slide at another threshold pair, with its name: rows are accepted and counted again, nothing else
    /// changes.
    #[must_use]
    pub fn at(mut self, NamedPoint { name: point_name, point }: NamedPoint) -> Self {
        for row in &mut self.rows {
            row.accepted = !row.outside_tissue
                && row.s_seg >= point.seg.get()
                && row.s_cls.is_none_or(|s| s >= point.cls.get());
            // Only figures have subtypes.
            row.subtypes = row.subtypes.filter(|_| row.accepted);
        }
        (self.point_name, self.point) = (point_name, point);
        if let Some(count) = &self.count {
            let (analysed, unread) = (count.analysed, count.unread);
            self.recount(analysed, unread);
        }
        self
    }

    /// Places of the accepted rows, level-0 px.
    pub fn places(&self) -> impl Iterator<Item = Point<mitosis::Level0>> + '_ {
        self.figures().map(|r| Point::new(r.x_px, r.y_px))
    }

    /// A slide without tissue: nothing was looked at.
    #[must_use]
    pub fn blank(
        slide: SlideEntry,
        resolution: Resolution,
        model: ModelEntry,
        NamedPoint { name: point_name, point }: NamedPoint,
    ) -> Self {
        Self {
            slide,
            resolution,
            model,
            point,
            point_name,
            rows: Vec::new(),
            count: None,
            tissue: Mm2(0.0),
            windows: 0,
            unread: Vec::new(),
            unclassified: 0,
            flawed: Flawed::default(),
            condition: Condition::default(),
            subtypes: None,
            regions: None,
        }
    }

    /// The figures: candidates that the threshold pair accepts, in reading order.
    pub fn figures(&self) -> impl Iterator<Item = &DetectionRow> {
        self.rows.iter().filter(|r| r.accepted)
    }

    /// The 2 mm2 square with the most figures; `None` without figures.
    #[must_use]
    pub fn hotspot(&self) -> Option<&Hotspot> {
        self.count.as_ref()?.hotspot.as_ref()
    }

    /// Figures per 20 mm2 of analysed tissue; `None` without analysed tissue.
    #[must_use]
    pub fn density_per_20_mm2(&self) -> Option<f64> {
        self.count.as_ref().map(|c| c.density_per_20_mm2)
    }

    /// Tissue that was read, mm2.
    #[must_use]
    pub fn analysed_mm2(&self) -> f64 {
        self.count.as_ref().map_or(0.0, |c| c.analysed.0)
    }

    /// Tissue that could not be read, mm2; it is left out of the density.
    #[must_use]
    pub fn unread_mm2(&self) -> f64 {
        self.count.as_ref().map_or(0.0, |c| c.unread.0)
    }
}
