//! EfficientNet, equal to timm's: V1 (b0 ... b7), Lite0, Lite2 and V2-S, TensorFlow's ports (`tf_`)
//! and torchvision's V2-S, all with timm's parameter names.

mod plan;

use serde::{Deserialize, Serialize};
use tch::Tensor;
use tch::nn::{Init, Path};

use crate::error::{NetError, Result};
use crate::layer::{BatchNorm, Conv2d, ConvShape, Linear, drop_path};

pub use crate::layer::Act;

use self::plan::{Block, Flavour, Stage, round_channels};

pub use self::plan::Variant;

/// How to build one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EfficientNetConfig {
    /// Which one.
    pub variant: Variant,
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

impl EfficientNetConfig {
    /// No dropout, no stochastic depth.
    #[must_use]
    pub fn new(variant: Variant, classes: i64) -> Self {
        Self { variant, classes, dropout: 0.0, drop_path: 0.0, head_bias: 0.0 }
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
}

/// Convolution and its batch norm, activation by the caller.
#[derive(Debug)]
pub(crate) struct ConvNorm {
    pub conv: Conv2d,
    pub norm: BatchNorm,
    /// Activation after the norm.
    pub act: Option<Act>,
    /// Zeros are put around the input as TensorFlow's `SAME` does, which depends on its size; the
    /// convolution itself pads nothing then.
    pub same: bool,
}

impl ConvNorm {
    pub(crate) fn new(
        p: &Path,
        names: (&str, &str),
        shape: ConvShape,
        act: impl Into<Option<Act>>,
    ) -> Self {
        Self {
            conv: Conv2d::new(&(p / names.0), shape),
            norm: BatchNorm::new(&(p / names.1), shape.output),
            act: act.into(),
            same: false,
        }
    }

    fn flavoured(mut self, flavour: Flavour) -> Self {
        self.norm.eps = flavour.eps;
        // At stride 1 an odd kernel's padding is the same on all sides.
        if flavour.same && self.conv.stride > 1 {
            self.same = true;
            self.conv.padding = 0;
        }
        self
    }

    pub(crate) fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let x = if self.same { &pad_same(x, &self.conv) } else { x };
        let y = self.norm.forward(&self.conv.forward(x), train);
        self.act.map_or_else(|| y.shallow_clone(), |a| a.forward(&y))
    }
}

/// Zeros (before, after) one axis of `size` so that `ceil(size / stride)` comes out, as
/// TensorFlow's `SAME`: the odd one is at the end.
fn same_padding(size: i64, kernel: i64, stride: i64) -> (i64, i64) {
    let total = ((size + stride - 1) / stride - 1) * stride + kernel - size;
    let total = total.max(0);
    (total / 2, total - total / 2)
}

fn pad_same(x: &Tensor, conv: &Conv2d) -> Tensor {
    let (size, kernel) = (x.size(), conv.weight.size()[2]);
    let (top, bottom) = same_padding(size[2], kernel, conv.stride);
    let (left, right) = same_padding(size[3], kernel, conv.stride);
    x.constant_pad_nd([left, right, top, bottom])
}

/// Squeeze and excitation.
#[derive(Debug)]
pub(crate) struct SqueezeExcite {
    pub reduce: Conv2d,
    pub expand: Conv2d,
    pub act: Act,
}

impl SqueezeExcite {
    fn new(p: &Path, channels: i64, reduced: i64, act: Act) -> Self {
        Self {
            reduce: Conv2d::new(&(p / "conv_reduce"), ConvShape::new(channels, reduced, 1).bias()),
            expand: Conv2d::new(&(p / "conv_expand"), ConvShape::new(reduced, channels, 1).bias()),
            act,
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let pooled = x.mean_dim([2i64, 3].as_slice(), true, None);
        let gate = self.expand.forward(&self.act.forward(&self.reduce.forward(&pooled)));
        x * gate.sigmoid()
    }
}

/// One residual block: convolutions in order, squeeze-and-excitation before the last.
#[derive(Debug)]
pub(crate) struct Residual {
    pub convs: Vec<ConvNorm>,
    pub se: Option<SqueezeExcite>,
    pub skip: bool,
    pub drop_path: f64,
}

impl Residual {
    fn new(p: &Path, stage: &Stage, input: i64, stride: i64, act: Act, drop_path: f64) -> Self {
        let Stage { block, kernel: k, channels: output, .. } = *stage;
        let middle = match block {
            Block::Separable | Block::Plain => input,
            Block::Inverted | Block::Fused => round_channels((input * stage.expand) as f64),
        };
        let depthwise = ConvShape::new(middle, middle, k).stride(stride).groups(middle);
        let convs = match block {
            Block::Separable => vec![
                ConvNorm::new(p, ("conv_dw", "bn1"), depthwise, act),
                ConvNorm::new(p, ("conv_pw", "bn2"), ConvShape::new(middle, output, 1), None),
            ],
            Block::Inverted => vec![
                ConvNorm::new(p, ("conv_pw", "bn1"), ConvShape::new(input, middle, 1), act),
                ConvNorm::new(p, ("conv_dw", "bn2"), depthwise, act),
                ConvNorm::new(p, ("conv_pwl", "bn3"), ConvShape::new(middle, output, 1), None),
            ],
            Block::Fused => {
                let full = ConvShape::new(input, middle, k).stride(stride);
                vec![
                    ConvNorm::new(p, ("conv_exp", "bn1"), full, act),
                    ConvNorm::new(p, ("conv_pwl", "bn2"), ConvShape::new(middle, output, 1), None),
                ]
            }
            Block::Plain => {
                let full = ConvShape::new(input, output, k).stride(stride);
                vec![ConvNorm::new(p, ("conv", "bn1"), full, act)]
            }
        };
        // The reduction counts from the block's input, not from the expanded width.
        let se = stage.se.then(|| SqueezeExcite::new(&(p / "se"), middle, input / 4, act));
        Self { convs, se, skip: stride == 1 && input == output, drop_path }
    }

    fn flavoured(self, flavour: Flavour) -> Self {
        Self { convs: self.convs.into_iter().map(|c| c.flavoured(flavour)).collect(), ..self }
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let mut y = x.shallow_clone();
        for (i, conv) in self.convs.iter().enumerate() {
            if i + 1 == self.convs.len()
                && let Some(se) = &self.se
            {
                y = se.forward(&y);
            }
            y = conv.forward(&y, train);
        }
        if self.skip { drop_path(y, self.drop_path, train) + x } else { y }
    }
}

/// The trunk: stem and stages, features at strides 2, 4, 8, 16 and, unless it ends before, 32.
#[derive(Debug)]
pub struct Trunk {
    pub(crate) stem: ConvNorm,
    pub(crate) blocks: Vec<Vec<Residual>>,
    pub(crate) taps: [usize; 5],
    channels: [i64; 5],
}

impl Trunk {
    /// Builds it under `p` with timm's names.
    #[must_use]
    pub fn new(p: &Path, variant: Variant, drop_rate: f64) -> Self {
        Self::with_levels(p, variant, drop_rate, 5)
    }

    /// The trunk with its first `levels` features alone, 1 to 5: 4 end at stride 16.
    pub(crate) fn with_levels(p: &Path, variant: Variant, drop_rate: f64, levels: usize) -> Self {
        let (plan, flavour) = (variant.plan(), variant.flavour());
        let last = plan.taps[levels - 1];
        let shape = ConvShape::new(3, plan.stem, 3).stride(2);
        let stem = ConvNorm::new(p, ("conv_stem", "bn1"), shape, plan.act).flavoured(flavour);
        let total: i32 = plan.stages.iter().map(|s| s.repeats).sum();
        let (mut input, mut index) = (plan.stem, 0);
        let mut blocks = Vec::new();
        for (i, stage) in plan.stages.iter().enumerate().take(last + 1) {
            let mut row = Vec::new();
            for j in 0..stage.repeats {
                let stride = if j == 0 { stage.stride } else { 1 };
                let rate = drop_rate * f64::from(index) / f64::from(total);
                let name = p / "blocks" / i / j;
                let block = Residual::new(&name, stage, input, stride, plan.act, rate);
                row.push(block.flavoured(flavour));
                input = stage.channels;
                index += 1;
            }
            blocks.push(row);
        }
        let channels = plan.taps.map(|t| plan.stages[t].channels);
        Self { stem, blocks, taps: plan.taps, channels }
    }

    /// Channels of the five features, also of those that the trunk ends before.
    #[must_use]
    pub fn channels(&self) -> [i64; 5] {
        self.channels
    }

    /// `[N, 3, H, W]` to one map per feature, at strides 2, 4, 8, 16, 32.
    #[must_use]
    pub fn features(&self, x: &Tensor, train: bool) -> Vec<Tensor> {
        let mut y = self.stem.forward(x, train);
        let mut out = Vec::with_capacity(5);
        for (i, stage) in self.blocks.iter().enumerate() {
            for block in stage {
                y = block.forward(&y, train);
            }
            if self.taps.contains(&i) {
                out.push(y.shallow_clone());
            }
        }
        out
    }

    /// Opens the squeeze-and-excitation gates: weights shrink to a tenth, the gate's bias becomes
    /// `bias` (3 lets 95 % through). Use it after loading weights that were trained without gates
    /// (EfficientNet-Lite), so that the convolutions see the scale they were trained for.
    pub fn open_gates(&self, bias: f64) {
        tch::no_grad(|| {
            for se in self.blocks.iter().flatten().filter_map(|b| b.se.as_ref()) {
                let mut weight = se.expand.weight.shallow_clone();
                let _ = weight.g_mul_scalar_(0.1);
                if let Some(b) = &se.expand.bias {
                    let _ = b.shallow_clone().fill_(bias);
                }
            }
        });
    }
}

/// EfficientNet classifier.
#[derive(Debug)]
pub struct EfficientNet {
    /// Stem and stages.
    pub trunk: Trunk,
    pub(crate) head: ConvNorm,
    /// Absent when built for no classes.
    pub(crate) classifier: Option<Linear>,
    config: EfficientNetConfig,
    dim: i64,
}

impl EfficientNet {
    /// Builds it under `p` with timm's names; the classifier starts at zero weights.
    ///
    /// # Errors
    /// [`NetError::Config`] for a setting out of range.
    pub fn new(p: &Path, config: &EfficientNetConfig) -> Result<Self> {
        config.check()?;
        let plan = config.variant.plan();
        let trunk = Trunk::new(p, config.variant, config.drop_path);
        let shape = ConvShape::new(trunk.channels[4], plan.head, 1);
        let head = ConvNorm::new(p, ("conv_head", "bn2"), shape, plan.act);
        Ok(Self {
            head: head.flavoured(config.variant.flavour()),
            classifier: (config.classes > 0).then(|| {
                Linear::head(&(p / "classifier"), plan.head, config.classes, config.head_bias)
            }),
            trunk,
            config: config.clone(),
            dim: plan.head,
        })
    }

    /// Settings that it was built from.
    #[must_use]
    pub fn config(&self) -> &EfficientNetConfig {
        &self.config
    }

    /// Width of [`Self::embed`].
    #[must_use]
    pub fn dim(&self) -> i64 {
        self.dim
    }

    /// `[N, 3, H, W]` to `[N, dim, H/32, W/32]`, before pooling.
    pub fn forward_features(&self, x: &Tensor, train: bool) -> Tensor {
        let maps = self.trunk.features(x, train);
        self.head.forward(maps.last().expect("five maps"), train)
    }

    /// `[N, 3, H, W]` to the pooled `[N, dim]`.
    pub fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        self.forward_features(x, train).mean_dim([2i64, 3].as_slice(), false, None)
    }

    /// `[N, 3, H, W]` to logits `[N, classes]`, or to [`Self::embed`] without a head.
    pub fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let y = self.embed(x, train);
        let Some(classifier) = &self.classifier else { return y };
        let y = if self.config.dropout > 0.0 { y.dropout(self.config.dropout, train) } else { y };
        classifier.forward(&y)
    }
}

/// timm's uniform start for a head that is not zeroed.
#[must_use]
pub fn timm_head_init(classes: i64) -> Init {
    let r = 1.0 / (classes as f64).sqrt();
    Init::Uniform { lo: -r, up: r }
}
