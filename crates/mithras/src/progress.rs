//! Who is told how far a piece of work is. The library itself never prints.

/// Something that shows progress: a bar, a log, nothing.
pub trait Listener: Send {
    /// A piece of work begins.
    fn begin(&mut self, label: &str, unit: &'static str);
    /// `done` of `total` units.
    fn update(&mut self, done: u64, total: u64);
    /// The piece of work ended.
    fn finish(&mut self);
    /// What came of it, in one line.
    fn say(&mut self, line: &str);
    /// Something that a reader should know even of quiet work.
    fn note(&mut self, text: &str);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Listener for Silent {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, _: u64, _: u64) {}
    fn finish(&mut self) {}
    fn say(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
}
