//! Back from an exported file to a network that trains on.
//!
//! A file has its batch norms folded into its convolutions. They are unfolded with statistics of images:
//! what a convolution gives is measured on them, and becomes mean and variance of its norm, whose factor and
//! shift undo them. Over these images the network computes what the file does, while it trains, too.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use prost::Message;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use encoders::EncoderError;
use encoders::onnx::{self, ExportOptions, Exported, NormPart, Part, WeightKind};

use super::run::{Program, constant};
use crate::encoder::Encoder;
use crate::error::{NetError, Result};
use crate::tensors::Variables;
use crate::unet::EfficientUnet;
use proto::{Dimension, DimensionProto, GraphProto, ModelProto, TensorProto};

const HALF: i32 = 10;
/// A network is built by what its file states; more than ImageNet-22k has is not a classifier's.
const MOST_CLASSES: i64 = 1 << 15;

/// Takes the weights of an exported U-Net. `images` are batches `[N, 3, H, W]` as the network is trained on, sides
/// multiples of 32.
///
/// # Errors
/// [`NetError::Encoder`] where the file is not read, holds another network or none, or values that are not
/// numbers, where an export does not keep all of the network, and without an image.
pub fn unfold_unet(
    net: &EfficientUnet,
    vs: &VarStore,
    file: &Path,
    images: &mut dyn Iterator<Item = Tensor>,
) -> Result<()> {
    unfold(file, vs, images, |options| Ok(onnx::unet(net.config(), &Variables::new(vs), options)?))
}

/// Takes the weights of an exported classifier of as many classes. `images` are batches `[N, 3, S, S]`.
///
/// # Errors
/// As [`unfold_unet`], and [`NetError::Encoder`] when the network takes another size or has no head.
pub fn unfold_classifier(
    net: &dyn Encoder,
    vs: &VarStore,
    size: i64,
    file: &Path,
    images: &mut dyn Iterator<Item = Tensor>,
) -> Result<()> {
    unfold(file, vs, images, |options| {
        Ok(onnx::classifier(&net.config(), size, &Variables::new(vs), options)?)
    })
}

/// How many classes an exported classifier gives.
///
/// # Errors
/// [`NetError::Encoder`] of a file that is not read or no ONNX, gives no probabilities, or of more than 32,768 classes.
pub fn count_classes(file: &Path) -> Result<i64> {
    let graph = read(file)?.1;
    let probability = graph.output.first().and_then(|o| o.r#type.as_ref()?.tensor_type.as_ref());
    match probability.and_then(|t| t.shape.as_ref()).map(|s| &s.dim[..]) {
        Some([_, DimensionProto { value: Some(Dimension::Value(n)) }]) => match n {
            1..=MOST_CLASSES => Ok(*n),
            _ => Err(wrong(file, format!("states that it knows {n} classes"))),
        },
        _ => Err(wrong(file, "gives no probabilities of classes".into())),
    }
}

fn wrong(file: &Path, reason: String) -> NetError {
    NetError::file(
        file,
        reason,
        "give a package of the preset's network if you have one, or its preset",
    )
}

/// The file's bytes and its graph.
fn read(file: &Path) -> Result<(Vec<u8>, GraphProto)> {
    let bytes = base::file::read_whole(file).map_err(|e| NetError::io(file, e))?;
    let decoded = ModelProto::decode(&bytes[..])
        .map_err(|e| wrong(file, format!("not an ONNX file: {e}")))?;
    let graph = decoded.graph.ok_or_else(|| wrong(file, "no graph in it".into()))?;
    Ok((bytes, graph))
}

/// `fresh` is what the network would be exported as now.
fn unfold(
    file: &Path,
    vs: &VarStore,
    images: &mut dyn Iterator<Item = Tensor>,
    fresh: impl Fn(&ExportOptions) -> Result<Exported>,
) -> Result<()> {
    let (bytes, graph) = read(file)?;
    let halves = graph.initializer.iter().any(|t| t.data_type == HALF);
    let weights = if halves { WeightKind::F16 } else { WeightKind::F32 };
    let Exported { model: own, parts } =
        fresh(&ExportOptions { weights, ..ExportOptions::default() })?;
    all_kept(file, vs, &parts)?;
    same_network(&graph, &own.graph.unwrap_or_default()).map_err(|why| wrong(file, why))?;

    let mut values = HashMap::new();
    for t in &graph.initializer {
        let value = constant(t)?;
        if value.is_floating_point() {
            let value = value.to_kind(Kind::Double);
            if !bool::try_from(value.isfinite().all())? {
                return Err(wrong(file, format!("`{}` holds values that are not numbers", t.name)));
            }
            values.insert(t.name.trim_end_matches("_f16").to_owned(), value);
        }
    }
    let moments = measure(&bytes, &parts, images)?;
    let network = vs.variables();
    tch::no_grad(|| parts.iter().try_for_each(|part| fill(part, &network, &values, &moments)))
}

/// Every variable of the network has its place in an export; of a transformer some are folded for good.
fn all_kept(file: &Path, vs: &VarStore, parts: &[Part]) -> Result<()> {
    let kept: HashSet<String> = parts.iter().flat_map(tensor_names).collect();
    let lost = vs.variables().into_keys().filter(|name| !kept.contains(name));
    let mut problems: Vec<String> = lost.collect();
    problems.sort();
    if problems.is_empty() {
        return Ok(());
    }
    let reason = "an export does not keep these as the network trains them; give its model.safetensors if you have it";
    let (path, reason) = (file.to_path_buf(), reason.to_owned());
    Err(EncoderError::Weights { path, reason, problems, fits_in_part: false }.into())
}

fn shapes(graph: &GraphProto) -> impl Iterator<Item = (&str, &[i64], i32)> {
    graph.initializer.iter().map(|t: &TensorProto| (t.name.as_str(), &t.dims[..], t.data_type))
}

/// Both graphs do the same with tensors of the same shapes.
fn same_network(file: &GraphProto, own: &GraphProto) -> std::result::Result<(), String> {
    if file.node.len() != own.node.len() {
        let (found, wanted) = (file.node.len(), own.node.len());
        return Err(format!("{found} operations where the preset's network has {wanted}"));
    }
    if let Some((a, b)) = file.node.iter().zip(&own.node).find(|(a, b)| a != b) {
        return Err(format!("`{}` is where the preset's network has `{}`", a.name, b.name));
    }
    match shapes(file).zip(shapes(own)).find(|(a, b)| a != b) {
        Some(((name, found, _), (_, wanted, _))) => {
            Err(format!("`{name}` is {found:?} where the preset's network has {wanted:?}"))
        }
        None if file.initializer.len() != own.initializer.len() => {
            Err("tensors are missing".into())
        }
        None => Ok(()),
    }
}

/// Sums over images, by channel.
struct Moments {
    n: f64,
    sum: Tensor,
    squares: Tensor,
}

impl Moments {
    fn mean(&self) -> Tensor {
        &self.sum / self.n
    }

    /// Unbiased, as torch keeps it.
    fn var(&self) -> Tensor {
        let mean = self.mean();
        let biased = (&self.squares / self.n - &mean * &mean).clamp_min(0.0);
        biased * (self.n / (self.n - 1.0).max(1.0))
    }
}

/// Runs the file over the images and watches what the norms are given.
fn measure(
    bytes: &[u8],
    parts: &[Part],
    images: &mut dyn Iterator<Item = Tensor>,
) -> Result<HashMap<String, Moments>> {
    let watched: Vec<&str> = parts.iter().filter_map(watched).collect();
    let mut moments: HashMap<String, Moments> = HashMap::new();
    let program = Program::load(bytes, Device::Cpu, None)?;
    for batch in images {
        let watch = &mut |name: &str, value: &Tensor| {
            if !watched.contains(&name) {
                return Ok(());
            }
            let axes = [0i64, 2, 3];
            let x = value.f_to_kind(Kind::Double)?;
            let n = (x.numel() as i64 / x.size()[1]) as f64;
            let sum = x.f_sum_dim_intlist(axes.as_slice(), false, Kind::Double)?;
            let squares = (&x * &x).f_sum_dim_intlist(axes.as_slice(), false, Kind::Double)?;
            match moments.get_mut(name) {
                Some(m) => {
                    m.n += n;
                    m.sum += sum;
                    m.squares += squares;
                }
                None => drop(moments.insert(name.to_owned(), Moments { n, sum, squares })),
            }
            Ok(())
        };
        drop(program.watched(&batch, watch)?);
    }
    if moments.is_empty() && !watched.is_empty() {
        return Err(NetError::config("images", "none to measure the batch norms on"));
    }
    Ok(moments)
}

/// The tensors of a batch norm.
struct Statistics<'a> {
    part: &'a NormPart,
    network: &'a HashMap<String, Tensor>,
}

impl Statistics<'_> {
    fn copy(&self, leaf: &str, value: &Tensor) -> Result<()> {
        copied(self.network, &format!("{}.{leaf}", self.part.name), value)
    }

    /// Normalises what has these moments and gives it back as it was; `inside` is added to their mean.
    fn set(&self, m: &Moments, inside: &Tensor, factor: &Tensor, shift: &Tensor) -> Result<()> {
        let (mean, var) = (m.mean(), m.var());
        let deviation = (&var + self.part.eps).sqrt();
        self.copy("weight", &(deviation * factor))?;
        self.copy("bias", &(&mean * factor + shift))?;
        self.copy("running_mean", &(mean - inside))?;
        self.copy("running_var", &var)
    }
}

fn copied(network: &HashMap<String, Tensor>, name: &str, value: &Tensor) -> Result<()> {
    let missing = || NetError::config(name, "no such tensor in the network");
    network.get(name).ok_or_else(missing)?.shallow_clone().f_copy_(value)?;
    Ok(())
}

/// Names of the tensors that a part of the file is made of.
fn tensor_names(part: &Part) -> Vec<String> {
    let norm = |n: &NormPart| {
        ["weight", "bias", "running_mean", "running_var"].map(|leaf| format!("{}.{leaf}", n.name))
    };
    match part {
        Part::Plain { tensor, .. } => vec![tensor.clone()],
        Part::Folded { conv, norm: n, .. } => [vec![conv.clone()], norm(n).to_vec()].concat(),
        Part::Norm { norm: n, .. } => norm(n).to_vec(),
    }
}

/// The value whose moments a norm needs.
fn watched(part: &Part) -> Option<&str> {
    match part {
        Part::Plain { .. } => None,
        Part::Folded { output, .. } => Some(output),
        Part::Norm { input, .. } => Some(input),
    }
}

fn fill(
    part: &Part,
    network: &HashMap<String, Tensor>,
    values: &HashMap<String, Tensor>,
    moments: &HashMap<String, Moments>,
) -> Result<()> {
    let get = |name: &str| {
        let missing = || NetError::config(name, "no such tensor in the file");
        values.get(name).ok_or_else(missing)
    };
    let made = |name: &str| {
        let missing = || NetError::config(name, "is never made");
        moments.get(name).ok_or_else(missing)
    };
    match part {
        Part::Plain { name, tensor, swapped } => {
            let value = get(name)?;
            let value = if *swapped { value.f_transpose(0, 1)? } else { value.shallow_clone() };
            copied(network, tensor, &value)?;
        }
        Part::Folded { weight, bias, output, conv, norm } => {
            copied(network, conv, get(weight)?)?;
            // The bias of the file is in what was measured, not in the convolution.
            let (bias, one) = (get(bias)?, Tensor::from(1.0f64));
            let norm = Statistics { part: norm, network };
            norm.set(made(output)?, bias, &one, &bias.zeros_like())?;
        }
        Part::Norm { scale, shift, input, norm } => {
            let (scale, shift) = (get(scale)?.flatten(0, -1), get(shift)?.flatten(0, -1));
            let norm = Statistics { part: norm, network };
            norm.set(made(input)?, &shift.zeros_like(), &scale, &shift)?;
        }
    }
    Ok(())
}
