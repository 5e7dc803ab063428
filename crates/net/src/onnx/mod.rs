//! Export to ONNX (opset 17) by the model-package contract: `image` in, `probability` out, batch
//! norm folded into convolutions, sigmoid or softmax inside.
//!
//! Only operators that every runtime optimises: Conv, Sigmoid and Mul (SiLU), MaxPool,
//! GlobalAveragePool, Resize, Concat, Split, Pad, LayerNormalization, MatMul, Softmax, Erf (GELU).

mod conv;
mod count;
mod graph;
mod model;
mod options;
mod parts;
pub use proto;
mod run;
mod size;
mod swin;
mod unfold;
mod vit;

use std::path::Path;

use prost::Message;

use self::graph::{Graph, Part, int};
use self::model::{Axis, NamedValue, Value};
use self::parts::Cutting;
use crate::checkpoint::write_whole;
use crate::encoder::{Encoder, Network};
use crate::error::{NetError, Result};
use crate::layer::Linear;
use crate::unet::EfficientUnet;
use proto::ModelProto;

pub use self::count::multiply_accumulates;
pub use self::options::{ExportOptions, WeightKind};
pub use self::run::Program;
pub use self::size::{MOST_BYTES, check_size};
pub use self::unfold::{classes_of, unfold_classifier, unfold_unet};

/// The U-Net as an ONNX file's bytes: `image [N, 3, H, W]` (H, W free multiples of 32) to
/// `probability [N, 1, H, W]`.
#[must_use]
pub fn unet(net: &EfficientUnet, options: &ExportOptions) -> Vec<u8> {
    unet_graph(net, options).0.encode_to_vec()
}

fn unet_graph(net: &EfficientUnet, options: &ExportOptions) -> (ModelProto, Vec<Part>) {
    let mut g = Graph::new(options);
    let maps = g.trunk("image", &net.encoder);
    let deepest = maps.len() - 1;
    let mut y = maps[deepest].clone();
    for (i, stage) in net.decoder.iter().enumerate() {
        y = g.upsample(&y);
        if i < deepest {
            y = g.op("Concat", &[&y, &maps[deepest - 1 - i]], vec![int("axis", 1)]);
        }
        y = g.conv_norm_act(&y, &stage.first);
        y = g.conv_norm_act(&y, &stage.second);
    }
    let mut logits = g.conv(&y, &net.head);
    if net.coarseness() > 1 {
        logits = g.enlarge(&logits, net.coarseness() as f32);
    }
    g.named_op("Sigmoid", &[&logits], vec![], "probability".into());
    let (n, h, w) = (Axis::Free("N"), Axis::Free("H"), Axis::Free("W"));
    let axes = |c| [n, Axis::Fixed(c), h, w];
    let name = net.config().architecture();
    let (input, output) =
        (NamedValue::new("image", &axes(3)), NamedValue::new("probability", &axes(1)));
    g.finish(name, [&input, &output], &options.pairs())
}

/// A classifier as an ONNX file's bytes: `image [N, 3, S, S]` to `probability [N, C]`.
/// `size` is S; a transformer takes only its own.
///
/// # Errors
/// [`NetError::Config`] when the network has no head or another size.
pub fn classifier(net: &dyn Encoder, size: i64, options: &ExportOptions) -> Result<Vec<u8>> {
    encoded(&classifier_graph(net, size, options)?.0, net, options)
}

fn classifier_graph(
    net: &dyn Encoder,
    size: i64,
    options: &ExportOptions,
) -> Result<(ModelProto, Vec<Part>)> {
    let mut g = Graph::new(options);
    if net.image().is_some_and(|s| s != size) {
        let own = net.image().unwrap_or_default();
        return Err(NetError::config("size", format!("{size}, but the network takes {own}")));
    }
    let head = head(net.network())?;
    let classes = head.weight.size()[0];
    let vector = g.embed("image", net.network());
    let logits = g.linear(&vector, head);
    g.named_op("Softmax", &[&logits], vec![int("axis", -1)], "probability".into());
    let n = Axis::Free("N");
    let image = [n, Axis::Fixed(3), Axis::Fixed(size), Axis::Fixed(size)];
    let probability = [n, Axis::Fixed(classes)];
    let (input, output) =
        (NamedValue::new("image", &image), NamedValue::new("probability", &probability));
    Ok(g.finish(net.architecture(), [&input, &output], &options.pairs()))
}

/// An encoder's embedding as an ONNX file's bytes: `image [N, 3, S, S]` to `embedding [N, D]`.
///
/// # Errors
/// [`NetError::Config`] when the network takes another size, [`NetError::TooLarge`].
pub fn embedding(net: &dyn Encoder, size: i64, options: &ExportOptions) -> Result<Vec<u8>> {
    let mut g = Graph::new(options);
    let (image, out) = (image_axes(size), embed_graph(&mut g, net, size)?);
    let (input, output) = (NamedValue::new("image", &image), NamedValue::new("embedding", &out));
    encoded(&g.finish(net.architecture(), [&input, &output], &options.pairs()).0, net, options)
}

/// [`embedding`] in as many files as it takes for each to have at most `most` bytes ([`MOST_BYTES`]), in
/// the order in which they run: the first takes `image`, each other the one value that the file before
/// gives, `[N, T, D]`, and the last gives `embedding`. What fits is one file, the same as [`embedding`]'s.
/// Transformers alone are cut.
///
/// # Errors
/// As [`embedding`]: [`NetError::TooLarge`] where a file that cannot be cut further is larger.
pub fn embedding_parts(
    net: &dyn Encoder,
    size: i64,
    options: &ExportOptions,
    most: u64,
) -> Result<Vec<Vec<u8>>> {
    let mut g = Graph::new(options);
    let full = size::share(net.network(), options.weights, most);
    let input = NamedValue::new("image", &image_axes(size));
    g.cutting = Some(Cutting::new(full, net.architecture(), &options.metadata, input));
    let out = embed_graph(&mut g, net, size)?;
    let Some(cut) = g.cut() else { return Ok(vec![]) };
    let (mut files, input) = cut.done();
    let output = NamedValue::new("embedding", &out);
    let last = g.finish(net.architecture(), [&input, &output], &options.pairs()).0;
    let fits = |bytes: usize| size::fits(net.architecture(), bytes as u64, options.weights, most);
    fits(last.encoded_len())?;
    files.push(last.encode_to_vec());
    files.iter().try_for_each(|f| fits(f.len()))?;
    Ok(files)
}

fn image_axes(size: i64) -> Vec<Axis> {
    vec![Axis::Free("N"), Axis::Fixed(3), Axis::Fixed(size), Axis::Fixed(size)]
}

/// Builds it; the axes of `embedding`.
fn embed_graph(g: &mut Graph, net: &dyn Encoder, size: i64) -> Result<Vec<Axis>> {
    if net.image().is_some_and(|s| s != size) {
        let own = net.image().unwrap_or_default();
        return Err(NetError::config("size", format!("{size}, but the network takes {own}")));
    }
    let vector = g.embed("image", net.network());
    g.named_op("Identity", &[&vector], vec![], "embedding".into());
    Ok(vec![Axis::Free("N"), Axis::Fixed(net.dim())])
}

/// The bytes of a file that is not too large.
fn encoded(model: &ModelProto, net: &dyn Encoder, options: &ExportOptions) -> Result<Vec<u8>> {
    size::fits(net.architecture(), model.encoded_len() as u64, options.weights, MOST_BYTES)?;
    Ok(model.encode_to_vec())
}

/// Writes an exported file, to a temporary name and then in place.
///
/// # Errors
/// The file system's, with the path.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_whole(path, bytes)
}

impl Graph {
    /// `image [N, 3, S, S]` to the vector the head sees, `[N, D]`.
    fn embed(&mut self, x: &str, network: Network<'_>) -> Value {
        match network {
            Network::Vit(net) => self.vit_embed(x, net),
            Network::EfficientNet(net) => self.efficientnet_embed(x, net),
            Network::ResNet(net) => self.resnet_embed(x, net),
            Network::ResNetV2(net) => self.resnet_v2_embed(x, net),
            Network::Swin(net) => self.swin_embed(x, net),
        }
    }
}

fn head(network: Network<'_>) -> Result<&Linear> {
    let head = match network {
        Network::Vit(net) => net.head.as_ref(),
        Network::EfficientNet(net) => net.classifier.as_ref(),
        Network::ResNet(net) => net.fc.as_ref(),
        Network::ResNetV2(net) => net.fc.as_ref(),
        Network::Swin(net) => net.fc.as_ref(),
    };
    head.ok_or_else(|| NetError::config("classes", "the network has no head to export"))
}
