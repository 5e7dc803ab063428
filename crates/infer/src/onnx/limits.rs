//! How much a graph may ask of an engine. Engines follow a graph by recursion and run its loops as often
//! as it states, so what a file asks for is counted before an engine reads it.

use super::growth::{Constants, Growth, Size};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use proto::parts::{Function, Node, Subgraphs, ValueName};
use proto::{AttributeProto, TensorProto};
use std::collections::HashMap;

/// Nodes of a file, with those of graphs inside nodes and of functions as often as they are called. The
/// largest encoders have about 6,000.
pub(crate) const MOST_NODES: u64 = 10_000;
/// Nodes that wait for each other, one after the other: engines follow them by recursion, and a thread's
/// stack holds some 6,000. The longest way through the largest encoders has about 2,000.
pub(crate) const LONGEST: u64 = 4_000;
/// Graphs inside one another, and functions that call functions.
pub(crate) const DEEPEST: usize = 16;
/// Nodes that run for one image, with those of loops as often as the loop turns.
pub(crate) const MOST_STEPS: u64 = 1_000_000;

/// Numbers of one value, for one image: 8 GiB in f32. The largest values of networks have some 10^8.
pub(crate) const MOST_NUMBERS: u64 = 1 << 31;

pub(super) const GRAPH: u32 = 7;
const FUNCTION: u32 = 25;

/// Counts what a file asks for.
///
/// # Errors
/// A sentence on what is too much, endless, or damaged.
pub(super) fn limited(onnx: &[u8]) -> Result<(), String> {
    let mut all = Counter::default();
    for field in Fields(onnx) {
        let (number, payload) = field?;
        if number == FUNCTION {
            let function =
                Function::decode(payload).map_err(|e| format!("a damaged function: {e}"))?;
            all.functions.insert((function.domain.clone(), function.name.clone()), function);
        }
    }
    for field in Fields(onnx) {
        let (number, payload) = field?;
        if number == GRAPH {
            all.graph(payload, 0, 1)?;
        }
    }
    Ok(())
}

/// Whether a file calls functions of its own.
pub(crate) fn has_functions(onnx: &[u8]) -> bool {
    Fields(onnx).flatten().any(|(number, _)| number == FUNCTION)
}

/// What has been counted.
#[derive(Default)]
struct Counter {
    /// By domain and name.
    functions: HashMap<(String, String), Function>,
    nodes: u64,
    steps: u64,
}

/// What a graph takes, gives and states.
#[derive(Default)]
struct Frame {
    input: Vec<String>,
    output: Vec<String>,
    constants: Constants,
}

impl Counter {
    /// A graph at some depth, which runs `turns` times; by how much what it gives is larger than what it takes.
    fn graph(&mut self, bytes: &[u8], depth: usize, turns: u64) -> Result<u64, String> {
        const NODE: u32 = 1;
        const INITIALIZER: u32 = 5;
        const INPUT: u32 = 11;
        const OUTPUT: u32 = 12;
        let end = |value: &[u8]| {
            let end = ValueName::decode(value).map_err(|e| format!("a damaged value: {e}"))?;
            Ok::<_, String>(end.name)
        };
        let mut frame = Frame::default();
        let mut nodes = Vec::new();
        for field in Fields(bytes) {
            match field? {
                (NODE, node) => {
                    nodes.push(node);
                    self.room(nodes.len() as u64)?;
                }
                // A number is short; weights are not looked at here.
                (INITIALIZER, weight) if weight.len() < 256 => {
                    let values = TensorProto::decode(weight)
                        .map_err(|e| format!("a damaged weight: {e}"))?;
                    let numbers = super::numbers::numbers(&values);
                    frame.constants.extend(numbers.map(|n| (values.name.clone(), n)));
                }
                (INPUT, value) => frame.input.push(end(value)?),
                (OUTPUT, value) => frame.output.push(end(value)?),
                _ => {}
            }
        }
        self.nodes(nodes, frame, depth, turns)
    }

    fn room(&self, more: u64) -> Result<(), String> {
        if self.nodes.saturating_add(more) > MOST_NODES {
            return Err(format!("it has more than {MOST_NODES} nodes, which no engine here runs"));
        }
        Ok(())
    }

    fn nodes<'a>(
        &mut self,
        nodes: impl IntoIterator<Item = &'a [u8]>,
        mut frame: Frame,
        depth: usize,
        turns: u64,
    ) -> Result<u64, String> {
        if depth > DEEPEST {
            return Err(format!("more than {DEEPEST} graphs or functions are nested"));
        }
        let mut chain = Chain::default();
        for bytes in nodes {
            let before = self.nodes;
            let node = Node::decode(bytes).map_err(|e| format!("a damaged node: {e}"))?;
            self.room(1)?;
            self.nodes += 1;
            self.steps = self.steps.saturating_add(turns);
            if self.steps > MOST_STEPS {
                return Err(format!("its loops run more than {MOST_STEPS} nodes for one image"));
            }
            let mut growth = Growth::new(&node.op_type, &node.input, &frame.constants);
            let mut own = 1;
            let turns = match node.op_type.as_str() {
                "Loop" => {
                    own = turns_of_loop(&node, &frame.constants)?;
                    turns.saturating_mul(own)
                }
                "Scan" => {
                    return Err("it holds a `Scan`, whose number of turns it does not state; \
                                export the network with its loops unrolled if they are short"
                        .into());
                }
                "Constant" => {
                    let value = constant(&node)?;
                    frame.constants.extend(node.output.first().cloned().zip(value));
                    turns
                }
                _ => turns,
            };
            for attribute in &node.attribute {
                let inner = Subgraphs::decode(attribute.as_slice())
                    .map_err(|e| format!("a damaged node: {e}"))?;
                for graph in inner.graph.iter().chain(&inner.graphs) {
                    let factor = self.graph(graph, depth + 1, turns)?;
                    if node.op_type == "Loop" {
                        let turns = u32::try_from(own).unwrap_or(u32::MAX);
                        growth = Growth::AtLeast(factor.saturating_pow(turns));
                    }
                }
            }
            // Functions are put in place of what calls them.
            let called = (node.domain.clone(), node.op_type.clone());
            if let Some(Function { node, input, output, .. }) = self.functions.get(&called).cloned()
            {
                let frame = Frame { input, output, constants: Constants::new() };
                let nodes = node.iter().map(Vec::as_slice);
                growth = Growth::Times(self.nodes(nodes, frame, depth + 1, turns)?);
            }
            chain.add(node, self.nodes - before, growth);
        }
        let open = frame.input.iter().map(|name| (name.clone(), Size::OPEN));
        let stated = frame.constants.iter().map(|(k, v)| (k.clone(), Size::stated(v.len())));
        let mut sizes: HashMap<String, Size> = open.chain(stated).collect();
        match chain.longest(&mut sizes)? {
            n if n > LONGEST => {
                Err(format!("{n} of its nodes follow each other, more than {LONGEST}"))
            }
            _ => Ok(frame
                .output
                .iter()
                .filter_map(|name| sizes.get(name))
                .fold(1, |most, size| most.max(size.factor()))),
        }
    }
}

/// The nodes of one graph, to find the longest way through it, in whatever order they are written.
#[derive(Default)]
struct Chain {
    made_by: HashMap<String, usize>,
    takes: Vec<Vec<String>>,
    gives: Vec<Vec<String>>,
    /// Nodes that each counts for.
    weights: Vec<u64>,
    growths: Vec<Growth>,
    ops: Vec<String>,
}

impl Chain {
    fn add(&mut self, node: Node, weight: u64, growth: Growth) {
        let (number, outputs) = (self.takes.len(), node.output.into_iter());
        let gives: Vec<String> = outputs.filter(|o| !o.is_empty()).collect();
        self.made_by.extend(gives.iter().map(|o| (o.clone(), number)));
        self.takes.push(node.input);
        self.gives.push(gives);
        self.weights.push(weight);
        self.growths.push(growth);
        self.ops.push(node.op_type);
    }

    /// Nodes on the longest way; the sizes of what is made join those of what comes in.
    fn longest(&self, sizes: &mut HashMap<String, Size>) -> Result<u64, String> {
        let n = self.takes.len();
        let (mut open, mut next) = (vec![0; n], vec![Vec::new(); n]);
        for (node, inputs) in self.takes.iter().enumerate() {
            for from in inputs.iter().filter_map(|i| self.made_by.get(i)) {
                open[node] += 1;
                next[*from].push(node);
            }
        }
        let mut ready: Vec<usize> = (0..n).filter(|i| open[*i] == 0).collect();
        let mut ways = self.weights.clone();
        let (mut done, mut longest) = (0, 0);
        while let Some(node) = ready.pop() {
            done += 1;
            longest = longest.max(ways[node]);
            let inputs = self.takes[node].iter().filter(|name| !name.is_empty());
            let size = self.growths[node]
                .size(inputs.map(|name| sizes.get(name).copied().unwrap_or(Size::LEAST)));
            if size.one > MOST_NUMBERS {
                return Err(format!(
                    "for one image its `{}` makes a value of more than {MOST_NUMBERS} numbers: it \
                     repeats or enlarges what it has too often",
                    self.ops[node]
                ));
            }
            sizes.extend(self.gives[node].iter().map(|name| (name.clone(), size)));
            for after in &next[node] {
                ways[*after] = ways[*after].max(ways[node].saturating_add(self.weights[*after]));
                open[*after] -= 1;
                if open[*after] == 0 {
                    ready.push(*after);
                }
            }
        }
        if done < n {
            return Err("its nodes wait for each other in a circle".into());
        }
        Ok(longest)
    }
}

/// How often a loop turns, at most.
fn turns_of_loop(node: &Node, constants: &Constants) -> Result<u64, String> {
    let stated = node.input.first().and_then(|name| constants.get(name)?.first());
    // A number that a float cannot hold is far above every limit.
    let turns = stated.filter(|n| **n >= 0.0).map(|n| *n as u64);
    turns.ok_or_else(|| {
        "it holds a `Loop` whose number of turns it does not state; export the network with its \
         loops unrolled if they are short"
            .into()
    })
}

/// The numbers of a `Constant`.
fn constant(node: &Node) -> Result<Option<Vec<f64>>, String> {
    for bytes in node.attribute.iter().filter(|a| a.len() < 256) {
        let a =
            AttributeProto::decode(bytes.as_slice()).map_err(|e| format!("a damaged node: {e}"))?;
        let value = match a.name.as_str() {
            "value" => a.t.and_then(|t| super::numbers::numbers(&t)),
            "value_int" => Some(vec![a.i as f64]),
            "value_ints" => Some(a.ints.iter().map(|n| *n as f64).collect()),
            _ => None,
        };
        if value.is_some() {
            return Ok(value);
        }
    }
    Ok(None)
}

/// The fields of a message that have a length: number and content, nothing copied.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, &'a [u8]), String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut next_field = || -> Result<Option<(u32, &'a [u8])>, prost::DecodeError> {
            while !self.0.is_empty() {
                let (number, wire) = decode_key(&mut self.0)?;
                let mut rest = self.0;
                skip_field(wire, number, &mut self.0, DecodeContext::default())?;
                if wire == WireType::LengthDelimited {
                    let length = decode_varint(&mut rest)? as usize;
                    return Ok(Some((number, &rest[..length])));
                }
            }
            Ok(None)
        };
        let found = next_field().map_err(|e| format!("not an ONNX file: {e}")).transpose();
        if !matches!(found, Some(Ok(_))) {
            self.0 = &[];
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::NodeProto;
    use proto::parts::{Graph, Model};
    use rten_tensor::AsView;

    fn node(op: &str, input: &str, output: &str) -> Vec<u8> {
        let (input, output) = (vec![input.into()], vec![output.into()]);
        NodeProto::new(op, input, output).encode_to_vec()
    }

    fn file(node: Vec<Vec<u8>>, initializer: Vec<Vec<u8>>) -> Vec<u8> {
        let shared = |all: Vec<Vec<u8>>| all.into_iter().map(Into::into).collect();
        let (node, initializer) = (shared(node), shared(initializer));
        let graph = Graph { node, initializer, ..Graph::default() };
        Model { graph: Some(graph), ..Model::default() }.encode_to_vec()
    }

    /// A node with a graph inside.
    fn with_graph(op: &str, input: &str, nodes: Vec<Vec<u8>>) -> Vec<u8> {
        let node = nodes.into_iter().map(Into::into).collect();
        let graph = Graph { node, ..Graph::default() }.encode_to_vec();
        let inner = Subgraphs { graph: Some(graph), graphs: vec![] }.encode_to_vec();
        let asks = Node {
            input: vec![input.into()],
            op_type: op.into(),
            attribute: vec![inner],
            ..Node::default()
        };
        asks.encode_to_vec()
    }

    fn refused(onnx: &[u8]) -> String {
        limited(onnx).unwrap_err()
    }

    #[test]
    fn chains_nests_and_loops_have_a_limit() {
        // Side by side, one after the other in either order, and in a circle.
        let chain = |n: u64| (0..n).map(|_| node("Relu", "a", "b")).collect::<Vec<_>>();
        assert_eq!(limited(&file(chain(MOST_NODES), vec![])), Ok(()));
        assert!(refused(&file(chain(MOST_NODES + 1), vec![])).contains("nodes"));
        let row = |n: u64| {
            let one = |k: u64| node("Relu", &format!("v{k}"), &format!("v{}", k + 1));
            (0..n).map(one).collect::<Vec<_>>()
        };
        let turned = |n: u64| row(n).into_iter().rev().collect::<Vec<_>>();
        assert_eq!(limited(&file(row(LONGEST), vec![])), Ok(()));
        for long in [row(LONGEST + 1), turned(LONGEST + 1)] {
            assert!(refused(&file(long, vec![])).contains("follow each other"));
        }
        let circle = vec![node("Relu", "a", "b"), node("Relu", "b", "a")];
        assert!(refused(&file(circle, vec![])).contains("circle"));

        let nest = |n: usize| (0..n).fold(chain(1), |inner, _| vec![with_graph("If", "c", inner)]);
        assert_eq!(limited(&file(nest(DEEPEST), vec![])), Ok(()));
        for deep in [DEEPEST + 1, 3000] {
            assert!(refused(&file(nest(deep), vec![])).contains("are nested"), "{deep}");
        }

        let turns = |n: i64| TensorProto {
            name: "m".into(),
            data_type: 7,
            int64_data: vec![n],
            ..TensorProto::default()
        };
        let turning = |n: i64, inner: Vec<Vec<u8>>| {
            file(vec![with_graph("Loop", "m", inner)], vec![turns(n).encode_to_vec()])
        };
        assert_eq!(limited(&turning(1000, chain(900))), Ok(()));
        assert!(refused(&turning(1 << 62, chain(1))).contains("1000000 nodes"));
        assert!(refused(&turning(-1, chain(1))).contains("does not state"));
        // No number that the file states.
        assert!(refused(&file(vec![with_graph("Loop", "x", chain(1))], vec![])).contains("state"));
        assert!(refused(&file(vec![with_graph("Scan", "x", chain(1))], vec![])).contains("`Scan`"));
    }

    #[test]
    fn functions_count_as_often_as_they_are_called() {
        let function = |name: &str, node: Vec<Vec<u8>>| {
            let f = Function { name: name.into(), node, ..Function::default() };
            let (mut out, bytes) = (Vec::new(), f.encode_to_vec());
            prost::encoding::encode_key(FUNCTION, WireType::LengthDelimited, &mut out);
            prost::encoding::encode_varint(bytes.len() as u64, &mut out);
            out.extend(bytes);
            out
        };
        let calls = |names: &[&str]| names.iter().map(|n| node(n, "a", "b")).collect::<Vec<_>>();
        let mut whole = file(calls(&["f0", "f0"]), vec![]);
        for k in 0..15 {
            let next = format!("f{}", k + 1);
            whole.extend(function(&format!("f{k}"), calls(&[&next, &next])));
        }
        assert!(refused(&whole).contains("nodes"));
        let mut endless = file(calls(&["f"]), vec![]);
        endless.extend(function("f", calls(&["f"])));
        assert!(refused(&endless).contains("are nested"));
    }

    #[test]
    fn values_that_grow_without_end_are_refused() {
        let twice = |a: &str, b: &str| {
            let input = vec![a.into(), a.into()];
            NodeProto::new("Concat", input, vec![b.into()]).encode_to_vec()
        };
        let row = |n: u64, between: &str| {
            let one = |k: u64| {
                let (from, half, to) = (format!("v{k}"), format!("h{k}"), format!("v{}", k + 1));
                [twice(&from, &half), node(between, &half, &to)]
            };
            (0..n).flat_map(one).collect::<Vec<_>>()
        };
        let backwards = |n: u64| row(n, "Relu").into_iter().rev().collect::<Vec<_>>();
        assert_eq!(limited(&file(row(31, "Relu"), vec![])), Ok(()));
        for long in [row(32, "Relu"), backwards(32)] {
            assert!(refused(&file(long, vec![])).contains("more than 2147483648 numbers"));
        }
        // A convolution may make a value small again.
        assert_eq!(limited(&file(row(60, "Conv"), vec![])), Ok(()));

        let values = |name: &str, ints: Vec<i64>| {
            TensorProto {
                name: name.into(),
                data_type: 7,
                int64_data: ints,
                ..TensorProto::default()
            }
            .encode_to_vec()
        };
        let tile = |repeats: Vec<i64>| {
            let (input, output) = (vec!["x".into(), "r".into()], vec!["y".into()]);
            let tile = NodeProto::new("Tile", input, output);
            file(vec![tile.encode_to_vec()], vec![values("r", repeats)])
        };
        assert_eq!(limited(&tile(vec![1, 1, 1 << 10, 1 << 10])), Ok(()));
        assert!(refused(&tile(vec![1, 1, 1 << 20, 1 << 20])).contains("numbers"));
        assert!(refused(&tile(vec![i64::MAX; 4])).contains("numbers"));

        // A loop whose value doubles with each turn, and one that adds the same to it.
        let turning = |turns: i64, added: &str| {
            let end = |name: &str| super::super::open_value(name);
            let join = NodeProto::new("Concat", vec!["x".into(), added.into()], vec!["y".into()]);
            let body = Graph {
                node: vec![join.encode_to_vec().into()],
                initializer: vec![values("c", vec![1, 2]).into()],
                input: ["i", "go", "x"].map(end).into(),
                output: ["go", "y"].map(end).into(),
                ..Graph::default()
            };
            let inner = Subgraphs { graph: Some(body.encode_to_vec()), graphs: vec![] };
            let asks = Node {
                input: vec!["m".into(), String::new(), "image".into()],
                output: vec!["z".into()],
                op_type: "Loop".into(),
                attribute: vec![inner.encode_to_vec()],
                ..Node::default()
            };
            file(vec![asks.encode_to_vec()], vec![values("m", vec![turns])])
        };
        assert_eq!(limited(&turning(31, "x")), Ok(()));
        assert!(refused(&turning(32, "x")).contains("numbers"));
        assert_eq!(limited(&turning(100_000, "c")), Ok(()));
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        let whole = file(vec![node("Relu", "a", "b")], vec![]);
        for n in 1..whole.len() {
            assert!(limited(&whole[..n]).is_err(), "{n}");
        }
    }

    /// What is allowed, an engine loads: it follows a graph by recursion.
    #[test]
    fn the_longest_chain_is_loaded_and_run() {
        let value = |name: &str| super::super::open_value(name);
        let name = |k: u64| if k == 0 { "image".into() } else { format!("v{k}") };
        let node = (0..LONGEST).map(|k| node("Relu", &name(k), &name(k + 1)).into()).collect();
        let (input, output) = (vec![value("image")], vec![value(&name(LONGEST))]);
        let graph = Graph { node, input, output, ..Graph::default() };
        let opset = vec![vec![16, 17]];
        let model = Model { ir_version: 8, graph: Some(graph), opset_import: opset };
        let onnx = model.encode_to_vec();
        limited(&onnx).expect("within the limits");
        let model = rten::Model::load(onnx).expect("a network");
        let id = |n: &str| model.node_id(n).expect("its name");
        let image = rten_tensor::NdTensor::from_data([1, 1, 1, 2], vec![-1.0f32, 2.0]);
        let image = rten::Value::from(image);
        let output = [id(&name(LONGEST))];
        let out = model.run(vec![(id("image"), image.into())], &output, None).expect("it runs");
        let out: rten_tensor::NdTensor<f32, 4> =
            out.into_iter().next().expect("one").try_into().expect("f32");
        assert_eq!(out.to_vec(), [0.0, 2.0]);
    }

    #[test]
    fn the_files_that_stopped_the_program_are_refused() {
        for (name, words) in [("if", "are nested"), ("chain", "nodes"), ("loop", "loops run")] {
            let Some(dir) = testkit::data(&format!("hostile/attack/10_onnx_aborts/{name}")) else {
                continue;
            };
            let package = crate::ModelPackage::open(&dir).expect("a package");
            let options = crate::EngineOptions {
                engine: crate::EngineChoice::Rten,
                ..crate::EngineOptions::default()
            };
            let e = crate::open(&package, &options).unwrap_err();
            assert!(matches!(e, crate::EngineError::Model { .. }), "{name}: {e}");
            assert!(e.to_string().contains(words), "{name}: {e}");
        }
    }
}
