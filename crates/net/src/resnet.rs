//! ResNet-50: v1.5 (the stride in the 3x3 convolution), equal to torchvision's and timm's with
//! their parameter names, and v2 (norms before convolutions) up to its third stage.

use encoders::encoder::{NetworkConfig, NetworkShape};
use encoders::resnet::{self, BottleneckShape, stages, stem};
use tch::Tensor;
use tch::nn::Path;

use crate::efficientnet::ConvNorm;
use crate::error::Result;
use crate::layer::{BatchNorm, Conv2d, Linear, drop_path};

pub use encoders::resnet::ResNetConfig;

fn max_pool(x: &Tensor) -> Tensor {
    x.max_pool2d([3, 3], [2, 2], [1, 1], [1, 1], false)
}

/// Blocks with their rates of stochastic depth, growing linearly from 0 to `drop_path`.
fn built<B>(
    rows: &[Vec<BottleneckShape>],
    drop_path: f64,
    mut block: impl FnMut(&BottleneckShape, f64) -> B,
) -> Vec<Vec<B>> {
    let last = rows.iter().map(Vec::len).sum::<usize>() - 1;
    let mut index = 0_usize;
    let mut next_block = |shape| {
        let rate = drop_path * index as f64 / last as f64;
        index += 1;
        block(shape, rate)
    };
    rows.iter().map(|row| row.iter().map(&mut next_block).collect()).collect()
}

/// A residual block, and what else differs between the networks of v1.5 and v2.
pub trait ResidualBlock: Send + Sized {
    /// Names of the first convolution and of the norm behind it.
    const STEM: (&'static str, &'static str);
    /// What the names of blocks begin with before the stage's number.
    const PREFIX: &'static str;
    /// The first stage's number in names.
    const FIRST: usize;
    /// How many stages the network has.
    const STAGES: usize;
    /// Channels of the last stage.
    const DIM: i64;
    /// Whether the image is normalised by `norm0`, and the last stage's output by `norm` and a ReLU.
    const PRE_ACTIVATION: bool;

    /// Builds it in its place in the network under `root`; `drop_path`: its rate of stochastic depth.
    fn new(root: &Path, shape: &BottleneckShape, drop_path: f64) -> Self;

    /// `[N, C, H, W]` to the next block's input.
    fn forward(&self, x: &Tensor, train: bool) -> Tensor;

    /// The network of such blocks in the table of encoders.
    fn network(config: ResNetConfig) -> NetworkConfig;
}

/// v1.5's bottleneck: 1x1, 3x3 (with the stride), 1x1, each with a batch norm.
#[derive(Debug)]
pub struct Bottleneck {
    convs: [ConvNorm; 3],
    downsample: Option<ConvNorm>,
    drop_path: f64,
}

impl ResidualBlock for Bottleneck {
    const STEM: (&'static str, &'static str) = ("conv1", "bn1");
    const PREFIX: &'static str = "layer";
    const FIRST: usize = 1;
    const STAGES: usize = 4;
    const DIM: i64 = resnet::DIM;
    const PRE_ACTIVATION: bool = false;

    fn new(root: &Path, shape: &BottleneckShape, drop_path: f64) -> Self {
        let p = &(root / format!("layer{}", shape.at.0 + 1) / shape.at.1);
        let convs = shape.convs().map(|c| ConvNorm::new(p, &c));
        // A block starts as the identity (timm's `zero_init_last`).
        if let Some(scale) = &convs[2].norm.weight {
            let _ = tch::no_grad(|| scale.shallow_clone().zero_());
        }
        let shortcut = shape.shortcut_norm();
        let downsample = shortcut.map(|c| ConvNorm::new(&(p / "downsample"), &c));
        Self { convs, downsample, drop_path }
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let mut y = self.convs[0].forward(x, train);
        for conv in &self.convs[1..] {
            y = conv.forward(&y, train);
        }
        let y = drop_path(y, self.drop_path, train);
        match &self.downsample {
            Some(shortcut) => (y + shortcut.forward(x, train)).relu(),
            None => (y + x).relu(),
        }
    }

    fn network(config: ResNetConfig) -> NetworkConfig {
        NetworkConfig { architecture: resnet::NAME, shape: NetworkShape::ResNet(config) }
    }
}

/// v2's bottleneck, with its norms before its convolutions; a stage's first one takes its shortcut from the activated
/// input.
#[derive(Debug)]
pub struct BottleneckV2 {
    norms: [BatchNorm; 3],
    convs: [Conv2d; 3],
    downsample: Option<Conv2d>,
    drop_path: f64,
}

impl ResidualBlock for BottleneckV2 {
    const STEM: (&'static str, &'static str) = ("conv", "norm1");
    const PREFIX: &'static str = "stages.";
    const FIRST: usize = 0;
    const STAGES: usize = 3;
    const DIM: i64 = resnet::V2_DIM;
    const PRE_ACTIVATION: bool = true;

    fn new(root: &Path, shape: &BottleneckShape, drop_path: f64) -> Self {
        let p = &(root / "stages" / shape.at.0 / shape.at.1);
        let norm = |name: &str, channels| BatchNorm::new(&(p / name), channels);
        let conv = |name: &str, shape| Conv2d::new(&(p / name), shape);
        let (input, middle, [first, second, third]) = (shape.input, shape.middle, shape.shapes());
        Self {
            norms: [norm("norm1", input), norm("norm2", middle), norm("norm3", middle)],
            convs: [conv("conv1", first), conv("conv2", second), conv("conv3", third)],
            downsample: shape.shortcut().map(|shape| conv("downsample", shape)),
            drop_path,
        }
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let active = self.norms[0].forward(x, train).relu();
        let mut y = self.convs[0].forward(&active);
        for (norm, conv) in self.norms.iter().zip(&self.convs).skip(1) {
            y = conv.forward(&norm.forward(&y, train).relu());
        }
        let y = drop_path(y, self.drop_path, train);
        match &self.downsample {
            Some(shortcut) => y + shortcut.forward(&active),
            None => y + x,
        }
    }

    fn network(config: ResNetConfig) -> NetworkConfig {
        NetworkConfig { architecture: resnet::V2_NAME, shape: NetworkShape::ResNetV2(config) }
    }
}

/// ResNet-50 of blocks of either version.
#[derive(Debug)]
pub struct ResNet50<B> {
    norm0: Option<BatchNorm>,
    stem: ConvNorm,
    pub(crate) stages: Vec<Vec<B>>,
    norm: Option<BatchNorm>,
    pub(crate) fc: Option<Linear>,
    config: ResNetConfig,
}

/// ResNet-50 v1.5: `conv1`, `bn1`, `layer1` ... `layer4`, `fc`. 2048 wide.
pub type ResNet = ResNet50<Bottleneck>;

/// ResNet-50 v2 (pre-activation, as Gluon and the ONNX model zoo have it) up to its third stage:
/// `norm0`, `conv`, `norm1`, `stages.{0..2}.{i}.{norm,conv}{1..3}` and `downsample`, `norm`. 1024 wide.
///
/// Its input is normalised by ImageNet's mean and SD.
pub type ResNetV2 = ResNet50<BottleneckV2>;

impl<B: ResidualBlock> ResNet50<B> {
    /// Builds it under `p`; the head starts at zero weights and a constant bias.
    ///
    /// # Errors
    /// [`NetError::Encoder`](crate::NetError::Encoder) for a setting out of range.
    pub fn new(p: &Path, config: &ResNetConfig) -> Result<Self> {
        config.check()?;
        let norm =
            |name: &str, channels| B::PRE_ACTIVATION.then(|| BatchNorm::new(&(p / name), channels));
        let norm0 = norm("norm0", 3);
        let stem = ConvNorm::new(p, &stem(B::STEM));
        let stages =
            built(&stages(B::STAGES), config.drop_path, |shape, rate| B::new(p, shape, rate));
        let norm = norm("norm", B::DIM);
        let head = || Linear::head(&(p / "fc"), B::DIM, config.classes, config.head_bias);
        let fc = (config.classes > 0).then(head);
        Ok(Self { norm0, stem, stages, norm, fc, config: config.clone() })
    }

    /// Settings that it was built from.
    #[must_use]
    pub fn config(&self) -> &ResNetConfig {
        &self.config
    }

    /// `[N, 3, H, W]`, before pooling: to `[N, 2048, H/32, W/32]` of v1.5, to `[N, 1024, H/16, W/16]` of v2, whose last
    /// norm and ReLU are those that open stage four.
    pub fn forward_features(&self, x: &Tensor, train: bool) -> Tensor {
        let normalised = self.norm0.as_ref().map(|norm| norm.forward(x, train));
        let mut y = max_pool(&self.stem.forward(normalised.as_ref().unwrap_or(x), train));
        for block in self.stages.iter().flatten() {
            y = block.forward(&y, train);
        }
        match &self.norm {
            Some(norm) => norm.forward(&y, train).relu(),
            None => y,
        }
    }
}
