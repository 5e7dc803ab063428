//! Several classifiers as one network: the same image into each, the mean of their probabilities out.
//!
//! Nodes and weights stay the bytes they are but for their names, which get a prefix per member.

use super::numbers::FLOAT;
use super::{INPUT, OUTPUT, decode};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, encode_key, skip_field};
use proto::parts::{Graph, NodeNames};
use proto::{NodeProto, TensorProto};

/// A message without the fields `without`.
pub(super) fn copied(message: &[u8], without: &[u32]) -> Result<Vec<u8>, String> {
    let damaged = |e: prost::DecodeError| format!("damaged: {e}");
    let (mut left, mut out) = (message, Vec::with_capacity(message.len()));
    while !left.is_empty() {
        let (tag, wire) = decode_key(&mut left).map_err(damaged)?;
        let whole = left;
        skip_field(wire, tag, &mut left, DecodeContext::default()).map_err(damaged)?;
        if !without.contains(&tag) {
            encode_key(tag, wire, &mut out);
            out.extend_from_slice(&whole[..whole.len() - left.len()]);
        }
    }
    Ok(out)
}

/// Appends a field of text or bytes to a message.
pub(super) fn field(tag: u32, value: impl AsRef<[u8]>, out: &mut Vec<u8>) {
    let value = value.as_ref();
    encode_key(tag, WireType::LengthDelimited, out);
    prost::encoding::encode_varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// The mean of the members' probabilities, as one file.
///
/// # Errors
/// A sentence on which member is damaged, of another version, or not to be renamed.
pub(crate) fn mean(members: &[&[u8]]) -> Result<Vec<u8>, String> {
    let mut whole: Option<(super::Model, Graph)> = None;
    let mut sum: Option<String> = None;
    let mut sums = vec![];
    for (k, onnx) in members.iter().enumerate() {
        let at = |e: String| format!("member {}: {e}", k + 1);
        let (model, graph) = decode(onnx).map_err(at)?;
        let named = |name: &str| match name {
            "" | INPUT => name.to_owned(),
            other => format!("m{k}/{other}"),
        };
        let mut nodes = vec![];
        for bytes in &graph.node {
            let names = NodeNames::decode(bytes.clone()).map_err(|e| at(e.to_string()))?;
            if names.attribute.iter().any(|a| a.graph.is_some() || !a.graphs.is_empty()) {
                return Err(at("it holds graphs inside nodes, which cannot be renamed".into()));
            }
            let mut node = vec![];
            names.input.iter().for_each(|n| field(1, named(n), &mut node));
            names.output.iter().for_each(|n| field(2, named(n), &mut node));
            field(3, format!("m{k}/{}", names.name), &mut node);
            node.extend(copied(bytes, &[1, 2, 3]).map_err(at)?);
            nodes.push(node.into());
        }
        let mut weights = vec![];
        for bytes in &graph.initializer {
            let values = TensorProto::decode(bytes.clone()).map_err(|e| at(e.to_string()))?;
            let mut weight = copied(bytes, &[8]).map_err(at)?;
            field(8, named(&values.name), &mut weight);
            weights.push(weight.into());
        }
        let own = named(OUTPUT);
        sum = Some(match sum {
            None => own,
            Some(before) => {
                let (both, after) = (vec![before, own], format!("sum/{k}"));
                sums.push(NodeProto::new("Add", both, vec![after.clone()]).encode_to_vec().into());
                after
            }
        });
        match &mut whole {
            None => whole = Some((model, Graph { node: nodes, initializer: weights, ..graph })),
            Some((first, all)) => {
                if first.opset_import != model.opset_import {
                    return Err(at("it is written for another version of the operators".into()));
                }
                all.node.extend(nodes);
                all.initializer.extend(weights);
            }
        }
    }
    let (Some((model, mut graph)), Some(sum)) = (whole, sum) else {
        return Err("no members".into());
    };
    let share = TensorProto {
        data_type: FLOAT,
        name: "share".into(),
        raw_data: (1.0 / members.len() as f32).to_le_bytes().to_vec().into(),
        ..TensorProto::default()
    };
    graph.initializer.push(share.encode_to_vec().into());
    let (input, output) = (vec![sum, "share".into()], vec![OUTPUT.into()]);
    sums.push(NodeProto::new("Mul", input, output).encode_to_vec().into());
    graph.node.extend(sums);
    Ok(super::Model { graph: Some(graph), ..model }.encode_to_vec())
}
