//! A small builder of ONNX graphs.

use tch::{Kind, Tensor};

use super::model::{Axis, NamedValue, Value, model};
use super::options::{ExportOptions, WeightKind};
use super::parts::Cutting;
use crate::efficientnet::Act;
use crate::layer::{BatchNorm, Conv2d, LayerNorm, Linear};
use proto::{AttributeProto, ModelProto, NodeProto, TensorProto};

const FLOAT: i32 = 1;
const INT64: i32 = 7;
const FLOAT16: i32 = 10;

pub(crate) struct Graph {
    nodes: Vec<NodeProto>,
    weights: Vec<TensorProto>,
    parts: Vec<Part>,
    kind: WeightKind,
    next: usize,
    /// How it becomes several files; `None` for one.
    pub(super) cutting: Option<Cutting>,
}

/// Where the graph keeps what a layer learnt: the way back from a file to a network that trains.
pub(crate) enum Part {
    /// A tensor as it is, or with its two axes swapped.
    Plain { name: Value, tensor: Tensor, swapped: bool },
    /// A convolution and the batch norm folded into it; `output` is what comes out of both.
    Folded { weight: Value, bias: Value, output: Value, conv: Tensor, norm: Statistics },
    /// A batch norm as a factor and a shift of `input`.
    Norm { scale: Value, shift: Value, input: Value, norm: Statistics },
}

/// The tensors of a batch norm that has all of them.
pub(crate) struct Statistics {
    pub weight: Tensor,
    pub bias: Tensor,
    pub mean: Tensor,
    pub var: Tensor,
    pub eps: f64,
}

impl Statistics {
    fn read(norm: &BatchNorm) -> Option<Self> {
        Some(Self {
            weight: norm.weight.as_ref()?.shallow_clone(),
            bias: norm.bias.as_ref()?.shallow_clone(),
            mean: norm.running_mean.shallow_clone(),
            var: norm.running_var.shallow_clone(),
            eps: norm.eps,
        })
    }
}

pub(crate) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { name: name.into(), ints: values.to_vec(), r#type: 7, ..Default::default() }
}

pub(crate) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: name.into(), i: value, r#type: 2, ..Default::default() }
}

fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { name: name.into(), f: value, r#type: 1, ..Default::default() }
}

fn string(name: &str, value: &str) -> AttributeProto {
    AttributeProto { name: name.into(), s: value.into(), r#type: 3, ..Default::default() }
}

fn floats_of(t: &Tensor) -> Vec<f32> {
    let flat = t.detach().to_device(tch::Device::Cpu).to_kind(Kind::Float).contiguous();
    Vec::<f32>::try_from(flat.reshape([-1])).expect("a flat f32 tensor")
}

fn double(t: &Tensor) -> Tensor {
    t.detach().to_device(tch::Device::Cpu).to_kind(Kind::Double)
}

/// What a batch norm multiplies by, in f64.
fn norm_scale(norm: &BatchNorm) -> Tensor {
    let scale = (double(&norm.running_var) + norm.eps).rsqrt();
    match &norm.weight {
        Some(w) => scale * double(w),
        None => scale,
    }
}

/// Weight and bias of a convolution that takes in the batch norm after it.
fn folded(conv: &Conv2d, norm: &BatchNorm) -> (Tensor, Tensor) {
    let scale = norm_scale(norm);
    let weight = double(&conv.weight) * scale.reshape([-1, 1, 1, 1]);
    let mean = match &conv.bias {
        Some(b) => double(&norm.running_mean) - double(b),
        None => double(&norm.running_mean),
    };
    let mut bias = -mean * scale;
    if let Some(b) = &norm.bias {
        bias += double(b);
    }
    (weight, bias)
}

fn pads(conv: &Conv2d) -> AttributeProto {
    ints("pads", &[conv.padding; 4])
}

impl Graph {
    pub(crate) fn new(options: &ExportOptions) -> Self {
        let (nodes, weights, parts) = (Vec::new(), Vec::new(), Vec::new());
        Self { nodes, weights, parts, kind: options.weights, next: 0, cutting: None }
    }

    fn fresh(&mut self, what: &str) -> String {
        self.next += 1;
        format!("{}_{}", what.to_lowercase(), self.next)
    }

    pub(crate) fn op(&mut self, op: &str, input: &[&str], attribute: Vec<AttributeProto>) -> Value {
        let output = self.fresh(op);
        self.named_op(op, input, attribute, output)
    }

    pub(crate) fn named_op(
        &mut self,
        op: &str,
        input: &[&str],
        attribute: Vec<AttributeProto>,
        output: Value,
    ) -> Value {
        self.nodes.push(NodeProto {
            input: input.iter().map(|s| (*s).to_string()).collect(),
            output: vec![output.clone()],
            name: format!("{op}:{output}"),
            op_type: op.into(),
            attribute,
            ..Default::default()
        });
        output
    }

    /// `axis` cut into parts of these sizes.
    pub(crate) fn split(&mut self, x: &str, axis: i64, sizes: &[i64]) -> Vec<Value> {
        let parts = sizes.len();
        let sizes = self.shape(sizes);
        let outputs: Vec<Value> = (0..parts).map(|_| self.fresh("split")).collect();
        self.nodes.push(NodeProto {
            input: vec![x.into(), sizes],
            output: outputs.clone(),
            name: format!("Split:{}", outputs[0]),
            op_type: "Split".into(),
            attribute: vec![int("axis", axis)],
            ..Default::default()
        });
        outputs
    }

    /// A one-dimensional integer constant.
    pub(crate) fn shape(&mut self, values: &[i64]) -> Value {
        let name = self.fresh("shape");
        self.weights.push(TensorProto {
            dims: vec![values.len() as i64],
            data_type: INT64,
            name: name.clone(),
            raw_data: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            ..Default::default()
        });
        name
    }

    /// A weight; stored as f16 and cast where that was asked for and the tensor is large.
    pub(crate) fn weight(&mut self, t: &Tensor) -> Value {
        let values = floats_of(t);
        let name = self.fresh("weight");
        // Small tensors (biases, scales) stay exact: they cost nothing.
        let large = self.halves() && values.len() >= 1024;
        // Beyond f16's range a value would become infinite.
        if large && values.iter().all(|v| self.kind.stored(*v).is_finite()) {
            let stored = format!("{name}_f16");
            self.weights.push(TensorProto {
                dims: t.size(),
                data_type: FLOAT16,
                name: stored.clone(),
                raw_data: values.iter().flat_map(|v| self.kind.stored(*v).to_le_bytes()).collect(),
                ..Default::default()
            });
            return self.named_op("Cast", &[&stored], vec![int("to", FLOAT.into())], name);
        }
        self.exact(t.size(), &values, name)
    }

    /// Whether large weights are stored as f16.
    pub(crate) fn halves(&self) -> bool {
        self.kind != WeightKind::F32
    }

    /// A weight that is stored as f32 whatever was asked for.
    pub(crate) fn weight_exact(&mut self, t: &Tensor) -> Value {
        let name = self.fresh("weight");
        self.exact(t.size(), &floats_of(t), name)
    }

    /// A scalar.
    pub(crate) fn scalar(&mut self, value: f32) -> Value {
        let name = self.fresh("scalar");
        self.exact(vec![], &[value], name)
    }

    fn exact(&mut self, dims: Vec<i64>, values: &[f32], name: String) -> Value {
        self.weights.push(TensorProto {
            dims,
            data_type: FLOAT,
            name: name.clone(),
            raw_data: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            ..Default::default()
        });
        name
    }

    /// The names of its weight, bias and output.
    fn conv_raw(
        &mut self,
        x: &str,
        conv: &Conv2d,
        weight: &Tensor,
        bias: Option<&Tensor>,
        pads: AttributeProto,
    ) -> (Value, Option<Value>, Value) {
        let w = self.weight(weight);
        let kernel = weight.size()[2];
        let s = conv.stride;
        let attributes = vec![
            ints("kernel_shape", &[kernel, kernel]),
            ints("strides", &[s, s]),
            pads,
            int("group", conv.groups),
        ];
        match bias {
            Some(b) => {
                let b = self.weight(b);
                let y = self.op("Conv", &[x, &w, &b], attributes);
                (w, Some(b), y)
            }
            None => {
                let y = self.op("Conv", &[x, &w], attributes);
                (w, None, y)
            }
        }
    }

    fn plain(&mut self, name: &str, tensor: &Tensor, swapped: bool) {
        self.parts.push(Part::Plain { name: name.into(), tensor: tensor.shallow_clone(), swapped });
    }

    pub(crate) fn conv(&mut self, x: &str, conv: &Conv2d) -> Value {
        let (w, b, y) = self.conv_raw(x, conv, &conv.weight, conv.bias.as_ref(), pads(conv));
        self.plain(&w, &conv.weight, false);
        if let (Some(name), Some(bias)) = (&b, &conv.bias) {
            self.plain(name, bias, false);
        }
        y
    }

    fn conv_folded(
        &mut self,
        x: &str,
        conv: &Conv2d,
        norm: &BatchNorm,
        pads: AttributeProto,
    ) -> Value {
        let (weight, bias) = folded(conv, norm);
        let (weight, bias, output) = self.conv_raw(x, conv, &weight, Some(&bias), pads);
        if let (Some(bias), Some(norm), None) = (bias, Statistics::read(norm), &conv.bias) {
            let (conv, output) = (conv.weight.shallow_clone(), output.clone());
            self.parts.push(Part::Folded { weight, bias, output, conv, norm });
        }
        output
    }

    /// A convolution with the batch norm after it folded in, in f64.
    pub(crate) fn conv_norm(&mut self, x: &str, conv: &Conv2d, norm: &BatchNorm) -> Value {
        self.conv_folded(x, conv, norm, pads(conv))
    }

    /// The same, padded as TensorFlow's `SAME`.
    pub(crate) fn conv_norm_same(&mut self, x: &str, conv: &Conv2d, norm: &BatchNorm) -> Value {
        self.conv_folded(x, conv, norm, string("auto_pad", "SAME_UPPER"))
    }

    /// A batch norm that no convolution is before.
    pub(crate) fn norm(&mut self, x: &str, norm: &BatchNorm) -> Value {
        let scale = norm_scale(norm);
        let mut shift = -double(&norm.running_mean) * &scale;
        if let Some(b) = &norm.bias {
            shift += double(b);
        }
        let (scale, shift) = (scale.reshape([-1, 1, 1]), shift.reshape([-1, 1, 1]));
        let (scale, shift) = (self.weight(&scale), self.weight(&shift));
        if let Some(norm) = Statistics::read(norm) {
            let (scale, shift, input) = (scale.clone(), shift.clone(), x.to_owned());
            self.parts.push(Part::Norm { scale, shift, input, norm });
        }
        let scaled = self.op("Mul", &[x, &scale], vec![]);
        self.op("Add", &[&scaled, &shift], vec![])
    }

    pub(crate) fn act(&mut self, x: &str, act: Act) -> Value {
        match act {
            Act::Silu => {
                let gate = self.op("Sigmoid", &[x], vec![]);
                self.op("Mul", &[x, &gate], vec![])
            }
            Act::Relu => self.op("Relu", &[x], vec![]),
            Act::Relu6 => {
                let (low, high) = (self.scalar(0.0), self.scalar(6.0));
                self.op("Clip", &[x, &low, &high], vec![])
            }
        }
    }

    /// Exact GELU as the pattern that runtimes fuse: `x (1 + erf(x / sqrt 2)) 0.5`.
    pub(crate) fn gelu(&mut self, x: &str) -> Value {
        let (root, one, half) =
            (self.scalar(std::f32::consts::SQRT_2), self.scalar(1.0), self.scalar(0.5));
        let scaled = self.op("Div", &[x, &root], vec![]);
        let erf = self.op("Erf", &[&scaled], vec![]);
        let sum = self.op("Add", &[&erf, &one], vec![]);
        let product = self.op("Mul", &[x, &sum], vec![]);
        self.op("Mul", &[&product, &half], vec![])
    }

    pub(crate) fn layer_norm(&mut self, x: &str, norm: &LayerNorm) -> Value {
        let (w, b) = (self.weight(&norm.weight), self.weight(&norm.bias));
        let attributes = vec![int("axis", -1), float("epsilon", norm.eps as f32)];
        self.op("LayerNormalization", &[x, &w, &b], attributes)
    }

    /// The names of its weight, bias and output.
    fn affine(
        &mut self,
        x: &str,
        weight: &Tensor,
        bias: Option<&Tensor>,
    ) -> (Value, Option<Value>, Value) {
        let w = self.weight(&weight.detach().transpose(0, 1).contiguous());
        let y = self.op("MatMul", &[x, &w], vec![]);
        match bias {
            Some(b) => {
                let b = self.weight(b);
                let y = self.op("Add", &[&y, &b], vec![]);
                (w, Some(b), y)
            }
            None => (w, None, y),
        }
    }

    /// `[..., in]` to `[..., out]`, weights given as `[out, in]`.
    pub(crate) fn linear_raw(&mut self, x: &str, weight: &Tensor, bias: Option<&Tensor>) -> Value {
        self.affine(x, weight, bias).2
    }

    pub(crate) fn linear(&mut self, x: &str, linear: &Linear) -> Value {
        let (w, b, y) = self.affine(x, &linear.weight, linear.bias.as_ref());
        self.plain(&w, &linear.weight, true);
        if let (Some(name), Some(bias)) = (&b, &linear.bias) {
            self.plain(name, bias, false);
        }
        y
    }

    pub(crate) fn reshape(&mut self, x: &str, shape: &[i64]) -> Value {
        let shape = self.shape(shape);
        self.op("Reshape", &[x, &shape], vec![])
    }

    pub(crate) fn transpose(&mut self, x: &str, perm: &[i64]) -> Value {
        self.op("Transpose", &[x], vec![ints("perm", perm)])
    }

    /// Twice the size, nearest.
    pub(crate) fn upsample(&mut self, x: &str) -> Value {
        let name = self.fresh("scales");
        let scales = self.exact(vec![4], &[1.0, 1.0, 2.0, 2.0], name);
        let attributes = vec![
            string("mode", "nearest"),
            string("coordinate_transformation_mode", "asymmetric"),
            string("nearest_mode", "floor"),
        ];
        self.op("Resize", &[x, "", &scales], attributes)
    }

    /// Bilinear interpolation to `factor` times the size, pixel centres at .5.
    pub(crate) fn enlarge(&mut self, x: &str, factor: f32) -> Value {
        let name = self.fresh("scales");
        let scales = self.exact(vec![4], &[1.0, 1.0, factor, factor], name);
        let attributes =
            vec![string("mode", "linear"), string("coordinate_transformation_mode", "half_pixel")];
        self.op("Resize", &[x, "", &scales], attributes)
    }

    /// Reports that from here on nothing is read but `value`, so that a file may end. Nothing happens in
    /// a graph that is one file.
    pub(super) fn seam(&mut self, value: &str, axes: &[Axis]) {
        if let Some(cutting) = &mut self.cutting {
            cutting.where_full(&mut self.nodes, &mut self.weights);
            cutting.seam(&self.nodes, value, axes);
        }
    }

    /// The last of several files, and those before it with what the last one takes; `None` for a
    /// graph that is one file.
    pub(super) fn cut(&mut self) -> Option<Cutting> {
        let mut cutting = self.cutting.take()?;
        cutting.where_full(&mut self.nodes, &mut self.weights);
        Some(cutting)
    }

    /// The finished file, with its input and output, and where it keeps what.
    pub(crate) fn finish(
        self,
        name: &str,
        ends: [&NamedValue; 2],
        metadata: &[(&str, &str)],
    ) -> (ModelProto, Vec<Part>) {
        let model = model(self.nodes, self.weights, name, ends, metadata);
        (model, self.parts)
    }
}
