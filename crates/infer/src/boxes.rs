//! A detector of boxes, as YOLOv10 is exported, to a card and a network that the engines agree on.
//!
//! The file gives `[N,boxes,6]` (`x0 y0 x1 y1 score class`) or `[N,4+classes,boxes]` (centre, width, height,
//! a score per class), in pixels of its input; what is left of neighbours the peaks suppress. Pixels go in
//! as RGB in 0 to 1, as Ultralytics' own exports take them; side and class names are read from the file
//! where they are in it.

use crate::card::{
    BoxLayout, BoxesCard, CandidateCard, CandidateMethod, CardError, ModelCard, NamedPoint,
    SegmenterCard,
};
use crate::convert::{ConvertError, available_engines, farthest, probes};
use crate::engine::{self, EngineError, EngineOptions, open};
use crate::onnx::{self, Gives, Output, Wanted};
use crate::package::ModelPackage;
use base::digest::sha256;
use mitosis::{Mpp, OperatingPoint};
use pixels::input::Normalisation;
use std::collections::BTreeMap;

/// Name of the network in a package.
pub const FILE: &str = "segmenter.onnx";
/// Largest difference of a score between two engines.
pub const TOLERANCE: f32 = 1e-3;

/// What a file cannot state of itself.
#[derive(Clone, Debug)]
pub struct BoxesDraft {
    /// Name of the package.
    pub name: String,
    /// Licence of the weights.
    pub license: String,
    /// Description of the architecture.
    pub architecture: String,
    /// um/px that it was trained at.
    pub mpp: Mpp,
    /// Class names in the network's order; empty: as the file states.
    pub classes: Vec<String>,
    /// The class that counts; `None`: the first.
    pub positive: Option<String>,
    /// Side of a window, px; `None`: as the file states.
    pub window: Option<usize>,
    /// Distance of neighbouring windows, px; `None`: such that a figure of 20 um is whole in one.
    pub stride: Option<usize>,
    /// Which output is taken; `None` where there is one.
    pub output: Option<String>,
    /// Boxes below it are nothing.
    pub threshold: f32,
    /// Of boxes within this distance the highest counts, um.
    pub distance_um: f64,
    /// What accepts a figure.
    pub operating_point: OperatingPoint,
    /// Further points by name.
    pub operating_points: BTreeMap<String, NamedPoint>,
    /// Measurements for the card's `[results]`; `None` leaves it out.
    pub results: Option<toml::Table>,
    /// Where it comes from, for the card.
    pub training: toml::Table,
}

/// A package before it is written.
#[derive(Clone, Debug)]
pub struct ConvertedBoxes {
    /// Content of `card.toml`.
    pub card: ModelCard,
    /// Bytes of the ONNX file that the card names.
    pub onnx: Vec<u8>,
}

/// Brings an ONNX file to a package: `image` in, `boxes` out, run on every available engine on
/// [`probes`]. `options` states threads and libraries; its engine is not asked.
///
/// # Errors
/// [`ConvertError`].
pub fn convert(
    file: &[u8],
    draft: &BoxesDraft,
    options: &EngineOptions,
) -> Result<ConvertedBoxes, ConvertError> {
    let refused = |what: &str| ConvertError::File(what.into());
    let own = onnx::side(file).map_err(ConvertError::File)?;
    let window = draft.window.or(own);
    let window = window.ok_or_else(|| refused("the file does not state the side of its window"))?;
    let wanted = Wanted {
        image: window,
        gives: Gives::Boxes,
        output: draft.output.as_deref(),
        width: None,
        half: false,
    };
    let adapted = onnx::adapt(file, &wanted)?;
    let classes = match draft.classes.is_empty() {
        false => draft.classes.clone(),
        true => onnx::metadata(file, "names")
            .and_then(|text| names(&text))
            .ok_or_else(|| refused("the file does not name its classes"))?,
    };
    let (first, second) = (adapted.width.unwrap_or(0), adapted.second.unwrap_or(0));
    let (layout, count) = match (first, second) {
        (n, BoxesCard::ROW) => (BoxLayout::Rows, n),
        (n, count) if n == BoxesCard::PLACE + classes.len() => (BoxLayout::Columns, count),
        _ => {
            return Err(ConvertError::File(format!(
                "the output is [N,{first},{second}], with {} classes neither [N,boxes,6] nor \
                 [N,{},boxes]",
                classes.len(),
                BoxesCard::PLACE + classes.len()
            )));
        }
    };
    let positive = match &draft.positive {
        Some(name) => name.clone(),
        None => classes.first().cloned().unwrap_or_default(),
    };
    let px = |um: f64| (um / draft.mpp.get()).round().max(1.0);
    let stride = draft.stride.unwrap_or_else(|| {
        let overlap = px(20.0) as usize;
        window.saturating_sub(overlap).max(window.div_ceil(2))
    });
    let card = ModelCard {
        segmenter: Some(SegmenterCard {
            file: FILE.into(),
            sha256: sha256(&adapted.onnx),
            architecture: draft.architecture.clone(),
            mpp: draft.mpp,
            window,
            stride,
            mean: [0.0; 3],
            std: [1.0; 3],
            boxes: Some(BoxesCard { layout, count, classes, positive }),
        }),
        candidates: Some(CandidateCard {
            method: CandidateMethod::Peaks,
            threshold: draft.threshold,
            opening_radius: 0,
            min_area_px: 0,
            // Neighbours by distance, from the highest score down; of boxes on touching pixels one is left before.
            min_separation_um: (draft.distance_um > 0.0).then_some(draft.distance_um),
            min_distance_px: Some(1),
        }),
        operating_point: Some(draft.operating_point.clone()),
        operating_points: draft.operating_points.clone(),
        training: Some(draft.training.clone()),
        results: draft.results.clone(),
        ..ModelCard::new(&draft.name, &draft.license)
    };
    card.check().map_err(|e: CardError| ConvertError::File(e.to_string()))?;
    plausible(&card, &adapted.onnx, options)?;
    tried(&card, &adapted.onnx, window, options)?;
    Ok(ConvertedBoxes { card, onnx: adapted.onnx })
}

/// Class names as Ultralytics writes them: `{0: 'figure', 1: 'other'}`.
fn names(text: &str) -> Option<Vec<String>> {
    let mut named = BTreeMap::new();
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    while !rest.is_empty() {
        let (number, after) = rest.split_once(':')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (name, after) = after[1..].split_once(quote)?;
        named.insert(number.trim().parse::<usize>().ok()?, name.to_owned());
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    let whole = named.keys().copied().eq(0..named.len());
    (whole && !named.is_empty()).then(|| named.into_values().collect())
}

/// Refuses boxes of the probes that are not what the layout states: others give numbers of the same sides.
fn plausible(card: &ModelCard, onnx: &[u8], options: &EngineOptions) -> Result<(), ConvertError> {
    let Some((s, boxes)) = card.segmenter.as_ref().and_then(|s| Some((s, s.boxes.as_ref()?)))
    else {
        return Ok(());
    };
    let (normalisation, size) = (Normalisation::new(s.mean, s.std), 3 * s.window * s.window);
    let mut images = vec![0.0; 2 * size];
    for (image, values) in probes(s.window).iter().zip(images.chunks_exact_mut(size)) {
        normalisation.planes(&image.data, values);
    }
    let sides = boxes.sides();
    for (engine, provider) in available_engines(options) {
        let options = EngineOptions { engine, provider, ..options.clone() };
        let output = Output { name: onnx::BOXES, shape: &sides };
        let run = engine::given(onnx, s.window, "segmenter", output, &images, &options);
        // The reason is in the error of the runs that follow.
        let Ok(output) = run else { continue };
        return match misread(boxes, &output) {
            None => Ok(()),
            Some(why) => Err(ConvertError::File(format!(
                "its boxes are of a layout that is not known: {why}. Known are [N,boxes,6] as YOLOv10 gives it (x0 \
                 y0 x1 y1 score class) and [N,4+classes,boxes] as YOLOv8 and YOLO11 give it (centre, width, height, \
                 a score per class), both in px of the window; export it with one of them if \
                 its program can"
            ))),
        };
    }
    Ok(())
}

/// What shows that boxes are not of this layout, in px.
fn misread(boxes: &BoxesCard, output: &[f32]) -> Option<&'static str> {
    /// px that rounding may take from a side.
    const ROUNDING: f32 = 0.1;
    /// No place is farther where all are shares of the window, with boxes that reach beyond it.
    const SHARES: f32 = 2.0;
    let [_, columns] = boxes.sides();
    let classes = boxes.classes.len();
    let mut farthest = 0.0_f32;
    let mut extent = |sides: [f32; 2], place: &[f32]| {
        farthest = place.iter().fold(farthest, |far, v| far.max(v.abs()));
        sides.iter().all(|side| *side >= -ROUNDING)
    };
    match boxes.layout {
        BoxLayout::Rows => {
            for r in output.as_chunks::<{ BoxesCard::ROW }>().0.iter().filter(|r| r[4] > 0.0) {
                if !(0..classes).any(|k| r[5] == k as f32) {
                    return Some("the last number of a row is not the number of a class");
                }
                if !extent([r[2] - r[0], r[3] - r[1]], &r[..4]) {
                    return Some("the second corner of a box is before the first");
                }
            }
        }
        BoxLayout::Columns => {
            for image in output.chunks_exact((BoxesCard::PLACE + classes) * columns) {
                let place = |i| -> [f32; BoxesCard::PLACE] {
                    std::array::from_fn(|k| image[k * columns + i])
                };
                for place in (0..columns).map(place) {
                    if !extent([place[2], place[3]], &place) {
                        return Some("a box has a negative side");
                    }
                }
            }
        }
    }
    (farthest > 0.0 && farthest <= SHARES).then_some("places are shares of the window, not px")
}

/// The engines' scores of the probes, from the highest on, must be the same.
fn tried(
    card: &ModelCard,
    onnx: &[u8],
    window: usize,
    options: &EngineOptions,
) -> Result<(), ConvertError> {
    let package = ModelPackage::of_one(card, onnx.to_vec())?;
    let mut refused = Vec::new();
    let mut first: Option<(String, Vec<f32>)> = None;
    for (engine, provider) in available_engines(options) {
        let options = EngineOptions { engine, provider, segmenter_batch: 1, ..options.clone() };
        let mut models = match open(&package, &options) {
            Ok(models) => models,
            Err(e @ EngineError::Model { .. }) => return Err(ConvertError::Engine(e)),
            Err(e) => {
                refused.push(e.to_string().replace("\n  ", "; "));
                continue;
            }
        };
        let segmenter = models.segmenter.as_mut().expect("a package of one");
        let mut scores = Vec::new();
        for map in segmenter.probabilities(&probes(window))? {
            let mut all = map.data;
            all.sort_unstable_by(|a, b| b.total_cmp(a));
            // Where two boxes fall on one pixel the lower is not seen; those are among the last.
            scores.extend_from_slice(&all[..20.min(all.len())]);
        }
        let named = format!("{} {}", models.report.engine, models.report.version);
        match &first {
            None => first = Some((named, scores)),
            Some((other, known)) => {
                let difference = farthest(known, &scores);
                if difference > TOLERANCE {
                    let (other, largest, allowed) = (other.clone(), 1.0, TOLERANCE);
                    return Err(ConvertError::Disagree {
                        engine: named,
                        other,
                        difference,
                        largest,
                        allowed,
                    });
                }
            }
        }
    }
    if first.is_none() { Err(ConvertError::NoEngine(refused)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::names;
    use crate::card::{BoxLayout, BoxesCard};

    #[test]
    fn both_layouts_give_the_same_centres() {
        let card = |layout| BoxesCard {
            layout,
            count: 2,
            classes: vec!["other".into(), "figure".into()],
            positive: "figure".into(),
        };
        // Of two boxes the second is a figure, the first likelier something else.
        let rows = [0.0, 0.0, 4.0, 6.0, 0.9, 0.0, 10.0, 20.0, 14.0, 22.0, 0.8, 1.0];
        assert_eq!(card(BoxLayout::Rows).centres(&rows), [(12.0, 21.0, 0.8)]);
        let columns = [2.0, 12.0, 3.0, 21.0, 4.0, 4.0, 6.0, 2.0, 0.9, 0.05, 0.7, 0.8];
        assert_eq!(card(BoxLayout::Columns).sides(), [6, 2]);
        assert_eq!(card(BoxLayout::Columns).centres(&columns), [(12.0, 21.0, 0.8)]);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let read = |t: &str| names(t);
        assert_eq!(read("{0: 'figure', 1: \"look-alike\"}").unwrap(), ["figure", "look-alike"]);
        assert_eq!(read("{1: 'b', 0: 'a, {c}: d'}").unwrap(), ["a, {c}: d", "b"]);
        for bad in ["", "{}", "{1: 'b'}", "{0: b}", "{0: 'b'", "['b']"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
