//! What a file has around its nodes and weights: names, axes, versions.

use proto::{
    Dimension, DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto,
    ValueInfoProto,
};

const FLOAT: i32 = 1;
const OPSET: i64 = 17;

/// Name of a value in the graph.
pub(crate) type Value = String;

/// One axis of an input or output.
#[derive(Clone, Copy)]
pub(crate) enum Axis {
    Fixed(i64),
    Free(&'static str),
}

/// What a file takes or gives.
#[derive(Clone)]
pub(super) struct NamedValue {
    pub(super) name: Value,
    pub(super) axes: Vec<Axis>,
}

impl NamedValue {
    pub(super) fn new(name: &str, axes: &[Axis]) -> Self {
        Self { name: name.into(), axes: axes.to_vec() }
    }
}

fn value_info(name: &str, axes: &[Axis]) -> ValueInfoProto {
    let dim = axes
        .iter()
        .map(|a| DimensionProto {
            value: Some(match a {
                Axis::Fixed(n) => Dimension::Value(*n),
                Axis::Free(s) => Dimension::Param((*s).to_string()),
            }),
        })
        .collect();
    let tensor_type = TensorTypeProto { elem_type: FLOAT, shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type: Some(tensor_type) }) }
}

/// A file of one input and one output.
pub(super) fn model(
    node: Vec<NodeProto>,
    initializer: Vec<TensorProto>,
    name: &str,
    [input, output]: [&NamedValue; 2],
    metadata: &[(&str, &str)],
) -> ModelProto {
    let graph = GraphProto {
        node,
        name: name.into(),
        initializer,
        input: vec![value_info(&input.name, &input.axes)],
        output: vec![value_info(&output.name, &output.axes)],
    };
    let pair = |(k, v): &(&str, &str)| StringStringEntryProto {
        key: (*k).to_string(),
        value: (*v).to_string(),
    };
    ModelProto {
        ir_version: 8,
        producer_name: "mithras".into(),
        producer_version: env!("CARGO_PKG_VERSION").into(),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
        metadata_props: metadata.iter().map(pair).collect(),
    }
}
