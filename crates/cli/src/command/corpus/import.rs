//! `mithras corpus import`.

use anyhow::Context;
use corpus::Header;
use corpus::cut::{CutOptions, CutReport, Encoding, cut};
use corpus::import::{
    BoxOrder, Class, IMPORTERS, ImportError, ImportOptions, LabelSource, Mapping, Summary, importer,
};
use corpus::regions::Given;
use corpus::regions::import::FOLDER_IMPORTERS;
use mitosis::Mpp;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Reads annotations or collections of others and makes a dataset of them (docs/datasets.md).
///
/// --kind crops cuts a crop at every annotation; --kind regions names the images with all their labels,
/// which is what detectors are trained on. Without --out, the annotations are counted.
#[derive(clap::Args)]
#[command(after_help = formats())]
pub struct Args {
    /// Annotation file, or folder where the format says so.
    pub(super) file: PathBuf,
    /// Format of the file; see below.
    #[arg(long, value_parser = formats_parser())]
    pub(super) format: String,
    /// What to make: crops or regions [default: crops; regions for folders of images]
    #[arg(long, value_parser = ["crops", "regions"], hide_possible_values = true)]
    kind: Option<String>,
    /// Folder of the images or ready-made patches, searched by name at any depth.
    #[arg(long)]
    pub(super) images: Option<PathBuf>,
    /// Writes the dataset here, and what was found as `import.json`; of crops, `annotations.csv`, too.
    #[arg(long)]
    pub(super) out: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// What a category means: NAME=mf|mimicker|other|ignore. Repeat for several.
    #[arg(long, value_name = "NAME=CLASS")]
    map: Vec<String>,
    /// Leaves out records, images and crops that cannot be used, and counts them.
    #[arg(long)]
    pub(super) lenient: bool,
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
    pub(super) cohort: Option<String>,
    /// um/px of images that state none.
    #[arg(long, value_name = "UM_PER_PX")]
    pub(super) mpp: Option<f64>,
    /// Table of um/px with the columns image (or slide, scanner) and mpp; comes before --mpp.
    #[arg(long, value_name = "CSV")]
    pub(super) mpp_table: Option<PathBuf>,
    /// Regions: which images have all their figures labelled: known (as the format knows it: those
    /// with labels), all, none.
    #[arg(long, default_value = "known", value_parser = ["known", "all", "none"], hide_possible_values = true)]
    pub(super) exhaustive: String,
    /// Regions: word of the positive class.
    #[arg(long, value_name = "WORD")]
    pub(super) positive: Option<String>,
    /// Name of the dataset [default: import-FORMAT for crops, the folder's for regions]
    #[arg(long)]
    pub(super) name: Option<String>,
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
    pub(super) split: corpus::Split,
}

fn formats() -> String {
    let line = |(name, about): (&str, &str)| format!("  {name:<13} {about}\n");
    let files = IMPORTERS.iter().map(|i| line((i.name, i.about)));
    let folders = FOLDER_IMPORTERS.iter().map(|i| line((i.name, i.about)));
    format!(
        "Formats of annotations:\n{}\nFolders of images, for --kind regions:\n{}\n\
         Example:\n  mithras corpus import --kind regions --format midog-json MIDOG++.json \\\n    \
         --images images --mpp 0.25 --out midog",
        files.collect::<String>(),
        folders.collect::<String>()
    )
}

fn formats_parser() -> clap::builder::PossibleValuesParser {
    let mut names: Vec<&str> = IMPORTERS.iter().map(|i| i.name).collect();
    let more = FOLDER_IMPORTERS.iter().map(|i| i.name).filter(|n| importer(n).is_none());
    names.extend(more);
    names.into()
}

impl Args {
    /// um/px that the user gives.
    pub(super) fn given(&self) -> anyhow::Result<Given> {
        let all = self.mpp.map(Mpp::new).transpose().context("--mpp")?;
        let table = match &self.mpp_table {
            Some(path) => Given::read_table(path)?,
            None => Default::default(),
        };
        Ok(Given { all, table })
    }

    fn regions(&self) -> bool {
        match self.kind.as_deref() {
            Some(kind) => kind == "regions",
            None => importer(&self.format).is_none(),
        }
    }
}

/// An error of the library with the flags that help.
pub(super) fn hinted(e: ImportError) -> anyhow::Error {
    let hint = match &e {
        ImportError::Categories { .. } => {
            "--map \"NAME=mf\" (or mimicker, other, ignore) says what a category means"
        }
        ImportError::Records { .. } => {
            "--lenient leaves out and counts what cannot be used; --mpp and --mpp-table give um/px"
        }
        ImportError::Boxes { .. } => "--boxes xyxy or --boxes xywh states the order of a box",
        ImportError::Missing { missing, .. } if missing.iter().any(|m| m.contains("label")) => {
            "--assume mf (or mimicker, other) is for a table without labels"
        }
        _ => return e.into(),
    };
    anyhow::anyhow!("{e}\n{hint}")
}

#[derive(serde::Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    corpus: Option<&'a CutReport>,
}

/// Runs the import.
pub fn run(a: &Args) -> anyhow::Result<ExitCode> {
    let regions = a.regions();
    anyhow::ensure!(
        regions || a.images.is_none() || a.out.is_some(),
        "--images cuts crops and needs --out for the corpus"
    );
    let options = ImportOptions {
        mapping: Mapping::parse(&a.map).map_err(anyhow::Error::msg).context("--map")?,
        lenient: a.lenient,
        boxes: a.boxes,
        labels: a.annotator.clone().map_or(LabelSource::Agreed, LabelSource::Annotator),
        assume: a.assume,
        cohort: a.cohort.clone(),
        ..ImportOptions::default()
    };
    if regions {
        return super::import_regions::run(a, &options);
    }
    let format = importer(&a.format)
        .with_context(|| format!("{} makes regions only: use --kind regions", a.format))?;
    let annotations = (format.read)(&a.file, &options).map_err(hinted)?;
    let summary = annotations.summary();
    let mut report = None;
    if let Some(out) = &a.out {
        std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
        if let Some(images) = &a.images {
            let source = source_note(&a.file, a)?;
            let mut header = Header {
                name: a.name.clone().unwrap_or_else(|| format!("import-{}", a.format)),
                builder: super::builder(),
                ..Header::default()
            };
            header.notes.insert("import".into(), source);
            let mpp = |v: f64, flag: &str| Mpp::new(v).with_context(|| flag.to_owned());
            let options = CutOptions {
                mpp: mpp(a.crop_mpp, "--crop-mpp")?,
                side: a.crop,
                given: a.given()?,
                encoding: a.jpeg.map_or(Encoding::Png, Encoding::Jpeg),
                lenient: a.lenient,
                split: a.split,
                header,
            };
            report = Some(cut(&annotations, images, out, &options).map_err(hinted)?);
        }
        artifact::file::write(&out.join("annotations.csv"), &annotations.table())?;
        let output = Output { summary: &summary, corpus: report.as_ref() };
        let text = serde_json::to_string_pretty(&output)?;
        artifact::file::write(&out.join("import.json"), text.as_bytes())?;
    }
    if a.json {
        let output = Output { summary: &summary, corpus: report.as_ref() };
        println!("{}", serde_json::to_string_pretty(&output)?);
    } else {
        print!("{summary}");
        report.iter().for_each(|r| print!("{r}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// What `import` in the corpus's notes says.
#[derive(serde::Serialize)]
struct Note<'a> {
    format: &'a str,
    file: Option<std::borrow::Cow<'a, str>>,
    sha256: Option<String>,
    map: &'a [String],
    annotator: &'a Option<String>,
}

fn source_note(file: &Path, a: &Args) -> anyhow::Result<serde_json::Value> {
    let sha256 = file.is_file().then(|| artifact::digest::sha256_file(file)).transpose()?;
    Ok(serde_json::to_value(Note {
        format: &a.format,
        file: file.file_name().map(|n| n.to_string_lossy()),
        sha256: sha256.map(|(_, digest)| digest),
        map: &a.map,
        annotator: &a.annotator,
    })?)
}
