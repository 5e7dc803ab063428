//! A network in several files, each below what one message of protobuf can hold.
//!
//! It is cut between blocks, where one value goes on. A file is encoded as soon as it is full, so that
//! no more than one lies in memory twice.

use prost::Message;

use super::graph::{Axis, Graph, Value};
use super::options::WeightKind;
use super::proto::{NodeProto, TensorProto};
use super::size::{fits, share};
use super::{ExportOptions, embed_graph, image_axes};
use crate::encoder::Encoder;
use crate::error::Result;

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
    input: (Value, Vec<Axis>),
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
    fn count(&mut self, nodes: &[NodeProto], weights: &[TensorProto]) {
        let (n, w, bytes) = self.counted;
        let of = |len: usize| len as u64 + KEY;
        let more = nodes[n..].iter().map(|n| of(n.encoded_len())).sum::<u64>()
            + weights[w..].iter().map(|t| of(t.encoded_len())).sum::<u64>();
        self.counted = (nodes.len(), weights.len(), bytes + more);
    }
}

impl Graph {
    /// Says that from here on nothing is read but `value`, so that a file may end. Nothing happens in
    /// a graph that is one file.
    pub(super) fn seam(&mut self, value: &str, axes: &[Axis]) {
        self.cut_where_full();
        if let Some(c) = &mut self.cutting
            && !self.nodes.is_empty()
        {
            let (nodes, weights, bytes) = c.counted;
            let (value, axes) = (value.to_owned(), axes.to_vec());
            c.seam = Some(Seam { nodes, weights, bytes, value, axes });
        }
    }

    /// Ends a file at the last seam where what came after would make it too large.
    fn cut_where_full(&mut self) {
        let Some(c) = &mut self.cutting else { return };
        c.count(&self.nodes, &self.weights);
        if c.counted.2 + ENVELOPE <= c.full {
            return;
        }
        let Some(seam) = c.seam.take() else { return };
        let nodes = self.nodes.split_off(seam.nodes);
        let nodes = std::mem::replace(&mut self.nodes, nodes);
        let weights = self.weights.split_off(seam.weights);
        let weights = std::mem::replace(&mut self.weights, weights);
        c.counted = (self.nodes.len(), self.weights.len(), c.counted.2 - seam.bytes);
        let output = (seam.value, seam.axes);
        let input = std::mem::replace(&mut c.input, output.clone());
        let (input, output) = ((&*input.0, &*input.1), (&*output.0, &*output.1));
        let pairs: Vec<_> = c.metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let model = Self::model((nodes, weights), &c.name, input, output, &pairs);
        c.done.push(model.encode_to_vec());
    }
}

/// [`super::embedding`] in as many files as it takes for each to have at most `most` bytes
/// ([`super::MOST_BYTES`]), in the order in which they run: the first takes `image`, each other the one
/// value that the file before gives, `[N, T, D]`, and the last gives `embedding`. What fits is one file,
/// the same as [`super::embedding`]'s. Transformers alone are cut.
///
/// # Errors
/// As [`super::embedding`]: [`crate::NetError::TooLarge`] where a file that cannot be cut further is larger.
pub fn embedding_parts(
    net: &dyn Encoder,
    size: i64,
    options: &ExportOptions,
    most: u64,
) -> Result<Vec<Vec<u8>>> {
    let mut g = Graph::new(options);
    let image = image_axes(size);
    g.cutting = Some(Cutting {
        full: share(net.network(), options.weights, most),
        name: net.architecture().into(),
        metadata: options.metadata.clone(),
        input: ("image".into(), image),
        seam: None,
        counted: (0, 0, 0),
        done: vec![],
    });
    let output = embed_graph(&mut g, net, size)?;
    g.cut_where_full();
    let Some(cut) = g.cutting.take() else { return Ok(vec![]) };
    let (mut files, input) = (cut.done, cut.input);
    let (input, output) = ((&*input.0, &*input.1), ("embedding", &output[..]));
    let model = g.finish(net.architecture(), input, output, &options.pairs()).0;
    checked(net, model.encoded_len(), options.weights, most)?;
    files.push(model.encode_to_vec());
    files.iter().try_for_each(|f| checked(net, f.len(), options.weights, most))?;
    Ok(files)
}

fn checked(net: &dyn Encoder, bytes: usize, weights: WeightKind, most: u64) -> Result<()> {
    fits(net.architecture(), bytes as u64, weights, most)
}
