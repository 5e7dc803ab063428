//! `mithras corpus export`.

use anyhow::bail;
use mitosis::Mpp;
use regions::Dataset;
use regions::folds::{FoldManifest, RegionFold};
use regions::sheets;
use regions::yolo;
use std::path::PathBuf;

/// Writes a regions dataset in another form: windows and boxes for YOLO, or sheets of small regions
///
/// yolo: windows as PNG and boxes as text, as Ultralytics reads them; a fold's held-out side becomes
/// `val`. sheets: small regions of one size laid side by side, with truth.csv, to be measured like
/// whole images by `evaluate`; of a fold, its held-out side alone.
#[derive(clap::Args)]
pub struct Args {
    /// Regions dataset
    dataset: PathBuf,
    /// Form of the files
    #[arg(long, value_parser = ["yolo", "sheets"])]
    format: String,
    /// Its folds, as `mithras corpus split` writes them; without them nothing is held out
    #[arg(long, value_name = "FILE", requires = "fold")]
    folds: Option<PathBuf>,
    /// Number of the fold held out
    #[arg(long, value_name = "K", requires = "folds")]
    fold: Option<usize>,
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Resolution of the pixels, um/px
    #[arg(long, value_name = "X", default_value = "0.25", value_parser = crate::command::detect::mpp)]
    mpp: Mpp,
    /// yolo: side of a window, px [default: 640]
    #[arg(long, value_name = "PX")]
    window: Option<u32>,
    /// yolo: distance of neighbouring windows, px [default: 560]
    #[arg(long, value_name = "PX")]
    stride: Option<u32>,
    /// yolo: side of the box of a label that has none, um [default: 12.5]
    #[arg(long, value_name = "UM")]
    box_side: Option<f64>,
    /// sheets: only regions whose source begins with this
    #[arg(long, value_name = "PREFIX")]
    source: Option<String>,
    /// sheets: regions side by side, and below each other [default: 8]
    #[arg(long, value_name = "N")]
    across: Option<usize>,
    /// sheets: margin in which each region is mirrored in place of a seam to its neighbour, px [default: 0]
    ///
    /// A slide has no seams such as those between regions. Measure with `evaluate robustness --within OUT/regions.csv`,
    /// which leaves the margins out.
    #[arg(long, value_name = "PX")]
    mirror: Option<usize>,
    /// sheets: beginning of the files' names [default: sheet]
    #[arg(long, value_name = "NAME")]
    prefix: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub fn run(a: &Args) -> anyhow::Result<()> {
    let set = Dataset::open(&a.dataset)?;
    let part = set.training();
    let fold = match (&a.folds, a.fold) {
        (Some(file), Some(k)) => Some(FoldManifest::read(file)?.regions(&part, k)?),
        _ => None,
    };
    if a.format == "sheets" {
        let images = fold.map_or_else(|| part.images().to_vec(), |f| f.validation);
        return as_sheets(a, &set, images);
    }
    if a.source.is_some() || a.across.is_some() || a.mirror.is_some() || a.prefix.is_some() {
        bail!("--source, --across, --mirror and --prefix are for --format sheets");
    }
    let everything =
        || RegionFold { name: "none".into(), train: part.images().to_vec(), validation: vec![] };
    let options = yolo::YoloOptions {
        mpp: a.mpp,
        window: a.window.unwrap_or(640),
        stride: a.stride.unwrap_or(560),
        box_um: a.box_side.unwrap_or(12.5),
    };
    let written = yolo::write(&set, &fold.unwrap_or_else(everything), &a.out, &options)?;
    crate::show::result(a.json, &written)
}

fn as_sheets(a: &Args, set: &Dataset, mut images: Vec<&regions::Image>) -> anyhow::Result<()> {
    if a.window.is_some() || a.stride.is_some() || a.box_side.is_some() {
        bail!("--window, --stride and --box-side are for --format yolo");
    }
    images.retain(|i| a.source.as_ref().is_none_or(|s| i.source.starts_with(s)));
    let options = sheets::SheetOptions {
        mpp: a.mpp,
        across: a.across.unwrap_or(8),
        mirror: a.mirror.unwrap_or(0),
    };
    let prefix = a.prefix.as_deref().unwrap_or("sheet");
    crate::show::result(a.json, &sheets::write(set, &images, prefix, &a.out, &options)?)
}
