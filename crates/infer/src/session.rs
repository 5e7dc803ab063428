//! What an engine is given, and what it gives back.

pub use prost::bytes::Bytes;

/// One network as an engine gets it, or one of the files of a network that is in several.
pub struct Network<'a> {
    /// The file's bytes.
    pub onnx: &'a Bytes,
    /// Name of its input.
    pub input: &'a str,
    /// The input's shape, the same for every run; of images `[N,3,H,W]`.
    pub shape: &'a [usize],
    /// Name of its output.
    pub output: &'a str,
    /// The value from which on everything is computed in bf16, `input` being all of it; f32 throughout
    /// where `None`.
    pub bf16_from: Option<&'a str>,
    /// Named axes of the input.
    pub symbols: &'a [Symbol],
}

/// A named axis of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// As the file names it.
    pub name: String,
    /// The size that it takes; 0 for the batch.
    pub size: usize,
}

/// A loaded network with its input buffer, row-major.
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
    /// The output of the first `images` images of the buffer, or the whole output: an engine whose input has one fixed
    /// shape computes all of it, whatever is behind those images.
    ///
    /// # Errors
    /// The engine's own words.
    fn run_first(&mut self, images: usize) -> Result<Vec<f32>, String> {
        let _ = images;
        self.run()
    }
}

/// A network in several files, each loaded for itself: what one gives is what the next takes.
pub(crate) struct Chain(Vec<Box<dyn Session>>);

impl Chain {
    /// Of sessions in the order in which they run.
    pub(crate) fn new(sessions: Vec<Box<dyn Session>>) -> Self {
        Self(sessions)
    }
}

impl Session for Chain {
    fn input(&mut self) -> Result<&mut [f32], String> {
        self.0.first_mut().ok_or("a network of no files")?.input()
    }

    fn run(&mut self) -> Result<Vec<f32>, String> {
        let mut handed: Option<Vec<f32>> = None;
        for part in &mut self.0 {
            if let Some(values) = handed.take() {
                let input = part.input()?;
                if input.len() != values.len() {
                    let (given, taken) = (values.len(), input.len());
                    return Err(format!(
                        "a file gives {given} values where the next takes {taken}"
                    ));
                }
                input.copy_from_slice(&values);
            }
            handed = Some(part.run()?);
        }
        handed.ok_or_else(|| "a network of no files".into())
    }
}
