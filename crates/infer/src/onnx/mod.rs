//! The few fields of an ONNX file that are checked before an engine sees it, and that cut it in two.
//!
//! Nodes and weights stay the bytes they are, with a [`NodeProto`] or [`TensorHead`] read out of them.

mod adapt;
mod chain;
mod embedded;
mod growth;
mod limits;
mod mean;
mod numbers;

pub(crate) use adapt::{Gives, Misfit, Wanted, adapt, metadata, side};
pub(crate) use chain::{Link, chain};
pub(crate) use embedded::for_rten;
pub(crate) use limits::has_functions;
pub(crate) use mean::mean;

use crate::session::Symbol;
use numbers::{FLOAT, ints};
use prost::Message;
use prost::bytes::Bytes;
use proto::parts::{Graph, Model, TensorHead};
use proto::{
    Dimension, DimensionProto, NodeProto, TensorProto, TensorShapeProto, TensorTypeProto,
    TypeProto, ValueInfoProto,
};
use std::collections::{HashMap, HashSet};

/// Input of every network.
pub(crate) const INPUT: &str = "image";
/// Output of every network that gives probabilities.
pub(crate) const OUTPUT: &str = "probability";
/// Output of an encoder.
pub(crate) const EMBEDDING: &str = "embedding";
/// Output of a detector of boxes.
pub(crate) const BOXES: &str = "boxes";

/// What a checked network leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signature {
    /// A batch size fixed in the file.
    pub fixed_batch: Option<usize>,
    /// Symbolic input dimensions; that of the batch has size 0 here.
    pub symbols: Vec<Symbol>,
}

/// What a card wants of a network's output.
#[derive(Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) name: &'a str,
    /// Without the batch.
    pub(crate) shape: &'a [usize],
}

/// Checks input `image` f32 `[N,3,side,side]` and the output `name` f32 whose trailing dimensions
/// are `output`, where the file fixes them.
///
/// # Errors
/// A sentence on what differs.
pub(crate) fn signature(
    onnx: &Bytes,
    side: usize,
    output: Output<'_>,
) -> Result<Signature, String> {
    let (_, graph) = shared(onnx)?;
    bounded(&graph, onnx.len())?;
    let signature = takes(&graph, side)?;
    gives(&graph, output)?;
    Ok(signature)
}

/// The input's half of [`signature`].
fn takes(graph: &Graph, side: usize) -> Result<Signature, String> {
    let dims = dims_of(&graph.input, "input", INPUT)?;
    if dims.len() != 4 {
        return Err(format!("input `{INPUT}` has {} dimensions, not [N,3,H,W]", dims.len()));
    }
    fixed(&dims[1..], &[3, side, side], "input", INPUT)?;
    let mut signature = Signature::default();
    for (dim, want) in dims.iter().zip([0, 3, side, side]) {
        match &dim.value {
            Some(Dimension::Param(name)) if !name.is_empty() => {
                signature.symbols.push(Symbol { name: name.clone(), size: want });
            }
            Some(Dimension::Value(n)) if want == 0 => {
                if *n > MOST_BATCH {
                    return Err(format!("it takes {n} images at once, more than {MOST_BATCH}"));
                }
                signature.fixed_batch = usize::try_from(*n).ok().filter(|n| *n > 0);
            }
            _ => {}
        }
    }
    Ok(signature)
}

/// The output's half of it.
fn gives(graph: &Graph, output: Output<'_>) -> Result<(), String> {
    let Output { name, shape: output } = output;
    let out = dims_of(&graph.output, "output", name)?;
    if out.len() != output.len() + 1 {
        return Err(format!(
            "output `{name}` has {} dimensions, the card wants [N,{output:?}]",
            out.len()
        ));
    }
    fixed(&out[1..], output, "output", name)
}

/// Images that a file may ask for at once.
const MOST_BATCH: i64 = 1024;
/// TensorProto that one tensor may have where the file itself states how many.
const MOST_VALUES: u64 = 1 << 28;

/// Checks what the file states of sizes before an engine believes it: weights must be in the file,
/// and shapes that are written in it must be of a possible size.
fn bounded(graph: &Graph, len: usize) -> Result<(), String> {
    let mut constants: HashMap<String, Vec<i64>> = HashMap::new();
    for bytes in &graph.initializer {
        let values =
            TensorProto::decode(bytes.clone()).map_err(|e| format!("a damaged weight: {e}"))?;
        stored(&values, len)?;
        constants.insert(values.name.clone(), ints(&values));
    }
    let nodes = nodes(graph)?;
    for node in &nodes {
        for a in &node.attribute {
            let Some(values) = &a.t else { continue };
            stored(values, len)?;
            if node.op_type == "Constant" {
                constants.extend(node.output.first().map(|o| (o.clone(), ints(values))));
            }
        }
        if node.op_type == "Constant"
            && let Some(a) = node.attribute.iter().find(|a| a.name == "value_ints")
        {
            constants.extend(node.output.first().map(|o| (o.clone(), a.ints.clone())));
        }
    }
    for node in &nodes {
        // Which input states how large the output is.
        let sizes = match node.op_type.as_str() {
            "ConstantOfShape" => 0,
            "Expand" | "Tile" | "Reshape" => 1,
            "Resize" => 3,
            _ => continue,
        };
        let Some(shape) = node.input.get(sizes).and_then(|name| constants.get(name)) else {
            continue;
        };
        // 0 and -1 represent sizes that come from elsewhere.
        if volume(shape.iter().filter(|v| **v > 0)).is_none_or(|n| n > MOST_VALUES) {
            return Err(format!(
                "{} makes a tensor of {shape:?}, more than {MOST_VALUES} values",
                node.op_type
            ));
        }
    }
    Ok(())
}

fn volume<'a>(sides: impl IntoIterator<Item = &'a i64>) -> Option<u64> {
    sides.into_iter().try_fold(1u64, |n, side| n.checked_mul(u64::try_from(*side).ok()?))
}

/// Refuses a tensor that is elsewhere, or is larger than the file.
fn stored(values: &TensorProto, len: usize) -> Result<(), String> {
    let TensorProto { name, dims, .. } = values;
    if values.data_location != 0 || !values.external_data.is_empty() {
        return Err(format!(
            "the values of `{name}` are in another file; export them into this one if they are below 2 GB"
        ));
    }
    // The smallest values take four bits.
    if volume(dims).is_none_or(|n| n > 2 * len as u64) {
        return Err(format!("the file cannot hold `{name}` of {dims:?} values"));
    }
    Ok(())
}

fn decode(onnx: &[u8]) -> Result<(Model, Graph), String> {
    shared(&Bytes::copy_from_slice(onnx))
}

/// As [`decode`], without a copy of the file.
fn shared(onnx: &Bytes) -> Result<(Model, Graph), String> {
    limits::limited(onnx)?;
    let mut model = Model::decode(onnx.clone()).map_err(|e| format!("not an ONNX file: {e}"))?;
    let graph = model.graph.take().ok_or("not an ONNX file: it holds no graph")?;
    Ok((model, graph))
}

fn nodes(graph: &Graph) -> Result<Vec<NodeProto>, String> {
    let read = |b: &Bytes| NodeProto::decode(b.clone()).map_err(|e| format!("a damaged node: {e}"));
    graph.node.iter().map(read).collect()
}

/// The value with which a U-Net's decoder begins, that is its first enlarged one.
///
/// # Errors
/// A sentence on what is damaged, or that a decoder is missing.
pub(crate) fn decoder(onnx: &[u8]) -> Result<String, String> {
    let first = nodes(&decode(onnx)?.1)?.into_iter().find(|n| n.op_type == "Resize");
    let value = first.and_then(|n| n.output.into_iter().next());
    value.ok_or_else(|| {
        "it has no decoder to compute in bf16; take the precision f32, which may run it".into()
    })
}

/// A network in two files: what runs before the value `from`, and the rest.
#[derive(Debug)]
pub(crate) struct Halves {
    /// From [`INPUT`] to the values in `between`.
    pub first: Vec<u8>,
    /// From the values in `between` to [`OUTPUT`].
    pub second: Vec<u8>,
    /// TensorProto of four dimensions that the first half hands on.
    pub between: Vec<String>,
}

/// Cuts a network before the value `from`.
///
/// # Errors
/// A sentence on what is damaged or that no such value is made.
pub(crate) fn cut(onnx: &[u8], from: &str) -> Result<Halves, String> {
    let (model, graph) = decode(onnx)?;
    let nodes = nodes(&graph)?;
    let at = nodes.iter().position(|n| n.output.iter().any(|o| o == from));
    let at = at.ok_or_else(|| format!("no value named `{from}` is made"))?;

    // What depends on the image; all else is weights, which each half keeps for itself.
    let mut live: HashSet<&str> = HashSet::from([INPUT]);
    for node in &nodes {
        if node.input.iter().any(|i| live.contains(i.as_str())) {
            live.extend(node.output.iter().map(String::as_str));
        }
    }
    let made: HashSet<&str> =
        nodes[..at].iter().flat_map(|n| &n.output).map(String::as_str).collect();
    let mut between: Vec<String> = Vec::new();
    for name in nodes[at..].iter().flat_map(|n| &n.input) {
        let crosses = made.contains(name.as_str()) && live.contains(name.as_str());
        if crosses && !between.contains(name) {
            between.push(name.clone());
        }
    }
    let whole = |names: &[&str]| -> Vec<ValueInfoProto> {
        graph
            .input
            .iter()
            .chain(&graph.output)
            .filter(|v| names.contains(&&*v.name))
            .cloned()
            .collect()
    };
    let open: Vec<ValueInfoProto> = between.iter().map(|name| open_value(name)).collect();
    let half =
        |input: Vec<ValueInfoProto>, output: Vec<ValueInfoProto>| -> Result<Vec<u8>, String> {
            let mut wanted: HashSet<&str> = output.iter().map(|v| v.name.as_str()).collect();
            let given: HashSet<&str> = input.iter().map(|v| v.name.as_str()).collect();
            let mut keep = Vec::new();
            for (node, bytes) in nodes.iter().zip(&graph.node).rev() {
                let made = |o: &String| wanted.contains(o.as_str()) && !given.contains(o.as_str());
                if node.output.iter().any(made) {
                    wanted.extend(node.input.iter().map(String::as_str));
                    keep.push(bytes.clone());
                }
            }
            keep.reverse();
            let mut weights = Vec::new();
            for bytes in &graph.initializer {
                let named = TensorHead::decode(bytes.clone())
                    .map_err(|e| format!("a damaged weight: {e}"))?;
                if wanted.contains(named.name.as_str()) {
                    weights.push(bytes.clone());
                }
            }
            let graph =
                Graph { node: keep, name: graph.name.clone(), initializer: weights, input, output };
            Ok(Model { graph: Some(graph), ..model.clone() }.encode_to_vec())
        };
    Ok(Halves {
        first: half(whole(&[INPUT]), open.clone())?,
        second: half(open, whole(&[OUTPUT]))?,
        between,
    })
}

/// An f32 value of four dimensions of any size.
fn open_value(name: &str) -> ValueInfoProto {
    let shape = TensorShapeProto { dim: vec![DimensionProto { value: None }; 4] };
    let tensor = TensorTypeProto { elem_type: FLOAT, shape: Some(shape) };
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type: Some(tensor) }) }
}

fn dims_of<'a>(
    values: &'a [ValueInfoProto],
    kind: &str,
    name: &str,
) -> Result<&'a [DimensionProto], String> {
    let value = values.iter().find(|v| v.name == name).ok_or_else(|| {
        let names: Vec<_> = values.iter().map(|v| v.name.as_str()).collect();
        format!("no {kind} named `{name}`; there is {names:?}")
    })?;
    let tensor = value
        .r#type
        .as_ref()
        .and_then(|t| t.tensor_type.as_ref())
        .ok_or_else(|| format!("{kind} `{name}` is not a tensor"))?;
    if tensor.elem_type != FLOAT {
        return Err(format!("{kind} `{name}` is not f32 (ONNX type {})", tensor.elem_type));
    }
    Ok(tensor.shape.as_ref().map_or(&[], |s| s.dim.as_slice()))
}

fn fixed(dims: &[DimensionProto], want: &[usize], kind: &str, name: &str) -> Result<(), String> {
    for (dim, want) in dims.iter().zip(want) {
        if let Some(Dimension::Value(n)) = dim.value
            && usize::try_from(n) != Ok(*want)
        {
            return Err(format!("{kind} `{name}` has a side of {n}, the card states {want}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelPackage;
    use rten::{Model, Value, ValueOrView};
    use rten_tensor::{AsView, NdTensor};

    /// The values `outputs` of a network.
    pub(super) fn run(onnx: &[u8], inputs: Vec<(&str, Value)>, outputs: &[String]) -> Vec<Value> {
        let model = Model::load(onnx.to_vec()).expect("a network");
        let id = |name: &str| model.node_id(name).expect("its name");
        let inputs: Vec<(_, ValueOrView<'_>)> =
            inputs.into_iter().map(|(name, v)| (id(name), v.into())).collect();
        let outputs: Vec<_> = outputs.iter().map(|name| id(name)).collect();
        model.run(inputs, &outputs, None).expect("it runs")
    }

    #[test]
    fn the_halves_of_a_unet_are_the_whole() {
        let Ok(package) = ModelPackage::bundled() else {
            eprintln!("SKIPPED: this build bundles no weights");
            return;
        };
        let onnx = package.segmenter().expect("a detector");
        let from = decoder(onnx).expect("a decoder");
        let halves = cut(onnx, &from).expect("the value is made");
        assert!(halves.between.len() > 1, "the skip connections cross: {:?}", halves.between);
        assert!(
            halves.first.len() + halves.second.len() < onnx.len() + 4096,
            "no weight is doubled"
        );

        let image: Vec<f32> = (0..3 * 64 * 96u16).map(|i| f32::from(i % 251) / 99.0).collect();
        let image = NdTensor::from_data([1, 3, 64, 96], image);
        let image = || Value::from(image.clone());
        let whole = run(onnx, vec![(INPUT, image())], &[OUTPUT.into()]);
        let handed = run(&halves.first, vec![(INPUT, image())], &halves.between);
        let handed = halves.between.iter().map(String::as_str).zip(handed).collect();
        let second = run(&halves.second, handed, &[OUTPUT.into()]);
        let values = |v: Vec<Value>| -> Vec<f32> {
            let out: NdTensor<f32, 4> = v.into_iter().next().expect("one").try_into().expect("f32");
            out.to_vec()
        };
        assert_eq!(values(second), values(whole));
    }

    #[test]
    fn sizes_that_no_machine_has_are_refused() {
        for name in ["onnx_shape_panic", "onnx_16GiB_abort"] {
            let Some(dir) = testkit::data(&format!("hostile/{name}")) else { continue };
            let package = ModelPackage::open(&dir).expect("a package");
            let options = crate::EngineOptions {
                engine: crate::EngineChoice::Rten,
                ..crate::EngineOptions::default()
            };
            let e = crate::open(&package, &options).unwrap_err();
            assert!(matches!(e, crate::EngineError::Model { .. }), "{name}: {e}");
            let text = e.to_string();
            assert!(text.contains("ConstantOfShape") && text.contains("segmenter"), "{text}");
        }
    }

    /// A graph of one node on a weight `w`.
    fn graph(op: &str, at: usize, w: TensorProto) -> Graph {
        let mut input = vec!["image".to_owned(); at];
        input.push("w".into());
        let node = NodeProto::new(op, input, vec!["o".into()]);
        Graph {
            node: vec![node.encode_to_vec().into()],
            initializer: vec![TensorProto { name: "w".into(), ..w }.encode_to_vec().into()],
            ..Graph::default()
        }
    }

    #[test]
    fn weights_are_in_the_file_and_shapes_are_possible() {
        let ints = |v: &[i64]| TensorProto {
            dims: vec![v.len() as i64],
            data_type: numbers::INT64,
            int64_data: v.to_vec(),
            ..TensorProto::default()
        };
        let check = |g: &Graph| bounded(g, 1000);
        assert_eq!(check(&graph("Reshape", 1, ints(&[0, -1, 64]))), Ok(()));
        assert_eq!(check(&graph("Slice", 2, ints(&[i64::MAX]))), Ok(()), "an end, no size");
        for (op, at) in [("ConstantOfShape", 0), ("Expand", 1), ("Tile", 1), ("Resize", 3)] {
            let e = check(&graph(op, at, ints(&[1 << 20, 1 << 20]))).unwrap_err();
            assert!(e.contains(op), "{e}");
            assert!(check(&graph(op, at, ints(&[i64::MAX, i64::MAX]))).is_err());
        }
        for dims in [vec![1 << 40], vec![i64::MAX, 2], vec![-1]] {
            let w = TensorProto { dims, data_type: FLOAT, ..TensorProto::default() };
            assert!(check(&graph("Add", 1, w)).unwrap_err().contains("cannot hold"));
        }
        let elsewhere = TensorProto { data_location: 1, ..TensorProto::default() };
        assert!(check(&graph("Add", 1, elsewhere)).unwrap_err().contains("another file"));
    }

    #[test]
    fn no_decoder_and_no_such_value() {
        let Ok(package) = ModelPackage::bundled() else {
            eprintln!("SKIPPED: this build bundles no weights");
            return;
        };
        let e = decoder(package.classifier().expect("two stages")).unwrap_err();
        assert!(e.contains("no decoder"), "{e}");
        let e = cut(package.segmenter().expect("a detector"), "elsewhere").unwrap_err();
        assert!(e.contains("elsewhere"), "{e}");
        assert!(cut(b"\xff\xff", "x").is_err());
    }
}
