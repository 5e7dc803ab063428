//! `mithras corpus export`.

use corpus::folds::FoldManifest;
use corpus::regions::Dataset;
use corpus::yolo::{self, Options, Side, Written};
use mitosis::Mpp;
use mitosis::text::Many;
use std::path::PathBuf;

/// Writes a regions dataset for another program: windows and boxes as Ultralytics' YOLO reads them
#[derive(clap::Args)]
pub struct Args {
    /// Regions dataset
    #[arg(long, value_name = "DATASET")]
    data: PathBuf,
    /// Form of the files
    #[arg(long, value_parser = ["yolo"])]
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
    /// Resolution of the windows, um/px
    #[arg(long, value_name = "X", default_value = "0.25", value_parser = crate::command::detect::mpp)]
    mpp: Mpp,
    /// Side of a window, px
    #[arg(long, value_name = "PX", default_value_t = 640)]
    window: u32,
    /// Distance of neighbouring windows, px
    #[arg(long, value_name = "PX", default_value_t = 560)]
    stride: u32,
    /// Side of the box of a label that has none, um
    #[arg(long, value_name = "UM", default_value_t = 12.5)]
    box_side: f64,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub fn run(a: &Args) -> anyhow::Result<()> {
    let set = Dataset::open(&a.data)?;
    let part = set.training();
    let fold = match (&a.folds, a.fold) {
        (Some(file), Some(k)) => FoldManifest::read(file)?.regions(&part, k)?,
        _ => corpus::folds::RegionFold {
            name: "none".into(),
            train: part.images().to_vec(),
            validation: vec![],
        },
    };
    let options = Options { mpp: a.mpp, window: a.window, stride: a.stride, box_um: a.box_side };
    let written = yolo::write(&set, &fold, &a.out, &options)?;
    if a.json {
        println!("{}", serde_json::to_string_pretty(&written)?);
        return Ok(());
    }
    let Written { train, val, left_out, .. } = written;
    for (name, Side { windows, with_figures, figures, mimickers }) in
        [("train", train), ("val", val)]
    {
        let (windows, figures) = (Many(windows, "window"), Many(figures, "figure"));
        println!(
            "{name:<6} {windows}, {with_figures} of them with {figures}; {}",
            Many(mimickers, "look-alike")
        );
    }
    if left_out > 0 {
        println!("left out: {}, in which figures may lie unlabelled", Many(left_out, "image"));
    }
    Ok(())
}
