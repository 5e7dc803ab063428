//! A network as others export it, brought to this project's names: `image` in, `embedding` or `boxes`
//! out.
//!
//! What is not touched stays the bytes it was: fields that are not read here (functions,
//! metadata) must not be lost. Names inside the graph stay too; two `Identity` nodes join them to ours.

use super::numbers::FLOAT;
use super::{BOXES, EMBEDDING, INPUT, bounded, decode, nodes};
use half::f16;
use prost::Message;
use proto::parts::Graph;
use proto::parts::TensorHead;
use proto::{
    AttributeProto, Dimension, DimensionProto, NodeProto, StringStringEntryProto, TensorProto,
    TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use std::collections::HashSet;

/// What a network gives for an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gives {
    /// One vector, `[N,D]`.
    Features,
    /// Boxes, `[N,A,B]` with both sides stated.
    Boxes,
}

impl Gives {
    fn name(self) -> &'static str {
        match self {
            Self::Features => EMBEDDING,
            Self::Boxes => BOXES,
        }
    }
}

/// What the network is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Side of its input, px.
    pub image: usize,
    /// What it gives.
    pub gives: Gives,
    /// Which of its outputs; `None` where it has one.
    pub output: Option<&'a str>,
    /// Numbers per vector, where they are known.
    pub width: Option<usize>,
    /// Whether large f32 weights are stored as f16.
    pub half: bool,
}

/// The network under our names.
#[derive(Debug)]
pub(crate) struct Adapted {
    /// Bytes of the ONNX file.
    pub onnx: Vec<u8>,
    /// Numbers per vector; `None` where nobody states it. Of boxes the first side.
    pub width: Option<usize>,
    /// The second side of boxes.
    pub second: Option<usize>,
}

/// `TensorProto.DataType.FLOAT16`.
const HALF: i32 = 10;
/// `AttributeProto.AttributeType.INT`.
pub(super) const KIND_INT: i32 = 2;
/// From this version on a weight need not be an input as well.
const OLDEST_IR: i64 = 4;

fn identity(from: &str, to: &str) -> Vec<u8> {
    let (input, output) = (vec![from.into()], vec![to.into()]);
    NodeProto::new("Identity", input, output).encode_to_vec()
}

fn cast(from: &str, to: &str) -> Vec<u8> {
    let to_float = AttributeProto {
        name: "to".into(),
        i: FLOAT.into(),
        r#type: KIND_INT,
        ..AttributeProto::default()
    };
    let (input, output, attribute) = (vec![from.into()], vec![to.into()], vec![to_float]);
    NodeProto { attribute, ..NodeProto::new("Cast", input, output) }.encode_to_vec()
}

/// Brings a network to `image` f32 `[N,3,S,S]`, and `embedding` f32 `[N,D]` or `boxes` f32 `[N,A,B]`.
///
/// # Errors
/// What the file lacks, or has otherwise.
pub(crate) fn adapt(onnx: &[u8], wanted: &Wanted<'_>) -> Result<Adapted, Misfit> {
    let (model, graph) = decode(onnx)?;
    bounded(&graph, onnx.len())?;
    let GraphInput { name: input, batch } = read_input(&graph, wanted.image)?;
    let GraphOutput { name: output, width, second } = read_output(&graph, wanted)?;
    let free = |old: &str, new: &str| -> Result<(), String> {
        let made = nodes(&graph)?.iter().any(|n| n.output.iter().any(|o| o == new));
        match made && old != new {
            true => Err(format!(
                "a value inside it has the name `{new}`, which its input or output needs"
            )),
            false => Ok(()),
        }
    };
    free(&input, INPUT)?;
    let named = wanted.gives.name();
    free(&output, named)?;

    let mut made = Vec::new();
    let part = |number: u32, bytes: &[u8], to: &mut Vec<u8>| {
        varint(u64::from((number << 3) | 2), to);
        varint(bytes.len() as u64, to);
        to.extend_from_slice(bytes);
    };
    let mut first = Vec::new();
    if input != INPUT {
        first.push(identity(INPUT, &input));
    }
    let old = graph_bytes(onnx)?;
    let mut weights = Vec::new();
    for field in fields(old)? {
        match field.number {
            INITIALIZER if wanted.half => match halved(field.payload)? {
                Some(Halved { stored, cast }) => {
                    part(INITIALIZER, &stored, &mut weights);
                    first.push(cast);
                }
                None => part(INITIALIZER, field.payload, &mut weights),
            },
            INITIALIZER => part(INITIALIZER, field.payload, &mut weights),
            // Ours are written below; recorded shapes of inner values may be of another batch.
            GRAPH_INPUT | GRAPH_OUTPUT | VALUE_INFO | NODE => {}
            _ => made.extend_from_slice(field.whole),
        }
    }
    let mut all: Vec<u8> = Vec::with_capacity(old.len());
    first.iter().for_each(|node| part(NODE, node, &mut all));
    graph.node.iter().for_each(|node| part(NODE, node, &mut all));
    if output != named {
        part(NODE, &identity(&output, named), &mut all);
    }
    all.append(&mut made);
    all.append(&mut weights);
    let side = wanted.image as i64;
    let image = value(INPUT, [batch.clone(), number(3), number(side), number(side)]);
    part(GRAPH_INPUT, &image.encode_to_vec(), &mut all);
    let wide = width.map_or(DimensionProto { value: None }, |n| number(n as i64));
    let given = match wanted.gives {
        Gives::Features => value(named, [batch, wide]),
        Gives::Boxes => value(named, [batch, wide, number(second.unwrap_or(0) as i64)]),
    };
    part(GRAPH_OUTPUT, &given.encode_to_vec(), &mut all);

    let mut whole = Vec::with_capacity(all.len() + 4096);
    varint(u64::from(IR_VERSION << 3), &mut whole);
    varint(model.ir_version.max(OLDEST_IR) as u64, &mut whole);
    for field in fields(onnx)? {
        if !matches!(field.number, IR_VERSION | GRAPH) {
            whole.extend_from_slice(field.whole);
        }
    }
    part(GRAPH, &all, &mut whole);
    Ok(Adapted { onnx: whole, width, second })
}

/// Why a file cannot be used, as a sentence.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// It has several outputs, or not the one that was named.
    Output(String),
    /// Anything else.
    Other(String),
}

impl From<String> for Misfit {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

struct GraphInput {
    name: String,
    batch: DimensionProto,
}

fn read_input(graph: &Graph, side: usize) -> Result<GraphInput, String> {
    let mut weights = HashSet::new();
    for bytes in &graph.initializer {
        let named =
            TensorHead::decode(bytes.clone()).map_err(|e| format!("a damaged weight: {e}"))?;
        weights.insert(named.name);
    }
    let inputs: Vec<&ValueInfoProto> =
        graph.input.iter().filter(|v| !weights.contains(&v.name)).collect();
    let [input] = inputs[..] else {
        let names: Vec<_> = inputs.iter().map(|v| v.name.as_str()).collect();
        return Err(format!("it must have one input, the image; there are {names:?}"));
    };
    let dims = shape_of(input, "input")?;
    if dims.len() != 4 {
        return Err(format!("input `{}` has {} dimensions, not [N,3,H,W]", input.name, dims.len()));
    }
    let names = ["channels", "height", "width"];
    for ((dim, want), what) in dims[1..].iter().zip([3, side, side]).zip(names) {
        if let Some(Dimension::Value(n)) = dim.value
            && n > 0
            && usize::try_from(n) != Ok(want)
        {
            return Err(format!("input `{}` has a {what} of {n}, not {want}", input.name));
        }
    }
    let batch = match dims[0].value {
        Some(Dimension::Value(n)) if n > 0 => number(n),
        _ => DimensionProto { value: Some(Dimension::Param("N".into())) },
    };
    Ok(GraphInput { name: input.name.clone(), batch })
}

/// The output that is taken.
struct GraphOutput {
    name: String,
    /// Its second dimension, where it is known.
    width: Option<usize>,
    /// The third, where there is one.
    second: Option<usize>,
}

fn read_output(graph: &Graph, wanted: &Wanted<'_>) -> Result<GraphOutput, Misfit> {
    let names = || graph.output.iter().map(|v| v.name.as_str()).collect::<Vec<_>>();
    let output = match wanted.output {
        Some(name) => graph.output.iter().find(|v| v.name == name),
        None if graph.output.len() == 1 => graph.output.first(),
        None => {
            let reason = format!("it has several outputs; name one of {:?}", names());
            return Err(Misfit::Output(reason));
        }
    };
    let missing = || Misfit::Output(format!("no such output; there is {:?}", names()));
    let output = output.ok_or_else(missing)?;
    let dims = shape_of(output, "output")?;
    let refused = |wants: &str| {
        let sides: Vec<String> = dims.iter().map(describe).collect();
        let (name, n) = (&output.name, dims.len());
        let reason = format!("output `{name}` has {n} dimensions, [{}]; {wants}", sides.join(","));
        Err(Misfit::Other(reason))
    };
    match wanted.gives {
        Gives::Features if dims.len() != 2 => {
            return refused("an encoder gives [N,width], pooled inside the network");
        }
        Gives::Boxes
            if dims.len() != 3 || stated(&dims[1]).is_none() || stated(&dims[2]).is_none() =>
        {
            return refused("boxes are [N,boxes,6] or [N,4+classes,boxes], with both sides stated");
        }
        _ => {}
    }
    let second = dims.get(2).and_then(stated);
    match (stated(&dims[1]), wanted.width) {
        (Some(n), Some(want)) if n != want => {
            Err(format!("output `{}` has a width of {n}, not {want}", output.name).into())
        }
        (stated, given) => {
            Ok(GraphOutput { name: output.name.clone(), width: stated.or(given), second })
        }
    }
}

fn shape_of<'a>(v: &'a ValueInfoProto, kind: &str) -> Result<&'a [DimensionProto], String> {
    let tensor = v.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
    let tensor = tensor.ok_or_else(|| format!("{kind} `{}` is not a tensor", v.name))?;
    if tensor.elem_type != FLOAT {
        return Err(format!("{kind} `{}` is not f32 (ONNX type {})", v.name, tensor.elem_type));
    }
    let shape = tensor.shape.as_ref();
    shape.map(|s| s.dim.as_slice()).ok_or_else(|| format!("{kind} `{}` states no shape", v.name))
}

/// A dimension as text.
fn describe(dim: &DimensionProto) -> String {
    match &dim.value {
        Some(Dimension::Value(n)) => n.to_string(),
        Some(Dimension::Param(name)) if !name.is_empty() => name.clone(),
        _ => "?".into(),
    }
}

/// Side of the square image that a file asks for, where it states it.
pub(crate) fn side(onnx: &[u8]) -> Result<Option<usize>, String> {
    let (_, graph) = decode(onnx)?;
    let weights: Vec<String> = graph
        .initializer
        .iter()
        .filter_map(|b| Some(TensorHead::decode(b.clone()).ok()?.name))
        .collect();
    let input = graph.input.iter().find(|v| !weights.contains(&v.name));
    let dims = input.map(|v| shape_of(v, "input")).transpose()?;
    Ok(dims.and_then(|d| d.get(2)).and_then(stated))
}

/// A size that the file fixes.
fn stated(dim: &DimensionProto) -> Option<usize> {
    match dim.value {
        Some(Dimension::Value(n)) if n > 0 => usize::try_from(n).ok(),
        _ => None,
    }
}

/// A word that the exporter of a file wrote into it.
pub(crate) fn metadata(onnx: &[u8], key: &str) -> Option<String> {
    let entries = fields(onnx).ok()?.into_iter().filter(|f| f.number == METADATA);
    let mut entries = entries.filter_map(|f| StringStringEntryProto::decode(f.payload).ok());
    entries.find(|e| e.key == key).map(|e| e.value)
}

fn number(n: i64) -> DimensionProto {
    DimensionProto { value: Some(Dimension::Value(n)) }
}

fn value<const N: usize>(name: &str, dim: [DimensionProto; N]) -> ValueInfoProto {
    let tensor =
        TensorTypeProto { elem_type: FLOAT, shape: Some(TensorShapeProto { dim: dim.to_vec() }) };
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type: Some(tensor) }) }
}

/// A weight as f16, and the node that makes f32 of it.
struct Halved {
    stored: Vec<u8>,
    cast: Vec<u8>,
}

/// A large f32 weight as f16 with the node that casts it back; `None` for what stays.
fn halved(bytes: &[u8]) -> Result<Option<Halved>, String> {
    let w = TensorProto::decode(bytes).map_err(|e| format!("a damaged weight: {e}"))?;
    if w.data_type != FLOAT || w.dims.len() < 2 {
        return Ok(None);
    }
    let (raw, rest) = w.raw_data.as_chunks::<4>();
    let values = raw.iter().map(|b| f32::from_le_bytes(*b)).chain(w.float_data.iter().copied());
    let count: i64 = w.dims.iter().product();
    if !rest.is_empty() || raw.len() + w.float_data.len() != usize::try_from(count).unwrap_or(0) {
        return Err(format!("a damaged weight: `{}` has not {:?} values", w.name, w.dims));
    }
    let half: Vec<f16> = values.map(f16::from_f32).collect();
    // Beyond f16's range it would become infinite.
    if half.iter().any(|v| !v.is_finite()) {
        return Ok(None);
    }
    let stored = TensorProto {
        dims: w.dims,
        data_type: HALF,
        name: format!("{}_f16", w.name),
        raw_data: half.iter().flat_map(|v| v.to_le_bytes()).collect(),
        ..TensorProto::default()
    };
    let cast = cast(&stored.name, &w.name);
    Ok(Some(Halved { stored: stored.encode_to_vec(), cast }))
}

// Field numbers of `ModelProto` and `GraphProto`.
const IR_VERSION: u32 = 1;
const GRAPH: u32 = 7;
const METADATA: u32 = 14;
const NODE: u32 = 1;
const INITIALIZER: u32 = 5;
const GRAPH_INPUT: u32 = 11;
const GRAPH_OUTPUT: u32 = 12;
const VALUE_INFO: u32 = 13;

/// One field of a message as it is.
struct Field<'a> {
    number: u32,
    /// Content, of fields that have a length.
    payload: &'a [u8],
    /// With its key.
    whole: &'a [u8],
}

fn graph_bytes(onnx: &[u8]) -> Result<&[u8], String> {
    let graph = fields(onnx)?.into_iter().find(|f| f.number == GRAPH);
    graph.map(|f| f.payload).ok_or_else(|| "not an ONNX file: it holds no graph".into())
}

fn fields(message: &[u8]) -> Result<Vec<Field<'_>>, String> {
    let short = || "not an ONNX file: a field ends early".to_owned();
    let (mut all, mut at) = (Vec::new(), 0);
    while at < message.len() {
        let start = at;
        let key = read_varint(message, &mut at).ok_or_else(short)?;
        let mut from = at;
        match key & 7 {
            0 => {
                read_varint(message, &mut at).ok_or_else(short)?;
            }
            1 => at += 8,
            2 => {
                let n = read_varint(message, &mut at).ok_or_else(short)?;
                from = at;
                at = usize::try_from(n).ok().and_then(|n| at.checked_add(n)).ok_or_else(short)?;
            }
            5 => at += 4,
            other => return Err(format!("not an ONNX file: wire type {other}")),
        }
        let whole = message.get(start..at).ok_or_else(short)?;
        let number = u32::try_from(key >> 3).map_err(|_| short())?;
        all.push(Field { number, payload: &message[from..at], whole });
    }
    Ok(all)
}

fn read_varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut rest = bytes.get(*at..)?;
    let value = prost::decode_length_delimiter(&mut rest).ok()?;
    *at = bytes.len() - rest.len();
    u64::try_from(value).ok()
}

fn varint(value: u64, to: &mut Vec<u8>) {
    let value = usize::try_from(value).expect("fields of a file in memory");
    prost::encode_length_delimiter(value, to).expect("a vector grows");
}

#[cfg(test)]
mod tests {
    use super::super::Model;
    use super::*;

    fn net(output: [DimensionProto; 2]) -> Vec<u8> {
        network(vec![value("y", output)])
    }

    fn network(output: Vec<ValueInfoProto>) -> Vec<u8> {
        let open = || DimensionProto { value: Some(Dimension::Param("b".into())) };
        let weight = TensorProto {
            dims: vec![2, 2],
            data_type: FLOAT,
            name: "w".into(),
            float_data: vec![1.0, -2.5, 0.1, 3.0],
            ..TensorProto::default()
        };
        let node = NodeProto::new("MatMul", vec!["x".into(), "w".into()], vec!["y".into()]);
        let graph = Graph {
            node: vec![node.encode_to_vec().into()],
            name: "g".into(),
            initializer: vec![weight.encode_to_vec().into()],
            input: vec![value("x", [open(), number(3), open(), open()])],
            output,
        };
        let mut bytes =
            Model { ir_version: 3, graph: Some(graph), opset_import: vec![] }.encode_to_vec();
        // A field that is not read here: the producer's name.
        bytes.extend([(2 << 3) | 2, 3, b'a', b'b', b'c']);
        bytes
    }

    fn wanted(width: Option<usize>, half: bool) -> Wanted<'static> {
        Wanted { image: 32, gives: Gives::Features, output: None, width, half }
    }

    #[test]
    fn names_are_joined_and_the_rest_stays() {
        let open = DimensionProto { value: None };
        let made = adapt(&net([open, number(6)]), &wanted(Some(6), false)).unwrap();
        assert_eq!(made.width, Some(6));
        let (model, graph) = decode(&made.onnx).unwrap();
        assert_eq!(model.ir_version, OLDEST_IR);
        assert_eq!(
            (graph.input[0].name.as_str(), graph.output[0].name.as_str()),
            (INPUT, EMBEDDING)
        );
        let ops: Vec<_> = nodes(&graph).unwrap().into_iter().map(|n| n.op_type).collect();
        assert_eq!(ops, ["Identity", "MatMul", "Identity"]);
        assert!(made.onnx.windows(3).any(|w| w == b"abc"), "fields that are not read are kept");
        let signature = super::super::signature(
            &made.onnx.clone().into(),
            32,
            super::super::Output { name: EMBEDDING, shape: &[6] },
        )
        .unwrap();
        assert_eq!(signature.symbols, [crate::Symbol { name: "N".into(), size: 0 }]);
        // A second time nothing is added.
        let again = adapt(&made.onnx, &wanted(None, false)).unwrap();
        assert_eq!(nodes(&decode(&again.onnx).unwrap().1).unwrap().len(), 3);
    }

    #[test]
    fn weights_are_halved_with_a_cast_behind() {
        let made = adapt(&net([number(1), number(6)]), &wanted(None, true)).unwrap();
        let graph = decode(&made.onnx).unwrap().1;
        let w = TensorProto::decode(graph.initializer[0].clone()).unwrap();
        assert_eq!((w.name.as_str(), w.data_type, w.raw_data.len()), ("w_f16", HALF, 8));
        let ops: Vec<_> = nodes(&graph).unwrap().into_iter().map(|n| n.op_type).collect();
        assert_eq!(ops, ["Identity", "Cast", "MatMul", "Identity"]);
    }

    #[test]
    fn what_is_not_an_encoder_is_refused() {
        let six = || net([number(1), number(6)]);
        let e = |bytes: &[u8], w| match adapt(bytes, &w).unwrap_err() {
            Misfit::Other(reason) | Misfit::Output(reason) => reason,
        };
        assert!(e(&six(), wanted(Some(7), false)).contains("width of 6, not 7"));
        let open = DimensionProto { value: None };
        let unknown = adapt(&net([number(1), open]), &wanted(None, false)).unwrap();
        assert_eq!(unknown.width, None, "found by running it");
        let other = Wanted { output: Some("z"), ..wanted(None, false) };
        assert!(matches!(adapt(&six(), &other), Err(Misfit::Output(_))), "a flag helps");
        assert!(e(&six(), other).contains("there is [\"y\"]"));
        let two = network(["y", "z"].map(|name| value(name, [number(1), number(6)])).into());
        assert!(
            e(&two, wanted(None, false)).contains("several outputs; name one of [\"y\", \"z\"]")
        );
        let named = Wanted { output: Some("y"), ..wanted(None, false) };
        assert_eq!(adapt(&two, &named).unwrap().width, Some(6));
        assert!(adapt(b"\xff\xff", &wanted(None, false)).is_err());
        let cut = six();
        assert!(adapt(&cut[..cut.len() - 2], &wanted(None, false)).is_err());
    }
}
