//! A text tower's part of the export.

use super::Exported;
use super::graph::Graph;
use super::model::{Axis, NamedValue, Value};
use super::options::{ExportOptions, WeightKind};
use super::source::Shapes;
use crate::error::Result;
use crate::tower::{EPS, TextShape, TextTower};
use crate::weights::Outline;

/// Name of the network's input.
pub const TEXT: &str = "text";
/// Name of its output.
pub const VECTOR: &str = "embedding";

/// A text tower as the bytes of an ONNX file: `text [N, T, W + T]`, for each token what it is and what its attention
/// adds to the scores ([`TextTower::input`]), to `embedding [N, D]` of length one. `tokens` is T.
///
/// # Errors
/// [`EncoderError::TooLarge`](crate::EncoderError::TooLarge).
pub fn text(tower: &TextTower, tokens: usize) -> Result<Vec<u8>> {
    let (shape, tokens) = (tower.shape(), tokens as i64);
    let mut g = Graph::new(tower.tensors(), &ExportOptions::default());
    let vector = g.text_embed(TEXT, shape, tokens);
    g.named_op("Identity", &[&vector], vec![], VECTOR.into());
    let row = [Axis::Free("N"), Axis::Fixed(tokens), Axis::Fixed(shape.width + tokens)];
    let input = NamedValue::new(TEXT, &row);
    let output = NamedValue::new(VECTOR, &[Axis::Free("N"), Axis::Fixed(shape.output)]);
    let (model, parts) = g.finish("text", [&input, &output], &[])?;
    Exported { model, parts }.encoded(WeightKind::F32)
}

/// The tensors that a text tower is made of, by our names.
pub(crate) fn outline(shape: &TextShape) -> Outline {
    let mut g = Graph::new(&Shapes, &ExportOptions::default());
    g.text_embed(TEXT, shape, 2);
    let TextShape { vocabulary, width, places, .. } = *shape;
    g.outline.insert("token_embedding.weight".into(), vec![vocabulary, width]);
    g.outline.insert("positional_embedding".into(), vec![places, width]);
    g.outline.insert("cls_emb".into(), vec![width]);
    g.outline
}

impl Graph<'_> {
    fn text_embed(&mut self, x: &str, shape: &TextShape, tokens: i64) -> Value {
        let TextShape { width, output, depth, .. } = *shape;
        let parts = self.split(x, -1, &[width, tokens]);
        let mask = self.reshape(&parts[1], &[-1, 1, tokens, tokens]);
        let config = shape.blocks();
        let mut y = parts[0].clone();
        for i in 0..depth {
            y = self.block(&y, &format!("blocks.{i}"), &config, Some(&mask));
        }
        let token = self.class_token(&y, width);
        let token = self.layer_norm(&token, "norm", width, EPS);
        let projection = self.tensor("text_projection", &[width, output]);
        let projection = self.weight(&projection);
        let y = self.op("MatMul", &[&token, &projection], vec![]);
        self.unit(&y)
    }
}
