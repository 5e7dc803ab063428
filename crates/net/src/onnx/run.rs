//! An exported network run on libtorch, CPU or GPU: the operators that this crate writes, and the
//! few more that common exporters write for the same layers.
//!
//! The file that is shipped is the file that runs: no second copy of the weights.

use std::collections::HashMap;

use prost::Message;
use tch::{Device, Kind, Tensor};

use crate::device::MemoryFormat;
use crate::error::{NetError, Result};
use proto::{AttributeProto, ModelProto, NodeProto, TensorProto};

/// A network ready to run.
pub struct Program {
    steps: Vec<Step>,
    weights: HashMap<String, Tensor>,
    input: String,
    output: String,
    device: Device,
}

struct Step {
    node: NodeProto,
    /// What its operands are computed in.
    kind: Kind,
    /// Values that no later step reads.
    done: Vec<String>,
}

fn refuse(key: impl Into<String>, reason: impl std::fmt::Display) -> NetError {
    NetError::config(key, reason.to_string())
}

fn attribute<'a>(node: &'a NodeProto, name: &str) -> Option<&'a AttributeProto> {
    node.attribute.iter().find(|a| a.name == name)
}

fn int(node: &NodeProto, name: &str, default: i64) -> i64 {
    attribute(node, name).map_or(default, |a| a.i)
}

fn ints<'a>(node: &'a NodeProto, name: &str, default: &'a [i64]) -> &'a [i64] {
    attribute(node, name).map_or(default, |a| &a.ints)
}

fn word(node: &NodeProto, name: &str, default: &str) -> String {
    attribute(node, name).map_or_else(|| default.into(), |a| String::from_utf8_lossy(&a.s).into())
}

pub(super) fn constant(t: &TensorProto) -> Result<Tensor> {
    let kind = match t.data_type {
        1 => Kind::Float,
        7 => Kind::Int64,
        10 => Kind::Half,
        n => return Err(refuse(&t.name, format!("constants of ONNX type {n} are not read"))),
    };
    let size = t.dims.iter().product::<i64>() * kind.elt_size_in_bytes() as i64;
    if t.dims.iter().any(|d| *d < 0) || size != t.raw_data.len() as i64 {
        return Err(refuse(&t.name, "its bytes do not fill its shape; the file is damaged"));
    }
    Ok(Tensor::f_from_data_size(&t.raw_data, &t.dims, kind)?)
}

impl Program {
    /// Reads an ONNX file's bytes. From the value `bf16_from` on, which may be the input, weights and
    /// activations are bf16, but for the last operator; all else is f32.
    ///
    /// # Errors
    /// [`NetError::Encoder`] naming an operator or constant that is not known here, or `bf16_from`
    /// where no such value is made.
    pub fn load(bytes: &[u8], device: Device, bf16_from: Option<&str>) -> Result<Self> {
        let graph = ModelProto::decode(bytes)
            .map_err(|e| refuse("onnx", format!("not an ONNX file: {e}")))?
            .graph
            .ok_or_else(|| refuse("onnx", "the file holds no graph"))?;
        let mut weights = HashMap::new();
        let (constants, nodes): (Vec<_>, Vec<_>) =
            graph.node.into_iter().partition(|n| n.op_type == "Constant");
        let mut named = Vec::new();
        for node in &constants {
            let value = attribute(node, "value").and_then(|a| a.t.as_ref());
            let value =
                value.ok_or_else(|| refuse(&node.name, "only tensor constants are read"))?;
            named.extend(node.output.iter().map(|name| (name, value)));
        }
        for (name, t) in graph.initializer.iter().map(|t| (&t.name, t)).chain(named) {
            let value = constant(t)?;
            let value = match value.kind() {
                Kind::Int64 => value,
                _ if value.dim() == 4 => {
                    MemoryFormat::ChannelsLast.image(&value.to_kind(Kind::Float)).to_device(device)
                }
                _ => value.to_kind(Kind::Float).to_device(device),
            };
            weights.insert(name.clone(), value);
        }
        let only = |v: &[proto::ValueInfoProto], what: &str| match v {
            [one] => Ok(one.name.clone()),
            many => Err(refuse("onnx", format!("{} {what}s where one is read", many.len()))),
        };
        let input: Vec<_> =
            graph.input.into_iter().filter(|v| !weights.contains_key(&v.name)).collect();
        let (input, output) = (only(&input, "input")?, only(&graph.output, "output")?);
        let mut last = HashMap::new();
        for (i, node) in nodes.iter().enumerate() {
            if !OPERATORS.contains(&node.op_type.as_str()) {
                let reason =
                    "libtorch here has no such operator; use another engine, which may have it";
                return Err(refuse(format!("operator {}", node.op_type), reason));
            }
            for name in &node.input {
                last.insert(name.clone(), i);
            }
        }
        let low = match bf16_from {
            None => nodes.len(),
            Some(from) if from == input => 0,
            Some(from) => {
                let first = nodes.iter().position(|n| n.output.iter().any(|o| o == from));
                first.ok_or_else(|| refuse("onnx", format!("no value named `{from}` is made")))?
            }
        };
        let steps = nodes.into_iter().enumerate().map(|(i, node)| {
            let ends = |n: &&String| last.get(*n) == Some(&i) && !weights.contains_key(*n);
            let done = node.input.iter().filter(ends).cloned().collect();
            let kind = match i >= low && !node.output.contains(&output) {
                true => Kind::BFloat16,
                false => Kind::Float,
            };
            Step { node, kind, done }
        });
        Ok(Self { steps: steps.collect(), weights, input, output, device })
    }

    /// Operators with the names of what they read and make, in order.
    pub(super) fn operators(&self) -> impl Iterator<Item = (&str, &[String], &[String])> {
        self.steps.iter().map(|s| (&*s.node.op_type, &*s.node.input, &*s.node.output))
    }

    /// Shapes of the weights by name.
    pub(super) fn weight_shapes(&self) -> impl Iterator<Item = (String, Vec<i64>)> {
        self.weights.iter().map(|(name, t)| (name.clone(), t.size()))
    }

    /// The same for plain buffers, row-major; `shape` is the input's, of images `[N, 3, H, W]`.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_buffer(&self, image: &[f32], shape: &[i64]) -> Result<Vec<f32>> {
        let image = Tensor::f_from_slice(image)?.f_view(shape)?;
        Ok(Vec::<f32>::try_from(&self.run(&image)?.f_reshape([-1])?)?)
    }

    /// Runs a batch of f32, of images `[N, 3, H, W]`; the result is f32 on the CPU.
    ///
    /// # Errors
    /// libtorch's own words, or a value that the file uses before it is made.
    pub fn run(&self, image: &Tensor) -> Result<Tensor> {
        self.watched(image, &mut |_, _| Ok(()))
    }

    /// The same; `watch` is shown every value that is made, by its name.
    pub(super) fn watched(
        &self,
        image: &Tensor,
        watch: &mut dyn FnMut(&str, &Tensor) -> Result<()>,
    ) -> Result<Tensor> {
        tch::no_grad(|| {
            let x = image.f_to_device(self.device)?;
            let mut values: HashMap<&str, Tensor> = HashMap::new();
            let x = match x.dim() {
                4 => MemoryFormat::ChannelsLast.image(&x),
                _ => x,
            };
            watch(&self.input, &x)?;
            values.insert(&self.input, x);
            for step in &self.steps {
                let mut input = Vec::with_capacity(step.node.input.len());
                for name in &step.node.input {
                    let value = match name.as_str() {
                        "" => None,
                        n => Some(values.get(n).or_else(|| self.weights.get(n)).ok_or_else(
                            || refuse(&step.node.name, format!("`{n}` is used before it is made")),
                        )?),
                    };
                    input.push(match value {
                        Some(v) if v.is_floating_point() => Some(v.f_to_kind(step.kind)?),
                        v => v.map(Tensor::shallow_clone),
                    });
                }
                let output = Operands { node: &step.node, input }.apply()?;
                for name in &step.done {
                    values.remove(name.as_str());
                }
                for (name, value) in step.node.output.iter().zip(output) {
                    watch(name, &value)?;
                    values.insert(name, value);
                }
            }
            let out = values
                .remove(self.output.as_str())
                .ok_or_else(|| refuse(&self.output, "the output is never made"))?;
            Ok(out.f_to_kind(Kind::Float)?.f_to_device(Device::Cpu)?.f_contiguous()?)
        })
    }
}

const OPERATORS: &[&str] = &[
    "Add",
    "Cast",
    "Clip",
    "Concat",
    "Conv",
    "Div",
    "Erf",
    "Expand",
    "Flatten",
    "Gather",
    "Gemm",
    "GlobalAveragePool",
    "Identity",
    "LayerNormalization",
    "MatMul",
    "MaxPool",
    "Mul",
    "Pad",
    "ReduceMean",
    "ReduceSum",
    "Relu",
    "Reshape",
    "Resize",
    "Shape",
    "Sigmoid",
    "Slice",
    "Softmax",
    "Split",
    "Sqrt",
    "Sub",
    "Transpose",
];

struct Operands<'a> {
    node: &'a NodeProto,
    input: Vec<Option<Tensor>>,
}

impl Operands<'_> {
    fn wrong(&self, reason: impl std::fmt::Display) -> NetError {
        refuse(format!("{} {}", self.node.op_type, self.node.name), reason)
    }

    fn get(&self, i: usize) -> Result<&Tensor> {
        self.optional(i).ok_or_else(|| self.wrong(format!("input {i} is missing")))
    }

    fn optional(&self, i: usize) -> Option<&Tensor> {
        self.input.get(i).and_then(Option::as_ref)
    }

    fn integers(&self, i: usize) -> Result<Vec<i64>> {
        let flat =
            self.get(i)?.f_to_device(Device::Cpu)?.f_to_kind(Kind::Int64)?.f_reshape([-1])?;
        Ok(Vec::<i64>::try_from(&flat)?)
    }

    fn axis(&self, default: i64) -> i64 {
        int(self.node, "axis", default)
    }

    fn apply(&self) -> Result<Vec<Tensor>> {
        let node = self.node;
        let x = self.get(0)?;
        let one = match node.op_type.as_str() {
            "Add" => x.f_add(self.get(1)?)?,
            "Sqrt" => x.f_sqrt()?,
            "Sub" => x.f_sub(self.get(1)?)?,
            "Mul" => x.f_mul(self.get(1)?)?,
            "Div" => x.f_div(self.get(1)?)?,
            "Erf" => x.f_erf()?,
            "Relu" => x.f_relu()?,
            "Sigmoid" => x.f_sigmoid()?,
            "Identity" => x.shallow_clone(),
            // f16 weights are computed with in the kind of the run.
            "Cast" if int(node, "to", 1) == 1 => x.shallow_clone(),
            "Cast" => return Err(self.wrong("only casts to float are known")),
            "Clip" => self.clip(x)?,
            "Concat" => {
                let parts: Vec<&Tensor> = self.input.iter().flatten().collect();
                Tensor::f_cat(&parts, self.axis(0))?
            }
            "Conv" => self.conv(x)?,
            "Expand" => self.expand(x)?,
            "Flatten" => match self.axis(1) {
                1 => x.f_flatten(1, -1)?,
                a => return Err(self.wrong(format!("axis {a}"))),
            },
            "Gather" => {
                let index = self.get(1)?.f_to_device(x.device())?;
                match index.dim() {
                    0 => x.f_select(self.axis(0), index.f_int64_value(&[])?)?,
                    1 => x.f_index_select(self.axis(0), &index)?,
                    n => return Err(self.wrong(format!("{n} axes of indices"))),
                }
            }
            "Gemm" => self.gemm(x)?,
            "GlobalAveragePool" => x.f_mean_dim([2i64, 3].as_slice(), true, x.kind())?,
            "LayerNormalization" => {
                let (w, b) = (self.get(1)?, self.optional(2));
                let eps = attribute(node, "epsilon").map_or(1e-5, |a| a.f);
                x.f_layer_norm(w.size(), Some(w), b, f64::from(eps), false)?
            }
            "MatMul" => x.f_matmul(self.get(1)?)?,
            "MaxPool" => self.max_pool(x)?,
            "Pad" => self.pad(x)?,
            "ReduceMean" | "ReduceSum" => {
                let axes = match attribute(node, "axes") {
                    Some(a) => a.ints.clone(),
                    None => self.integers(1)?,
                };
                let keep = int(node, "keepdims", 1) == 1;
                match node.op_type.as_str() {
                    "ReduceSum" => x.f_sum_dim_intlist(axes.as_slice(), keep, x.kind())?,
                    _ => x.f_mean_dim(axes.as_slice(), keep, x.kind())?,
                }
            }
            "Reshape" => {
                let own = x.size();
                let mut shape = self.integers(1)?;
                for (i, n) in shape.iter_mut().enumerate().filter(|(_, n)| **n == 0) {
                    *n = *own.get(i).ok_or_else(|| self.wrong("0 represents no axis"))?;
                }
                x.f_reshape(shape)?
            }
            "Resize" => self.resize(x)?,
            "Shape" => {
                let size = x.size();
                let n = size.len() as i64;
                let at = |v: i64| (if v < 0 { v + n } else { v }).clamp(0, n) as usize;
                let (start, end) = (at(int(node, "start", 0)), at(int(node, "end", n)));
                Tensor::f_from_slice(size.get(start..end).unwrap_or_default())?
            }
            "Slice" => self.slice(x)?,
            "Softmax" => x.f_softmax(self.axis(-1), x.kind())?,
            "Split" => return Ok(x.f_split_with_sizes(self.integers(1)?, self.axis(0))?),
            "Transpose" => x.f_permute(ints(node, "perm", &[]))?,
            other => return Err(self.wrong(format!("{other} is not known"))),
        };
        Ok(vec![one])
    }

    fn clip(&self, x: &Tensor) -> Result<Tensor> {
        let bound = |i, open| match self.optional(i) {
            Some(t) => Ok(t.f_double_value(&[])?),
            None => Ok::<f64, NetError>(open),
        };
        Ok(x.f_clamp(bound(1, f64::NEG_INFINITY)?, bound(2, f64::INFINITY)?)?)
    }

    fn two(&self, name: &str) -> Result<[i64; 2]> {
        match ints(self.node, name, &[1, 1]) {
            [a, b] => Ok([*a, *b]),
            other => Err(self.wrong(format!("{name} {other:?}"))),
        }
    }

    /// Zeros above, to the left, below and to the right, for kernels of this size.
    fn pads(&self, size: [i64; 2], kernel: [i64; 2], stride: [i64; 2]) -> Result<[i64; 4]> {
        match word(self.node, "auto_pad", "NOTSET").as_str() {
            "NOTSET" => match ints(self.node, "pads", &[0; 4]) {
                [top, left, bottom, right] => Ok([*top, *left, *bottom, *right]),
                other => Err(self.wrong(format!("pads {other:?}"))),
            },
            "SAME_UPPER" => {
                let total = |i: usize| {
                    let out = (size[i] + stride[i] - 1) / stride[i];
                    ((out - 1) * stride[i] + kernel[i] - size[i]).max(0)
                };
                let [y, x] = [total(0), total(1)];
                Ok([y / 2, x / 2, y - y / 2, x - x / 2])
            }
            other => Err(self.wrong(format!("auto_pad {other}"))),
        }
    }

    fn conv(&self, x: &Tensor) -> Result<Tensor> {
        let (w, b) = (self.get(1)?, self.optional(2));
        let (stride, dilation) = (self.two("strides")?, self.two("dilations")?);
        if stride.iter().chain(&dilation).any(|n| *n < 1) {
            return Err(self.wrong("strides and dilations are positive"));
        }
        let (size, kernel) = (x.size(), w.size());
        let ([_, _, h, wide], [_, _, kh, kw]) = (&size[..], &kernel[..]) else {
            return Err(self.wrong("only images are convolved"));
        };
        let kernel = [(kh - 1) * dilation[0] + 1, (kw - 1) * dilation[1] + 1];
        let [top, left, bottom, right] = self.pads([*h, *wide], kernel, stride)?;
        let group = int(self.node, "group", 1);
        if (top, left) == (bottom, right) {
            return Ok(x.f_conv2d(w, b, stride, [top, left], dilation, group)?);
        }
        let x = x.f_constant_pad_nd([left, right, top, bottom])?;
        Ok(x.f_conv2d(w, b, stride, [0, 0], dilation, group)?)
    }

    fn max_pool(&self, x: &Tensor) -> Result<Tensor> {
        let (kernel, stride) = (self.two("kernel_shape")?, self.two("strides")?);
        if int(self.node, "ceil_mode", 0) != 0 || self.two("dilations")? != [1, 1] {
            return Err(self.wrong("only plain pooling is known"));
        }
        let pads = match ints(self.node, "pads", &[0; 4]) {
            [top, left, bottom, right] if top == bottom && left == right => [*top, *left],
            other => return Err(self.wrong(format!("pads {other:?}"))),
        };
        if word(self.node, "auto_pad", "NOTSET") != "NOTSET" {
            return Err(self.wrong("auto_pad"));
        }
        Ok(x.f_max_pool2d(kernel, stride, pads, [1, 1], false)?)
    }

    /// Zeros at the ends of any axis.
    fn pad(&self, x: &Tensor) -> Result<Tensor> {
        if word(self.node, "mode", "constant") != "constant"
            || self.optional(2).is_some()
            || self.optional(3).is_some()
        {
            return Err(self.wrong("only zeros at the ends of all axes are known"));
        }
        let pads = self.integers(1)?;
        let axes = x.dim();
        if pads.len() != 2 * axes {
            return Err(self.wrong(format!("{} numbers for {axes} axes", pads.len())));
        }
        // libtorch counts from the last axis.
        let flat = (0..axes).rev().flat_map(|i| [pads[i], pads[axes + i]]);
        Ok(x.f_constant_pad_nd(flat.collect::<Vec<i64>>())?)
    }

    /// Both shapes are broadcast to one.
    fn expand(&self, x: &Tensor) -> Result<Tensor> {
        let (own, mut want) = (x.size(), self.integers(1)?);
        while want.len() < own.len() {
            want.insert(0, 1);
        }
        let lead = want.len() - own.len();
        for (w, o) in want.iter_mut().skip(lead).zip(own).filter(|(w, _)| **w == 1) {
            *w = o;
        }
        Ok(x.f_expand(want, false)?)
    }

    fn gemm(&self, x: &Tensor) -> Result<Tensor> {
        let factor = |name| attribute(self.node, name).map_or(1.0, |a| a.f);
        if int(self.node, "transA", 0) != 0 || factor("alpha") != 1.0 || factor("beta") != 1.0 {
            return Err(self.wrong("only x W + b is known"));
        }
        let w = self.get(1)?;
        let w =
            if int(self.node, "transB", 0) == 1 { w.f_transpose(0, 1)? } else { w.shallow_clone() };
        let y = x.f_matmul(&w)?;
        Ok(match self.optional(2) {
            Some(b) => y.f_add(b)?,
            None => y,
        })
    }

    /// Whole multiples, nearest: what a U-Net decoder does.
    fn resize(&self, x: &Tensor) -> Result<Tensor> {
        let scales = self.get(2)?.f_to_kind(Kind::Float)?.f_to_device(Device::Cpu)?;
        let scales = Vec::<f32>::try_from(&scales.f_contiguous()?)?;
        let mode = word(self.node, "mode", "nearest");
        let place = word(self.node, "coordinate_transformation_mode", "half_pixel");
        let nearest = mode == "nearest"
            && place == "asymmetric"
            && word(self.node, "nearest_mode", "round_prefer_floor") == "floor";
        let linear = mode == "linear" && place == "half_pixel";
        match (scales.as_slice(), x.size().as_slice()) {
            ([1.0, 1.0, sy, sx], [_, _, h, w]) if sy.fract() == 0.0 && sx.fract() == 0.0 => {
                let size = [h * *sy as i64, w * *sx as i64];
                if nearest {
                    return Ok(x.f_upsample_nearest2d(size, None, None)?);
                }
                if linear {
                    return Ok(x.f_upsample_bilinear2d(size, false, None, None)?);
                }
                Err(self.wrong(format!("mode {mode} with {place} is not known")))
            }
            _ => Err(self.wrong("only whole scales of an image's sides are known")),
        }
    }

    fn slice(&self, x: &Tensor) -> Result<Tensor> {
        let (start, end) = (self.integers(1)?, self.integers(2)?);
        let axes = match self.optional(3) {
            Some(_) => self.integers(3)?,
            None => (0..start.len() as i64).collect(),
        };
        let steps = match self.optional(4) {
            Some(_) => self.integers(4)?,
            None => vec![1; start.len()],
        };
        let mut y = x.shallow_clone();
        for (((axis, start), end), step) in axes.iter().zip(start).zip(end).zip(steps) {
            y = y.f_slice(*axis, start, end, step)?;
        }
        Ok(y)
    }
}
