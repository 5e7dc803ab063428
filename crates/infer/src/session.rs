//! What an engine is given, and what it gives back.

/// One network as an engine gets it.
pub struct Network<'a> {
    /// The file's bytes.
    pub onnx: &'a [u8],
    /// Input shape `[N,3,H,W]`, the same for every run.
    pub shape: [usize; 4],
    /// Name of its output.
    pub output: &'a str,
    /// The value from which on everything is computed in bf16; f32 throughout where `None`.
    pub bf16_from: Option<&'a str>,
    /// Named axes of the input with the size they take; 0 for the batch.
    pub symbols: &'a [(String, usize)],
}

/// A loaded network with its input buffer, `[N,3,H,W]` row-major.
pub trait Session: Send {
    /// The buffer that the next run reads.
    ///
    /// # Errors
    /// The engine's own words.
    fn input(&mut self) -> Result<&mut [f32], String>;
    /// The whole output, row-major.
    ///
    /// # Errors
    /// The engine's own words.
    fn run(&mut self) -> Result<Vec<f32>, String>;
}
