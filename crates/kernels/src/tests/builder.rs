//! Small ONNX files.

use prost::Message;
use proto::{AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto};

/// Numbers that look random and are the same each time.
pub(super) struct Noise(u64);

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// In -1..1.
    pub(super) fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }

    pub(super) fn list(&mut self, n: usize, scale: f32) -> Vec<f32> {
        (0..n).map(|_| self.next() * scale).collect()
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        ((self.next() + 1.0) / 2.0 * n as f32) as usize % n
    }
}

/// A graph under construction.
pub(super) struct Builder {
    pub graph: GraphProto,
    pub noise: Noise,
    count: usize,
}

pub(super) fn ints(name: &str, v: &[i64]) -> AttributeProto {
    AttributeProto { name: name.into(), ints: v.to_vec(), ..AttributeProto::default() }
}

pub(super) fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { name: name.into(), i, ..AttributeProto::default() }
}

pub(super) fn float(name: &str, f: f32) -> AttributeProto {
    AttributeProto { name: name.into(), f, ..AttributeProto::default() }
}

pub(super) fn text(name: &str, s: &str) -> AttributeProto {
    AttributeProto { name: name.into(), s: s.into(), ..AttributeProto::default() }
}

impl Builder {
    pub(super) fn new(seed: u64) -> Self {
        Self { graph: GraphProto::default(), noise: Noise::new(seed), count: 0 }
    }

    fn name(&mut self, what: &str) -> String {
        self.count += 1;
        format!("{}_{}", what.to_lowercase(), self.count)
    }

    pub(super) fn floats(&mut self, dims: &[usize], float_data: Vec<f32>) -> String {
        let name = self.name("weight");
        let dims = dims.iter().map(|d| *d as i64).collect();
        let stored = TensorProto {
            name: name.clone(),
            dims,
            data_type: 1,
            float_data,
            ..TensorProto::default()
        };
        self.graph.initializer.push(stored);
        name
    }

    /// Weights whose products keep the size of what they multiply.
    pub(super) fn weights(&mut self, dims: &[usize]) -> String {
        let fan: usize = dims[1..].iter().product();
        let values = self.noise.list(dims.iter().product(), (3.0 / fan as f32).sqrt());
        self.floats(dims, values)
    }

    pub(super) fn int64s(&mut self, v: &[i64]) -> String {
        let name = self.name("ints");
        let (dims, int64_data) = (vec![v.len() as i64], v.to_vec());
        let stored = TensorProto {
            name: name.clone(),
            dims,
            data_type: 7,
            int64_data,
            ..TensorProto::default()
        };
        self.graph.initializer.push(stored);
        name
    }

    pub(super) fn node(
        &mut self,
        op: &str,
        inputs: &[&str],
        attribute: Vec<AttributeProto>,
    ) -> String {
        let name = self.name(op);
        self.graph.node.push(NodeProto {
            input: inputs.iter().map(ToString::to_string).collect(),
            output: vec![name.clone()],
            op_type: op.into(),
            attribute,
            ..NodeProto::default()
        });
        name
    }

    /// A convolution padded to keep the size, up to its stride.
    pub(super) fn conv(
        &mut self,
        x: &str,
        (cin, cout): (usize, usize),
        (k, s): (usize, usize),
        groups: usize,
    ) -> String {
        let weight = self.weights(&[cout, cin / groups, k, k]);
        let bias = self.noise.list(cout, 0.2);
        let bias = self.floats(&[cout], bias);
        let (k, s) = (k as i64, s as i64);
        let attributes = vec![
            ints("kernel_shape", &[k, k]),
            ints("strides", &[s, s]),
            ints("pads", &[k / 2; 4]),
            int("group", groups as i64),
        ];
        self.node("Conv", &[x, &weight, &bias], attributes)
    }

    pub(super) fn relu6(&mut self, x: &str) -> String {
        let (low, high) = (self.floats(&[], vec![0.0]), self.floats(&[], vec![6.0]));
        self.node("Clip", &[x, &low, &high], vec![])
    }

    pub(super) fn twice(&mut self, x: &str) -> String {
        let scales = self.floats(&[4], vec![1.0, 1.0, 2.0, 2.0]);
        let attributes = vec![
            text("mode", "nearest"),
            text("coordinate_transformation_mode", "asymmetric"),
            text("nearest_mode", "floor"),
        ];
        self.node("Resize", &[x, "", &scales], attributes)
    }

    /// The file, whose output is `name`.
    pub(super) fn file(&self) -> Vec<u8> {
        self.file_for_operators(18)
    }

    /// The same by a version of the operators.
    pub(super) fn file_for_operators(&self, version: i64) -> Vec<u8> {
        let opset_import = vec![OperatorSetIdProto { domain: String::new(), version }];
        ModelProto { graph: Some(self.graph.clone()), opset_import, ..Default::default() }
            .encode_to_vec()
    }
}
