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

use super::graph::{Part, Statistics};
use super::options::{ExportOptions, WeightKind};
use super::run::{Program, constant};
use super::{classifier_graph, unet_graph};
use crate::encoder::Encoder;
use crate::error::{NetError, Result};
use crate::unet::EfficientUnet;
use proto::{Dimension, DimensionProto, GraphProto, ModelProto, TensorProto};

const HALF: i32 = 10;
/// A network is built by what its file states; more than ImageNet-22k has is not a classifier's.
const MOST_CLASSES: i64 = 1 << 15;

/// Takes the weights of an exported U-Net. `images` are batches `[N, 3, H, W]` as the network is trained on, sides
/// multiples of 32.
///
/// # Errors
/// [`NetError::Io`]; [`NetError::File`] where the file holds another network or none, or values that are not
/// numbers; [`NetError::Weights`] where an export does not keep all of the network; no image.
pub fn unfold_unet(
    net: &EfficientUnet,
    vs: &VarStore,
    file: &Path,
    images: &mut dyn Iterator<Item = Tensor>,
) -> Result<()> {
    unfold(file, vs, images, |options| Ok(unet_graph(net, options)))
}

/// Takes the weights of an exported classifier of as many classes. `images` are batches `[N, 3, S, S]`.
///
/// # Errors
/// As [`unfold_unet`], and [`NetError::Config`] when the network takes another size or has no head.
pub fn unfold_classifier(
    net: &dyn Encoder,
    vs: &VarStore,
    size: i64,
    file: &Path,
    images: &mut dyn Iterator<Item = Tensor>,
) -> Result<()> {
    unfold(file, vs, images, |options| classifier_graph(net, size, options))
}

/// How many classes an exported classifier gives.
///
/// # Errors
/// [`NetError::Io`]; [`NetError::File`] of a file that is not an ONNX, gives no probabilities, or of more than 32,768
/// classes.
pub fn classes_of(file: &Path) -> Result<i64> {
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
    NetError::file(file, reason, "give a package of the preset's network, or its preset")
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
    fresh: impl Fn(&ExportOptions) -> Result<(ModelProto, Vec<Part>)>,
) -> Result<()> {
    let (bytes, graph) = read(file)?;
    let halves = graph.initializer.iter().any(|t| t.data_type == HALF);
    let weights = if halves { WeightKind::F16 } else { WeightKind::F32 };
    let (own, parts) = fresh(&ExportOptions { weights, ..ExportOptions::default() })?;
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
    tch::no_grad(|| parts.iter().try_for_each(|part| part.fill(&values, &moments)))
}

/// Every variable of the network has its place in an export; of a transformer some are folded for good.
fn all_kept(file: &Path, vs: &VarStore, parts: &[Part]) -> Result<()> {
    let kept: HashSet<_> = parts.iter().flat_map(Part::tensors).map(Tensor::data_ptr).collect();
    let lost = vs.variables().into_iter().filter(|(_, t)| !kept.contains(&t.data_ptr()));
    let mut problems: Vec<String> = lost.map(|(name, _)| name).collect();
    problems.sort();
    if problems.is_empty() {
        return Ok(());
    }
    let reason =
        "an export does not keep these as the network trains them; give its model.safetensors";
    let (path, reason) = (file.to_path_buf(), reason.to_owned());
    Err(NetError::Weights { path, reason, problems, fits_in_part: false })
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
    let watched: Vec<&str> = parts.iter().filter_map(Part::watched).collect();
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

impl Statistics {
    /// Normalises what has these moments and gives it back as it was; `inside` is added to their mean.
    fn set(&self, m: &Moments, inside: &Tensor, factor: &Tensor, shift: &Tensor) -> Result<()> {
        let (mean, var) = (m.mean(), m.var());
        let deviation = (&var + self.eps).sqrt();
        let (mut weight, mut bias) = (self.weight.shallow_clone(), self.bias.shallow_clone());
        weight.f_copy_(&(deviation * factor))?;
        bias.f_copy_(&(&mean * factor + shift))?;
        self.mean.shallow_clone().f_copy_(&(mean - inside))?;
        self.var.shallow_clone().f_copy_(&var)?;
        Ok(())
    }
}

impl Part {
    fn tensors(&self) -> Vec<&Tensor> {
        match self {
            Self::Plain { tensor, .. } => vec![tensor],
            Self::Folded { conv, norm: n, .. } => vec![conv, &n.weight, &n.bias, &n.mean, &n.var],
            Self::Norm { norm: n, .. } => vec![&n.weight, &n.bias, &n.mean, &n.var],
        }
    }

    /// The value whose moments a norm needs.
    fn watched(&self) -> Option<&str> {
        match self {
            Self::Plain { .. } => None,
            Self::Folded { output, .. } => Some(output),
            Self::Norm { input, .. } => Some(input),
        }
    }

    fn fill(
        &self,
        values: &HashMap<String, Tensor>,
        moments: &HashMap<String, Moments>,
    ) -> Result<()> {
        let get = |name: &str| {
            let missing = || NetError::config(name, "no such tensor in the file");
            values.get(name).ok_or_else(missing)
        };
        let of = |name: &str| {
            let missing = || NetError::config(name, "is never made");
            moments.get(name).ok_or_else(missing)
        };
        match self {
            Self::Plain { name, tensor, swapped } => {
                let value = get(name)?;
                let value = if *swapped { value.f_transpose(0, 1)? } else { value.shallow_clone() };
                tensor.shallow_clone().f_copy_(&value)?;
            }
            Self::Folded { weight, bias, output, conv, norm } => {
                conv.shallow_clone().f_copy_(get(weight)?)?;
                // The bias of the file is in what was measured, not in the convolution.
                let (bias, one) = (get(bias)?, Tensor::from(1.0f64));
                norm.set(of(output)?, bias, &one, &bias.zeros_like())?;
            }
            Self::Norm { scale, shift, input, norm } => {
                let (scale, shift) = (get(scale)?.flatten(0, -1), get(shift)?.flatten(0, -1));
                norm.set(of(input)?, &shift.zeros_like(), &scale, &shift)?;
            }
        }
        Ok(())
    }
}
