//! ResNet-50: v1.5 (the stride in the 3x3 convolution), equal to torchvision's and timm's with
//! their parameter names, and v2 (norms before convolutions) up to its third stage.

use encoders::resnet::{BottleneckShape, stages, stem};
use tch::Tensor;
use tch::nn::Path;

use crate::efficientnet::ConvNorm;
use crate::error::Result;
use crate::layer::{BatchNorm, Conv2d, Linear, drop_path};

pub use encoders::resnet::ResNetConfig;

/// What a configuration makes of its head.
trait Head {
    fn head(&self, p: &Path, dim: i64) -> Option<Linear>;
}

impl Head for ResNetConfig {
    fn head(&self, p: &Path, dim: i64) -> Option<Linear> {
        (self.classes > 0).then(|| Linear::head(&(p / "fc"), dim, self.classes, self.head_bias))
    }
}

/// Dropout and the head.
pub(crate) fn logits(
    config: &ResNetConfig,
    y: Tensor,
    head: Option<&Linear>,
    train: bool,
) -> Tensor {
    let Some(head) = head else { return y };
    let y = if config.dropout > 0.0 { y.dropout(config.dropout, train) } else { y };
    head.forward(&y)
}

fn max_pool(x: &Tensor) -> Tensor {
    x.max_pool2d([3, 3], [2, 2], [1, 1], [1, 1], false)
}

pub(crate) fn mean_over_image(x: &Tensor) -> Tensor {
    x.mean_dim([2i64, 3].as_slice(), false, None)
}

/// Blocks before block `index` of stage `stage`.
pub(crate) fn blocks_before(blocks: &[usize], stage: usize, index: usize) -> usize {
    blocks.iter().take(stage).sum::<usize>() + index
}

/// `<stage>.<block>.rest` of a name.
pub(crate) fn stage_and_block(name: &str) -> Option<(usize, usize)> {
    let mut parts = name.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
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

/// A bottleneck: 1x1, 3x3 (with the stride), 1x1, each with a batch norm.
#[derive(Debug)]
pub(crate) struct Bottleneck {
    pub convs: [ConvNorm; 3],
    pub downsample: Option<ConvNorm>,
    drop_path: f64,
}

impl Bottleneck {
    fn new(p: &Path, shape: &BottleneckShape, drop_path: f64) -> Self {
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
}

/// ResNet-50 v1.5: `conv1`, `bn1`, `layer1` ... `layer4`, `fc`. 2048 wide.
#[derive(Debug)]
pub struct ResNet {
    pub(crate) stem: ConvNorm,
    pub(crate) layers: Vec<Vec<Bottleneck>>,
    pub(crate) fc: Option<Linear>,
    config: ResNetConfig,
}

impl ResNet {
    /// Builds it under `p`; the head starts at zero weights and a constant bias.
    ///
    /// # Errors
    /// [`NetError::Encoder`](crate::NetError::Encoder) for a setting out of range.
    pub fn new(p: &Path, config: &ResNetConfig) -> Result<Self> {
        config.check()?;
        let stem = ConvNorm::new(p, &stem(("conv1", "bn1")));
        let layers = built(&stages(4), config.drop_path, |shape, rate| {
            let name = p / format!("layer{}", shape.at.0 + 1) / shape.at.1;
            Bottleneck::new(&name, shape, rate)
        });
        let fc = config.head(p, encoders::resnet::DIM);
        Ok(Self { stem, layers, fc, config: config.clone() })
    }

    /// Settings that it was built from.
    #[must_use]
    pub fn config(&self) -> &ResNetConfig {
        &self.config
    }

    /// `[N, 3, H, W]` to `[N, 2048, H/32, W/32]`, before pooling.
    pub fn forward_features(&self, x: &Tensor, train: bool) -> Tensor {
        let mut y = max_pool(&self.stem.forward(x, train));
        for block in self.layers.iter().flatten() {
            y = block.forward(&y, train);
        }
        y
    }
}

/// A bottleneck with its norms before its convolutions; a stage's first one takes its shortcut from
/// the activated input.
#[derive(Debug)]
pub(crate) struct Unit {
    pub norms: [BatchNorm; 3],
    pub convs: [Conv2d; 3],
    pub downsample: Option<Conv2d>,
    drop_path: f64,
}

impl Unit {
    fn new(p: &Path, shape: &BottleneckShape, drop_path: f64) -> Self {
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
}

/// ResNet-50 v2 (pre-activation, as Gluon and the ONNX model zoo have it) up to its third stage:
/// `norm0`, `conv`, `norm1`, `stages.{0..2}.{i}.{norm,conv}{1..3}` and `downsample`, `norm`. 1024 wide.
///
/// Its input is normalised by ImageNet's mean and SD.
#[derive(Debug)]
pub struct ResNetV2 {
    pub(crate) norm0: BatchNorm,
    pub(crate) stem: ConvNorm,
    pub(crate) stages: Vec<Vec<Unit>>,
    pub(crate) norm: BatchNorm,
    pub(crate) fc: Option<Linear>,
    config: ResNetConfig,
}

impl ResNetV2 {
    /// Builds it under `p`; the head starts at zero weights and a constant bias.
    ///
    /// # Errors
    /// [`NetError::Encoder`](crate::NetError::Encoder) for a setting out of range.
    pub fn new(p: &Path, config: &ResNetConfig) -> Result<Self> {
        config.check()?;
        let norm0 = BatchNorm::new(&(p / "norm0"), 3);
        let stem = ConvNorm::new(p, &stem(("conv", "norm1")));
        let stages = built(&stages(3), config.drop_path, |shape, rate| {
            Unit::new(&(p / "stages" / shape.at.0 / shape.at.1), shape, rate)
        });
        let dim = encoders::resnet::V2_DIM;
        let norm = BatchNorm::new(&(p / "norm"), dim);
        Ok(Self { norm0, stem, stages, norm, fc: config.head(p, dim), config: config.clone() })
    }

    /// Settings that it was built from.
    #[must_use]
    pub fn config(&self) -> &ResNetConfig {
        &self.config
    }

    /// `[N, 3, H, W]` to `[N, 1024, H/16, W/16]`, after the norm and ReLU that open stage four.
    pub fn forward_features(&self, x: &Tensor, train: bool) -> Tensor {
        let mut y = max_pool(&self.stem.forward(&self.norm0.forward(x, train), train));
        for unit in self.stages.iter().flatten() {
            y = unit.forward(&y, train);
        }
        self.norm.forward(&y, train).relu()
    }
}
