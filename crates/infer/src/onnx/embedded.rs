//! What the embedded engine (rten 0.27) reads otherwise than ONNX defines it: written such that it reads it right, or
//! refused. Files without such nodes are not copied.

use super::adapt::KIND_INT;
use super::limits::{Fields, GRAPH};
use super::mean::{copied, field};
use prost::Message;
use proto::parts::{Node, Subgraphs, TensorHead};
use proto::{AttributeProto, NodeProto, OperatorSetIdProto};
use std::borrow::Cow;

const NODE: u32 = 1;
/// `AttributeProto.AttributeType.INTS`.
const KIND_INTS: i32 = 7;
/// The version of the operators from which on `Softmax` runs over one axis; before, over all from its axis on.
const ONE_AXIS: i64 = 13;

/// The file as rten reads it right.
///
/// # Errors
/// A sentence on the operator that rten would compute otherwise.
pub(crate) fn for_rten(onnx: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    const OPERATORS: u32 = 8;
    let (mut graph, mut version) = (None, 1);
    for part in Fields(onnx) {
        match part? {
            (GRAPH, bytes) => graph = Some(bytes),
            (OPERATORS, bytes) => {
                let set = OperatorSetIdProto::decode(bytes).map_err(|e| format!("damaged: {e}"))?;
                if matches!(set.domain.as_str(), "" | "ai.onnx") {
                    version = set.version;
                }
            }
            _ => {}
        }
    }
    let Some(graph) = graph else { return Ok(Cow::Borrowed(onnx)) };
    let (mut nodes, mut changed) = (Vec::new(), false);
    for part in Fields(graph) {
        let (NODE, bytes) = part? else { continue };
        let made = read_right(bytes, graph, version)?;
        changed |= made.is_some();
        nodes.extend(made.unwrap_or_else(|| vec![bytes.to_vec()]));
    }
    if !changed {
        return Ok(Cow::Borrowed(onnx));
    }
    let mut whole = copied(graph, &[NODE])?;
    nodes.iter().for_each(|node| field(NODE, node, &mut whole));
    let mut file = copied(onnx, &[GRAPH])?;
    field(GRAPH, &whole, &mut file);
    Ok(Cow::Owned(file))
}

/// The nodes in place of one; none where it stays.
fn read_right(bytes: &[u8], graph: &[u8], version: i64) -> Result<Option<Vec<Vec<u8>>>, String> {
    let asks = checked(bytes, version, true)?;
    if !matches!(asks.domain.as_str(), "" | "ai.onnx") {
        return Ok(None);
    }
    match asks.op_type.as_str() {
        "Softmax" | "LogSoftmax" if version < ONE_AXIS => softmax(bytes),
        "Conv" | "ConvTranspose" | "MaxPool" | "AveragePool" => steps(bytes, graph),
        _ => Ok(None),
    }
}

/// Refuses what cannot be written otherwise, in graphs inside nodes as well; those are not rewritten.
fn checked(bytes: &[u8], version: i64, outer: bool) -> Result<Node, String> {
    let damaged = |e: prost::DecodeError| format!("a damaged node: {e}");
    let asks = Node::decode(bytes).map_err(damaged)?;
    let resize = asks.op_type == "Resize";
    let old = !outer && version < ONE_AXIS && asks.op_type.ends_with("Softmax");
    let mut last = false;
    for attribute in &asks.attribute {
        if resize || old {
            let a = AttributeProto::decode(attribute.as_slice()).map_err(damaged)?;
            if resize && a.name == "mode" && a.s == b"cubic" {
                return Err("its `Resize` is cubic, which this engine computes as linear".into());
            }
            last |= a.name == "axis" && a.i == -1;
        }
        let inner = Subgraphs::decode(attribute.as_slice()).map_err(damaged)?;
        for graph in inner.graph.iter().chain(&inner.graphs) {
            for part in Fields(graph) {
                if let (NODE, node) = part? {
                    checked(node, version, false)?;
                }
            }
        }
    }
    if old && !last {
        return Err(format!(
            "a `{}` of version {version} inside another node, which this engine computes over one axis alone",
            asks.op_type
        ));
    }
    Ok(asks)
}

/// A `Softmax` of an old version: flattened from its axis on, and back.
fn softmax(bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, String> {
    let mut node = NodeProto::decode(bytes).map_err(|e| format!("a damaged node: {e}"))?;
    let axis = node.attribute.iter().find(|a| a.name == "axis").map_or(1, |a| a.i);
    let ([input], [output], false) = (&node.input[..], &node.output[..], axis == -1) else {
        return Ok(None);
    };
    let (input, output) = (input.clone(), output.clone());
    let [sides, flat, answer] = ["sides", "flat", "answer"].map(|part| format!("{output}/{part}"));
    let made = |op: &str, input: &[&String], output: &String, attribute: Vec<AttributeProto>| {
        let input = input.iter().map(ToString::to_string).collect();
        NodeProto { attribute, ..NodeProto::new(op, input, vec![output.clone()]) }.encode_to_vec()
    };
    let along = |i: i64| {
        vec![AttributeProto {
            name: "axis".into(),
            i,
            r#type: KIND_INT,
            ..AttributeProto::default()
        }]
    };
    let op = std::mem::take(&mut node.op_type);
    Ok(Some(vec![
        made("Shape", &[&input], &sides, vec![]),
        made("Flatten", &[&input], &flat, along(axis)),
        made(&op, &[&flat], &answer, along(-1)),
        made("Reshape", &[&answer, &sides], &output, vec![]),
    ]))
}

/// A convolution or pooling with what it may leave out: the sides of the kernel, the steps, the dilations.
fn steps(bytes: &[u8], graph: &[u8]) -> Result<Option<Vec<Vec<u8>>>, String> {
    const ATTRIBUTE: u32 = 5;
    let node = NodeProto::decode(bytes).map_err(|e| format!("a damaged node: {e}"))?;
    let stated = |name: &str| node.attribute.iter().find(|a| a.name == name);
    let (kernel, lacks): (_, &[&str]) = match stated("kernel_shape") {
        Some(a) if node.op_type.ends_with("Pool") && stated("strides").is_none() => {
            (Some(a.ints.clone()), &["strides"])
        }
        Some(_) => return Ok(None),
        None => (
            kernel_sides(node.input.get(1).map_or("", |w| w), graph)?,
            &["kernel_shape", "strides", "dilations"],
        ),
    };
    // Weights that are computed: the engine's own error names what it lacks.
    let Some(kernel) = kernel else { return Ok(None) };
    let mut whole = bytes.to_vec();
    for name in lacks.iter().filter(|name| stated(name).is_none()) {
        let ints = if *name == "kernel_shape" { kernel.clone() } else { vec![1; kernel.len()] };
        let (name, kind) = (name.to_string(), KIND_INTS);
        let attribute = AttributeProto { name, ints, r#type: kind, ..AttributeProto::default() };
        field(ATTRIBUTE, attribute.encode_to_vec(), &mut whole);
    }
    Ok(Some(vec![whole]))
}

/// The sides of a kernel, by the weights of this name: stored ones, or what a node makes of such.
fn kernel_sides(name: &str, graph: &[u8]) -> Result<Option<Vec<i64>>, String> {
    const INITIALIZER: u32 = 5;
    let sides = |dims: &[i64]| dims.get(2..).map(<[i64]>::to_vec);
    for part in Fields(graph) {
        match part? {
            (INITIALIZER, bytes) => {
                let weight =
                    TensorHead::decode(bytes).map_err(|e| format!("a damaged weight: {e}"))?;
                if weight.name == name {
                    return Ok(sides(&weight.dims));
                }
            }
            (NODE, bytes) => {
                let node = NodeProto::decode(bytes).map_err(|e| format!("a damaged node: {e}"))?;
                if node.output.first().is_some_and(|o| o == name) {
                    let value = node.attribute.iter().find_map(|a| a.t.as_ref());
                    return match (node.op_type.as_str(), node.input.first()) {
                        ("Constant", _) => Ok(value.and_then(|t| sides(&t.dims))),
                        ("Cast" | "Identity", Some(of)) => kernel_sides(of, graph),
                        _ => Ok(None),
                    };
                }
            }
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::super::{FLOAT, INPUT, OUTPUT};
    use super::*;
    use proto::TensorProto;
    use proto::parts::{Graph, Model};
    use rten::Value;
    use rten_tensor::{AsView, NdTensor};

    fn word(name: &str, word: &str) -> AttributeProto {
        AttributeProto { name: name.into(), s: word.into(), r#type: 3, ..AttributeProto::default() }
    }

    fn number(name: &str, i: i64) -> AttributeProto {
        AttributeProto { name: name.into(), i, r#type: KIND_INT, ..AttributeProto::default() }
    }

    fn node(op: &str, inputs: &[&str], output: &str, attribute: Vec<AttributeProto>) -> Vec<u8> {
        let input = inputs.iter().map(ToString::to_string).collect();
        NodeProto { attribute, ..NodeProto::new(op, input, vec![output.into()]) }.encode_to_vec()
    }

    /// Weights of 2 x 2, one for each of three channels: 1, 2, 3 and 4 of each.
    fn weight() -> Vec<u8> {
        let raw = (0..12).flat_map(|i| ((i % 4 + 1) as f32).to_le_bytes()).collect::<Vec<u8>>();
        let (dims, name) = (vec![1, 3, 2, 2], "w".into());
        TensorProto { dims, data_type: FLOAT, name, raw_data: raw.into(), ..TensorProto::default() }
            .encode_to_vec()
    }

    fn file(nodes: &[Vec<u8>], version: i64) -> Vec<u8> {
        let graph = Graph {
            node: nodes.iter().map(|n| n.clone().into()).collect(),
            name: "g".into(),
            initializer: vec![weight().into()],
            input: vec![super::super::open_value(INPUT)],
            output: vec![super::super::open_value(OUTPUT)],
        };
        let operators = OperatorSetIdProto { domain: String::new(), version }.encode_to_vec();
        Model { ir_version: 8, graph: Some(graph), opset_import: vec![operators] }.encode_to_vec()
    }

    /// What rten gives for an image of 3 x 2 x 2 that counts from 0, 12 numbers.
    fn given(onnx: &[u8]) -> Vec<f32> {
        let image = NdTensor::from_data([1, 3, 2, 2], (0..12u8).map(f32::from).collect::<Vec<_>>());
        let made = for_rten(onnx).unwrap();
        let output = run(&made, vec![(INPUT, Value::from(image))], &[OUTPUT.into()]).remove(0);
        let output: NdTensor<f32, 4> = output.try_into().unwrap();
        output.to_vec()
    }

    #[test]
    fn a_cubic_resize_is_refused_wherever_it_is() {
        let resize = |mode| node("Resize", &[INPUT, "", "s"], OUTPUT, vec![word("mode", mode)]);
        let linear = file(&[resize("linear")], 17);
        assert_eq!(for_rten(&linear).unwrap(), linear);
        let e = for_rten(&file(&[resize("cubic")], 17)).unwrap_err();
        assert!(e.contains("Resize") && e.contains("cubic"), "{e}");
        // Inside a branch of an `If`.
        let inner = Graph { node: vec![resize("cubic").into()], ..Graph::default() };
        let branch = Subgraphs { graph: Some(inner.encode_to_vec()), graphs: vec![] };
        let mut outer = node("If", &["c"], OUTPUT, vec![]);
        field(5, branch.encode_to_vec(), &mut outer);
        assert!(for_rten(&file(&[outer], 17)).unwrap_err().contains("cubic"));
    }

    #[test]
    fn a_softmax_of_an_old_version_runs_over_all_from_its_axis_on() {
        for (version, attributes, together) in [
            (11, vec![], 12),
            (12, vec![number("axis", 2)], 4),
            (11, vec![number("axis", -2)], 4),
            (11, vec![number("axis", -1)], 2),
            (13, vec![number("axis", 3)], 2),
        ] {
            let soft = node("Softmax", &[INPUT], OUTPUT, attributes.clone());
            let got = given(&file(&[soft], version));
            for (g, part) in got.chunks(together).enumerate() {
                let whole: f32 = (0..together).map(|i| ((g * together + i) as f32).exp()).sum();
                for (i, p) in part.iter().enumerate() {
                    let want = ((g * together + i) as f32).exp() / whole;
                    assert!((p - want).abs() < 1e-6, "{version} {attributes:?}: {got:?}");
                }
            }
            let soft = node("LogSoftmax", &[INPUT], OUTPUT, attributes);
            let logs = given(&file(&[soft], version));
            assert!(logs.iter().zip(&got).all(|(l, p)| (l.exp() - p).abs() < 1e-6), "{logs:?}");
        }
    }

    #[test]
    fn what_a_convolution_or_pooling_leaves_out_is_added() {
        // 1 x 0 + 2 x 1 + 3 x 2 + 4 x 3, and so on for the other channels: 20, 60 and 100.
        let plain = node("Conv", &[INPUT, "w"], OUTPUT, vec![]);
        assert_eq!(given(&file(&[plain], 17)), [180.0]);
        // As weights in f16 are stored.
        let same = node("Identity", &["w"], "same", vec![]);
        let cast = node("Cast", &["same"], "v", vec![number("to", FLOAT.into())]);
        let conv = node("Conv", &[INPUT, "v"], OUTPUT, vec![]);
        assert_eq!(given(&file(&[same, cast, conv], 17)), [180.0]);
        let kernel = AttributeProto {
            name: "kernel_shape".into(),
            ints: vec![2, 2],
            r#type: KIND_INTS,
            ..AttributeProto::default()
        };
        let pool = node("MaxPool", &[INPUT], OUTPUT, vec![kernel.clone()]);
        assert_eq!(given(&file(&[pool], 17)), [3.0, 7.0, 11.0]);
        let whole = file(&[node("Conv", &[INPUT, "w"], OUTPUT, vec![kernel])], 17);
        assert!(matches!(for_rten(&whole), Ok(Cow::Borrowed(_))), "rten knows the rest");
    }
}
