//! `mithras corpus import`.

use crate::progress::print_message;
use crate::show;
use anyhow::Context;
use crops::Encoding;
use crops::Header;
use mitosis::Mpp;
use regions::annotations::{
    BoxOrder, Class, IMPORTERS, ImportOptions, LabelSource, Mapping, Selection, importer,
};
use regions::cut::{CropsPlan, CutOptions};
use regions::import::{Exhaustive, FOLDER_IMPORTERS, Options, RegionsPlan};
use regions::{Given, Part};
use review::view::{REVIEWS, dataset};
use std::path::PathBuf;

/// Reads annotations or collections of others and makes a dataset of them (docs/datasets.md).
///
/// --kind crops cuts a crop at every annotation; --kind regions names the images with all their labels,
/// which is what detectors are trained on. Without --out, the annotations are counted (icpr, mitos, he-folder and
/// reviews need it).
#[derive(clap::Args)]
#[command(after_help = formats())]
pub struct Args {
    /// Annotation file, or a folder for formats that are folders.
    file: PathBuf,
    /// Format of the file; see below.
    #[arg(long, value_parser = formats_parser())]
    format: String,
    /// What to make: crops or regions [default: crops; regions for folders of images]
    #[arg(long, value_parser = ["crops", "regions"], hide_possible_values = true)]
    kind: Option<String>,
    /// Folder of the images or ready-made patches, searched by name at any depth.
    #[arg(long)]
    images: Option<PathBuf>,
    /// Writes the dataset here, and what was found as `import.json`; of crops, `annotations.csv`, too.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// What a category means: NAME=mf|mimicker|other|ignore. Repeat for several.
    #[arg(long, value_name = "NAME=CLASS")]
    map: Vec<String>,
    /// Leaves out records, images and crops that cannot be used, and counts them.
    #[arg(long)]
    lenient: bool,
    /// States how boxes are written: xyxy or xywh; switches the evidence check off.
    #[arg(long, value_name = "ORDER")]
    boxes: Option<BoxOrder>,
    /// Takes the labels of one annotator instead of the agreed ones.
    #[arg(long, value_name = "NAME")]
    annotator: Option<String>,
    /// Class of every record of a table without a label column: mf, mimicker, other.
    #[arg(long, value_name = "CLASS")]
    assume: Option<Class>,
    /// Cohort name for sources that state none.
    #[arg(long)]
    cohort: Option<String>,
    /// Takes only images of this tumour type, as the file names it. Repeat for several.
    #[arg(long, value_name = "TYPE")]
    only_type: Vec<String>,
    /// Takes only the images that this file lists: one name a line, or a table with a column `image`.
    #[arg(long, value_name = "FILE")]
    only_images: Option<PathBuf>,
    /// Table with the columns `image` and `split` (train, validation, test): a published split.
    #[arg(long, value_name = "CSV")]
    splits: Option<PathBuf>,
    /// um/px of images that state none.
    #[arg(long, value_name = "UM_PER_PX")]
    mpp: Option<f64>,
    /// Table of um/px with the columns image (or slide, scanner) and mpp; comes before --mpp.
    #[arg(long, value_name = "CSV")]
    mpp_table: Option<PathBuf>,
    /// Regions: which images have all their figures labelled: known (as the format knows it: those
    /// with labels), all, none.
    #[arg(long, default_value = "known")]
    exhaustive: Exhaustive,
    /// Folders without labels: nothing trains on images whose names begin with one of these; they set the
    /// scale of a detector's scores.
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    calibration: Vec<String>,
    /// Regions: word of the positive class.
    #[arg(long, value_name = "WORD")]
    positive: Option<String>,
    /// Name of the dataset [default: import-FORMAT for crops, the folder's for regions]
    #[arg(long)]
    name: Option<String>,
    /// um/px of the crops.
    #[arg(long, value_name = "UM_PER_PX", default_value_t = 0.25)]
    crop_mpp: f64,
    /// Side of a crop in pixels.
    #[arg(long, default_value_t = 128)]
    crop: u32,
    /// Stores crops as JPEG of this quality instead of PNG.
    #[arg(long, value_name = "QUALITY", value_parser = clap::value_parser!(u8).range(1..=100))]
    jpeg: Option<u8>,
    /// Evaluation side of the crops: train, validation, test; a source's own mark comes first.
    #[arg(long, default_value = "unassigned")]
    split: crops::Split,
}

fn formats() -> String {
    let line = |(name, about): (&str, &str)| format!("  {name:<13} {about}\n");
    let files = IMPORTERS.iter().map(|i| line((i.name, i.about)));
    let folders = FOLDER_IMPORTERS.iter().map(|i| line((i.name, i.about))).chain([line(REVIEWS)]);
    format!(
        "Formats of annotations:\n{}\nFolders, for --kind regions:\n{}\n\
         Example:\n  mithras corpus import --kind regions --format midog-json MIDOG++.json \\\n    \
         --images images --mpp 0.25 --out midog\n\
         Part of a file (the MIDOGpp test set of the paper):\n  mithras corpus import --format midog-json MIDOG++.json \\\n    \
         --only-images midogpp.txt --split test \\\n    \
         --images images --mpp 0.25 --out midogpp",
        files.collect::<String>(),
        folders.collect::<String>()
    )
}

fn formats_parser() -> clap::builder::PossibleValuesParser {
    let mut names: Vec<&str> = IMPORTERS.iter().map(|i| i.name).collect();
    let more = FOLDER_IMPORTERS.iter().map(|i| i.name).filter(|n| importer(n).is_none());
    names.extend(more.chain([REVIEWS.0]));
    names.into()
}

impl Args {
    /// um/px that the user gives.
    fn given(&self) -> anyhow::Result<Given> {
        let all = self.mpp.map(Mpp::new).transpose().context("--mpp")?;
        let table = self.mpp_table.as_deref().map(Given::read_table).transpose()?;
        Ok(Given { all, table: table.unwrap_or_default(), ..Given::default() })
    }

    fn regions(&self) -> bool {
        let own = || importer(&self.format).is_none();
        self.kind.as_deref().map_or_else(own, |kind| kind == "regions")
    }
}

pub fn run(a: &Args) -> anyhow::Result<()> {
    let options = ImportOptions {
        mapping: Mapping::parse(&a.map).context("--map")?,
        lenient: a.lenient,
        boxes: a.boxes,
        labels: a.annotator.clone().map_or(LabelSource::Agreed, LabelSource::Annotator),
        assume: a.assume,
        cohort: a.cohort.clone(),
        select: Selection {
            types: a.only_type.clone(),
            images: a.only_images.clone(),
            splits: a.splits.clone(),
        },
        ..ImportOptions::default()
    };
    let given = a.given()?;
    let made = if a.regions() { regions(a, &options, &given) } else { crops(a, &options, &given) };
    // Also where it failed: an image without um/px may be one that the table spells otherwise.
    if let Some(join) = given.unmatched() {
        print_message("note", &join.to_string());
    }
    made
}

fn crops(a: &Args, options: &ImportOptions, given: &Given) -> anyhow::Result<()> {
    anyhow::ensure!(
        a.images.is_none() || a.out.is_some(),
        "--images cuts crops and needs --out for the corpus"
    );
    let plan = CropsPlan {
        format: importer(&a.format)
            .with_context(|| format!("{} makes regions only: use --kind regions", a.format))?,
        file: &a.file,
        options,
        map: &a.map,
        out: a.out.as_deref(),
        images: a.images.as_deref(),
    };
    let name = a.name.clone().unwrap_or_else(|| format!("import-{}", a.format));
    let cuts = CutOptions {
        mpp: Mpp::new(a.crop_mpp).context("--crop-mpp")?,
        side: a.crop,
        given: given.clone(),
        encoding: a.jpeg.map_or(Encoding::Png, Encoding::Jpeg),
        lenient: a.lenient,
        split: a.split,
        header: Header { name, builder: mithras::program(), ..Header::default() },
    };
    show::result(a.json, &plan.run(cuts)?)
}

fn regions(a: &Args, annotations: &ImportOptions, given: &Given) -> anyhow::Result<()> {
    let out = a.out.as_ref().context("--kind regions writes a dataset and needs --out")?;
    let name = || out.file_name().map(|n| n.to_string_lossy().into_owned());
    let options = Options {
        name: a.name.clone().or_else(name).unwrap_or_else(|| a.format.clone()),
        program: mithras::program(),
        given: given.clone(),
        exhaustive: a.exhaustive,
        lenient: a.lenient,
        part: if a.split == crops::Split::Test { Part::Test } else { Part::Train },
        source: a.cohort.clone(),
        calibration: a.calibration.clone(),
        positive: a.positive.clone(),
    };
    let (format, file, images) = (a.format.as_str(), a.file.as_path(), a.images.as_deref());
    if format == REVIEWS.0 {
        anyhow::ensure!(
            annotations.is_whole(),
            "--only-type, --only-images, --splits, --map and --assume belong to formats of annotations"
        );
        return show::result(
            a.json,
            &dataset(file, images, a.annotator.as_deref(), &options, out)?,
        );
    }
    let plan = RegionsPlan { format, file, images, annotations, options: &options, out };
    show::result(a.json, &plan.run()?)
}
