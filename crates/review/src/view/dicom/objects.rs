//! A slide's candidates and hotspot as Microscopy Bulk Simple Annotations, which DICOM archives take.
//! `docs/artifacts.md` has the codes.

use ::dicom::report::{MM2, Measured, Number, PER_MM2, Report};
use ::dicom::{Annotations, Code, EncodeError, Group, Measurement, Shapes, Software, Source};
use mithras::export::CountsFile;
use mithras::record::DetectionRow;
use mithras::regions::RegionOutline;
use std::time::SystemTime;

/// A figure: no context group of PS3.16 has one.
const FIGURE: Code = Code::own("MITOTIC-FIGURE", "Mitotic figure");
/// A candidate that the threshold pair does not accept.
const REJECTED: Code = Code::own("REJECTED", "Candidate not accepted as a mitotic figure");
/// Score of the first stage.
const S_SEG: Code = Code::own("S-SEG", "Score of the segmenting stage");
/// Score of the second stage.
const S_CLS: Code = Code::own("S-CLS", "Score of the classifying stage");
/// Figures in a region.
const COUNT: Code = Code::own("FIGURE-COUNT", "Number of mitotic figures");
/// Figures over the area.
const DENSITY: Code = Code::own("FIGURE-DENSITY", "Mitotic figures per area of analysed tissue");
/// Tissue that was searched.
const ANALYSED: Code = Code::own("ANALYSED-AREA", "Area of analysed tissue");
/// The part of the hotspot that was searched: on the slide, with regions in them.
const SEARCHED: Code = Code::own("HOTSPOT-AREA", "Area of the hotspot that was searched");
/// Of [`mithras::record::COLUMNS`], in their order.
const SUBTYPES: [Code; 9] = [
    Code::own("P-ATYPICAL", "Probability: atypical"),
    Code::own("P-PROMETAPHASE", "Probability: prometaphase"),
    Code::own("P-METAPHASE", "Probability: metaphase"),
    Code::own("P-RING-SHAPE", "Probability: ring shape"),
    Code::own("P-ANA-TELOPHASE", "Probability: anaphase or telophase"),
    Code::own("P-BIPOLAR-ASYM", "Probability: bipolar, asymmetric"),
    Code::own("P-MULTIPOLAR", "Probability: multipolar"),
    Code::own("P-SEGREGATION", "Probability: segregation abnormality"),
    Code::own("P-OTHER", "Probability: other atypical"),
];

/// The colours of `qupath.geojson`, in CIELab.
const RED: [u16; 3] = [30_699, 49_629, 44_312];
const GREEN: [u16; 3] = [37_842, 21_141, 36_174];
const BLUE: [u16; 3] = [31_445, 32_073, 22_789];
/// Of regions.
const VIOLET: [u16; 3] = [27_700, 49_800, 13_400];

/// Figures, other candidates and hotspot of a slide; groups without anything are left out. The hotspot
/// is the part of its square on the slide.
#[must_use]
pub(super) fn groups(
    counts: &CountsFile,
    rows: &[DetectionRow],
    regions: &[RegionOutline],
) -> Vec<Group> {
    let t = &counts.thresholds;
    let rule = format!("s_seg >= {} and s_cls >= {}", t.seg.get(), t.cls.get());
    let (figures, others): (Vec<_>, Vec<_>) = rows.iter().partition(|r| r.accepted);
    let mut all = vec![
        points("Mitotic figures", format!("Accepted: {rule}"), FIGURE, RED, &figures),
        points("Rejected candidates", format!("Not accepted: {rule}"), REJECTED, GREEN, &others),
    ];
    if let Some(h) = counts.hotspot {
        let most = [counts.slide.width as f64, counts.slide.height as f64];
        let on_slide = |p: [f64; 2]| [p[0].clamp(0.0, most[0]), p[1].clamp(0.0, most[1])];
        let count = Measurement {
            name: COUNT,
            unit: Code::NO_UNITS,
            values: vec![Some(counts.hotspot_count as f32)],
        };
        all.push(Group {
            label: "Hotspot".into(),
            description: format!(
                "The 2 mm2 with the most mitotic figures, side {} um, as far as on the slide",
                h.side_um
            ),
            category: Code::SPATIAL_CONCEPT,
            kind: Code::SELECTED_REGION,
            shapes: Shapes::Rectangles(vec![[on_slide(h.min_px), on_slide(h.max_px)]]),
            measurements: vec![count],
            colour: BLUE,
        });
    }
    // A group has one name and any number of shapes: each region is a group of its own.
    for RegionOutline { name, area } in regions {
        let outer = area.closed().into_iter().filter_map(|rings| {
            let mut ring = rings.into_iter().next()?;
            ring.pop();
            Some(ring)
        });
        all.push(Group {
            label: name.chars().take(64).collect(),
            description: "Region that was searched: its outer borders; holes are not shown".into(),
            category: Code::SPATIAL_CONCEPT,
            kind: Code::SELECTED_REGION,
            shapes: Shapes::Polygons(outer.collect()),
            measurements: Vec::new(),
            colour: VIOLET,
        });
    }
    all.retain(|g| !matches!(&g.shapes, Shapes::Points(p) if p.is_empty()));
    all
}

fn points(
    label: &str,
    description: String,
    kind: Code,
    colour: [u16; 3],
    rows: &[&DetectionRow],
) -> Group {
    let measured = |name, of: &dyn Fn(&DetectionRow) -> Option<f32>| Measurement {
        name,
        unit: Code::NO_UNITS,
        values: rows.iter().map(|r| of(r)).collect(),
    };
    let mut measurements = vec![measured(S_SEG, &|r| Some(r.s_seg)), measured(S_CLS, &|r| r.s_cls)];
    if rows.iter().any(|r| r.subtypes.is_some()) {
        let probability =
            |(i, name): (usize, &Code)| measured(*name, &|r| r.subtypes.map(|s| s.0[i]));
        measurements.extend(SUBTYPES.iter().enumerate().map(probability));
    }
    Group {
        label: label.to_owned(),
        description,
        category: Code::ANATOMICAL_STRUCTURE,
        kind,
        shapes: Shapes::Points(rows.iter().map(|r| [r.x_px, r.y_px]).collect()),
        measurements,
        colour,
    }
}

/// Results as they are on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made<'a> {
    /// Digest of the files.
    pub digest: &'a str,
    /// When they were written.
    pub at: SystemTime,
}

/// The object of a slide's groups on its image. `digest` is that of the files which they were made of,
/// `made` of these; `patient` as [`Annotations::patient`].
///
/// # Errors
/// [`EncodeError`].
pub(super) fn object(
    counts: &CountsFile,
    groups: Vec<Group>,
    source: &Source,
    patient: bool,
    Made { digest, at: made }: Made<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let [model, weights, settings] = software_fields(counts);
    let software = software(&model, &weights, &settings);
    let description = "Mitotic figures by an algorithm; research use only";
    let label = "MITOTIC_FIGURES";
    Annotations { source, patient, software, digest, made, label, description, groups }.bytes()
}

/// Name and digest of the weights, and the settings, as [`Software`] has them.
fn software_fields(counts: &CountsFile) -> [String; 3] {
    let m = &counts.model;
    let weights = m.weights();
    let t = &counts.thresholds;
    let settings = format!("t_seg {}, t_cls {}", t.seg.get(), t.cls.get());
    let model = m.name.chars().filter(char::is_ascii_graphic).take(64).collect();
    [model, base::digest::sha256(weights), settings]
}

fn software<'a>(model: &'a str, model_digest: &'a str, settings: &'a str) -> Software<'a> {
    let version = env!("CARGO_PKG_VERSION");
    Software { maker: "mithras", name: "mithras detect", version, model, model_digest, settings }
}

/// The counts of a slide as a structured report (TID 1500) on its image: all of it, every region that was searched,
/// and the hotspot with its place. Arguments as those of [`object`].
///
/// # Errors
/// [`EncodeError`].
pub(super) fn report(
    counts: &CountsFile,
    source: &Source,
    patient: bool,
    Made { digest, at: made }: Made<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let measured = |name: &str, figures: usize, mm2: f64| {
        let mut numbers = vec![
            Number { name: COUNT, unit: Code::NO_UNITS, value: figures as f64 },
            Number { name: ANALYSED, unit: MM2, value: mm2 },
        ];
        if mm2 > 0.0 {
            let density = (figures as f64 / mm2 * 1e6).round() / 1e6;
            numbers.push(Number { name: DENSITY, unit: PER_MM2, value: density });
        }
        let name = name.chars().take(64).collect();
        Measured { name, finding: FIGURE, area: None, numbers }
    };
    let whole = if counts.regions.is_some() { "All regions" } else { "Slide" };
    let mut groups = vec![measured(whole, counts.figures, counts.analysed_mm2)];
    for (k, r) in counts.regions.iter().flat_map(|r| &r.list).enumerate() {
        // A number keeps regions of one name apart.
        groups.push(measured(&format!("Region {}: {}", k + 1, r.name), r.figures, r.analysed_mm2));
    }
    if let Some(h) = counts.hotspot {
        let most = [counts.slide.width as f64, counts.slide.height as f64];
        let on_slide = |p: [f64; 2]| [p[0].clamp(0.0, most[0]), p[1].clamp(0.0, most[1])];
        let ([x0, y0], [x1, y1]) = (on_slide(h.min_px), on_slide(h.max_px));
        groups.push(Measured {
            name: "Hotspot of 2 mm2".into(),
            finding: FIGURE,
            area: Some(vec![[x0, y0], [x1, y0], [x1, y1], [x0, y1]]),
            numbers: [Number {
                name: COUNT,
                unit: Code::NO_UNITS,
                value: counts.hotspot_count as f64,
            }]
            .into_iter()
            .chain(counts.hotspot_mm2().map(|value| Number { name: SEARCHED, unit: MM2, value }))
            .collect(),
        });
    }
    let mut notes = vec!["Research use only: not for diagnosis".to_owned()];
    notes.extend(counts.notes());
    let [model, weights, settings] = software_fields(counts);
    let software = software(&model, &weights, &settings);
    let description = "Mitotic count by an algorithm; research use only";
    Report { source, patient, software, digest, made, description, groups, notes }.bytes()
}
