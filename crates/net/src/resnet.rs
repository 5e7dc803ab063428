//! ResNet-50: v1.5 (the stride in the 3x3 convolution), equal to torchvision's and timm's with
//! their parameter names, and v2 (norms before convolutions) up to its third stage.

use serde::{Deserialize, Serialize};
use tch::Tensor;
use tch::nn::Path;

use crate::efficientnet::{Act, ConvNorm};
use crate::error::{NetError, Result};
use crate::layer::{BatchNorm, Conv2d, ConvShape, Linear, drop_path};

/// How to build one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNetConfig {
    /// Classes of the head; 0 leaves it out.
    pub classes: i64,
    /// Dropout before the head, [0, 1).
    #[serde(default)]
    pub dropout: f64,
    /// Stochastic depth at the last block, growing linearly from 0, [0, 1).
    #[serde(default)]
    pub drop_path: f64,
    /// Constant bias of the head.
    #[serde(default)]
    pub head_bias: f64,
}

impl ResNetConfig {
    /// No dropout, no stochastic depth.
    #[must_use]
    pub fn new(classes: i64) -> Self {
        Self { classes, dropout: 0.0, drop_path: 0.0, head_bias: 0.0 }
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// [`NetError::Config`] with the key.
    pub fn check(&self) -> Result<()> {
        for (key, p) in [("dropout", self.dropout), ("drop_path", self.drop_path)] {
            if !(0.0..1.0).contains(&p) {
                return Err(NetError::config(key, format!("{p} is not in [0, 1)")));
            }
        }
        if self.classes < 0 {
            return Err(NetError::config("classes", "must not be negative"));
        }
        Ok(())
    }

    fn head(&self, p: &Path, dim: i64) -> Option<Linear> {
        (self.classes > 0).then(|| Linear::head(&(p / "fc"), dim, self.classes, self.head_bias))
    }

    pub(crate) fn logits(&self, y: Tensor, head: Option<&Linear>, train: bool) -> Tensor {
        let Some(head) = head else { return y };
        let y = if self.dropout > 0.0 { y.dropout(self.dropout, train) } else { y };
        head.forward(&y)
    }
}

/// Middle width, blocks and stride of the stages; a stage puts out four times its middle width.
const STAGES: [(i64, usize, i64); 4] = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)];

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

/// A bottleneck: 1x1, 3x3 (with the stride), 1x1, each with a batch norm.
#[derive(Debug)]
pub(crate) struct Bottleneck {
    pub convs: [ConvNorm; 3],
    pub downsample: Option<ConvNorm>,
    drop_path: f64,
}

impl Bottleneck {
    fn new(p: &Path, input: i64, middle: i64, stride: i64, first: bool, drop_path: f64) -> Self {
        let output = 4 * middle;
        let conv = |names, shape, act: Option<Act>| ConvNorm::new(p, names, shape, act);
        let relu = Some(Act::Relu);
        let convs = [
            conv(("conv1", "bn1"), ConvShape::new(input, middle, 1), relu),
            conv(("conv2", "bn2"), ConvShape::new(middle, middle, 3).stride(stride), relu),
            conv(("conv3", "bn3"), ConvShape::new(middle, output, 1), None),
        ];
        // A block starts as the identity (timm's `zero_init_last`).
        if let Some(scale) = &convs[2].norm.weight {
            let _ = tch::no_grad(|| scale.shallow_clone().zero_());
        }
        let downsample = first.then(|| {
            let shape = ConvShape::new(input, output, 1).stride(stride);
            ConvNorm::new(&(p / "downsample"), ("0", "1"), shape, None)
        });
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
    /// timm's and torchvision's name.
    pub const NAME: &'static str = "resnet50";
    /// Width of [`crate::encoder::Encoder::embed`].
    pub const DIM: i64 = 2048;

    /// Builds it under `p`; the head starts at zero weights and a constant bias.
    ///
    /// # Errors
    /// [`NetError::Config`] for a setting out of range.
    pub fn new(p: &Path, config: &ResNetConfig) -> Result<Self> {
        config.check()?;
        let shape = ConvShape::new(3, 64, 7).stride(2);
        let stem = ConvNorm::new(p, ("conv1", "bn1"), shape, Act::Relu);
        let last = STAGES.iter().map(|s| s.1).sum::<usize>() - 1;
        let (mut input, mut index) = (64, 0usize);
        let mut layers = Vec::new();
        for (i, (middle, blocks, stride)) in STAGES.into_iter().enumerate() {
            let mut row = Vec::new();
            for j in 0..blocks {
                let name = p / format!("layer{}", i + 1) / j;
                let stride = if j == 0 { stride } else { 1 };
                let rate = config.drop_path * index as f64 / last as f64;
                row.push(Bottleneck::new(&name, input, middle, stride, j == 0, rate));
                input = 4 * middle;
                index += 1;
            }
            layers.push(row);
        }
        Ok(Self { stem, layers, fc: config.head(p, input), config: config.clone() })
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
    fn new(p: &Path, input: i64, middle: i64, stride: i64, first: bool, drop_path: f64) -> Self {
        let output = 4 * middle;
        let norm = |name: &str, channels| BatchNorm::new(&(p / name), channels);
        let conv = |name: &str, shape| Conv2d::new(&(p / name), shape);
        Self {
            norms: [norm("norm1", input), norm("norm2", middle), norm("norm3", middle)],
            convs: [
                conv("conv1", ConvShape::new(input, middle, 1)),
                conv("conv2", ConvShape::new(middle, middle, 3).stride(stride)),
                conv("conv3", ConvShape::new(middle, output, 1)),
            ],
            downsample: first
                .then(|| conv("downsample", ConvShape::new(input, output, 1).stride(stride))),
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
    /// Its name in the table of encoders.
    pub const NAME: &'static str = "resnet50v2_stage3";
    /// Width of [`crate::encoder::Encoder::embed`].
    pub const DIM: i64 = 1024;

    /// Builds it under `p`; the head starts at zero weights and a constant bias.
    ///
    /// # Errors
    /// [`NetError::Config`] for a setting out of range.
    pub fn new(p: &Path, config: &ResNetConfig) -> Result<Self> {
        config.check()?;
        let norm0 = BatchNorm::new(&(p / "norm0"), 3);
        let shape = ConvShape::new(3, 64, 7).stride(2);
        let stem = ConvNorm::new(p, ("conv", "norm1"), shape, Act::Relu);
        let rows = &STAGES[..3];
        let last = rows.iter().map(|s| s.1).sum::<usize>() - 1;
        let (mut input, mut index) = (64, 0usize);
        let mut stages = Vec::new();
        for (i, &(middle, blocks, stride)) in rows.iter().enumerate() {
            let mut row = Vec::new();
            for j in 0..blocks {
                let name = p / "stages" / i / j;
                let stride = if j == 0 { stride } else { 1 };
                let rate = config.drop_path * index as f64 / last as f64;
                row.push(Unit::new(&name, input, middle, stride, j == 0, rate));
                input = 4 * middle;
                index += 1;
            }
            stages.push(row);
        }
        let norm = BatchNorm::new(&(p / "norm"), input);
        Ok(Self { norm0, stem, stages, norm, fc: config.head(p, input), config: config.clone() })
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
