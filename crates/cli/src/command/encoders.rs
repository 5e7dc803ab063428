//! `mithras encoders`: encoders as packages.

use super::detect::mpp;
use super::engine;
use crate::show;
use anyhow::{Result, bail};
use infer::card::Interpolation;
use infer::convert::Draft;
use mithras::embed::{Known, Listing, Package, convert, weights};
use mitosis::Mpp;
use std::path::PathBuf;

/// Encoders as packages: list, show, make one of an ONNX file or of weights
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand, Debug)]
#[expect(clippy::large_enum_variant, reason = "parsed once per process")]
enum Verb {
    /// Packages in a folder and in the folders in it, and what files of weights give
    List {
        /// The folder; without it, the current one
        #[arg(long = "in", value_name = "DIR", default_value = ".")]
        folder: PathBuf,
    },
    /// An encoder's card, its digest checked
    Show {
        /// Package folder, or a name of `encoders list`
        #[arg(value_name = "NAME|PKG")]
        package: PathBuf,
    },
    Convert(Convert),
}

/// Make a package of an ONNX file or of weights, and try it on every available engine
///
/// The file takes one image f32 [N, 3, S, S] and gives vectors [N, D], pooled inside. It is refused
/// when engines disagree, when a vector is NaN, and when it depends on the other images of a batch.
///
/// With --classes or --text the package is a classifier, as a tumour filter is. --classes takes the
/// linear layer in the encoder's file, --text compares images with texts.
#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("from").required(true).args(["onnx", "weights"])))]
struct Convert {
    /// The network
    #[arg(long, value_name = "FILE", requires_all = ["image", "mean", "std", "pooling"])]
    onnx: Option<PathBuf>,
    /// Weights of --encoder: safetensors or a file of torch.save, under its makers' names
    #[arg(long, value_name = "FILE", requires = "encoder", conflicts_with_all = ["mean", "std", "pooling"])]
    weights: Option<PathBuf>,
    /// A name of `encoders list`
    #[arg(long, value_name = "NAME", requires = "weights")]
    encoder: Option<String>,
    /// Package folder to make
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the package
    #[arg(long)]
    name: String,
    /// Description of the architecture [default: the name]
    #[arg(long)]
    architecture: Option<String>,
    /// Side of the input, px
    #[arg(long, value_name = "PX")]
    image: Option<usize>,
    /// Mean of R,G,B in 0 to 1
    #[arg(long, value_name = "R,G,B", value_parser = triple)]
    mean: Option<[f32; 3]>,
    /// Standard deviation of R,G,B
    #[arg(long, value_name = "R,G,B", value_parser = triple)]
    std: Option<[f32; 3]>,
    /// What an image's shorter side becomes before its middle is cut out, px [default: --image]
    #[arg(long, value_name = "PX", conflicts_with = "weights")]
    resize: Option<usize>,
    /// How images are resized: bilinear or bicubic
    #[arg(long, default_value = "bilinear", conflicts_with = "weights")]
    interpolation: Interpolation,
    /// um/px that it was trained at
    #[arg(long, value_name = "X", value_parser = mpp)]
    mpp: Option<Mpp>,
    /// What the vector is, e.g. "class token"
    #[arg(long)]
    pooling: Option<String>,
    /// Numbers per vector, where the file does not state it
    #[arg(long, value_name = "D")]
    width: Option<usize>,
    /// Which output, of a file with several
    #[arg(long, value_name = "NAME")]
    output: Option<String>,
    /// Licence of the weights
    #[arg(long)]
    license: String,
    /// Classes of the linear layer in the file of weights, in its order, or the path of a file that names them, as
    /// presets/classes/impash.toml of the repository
    #[arg(long, value_name = "A,B,...|TOML", value_delimiter = ',', requires_all = ["weights", "mpp"])]
    classes: Vec<String>,
    /// The class that counts, where no file states it
    #[arg(long, value_name = "CLASS", requires = "classes")]
    positive: Option<String>,
    /// Path of a file of texts that describe the classes, as presets/prompts/tumour.toml of the repository
    #[arg(long, value_name = "TOML", requires_all = ["weights", "mpp", "tokenizer"], conflicts_with = "classes")]
    text: Option<PathBuf>,
    /// Tokenizer of the text tower (tokenizer.json)
    #[arg(long, value_name = "JSON", requires = "text")]
    tokenizer: Option<PathBuf>,
    /// Side of a classifier's crops, px at --mpp [default: the input's]
    #[arg(long, value_name = "PX")]
    crop: Option<usize>,
    /// How weights are stored: f32 or f16
    #[arg(long, default_value = "f32", value_parser = ["f32", "f16"])]
    precision: String,
}

fn triple(text: &str) -> Result<[f32; 3], String> {
    let numbers: Result<Vec<f32>, _> = text.split(',').map(|t| t.trim().parse()).collect();
    let numbers = numbers.map_err(|_| format!("`{text}` is not three numbers, as 0.5,0.5,0.5"))?;
    numbers.try_into().map_err(|_| format!("`{text}` is not three numbers"))
}

pub fn run(a: Args) -> Result<()> {
    match a.verb {
        Verb::List { folder } => show::result(a.json, &Listing::read(&folder)?),
        Verb::Show { package } => {
            match weights::known().iter().find(|k| package.as_os_str() == &*k.name) {
                Some(known) if !package.is_dir() => show::result(a.json, &Known::new(known)),
                _ => show::result(a.json, &Package::open(&package)?),
            }
        }
        Verb::Convert(c) if c.text.is_some() || !c.classes.is_empty() => c.classifier(a.json),
        Verb::Convert(c) => show::result(a.json, &c.package()?),
    }
}

impl Convert {
    fn classifier(self, json: bool) -> Result<()> {
        #[cfg(not(feature = "train"))]
        use mithras::embed::headed::classifier;
        use mithras::embed::headed::{Draft, Head};
        #[cfg(feature = "train")]
        use training::encoders::headed::classifier;
        let (Some(weights), Some(encoder), Some(mpp)) = (self.weights, self.encoder, self.mpp)
        else {
            bail!("--weights, --encoder and --mpp belong together")
        };
        let head = match (self.text, self.tokenizer, self.positive) {
            (Some(prompts), Some(tokenizer), _) => Head::Texts { prompts, tokenizer },
            (.., Some(positive)) => Head::File { classes: self.classes, positive },
            _ if self.classes.len() == 1 => Head::named(self.classes[0].as_ref())?,
            _ => bail!("name --positive, or --text with --tokenizer"),
        };
        let image = self.image.or_else(|| weights::image(&encoder)).unwrap_or(224);
        let (name, license, half) = (self.name, self.license, self.precision == "f16");
        let draft = Draft { name, license, mpp, crop: self.crop.unwrap_or(image), image, half };
        let options = engine::options();
        show::result(json, &classifier(&weights, &encoder, &head, &self.out, &draft, &options)?)
    }

    fn package(self) -> Result<Package> {
        let draft = Draft {
            architecture: self.architecture.unwrap_or_else(|| self.name.clone()),
            name: self.name,
            license: self.license,
            mpp: self.mpp,
            image: self.image.unwrap_or(224),
            resize: self.resize,
            interpolation: self.interpolation,
            mean: self.mean.unwrap_or_default(),
            std: self.std.unwrap_or_default(),
            pooling: self.pooling.unwrap_or_default(),
            width: self.width,
            output: self.output,
            half: self.precision == "f16",
            source: Default::default(),
        };
        if let Some(onnx) = &self.onnx {
            return Ok(convert(onnx, &self.out, draft, &engine::options())?);
        }
        let (Some(file), Some(name)) = (self.weights, self.encoder) else {
            bail!("--onnx, or --weights with --encoder, is needed")
        };
        let image = self.image.or_else(|| weights::image(&name)).unwrap_or(224);
        let (draft, options) = (Draft { image, ..draft }, engine::options());
        #[cfg(feature = "train")]
        let made = training::encoders::weights::convert(&file, &name, &self.out, draft, &options)?;
        #[cfg(not(feature = "train"))]
        let made =
            weights::convert(&file, weights::Conversion::new(&name), &self.out, draft, &options)?;
        Ok(made)
    }
}
