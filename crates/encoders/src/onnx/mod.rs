//! Networks as ONNX (opset 17) by the model-package contract: `image` in, `probability` or `embedding` out,
//! batch norm folded into convolutions, sigmoid or softmax inside. Tensors are taken by timm's names.
//!
//! Only operators that every runtime optimises: Conv, Sigmoid and Mul (SiLU), MaxPool,
//! GlobalAveragePool, Resize, Concat, Split, Pad, LayerNormalization, MatMul, Softmax, Erf (GELU).

mod conv;
mod graph;
mod model;
mod options;
mod parts;
mod size;
mod source;
mod swin;
mod text;
mod vit;

use prost::Message;

use self::graph::{Graph, dense, int};
use self::model::{Axis, NamedValue, Value};
use self::parts::Cutting;
use self::source::Shapes;
use crate::encoder::{NetworkConfig, NetworkShape};
use crate::error::{EncoderError, Result};
use crate::unet::UnetConfig;
use crate::weights::Outline;
use proto::ModelProto;

pub use self::graph::{NormPart, Part};
pub use self::options::{ExportOptions, WeightKind};
pub use self::size::{MOST_BYTES, check_size};
pub use self::source::Source;
pub(crate) use self::text::outline as text_outline;
pub use self::text::{TEXT, VECTOR, text};

/// A network in ONNX, and where it keeps what each layer learnt.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The file.
    pub model: ModelProto,
    /// The layers' places in it.
    pub parts: Vec<Part>,
}

/// The U-Net: `image [N, 3, H, W]` (H, W free multiples of 32) to `probability [N, 1, H, W]`.
///
/// # Errors
/// [`EncoderError::Config`] for a setting out of range or a tensor that the source has not.
pub fn unet(config: &UnetConfig, source: &dyn Source, options: &ExportOptions) -> Result<Exported> {
    config.check()?;
    let mut g = Graph::new(source, options);
    let logits = g.unet("image", config);
    g.named_op("Sigmoid", &[&logits], vec![], "probability".into());
    let (n, h, w) = (Axis::Free("N"), Axis::Free("H"), Axis::Free("W"));
    let axes = |c| [n, Axis::Fixed(c), h, w];
    let (input, output) =
        (NamedValue::new("image", &axes(3)), NamedValue::new("probability", &axes(1)));
    let (model, parts) = g.finish(config.architecture(), [&input, &output], &options.pairs())?;
    Ok(Exported { model, parts })
}

/// A classifier: `image [N, 3, S, S]` to `probability [N, C]`. `size` is S; a transformer takes only
/// its own.
///
/// # Errors
/// [`EncoderError::Config`] when the network has no head or another size, or the source lacks a tensor.
pub fn classifier(
    network: &NetworkConfig,
    size: i64,
    source: &dyn Source,
    options: &ExportOptions,
) -> Result<Exported> {
    check_side(network, size)?;
    if network.classes() < 1 {
        return Err(EncoderError::config("classes", "the network has no head to export"));
    }
    let mut g = Graph::new(source, options);
    let vector = g.embed("image", network);
    let logits = g.head(&vector, network);
    g.named_op("Softmax", &[&logits], vec![int("axis", -1)], "probability".into());
    let probability = [Axis::Free("N"), Axis::Fixed(network.classes())];
    let (input, output) =
        (NamedValue::new("image", &image_axes(size)), NamedValue::new("probability", &probability));
    let (model, parts) = g.finish(network.architecture, [&input, &output], &options.pairs())?;
    Ok(Exported { model, parts })
}

/// An encoder's embedding as the bytes of ONNX files: `image [N, 3, S, S]` to `embedding [N, D]`, in as many
/// files as it takes for each to have at most `most` bytes ([`MOST_BYTES`]), in the order in which they run:
/// the first takes `image`, each other the one value that the file before gives, `[N, T, D]`, and the last
/// gives `embedding`. Transformers alone are cut.
///
/// # Errors
/// [`EncoderError::Config`] when the network takes another size or the source lacks a tensor;
/// [`EncoderError::TooLarge`] where a file that cannot be cut further is larger.
pub fn embedding(
    network: &NetworkConfig,
    size: i64,
    source: &dyn Source,
    options: &ExportOptions,
    most: u64,
) -> Result<Vec<Vec<u8>>> {
    check_side(network, size)?;
    let name = network.architecture;
    let mut g = Graph::new(source, options);
    let full = size::share(network, options.weights, most);
    let input = NamedValue::new("image", &image_axes(size));
    g.cutting = Some(Cutting::new(full, name, &options.metadata, input));
    let vector = g.embed("image", network);
    g.named_op("Identity", &[&vector], vec![], "embedding".into());
    let output = NamedValue::new("embedding", &[Axis::Free("N"), Axis::Fixed(network.dim())]);
    let Some(cut) = g.cut() else { return Ok(vec![]) };
    let (mut files, input) = cut.done();
    let (last, _) = g.finish(name, [&input, &output], &options.pairs())?;
    let fits = |bytes: usize| size::fits(name, bytes as u64, options.weights, most);
    fits(last.encoded_len())?;
    files.push(last.encode_to_vec());
    files.iter().try_for_each(|f| fits(f.len()))?;
    Ok(files)
}

/// The tensors that a network is made of, by timm's names.
#[must_use]
pub fn outline(network: &NetworkConfig) -> Outline {
    let options = ExportOptions::default();
    let mut g = Graph::new(&Shapes, &options);
    let vector = g.embed("image", network);
    if network.classes() > 0 {
        g.head(&vector, network);
    }
    g.outline
}

impl Exported {
    /// The file's bytes.
    ///
    /// # Errors
    /// [`EncoderError::TooLarge`].
    pub fn encoded(&self, weights: WeightKind) -> Result<Vec<u8>> {
        let name = self.model.graph.as_ref().map_or("", |g| &g.name);
        size::fits(name, self.model.encoded_len() as u64, weights, MOST_BYTES)?;
        Ok(self.model.encode_to_vec())
    }
}

fn image_axes(size: i64) -> Vec<Axis> {
    vec![Axis::Free("N"), Axis::Fixed(3), Axis::Fixed(size), Axis::Fixed(size)]
}

fn check_side(network: &NetworkConfig, size: i64) -> Result<()> {
    match network.image() {
        Some(own) if own != size => {
            Err(EncoderError::config("size", format!("{size}, but the network takes {own}")))
        }
        _ => Ok(()),
    }
}

impl Graph<'_> {
    /// `image [N, 3, S, S]` to the vector the head sees, `[N, D]`.
    fn embed(&mut self, x: &str, network: &NetworkConfig) -> Value {
        match &network.shape {
            NetworkShape::Vit(config) => self.vit_embed(x, config),
            NetworkShape::EfficientNet(config) => self.efficientnet_embed(x, config.variant),
            NetworkShape::ResNet(_) => self.resnet_embed(x),
            NetworkShape::ResNetV2(_) => self.resnet_v2_embed(x),
            NetworkShape::Swin(config) => self.swin_embed(x, config),
        }
    }

    fn head(&mut self, vector: &str, network: &NetworkConfig) -> Value {
        let name = match network.shape {
            NetworkShape::Swin(_) => "head.fc",
            _ => network.head().trim_end_matches('.'),
        };
        self.linear(vector, name, dense(network.dim(), network.classes()))
    }
}
