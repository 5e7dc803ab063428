//! A model whose parts stay the bytes they are: to look into a file of gigabytes without copying its weights, and to
//! write it again without losing what has no field here.

use crate::ValueInfoProto;
use prost::Message;
use prost::bytes::Bytes;

/// A `ModelProto`.
#[derive(Clone, PartialEq, Message)]
pub struct Model {
    /// Of ONNX's intermediate representation.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    #[prost(message, optional, tag = "7")]
    pub graph: Option<Graph>,
    /// Operator sets, each an `OperatorSetIdProto`.
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub opset_import: Vec<Vec<u8>>,
}

/// A `GraphProto`.
#[derive(Clone, PartialEq, Message)]
pub struct Graph {
    /// Nodes, each a `NodeProto`.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub node: Vec<Bytes>,
    #[prost(string, tag = "2")]
    pub name: String,
    /// Weights, each a `TensorProto`.
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub initializer: Vec<Bytes>,
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// A `NodeProto` whose attributes are read one by one, so that no weight inside them is copied.
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    /// Names of its inputs.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of its outputs.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Attributes, each an `AttributeProto`.
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub attribute: Vec<Vec<u8>>,
    /// Operator set; empty for ONNX's own.
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// The names in a `NodeProto`.
#[derive(Clone, PartialEq, Message)]
pub struct NodeNames {
    /// Names of its inputs.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of its outputs.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    #[prost(string, tag = "3")]
    pub name: String,
    /// Attributes, with the graphs inside them.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<Subgraphs>,
}

/// The graphs inside an `AttributeProto`.
#[derive(Clone, PartialEq, Message)]
pub struct Subgraphs {
    #[prost(bytes = "vec", optional, tag = "6")]
    pub graph: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "11")]
    pub graphs: Vec<Vec<u8>>,
}

/// A `FunctionProto`: nodes that others call by a name.
#[derive(Clone, PartialEq, Message)]
pub struct Function {
    #[prost(string, tag = "1")]
    pub name: String,
    /// Names of its inputs.
    #[prost(string, repeated, tag = "4")]
    pub input: Vec<String>,
    /// Names of its outputs.
    #[prost(string, repeated, tag = "5")]
    pub output: Vec<String>,
    /// Nodes, each a `NodeProto`.
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub node: Vec<Vec<u8>>,
    /// Operator set that it belongs to.
    #[prost(string, tag = "10")]
    pub domain: String,
}

/// The name alone of a `ValueInfoProto`.
#[derive(Clone, PartialEq, Message)]
pub struct ValueName {
    #[prost(string, tag = "1")]
    pub name: String,
}

/// A `TensorProto` without its values.
#[derive(Clone, PartialEq, Message)]
pub struct TensorHead {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    #[prost(string, tag = "8")]
    pub name: String,
}
