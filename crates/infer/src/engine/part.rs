//! A network of a package as an engine gets it.

use crate::onnx::{self, INPUT, Output};
use crate::session::Network;
use crate::session::Symbol;
use prost::bytes::Bytes;

/// A network of images that is f32 throughout.
pub(super) fn f32_network<'a>(
    onnx: &'a Bytes,
    shape: &'a [usize],
    output: &'a str,
    symbols: &'a [Symbol],
) -> Network<'a> {
    Network { onnx, input: INPUT, shape, output, bf16_from: None, symbols }
}

/// A network of images as its card wants it loaded.
pub(super) struct Part<'a> {
    onnx: &'a Bytes,
    shape: [usize; 4],
    output: String,
    /// The value from which it is computed in bf16.
    pub(super) bf16_from: Option<String>,
    /// Whether the own executor runs it.
    pub(super) native: bool,
    symbols: Vec<Symbol>,
}

impl<'a> Part<'a> {
    /// A file that takes images of `side` px and gives `output`; `batch`: images per run where the file
    /// does not fix it.
    ///
    /// # Errors
    /// A sentence on what the file does otherwise.
    pub(super) fn read(
        onnx: &'a Bytes,
        side: usize,
        output: Output<'_>,
        batch: usize,
    ) -> Result<Self, String> {
        let signature = onnx::signature(onnx, side, output)?;
        let shape = [signature.fixed_batch.unwrap_or(batch), 3, side, side];
        let output = output.name.to_owned();
        Ok(Self { onnx, shape, output, bf16_from: None, native: false, symbols: signature.symbols })
    }

    /// Images per run.
    pub(super) fn batch(&self) -> usize {
        self.shape[0]
    }

    pub(super) fn network(&self) -> Network<'_> {
        let bf16_from = self.bf16_from.as_deref();
        Network { bf16_from, ..f32_network(self.onnx, &self.shape, &self.output, &self.symbols) }
    }
}
