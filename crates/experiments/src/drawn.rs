//! The data sets of the shrink: drawn slides in the layout of the real ones.

use crate::error::{ExperimentError, Result};
use base::table::Writer;
use draw::Rect;
use draw::{Container, Kind, Layout, Spec};
use serde::Serialize;
use std::path::Path;

/// A drawing that is there whole ends with this file.
const MARK: &str = "drawn.json";
/// Changes with everything that is drawn.
const VERSION: u32 = 3;
/// Side of an image, px: a window of the first stage.
const SIDE: u32 = 512;
/// Figures of an image, and as many mimickers.
const FIGURES: usize = 3;

#[derive(Serialize)]
struct Mark {
    schema: &'static str,
    version: u32,
}

#[derive(Serialize)]
struct Midog {
    images: Vec<MidogImage>,
    categories: [Category; 2],
    annotations: Vec<MidogBox>,
}

#[derive(Serialize)]
struct MidogImage {
    id: usize,
    file_name: String,
    width: u32,
    height: u32,
    tumor_type: &'static str,
}

#[derive(Serialize)]
struct Category {
    id: u8,
    name: &'static str,
}

#[derive(Serialize)]
struct MidogBox {
    id: usize,
    image_id: usize,
    category_id: u8,
    bbox: [i64; 4],
}

/// Draws all data sets below a folder; one that is whole stays.
///
/// # Errors
/// A folder that cannot be written.
pub(crate) fn data(root: &Path) -> Result<()> {
    let mark = Mark { schema: "mithras.drawn/1", version: VERSION };
    let wanted = base::json::pretty(&mark);
    if base::file::read_whole(root.join(MARK)).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    if root.exists() {
        std::fs::remove_dir_all(root).map_err(|e| ExperimentError::path(root, e))?;
    }
    midog(root)?;
    for (set, seed) in [("canine", 40), ("tcga-mf-test", 50)] {
        labelled(&root.join(set), seed)?;
    }
    ami(root)?;
    cohorts(root)?;
    Ok(base::file::write(&root.join(MARK), &wanted)?)
}

/// Frames of the public data sets: three patients of ICPR 2012 and three of MITOS-ATYPIA-14.
///
/// # Errors
/// A folder that cannot be written.
pub(crate) fn public(root: &Path) -> Result<()> {
    let mark = Mark { schema: "mithras.drawn/1", version: VERSION };
    let (note, wanted) = (root.join("mitos14").join(MARK), base::json::pretty(&mark));
    if base::file::read_whole(&note).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    let (icpr, mitos) = (root.join("icpr2012"), root.join("mitos14"));
    for dir in
        [icpr.join("frames"), icpr.join("partial"), icpr.join("negatives"), mitos.join("frames")]
    {
        folder(&dir)?;
    }
    let box_of = ["file", "cx", "cy", "xmin", "ymin", "xmax", "ymax"];
    let mut figures = Writer::new(box_of);
    let mut negatives = Writer::new(["patch", "frame", "scanner", "x", "y"]);
    let mut labels = Writer::new(["file", "x", "y", "label", "slide", "score"]);
    for k in 0..3u64 {
        let (name, places) =
            (format!("A0{k}_00"), frame(&icpr.join(format!("frames/A0{k}_00.jpg")), 150 + k)?);
        for (n, (figure, x, y)) in places.into_iter().enumerate() {
            let [a, b, c, d] = [x - 16, y - 16, x + 16, y + 16].map(|v| v.to_string());
            let (x, y) = (x.to_string(), y.to_string());
            if figure {
                figures.push([format!("{name}.jpg"), x, y, a, b, c, d]);
            } else {
                negatives.push([format!("{name}_{n}.png"), name.clone(), "Aperio".into(), x, y]);
            }
        }
        let (slide, file) = (format!("H0{k}"), format!("frames/H0{k}_00.jpg"));
        for (figure, x, y) in frame(&mitos.join(&file), 160 + k)? {
            let (label, score) = if figure { ("mitosis", "1.0") } else { ("non_mitosis", "0.0") };
            let (x, y) = (x.to_string(), y.to_string());
            labels.push([file.as_str(), &x, &y, label, &slide, score]);
        }
    }
    figures.write(&icpr.join("mitoses.csv"))?;
    Writer::new([&box_of[..], &["status"]].concat()).write(&icpr.join("partial_mitoses.csv"))?;
    negatives.write(&icpr.join("negatives.csv"))?;
    labels.write(&mitos.join("labels.csv"))?;
    Ok(base::file::write(&note, &wanted)?)
}

/// Draws a frame as JPEG; gives its figures (true) and mimickers with their places, px.
fn frame(path: &Path, seed: u64) -> Result<Vec<(bool, i64, i64)>> {
    let bad = |e: &dyn std::fmt::Display| ExperimentError::path(path, e);
    let layout = drawing(SIDE, seed, FIGURES).map_err(|e| bad(&e))?;
    let tile = draw::draw(&layout, Rect::new(0, 0, SIDE as usize, SIDE as usize));
    let image =
        image::RgbImage::from_fn(SIDE, SIDE, |x, y| image::Rgb(tile.pixel(x as usize, y as usize)));
    image.save(path).map_err(|e| bad(&e))?;
    #[expect(clippy::cast_possible_truncation, reason = "pixels of a small image")]
    let place = |v: f64| v.round() as i64;
    let truth = layout.truth().iter();
    Ok(truth.map(|p| (p.kind == Kind::Mitotic, place(p.x_px), place(p.y_px))).collect())
}

fn folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|e| ExperimentError::path(path, e))
}

/// As many mimickers as figures, and mostly tissue, so that they fit; where they do not, a further seed is taken.
fn drawing(side: u32, seed: u64, figures: usize) -> std::result::Result<Layout, draw::SpecError> {
    let draw = |seed| {
        let mut spec = Spec::new(side, side, seed, figures)?;
        spec.mimickers = figures;
        spec.tissue_mm2 = 0.8 * (f64::from(side) * Spec::MPP * 1e-3).powi(2);
        Layout::new(spec)
    };
    let further = (1..20).map(|k| draw(seed + 1000 * k));
    draw(seed).or_else(|e| further.flatten().next().ok_or(e))
}

/// Draws a slide with as many mimickers as figures and gives its layout.
fn slide(path: &Path, side: u32, seed: u64, figures: usize) -> Result<Layout> {
    let bad = |e: &dyn std::fmt::Display| ExperimentError::path(path, e);
    let layout = drawing(side, seed, figures).map_err(|e| bad(&e))?;
    draw::write(&layout, path, Container::Auto, &mut base::progress::Silent)
        .map_err(|e| bad(&e))?;
    Ok(layout)
}

/// MIDOG++: six images that train, two that test.
fn midog(root: &Path) -> Result<()> {
    let types = [
        "human breast cancer",
        "human breast cancer",
        "canine lymphosarcoma",
        "canine lymphosarcoma",
        "canine cutaneous mast cell tumor",
        "canine cutaneous mast cell tumor",
        "canine soft tissue sarcoma",
        "human melanoma",
    ];
    let dir = root.join("midog++/images");
    folder(&dir)?;
    let (mut images, mut annotations) = (vec![], vec![]);
    for (k, tumor_type) in types.into_iter().enumerate() {
        let id = k + 1;
        let file_name = format!("{id:03}.tiff");
        let layout = slide(&dir.join(&file_name), SIDE, id as u64, FIGURES)?;
        for p in layout.truth() {
            #[expect(clippy::cast_possible_truncation, reason = "pixels of a small image")]
            let (x, y) = (p.x_px.round() as i64, p.y_px.round() as i64);
            annotations.push(MidogBox {
                id: annotations.len() + 1,
                image_id: id,
                category_id: if p.kind == Kind::Mitotic { 1 } else { 2 },
                bbox: [x - 25, y - 25, x + 25, y + 25],
            });
        }
        images.push(MidogImage { id, file_name, width: SIDE, height: SIDE, tumor_type });
    }
    let categories = [
        Category { id: 1, name: "mitotic figure" },
        Category { id: 2, name: "not mitotic figure" },
    ];
    let all = Midog { images, categories, annotations };
    Ok(base::json::write(&root.join("midog++/MIDOG++.json"), &all)?)
}

/// Images with a table of labels.
fn labelled(dir: &Path, seed: u64) -> Result<()> {
    folder(&dir.join("images"))?;
    let mut table = Writer::new(["image", "x", "y", "label"]);
    for k in 0..2 {
        let name = format!("{seed}-{k}.tiff");
        let layout = slide(&dir.join("images").join(&name), SIDE, seed + k, FIGURES)?;
        for p in layout.truth() {
            let label = if p.kind == Kind::Mitotic { "mf" } else { "mimicker" };
            table.push([name.clone(), p.x_px.to_string(), p.y_px.to_string(), label.into()]);
        }
    }
    Ok(table.write(&dir.join("labels.csv"))?)
}

/// AMi-Br and AMi-Morph: each of eight morphologies on six slides that train and two that test. What
/// the drawing calls them means nothing; the classes differ in brightness, so that they can be learnt.
fn ami(root: &Path) -> Result<()> {
    let labels = [
        "NMF prometaphase",
        "NMF metaphase",
        "NMF ring shape",
        "NMF anaphase-telophase",
        "AMF bipolar assymetric",
        "AMF multipolar",
        "AMF segregation",
        "AMF other",
    ];
    let dir = root.join("ami_br");
    for class in ["Normal", "Atypical"] {
        folder(&dir.join(class))?;
    }
    let mut table = Writer::new([
        "",
        "slide",
        "dataset",
        "uid",
        "x",
        "y",
        "expert1_label",
        "expert2_label",
        "expert1_atypical",
        "expert2_atypical",
        "expert3_atypical",
        "majority_atypical",
    ]);
    let mut n = 0;
    for s in 0..8u64 {
        let (part, number) = if s < 6 { ("MIDOG21", s + 1) } else { ("TUPAC16", s - 5) };
        let bad = |e| ExperimentError::path(&dir, e);
        let mut spec =
            Spec::new(1024, 1024, 60 + s, labels.len()).map_err(|e| bad(e.to_string()))?;
        // Eight figures and no mimicker are what the table names.
        spec.mimickers = 0;
        spec.tissue_mm2 = 0.05;
        let layout = Layout::new(spec).map_err(|e| bad(e.to_string()))?;
        let figures = layout.truth().iter().filter(|p| p.kind == Kind::Mitotic);
        for ((k, label), p) in labels.iter().enumerate().zip(figures) {
            #[expect(clippy::cast_possible_truncation, reason = "pixels of a small image")]
            let (x, y) = (p.x_px.round() as i64, p.y_px.round() as i64);
            let atypical = if k < 4 { "False" } else { "True" };
            let class = if k < 4 { "Normal" } else { "Atypical" };
            let tile = draw::draw(&layout, Rect::new(x - 64, y - 64, 128, 128));
            let file = dir.join(class).join(format!("{part}_{n}.png"));
            crop(&tile, k, &file)?;
            let words = [
                n.to_string(),
                format!("{number:03}.tiff"),
                part.into(),
                n.to_string(),
                x.to_string(),
                y.to_string(),
                (*label).into(),
                (*label).into(),
                atypical.into(),
                atypical.into(),
                "True".into(),
                atypical.into(),
            ];
            table.push(words);
            n += 1;
        }
    }
    Ok(table.write(&dir.join("labels.csv"))?)
}

/// Writes a crop, darker by its class.
fn crop(tile: &mitosis::RgbTile, class: usize, file: &Path) -> Result<()> {
    let darker = |v: u8| (u32::from(v) * (16 - class as u32) / 16) as u8;
    let (w, h) = (tile.width as u32, tile.height as u32);
    let image = image::RgbImage::from_fn(w, h, |x, y| {
        image::Rgb(tile.pixel(x as usize, y as usize).map(darker))
    });
    image.save(file).map_err(|e| ExperimentError::path(file, e))
}

/// Slides for pretraining and for survival, with their tables.
fn cohorts(root: &Path) -> Result<()> {
    let tcga = root.join("tcga");
    let mut table = Writer::new(["slide", "cohort", "patient"]);
    folder(&tcga.join("pretraining"))?;
    for (k, cohort) in ["BRCA", "LUAD", "OV"].into_iter().enumerate() {
        let name = format!("TCGA-P{k}");
        slide(&tcga.join("pretraining").join(format!("{name}.tiff")), 1024, 80 + k as u64, 8)?;
        table.push([name.clone(), cohort.into(), name]);
    }
    table.write(&tcga.join("pretraining.csv"))?;
    for (set, file, seed) in [("THCA", "thca", 100), ("GBMLGG", "gbmlgg", 120)] {
        folder(&tcga.join(set))?;
        let names = ["patient", "months", "dead", "age", "sex", "grade", "diagnosis"];
        let mut table = Writer::new(names);
        for k in 0..10usize {
            let patient = format!("{set}-{k:02}");
            // More figures, earlier death: the Cox model has something to find.
            let file = tcga.join(set).join(format!("{patient}.tiff"));
            slide(&file, SIDE, seed + k as u64, k % (FIGURES + 1))?;
            let row = [
                patient,
                format!("{}", 60 - 5 * (k % 5) - k),
                if k % 3 == 2 { "0" } else { "1" }.to_owned(),
                format!("{}", 40 + 3 * (k * 7 % 10)),
                if k % 2 == 0 { "female" } else { "male" }.to_owned(),
                format!("{}", 2 + k % 3),
                if k % 3 == 2 { "GBM" } else { "LGG" }.to_owned(),
            ];
            table.push(row);
        }
        table.write(&tcga.join(format!("{file}-clinical.csv")))?;
    }
    Ok(())
}
