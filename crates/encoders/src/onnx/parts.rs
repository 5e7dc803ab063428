//! A network in several files, each below what one message of protobuf can hold.
//!
//! It is cut between blocks, where one value continues. A file is encoded as soon as it is full, so that
//! no more than one is in memory twice.

use prost::Message;

use super::model::{Axis, NamedValue, Value, model};
use proto::{NodeProto, TensorProto};

/// What a file has besides its nodes and weights: names, versions, types.
const ENVELOPE: u64 = 4096;
/// Key and length of a field.
const KEY: u64 = 11;

/// How a graph is cut while it is built.
pub(super) struct Cutting {
    /// Bytes from which on a file ends at its last seam.
    full: u64,
    /// What all files are called inside, and their metadata.
    name: String,
    metadata: Vec<(String, String)>,
    /// What the file being built takes.
    input: NamedValue,
    seam: Option<Seam>,
    /// Bytes of the first so many nodes and weights.
    counted: (usize, usize, u64),
    done: Vec<Vec<u8>>,
}

/// A place where a file may end.
struct Seam {
    nodes: usize,
    weights: usize,
    bytes: u64,
    value: Value,
    axes: Vec<Axis>,
}

impl Cutting {
    /// `full`: bytes from which on a file ends at its last seam. `input` is what the first file takes.
    pub(super) fn new(
        full: u64,
        name: &str,
        metadata: &[(String, String)],
        input: NamedValue,
    ) -> Self {
        let (name, metadata) = (name.to_owned(), metadata.to_vec());
        Self { full, name, metadata, input, seam: None, counted: (0, 0, 0), done: vec![] }
    }

    /// The files that are full, and what the one after them takes.
    pub(super) fn done(self) -> (Vec<Vec<u8>>, NamedValue) {
        (self.done, self.input)
    }

    /// A file may end here, with `value`.
    pub(super) fn seam(&mut self, nodes: &[NodeProto], value: &str, axes: &[Axis]) {
        if !nodes.is_empty() {
            let (nodes, weights, bytes) = self.counted;
            let (value, axes) = (value.to_owned(), axes.to_vec());
            self.seam = Some(Seam { nodes, weights, bytes, value, axes });
        }
    }

    /// Ends a file at the last seam where what came after would make it too large.
    pub(super) fn where_full(
        &mut self,
        nodes: &mut Vec<NodeProto>,
        weights: &mut Vec<TensorProto>,
    ) {
        self.count(nodes, weights);
        if self.counted.2 + ENVELOPE <= self.full {
            return;
        }
        let Some(seam) = self.seam.take() else { return };
        let rest = nodes.split_off(seam.nodes);
        let full_nodes = std::mem::replace(nodes, rest);
        let rest = weights.split_off(seam.weights);
        let full_weights = std::mem::replace(weights, rest);
        self.counted = (nodes.len(), weights.len(), self.counted.2 - seam.bytes);
        let output = NamedValue { name: seam.value, axes: seam.axes };
        let input = std::mem::replace(&mut self.input, output.clone());
        let pairs: Vec<_> = self.metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let file = model(full_nodes, full_weights, &self.name, [&input, &output], &pairs);
        self.done.push(file.encode_to_vec());
    }

    fn count(&mut self, nodes: &[NodeProto], weights: &[TensorProto]) {
        let (n, w, bytes) = self.counted;
        let with_key = |len: usize| len as u64 + KEY;
        let more = nodes[n..].iter().map(|n| with_key(n.encoded_len())).sum::<u64>()
            + weights[w..].iter().map(|t| with_key(t.encoded_len())).sum::<u64>();
        self.counted = (nodes.len(), weights.len(), bytes + more);
    }
}
