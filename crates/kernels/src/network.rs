//! A planned network and its runs.

use crate::aligned::Aligned;
use crate::error::{PlanError, RunError};
use crate::fuse::fuse;
use crate::ir::{self, Act, Arithmetic, Id, Ir, Op, Resample, Shape, Sliding};
use crate::isa::Isa;
use crate::isa::half::Half;
use crate::layout::Layout;
use crate::lower::{MOST_VALUES, Wanted, lower};
use crate::run::conv::{Read, Write};
use crate::run::simple::Affine;
use crate::run::{conv, inverted, simple, winograd};
use prost::bytes::Buf;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What a network is planned for.
#[derive(Clone, Copy, Debug)]
pub struct PlanOptions<'a> {
    /// Name of the input, f32 `[N,channels,height,width]`.
    pub input: &'a str,
    /// Channels, height and width of an image.
    pub shape: [usize; 3],
    /// Name of the output, f32.
    pub output: &'a str,
    /// The instruction set; one that this processor lacks is replaced by its best.
    pub isa: Isa,
    /// Images that one thread takes through each layer together, at least 1: worth it where maps are small and
    /// weights large. Results do not depend on it.
    pub together: usize,
    /// The value from which dense convolutions multiply in bf16, with sums in f32, but for 3 x 3 ones that are faster
    /// in f32; `input` for all of them. An error on a processor without [`bf16`].
    pub bf16_from: Option<&'a str>,
}

impl<'a> PlanOptions<'a> {
    /// One image at a time on the best instruction set.
    #[must_use]
    pub fn new(input: &'a str, shape: [usize; 3], output: &'a str) -> Self {
        Self { input, shape, output, isa: Isa::best(), together: 1, bf16_from: None }
    }
}

/// Whether this processor multiplies bf16: AMX tiles, or AVX-512 BF16, on Linux.
#[must_use]
pub fn bf16() -> bool {
    Half::best().is_some()
}

/// A network ready to run: shapes settled, steps joined, weights packed. Shared between threads, each with its own
/// [`Workspace`].
#[derive(Debug)]
pub struct Network {
    isa: Isa,
    steps: Vec<Step>,
    values: Vec<Slot>,
    /// Values of each buffer for one image.
    buffers: Vec<usize>,
    input: Id,
    output: Id,
    together: usize,
    macs: u64,
}

#[derive(Debug)]
struct Step {
    kind: Kind,
    inputs: Vec<Id>,
    output: Id,
    macs: u64,
}

#[derive(Debug)]
enum Kind {
    Conv(conv::Planned),
    Winograd(winograd::Planned),
    Depthwise(inverted::Alone),
    Inverted(inverted::Planned),
    Affine(Vec<f32>, Vec<f32>, Act),
    Map(Act),
    Binary(Arithmetic, Act),
    Concat,
    Resize(Resample, Act),
    MaxPool(Sliding),
    AveragePool(Sliding, bool),
    GlobalAverage,
    Softmax,
    Flatten,
}

/// Where a value is.
#[derive(Clone, Copy, Debug)]
struct Slot {
    layout: Layout,
    buffer: usize,
    /// Whether other values use the buffer, so that the border has to be cleared each time.
    shared: bool,
}

/// Memory of the steps.
#[derive(Debug, Default)]
struct Scratch {
    conv: conv::Scratch,
    inverted: inverted::Scratch,
}

/// Steps that are multiplied in bf16.
#[derive(Clone, Copy)]
struct HalfSteps<'a> {
    half: Half,
    /// By value: whether the step that gives it is one.
    late: &'a [bool],
}

/// A thread's memory for a network.
#[derive(Debug, Default)]
pub struct Workspace {
    buffers: Vec<Aligned>,
    scratch: Scratch,
    /// Seconds of each step, where a profile is taken.
    times: Option<Vec<f64>>,
}

impl Network {
    /// Reads a file and plans it. Weights are copied out of a slice, and not out of `Bytes`.
    ///
    /// # Errors
    /// [`PlanError`] for files that are damaged, or that use what this executor does not have; the
    /// operator is named.
    pub fn plan(onnx: impl Buf, options: &PlanOptions<'_>) -> Result<Self, PlanError> {
        let [c, h, w] = options.shape;
        let (input, output) = (options.input, options.output);
        let from = options.bf16_from;
        let wanted = Wanted { input, shape: Shape { c, h, w }, output, from };
        let mut ir = lower(onnx, &wanted)?;
        let late = ir.after_mark();
        fuse(&mut ir);
        let half = from.map(|_| Half::best().ok_or(PlanError::NoBf16)).transpose()?;
        let isa = match options.isa {
            isa if Isa::available().contains(&isa) => isa,
            _ => Isa::best(),
        };
        let half = half.map(|half| HalfSteps { half, late: &late });
        build(&ir, isa, half, options.together.max(1))
    }

    /// Values of one image's input.
    #[must_use]
    pub fn input_len(&self) -> usize {
        let l = self.values[self.input].layout;
        l.c * l.h * l.w
    }

    /// Values of one image's output.
    #[must_use]
    pub fn output_len(&self) -> usize {
        let l = self.values[self.output].layout;
        l.c * l.h * l.w
    }

    /// Multiply-accumulates for one image, after what enlargements save.
    #[must_use]
    pub fn macs(&self) -> u64 {
        self.macs
    }

    /// The instruction set in use.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Bytes of packed weights.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        let bytes = |s: &Step| match &s.kind {
            Kind::Conv(c) => c.bytes(),
            Kind::Winograd(c) => c.bytes(),
            Kind::Inverted(i) => i.bytes(),
            _ => 0,
        };
        self.steps.iter().map(bytes).sum()
    }

    /// Bytes of one thread's values, without scratch rows.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        4 * self.together * self.buffers.iter().sum::<usize>()
    }

    /// Names and counts of what is run, for reports: `inverted residual`, `convolution` and so on.
    #[must_use]
    pub fn describe(&self) -> Vec<(&'static str, usize)> {
        let mut all: Vec<(&'static str, usize)> = Vec::new();
        for step in &self.steps {
            let name = step.kind.name();
            match all.iter_mut().find(|(n, _)| *n == name) {
                Some((_, n)) => *n += 1,
                None => all.push((name, 1)),
            }
        }
        all
    }

    /// Runs every image of `input`, `[N,C,H,W]`, on up to `threads` threads, and writes `[N,...]` to `output`.
    /// An image's result does not depend on the number of images, on their order or on `threads`.
    ///
    /// # Errors
    /// [`RunError`] when the buffers are not of a whole and equal number of images.
    pub fn run(
        &self,
        workspaces: &mut Vec<Workspace>,
        input: &[f32],
        output: &mut [f32],
        threads: usize,
    ) -> Result<(), RunError> {
        let (i, o) = (self.input_len(), self.output_len());
        let n = input.len() / i;
        if n * i != input.len() {
            let expected = (n + 1) * i;
            return Err(RunError::Length { what: "input", found: input.len(), expected });
        }
        if n * o != output.len() {
            return Err(RunError::Length { what: "output", found: output.len(), expected: n * o });
        }
        // Few images are shared out rather than kept together.
        let threads = threads.clamp(1, n.max(1));
        let together = self.together.min(n.div_ceil(threads)).max(1);
        workspaces.resize_with(workspaces.len().max(threads), Workspace::default);
        let mut jobs: Vec<(&[f32], &mut [f32])> =
            input.chunks(together * i).zip(output.chunks_mut(together * o)).collect();
        if threads == 1 {
            for (from, to) in jobs {
                self.images(&mut workspaces[0], from, to);
            }
            return Ok(());
        }
        let next = AtomicUsize::new(0);
        let jobs: Vec<_> = jobs.drain(..).map(|j| std::sync::Mutex::new(Some(j))).collect();
        let work = |workspace: &mut Workspace| {
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let taken = job.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
                if let Some((from, to)) = taken {
                    self.images(workspace, from, to);
                }
            }
        };
        let (own, others) = workspaces[..threads].split_at_mut(1);
        thread::scope(|scope| {
            let work = &work;
            let started: Vec<_> = others.iter_mut().map(|w| scope.spawn(move || work(w))).collect();
            work(&mut own[0]);
            started.into_iter().try_for_each(|t| {
                t.join().map_err(|panic| {
                    let text = panic.downcast_ref::<String>().cloned();
                    let plain = || panic.downcast_ref::<&str>().map(ToString::to_string);
                    RunError::Panicked(text.or_else(plain).unwrap_or_default())
                })
            })
        })
    }

    /// Least wall seconds and multiply-accumulates per image of each step over `runs` runs on one thread: where time
    /// goes.
    #[must_use]
    pub fn profile(&self, input: &[f32], runs: usize) -> Vec<(String, f64, u64)> {
        let mut output = vec![0.0; input.len() / self.input_len() * self.output_len()];
        let mut workspace = Workspace::default();
        let mut least = vec![f64::MAX; self.steps.len()];
        for _ in 0..runs.max(1) {
            workspace.times = Some(Vec::new());
            self.images(&mut workspace, input, &mut output);
            let times = workspace.times.take().unwrap_or_default();
            least.iter_mut().zip(times).for_each(|(l, t)| *l = l.min(t));
        }
        let timed = |(step, seconds): (&Step, f64)| {
            let x = self.values[step.inputs[0]].layout;
            let o = self.values[step.output].layout;
            let name = step.kind.name();
            let text = format!("{name} {}x{}x{} -> {}x{}x{}", x.h, x.w, x.c, o.h, o.w, o.c);
            (text, seconds, step.macs)
        };
        self.steps.iter().zip(least).map(timed).collect()
    }

    /// A few images through all steps.
    fn images(&self, w: &mut Workspace, input: &[f32], output: &mut [f32]) {
        let n = input.len() / self.input_len();
        w.buffers.resize_with(self.buffers.len(), Aligned::default);
        for (buffer, len) in w.buffers.iter_mut().zip(&self.buffers) {
            // New memory is zero, and with it every border that nobody else writes to.
            buffer.grow(n * len);
        }
        let first = self.values[self.input];
        let mut to = std::mem::take(&mut w.buffers[first.buffer]);
        self.clear(&first, &mut to, n);
        for (image, from) in input.chunks_exact(self.input_len()).enumerate() {
            simple::pixels(from, Write { data: &mut to, layout: first.layout }, image);
        }
        w.buffers[first.buffer] = to;
        for step in &self.steps {
            let slot = self.values[step.output];
            let mut out = std::mem::take(&mut w.buffers[slot.buffer]);
            self.clear(&slot, &mut out, n);
            let read = |id: &Id| {
                let s = self.values[*id];
                Read { data: &w.buffers[s.buffer], layout: s.layout }
            };
            let inputs: Vec<Read<'_>> = step.inputs.iter().map(read).collect();
            let to = Write { data: &mut out, layout: slot.layout };
            let start = w.times.is_some().then(std::time::Instant::now);
            self.step(&step.kind, &inputs, to, n, &mut w.scratch);
            if let (Some(times), Some(start)) = (&mut w.times, start) {
                times.push(start.elapsed().as_secs_f64());
            }
            w.buffers[slot.buffer] = out;
        }
        let last = self.values[self.output];
        let read = Read { data: &w.buffers[last.buffer], layout: last.layout };
        for (image, to) in output.chunks_exact_mut(self.output_len()).enumerate() {
            simple::planes(read, image, to);
        }
    }

    fn clear(&self, slot: &Slot, data: &mut [f32], images: usize) {
        if slot.shared {
            slot.layout.clear_border(data, images);
        }
    }

    fn step(
        &self,
        kind: &Kind,
        inputs: &[Read<'_>],
        out: Write<'_>,
        n: usize,
        scratch: &mut Scratch,
    ) {
        let (isa, x) = (self.isa, inputs[0]);
        match kind {
            Kind::Conv(c) => {
                let (sources, rest) = inputs.split_at(c.sources());
                let read = conv::Inputs { sources, residual: rest.first().copied() };
                c.run(isa, read, out, n, &mut scratch.conv);
            }
            Kind::Winograd(c) => {
                let (sources, rest) = inputs.split_at(c.sources());
                let read = conv::Inputs { sources, residual: rest.first().copied() };
                c.run(read, out, n, scratch.conv.tiles());
            }
            Kind::Depthwise(d) => d.run(isa, x, out, n),
            Kind::Inverted(i) => {
                let read = inverted::Inputs { x, residual: inputs.get(1).copied() };
                i.run(isa, read, out, n, &mut scratch.inverted);
            }
            Kind::Affine(scale, shift, act) => {
                simple::affine(isa, Affine { scale, shift, after: *act }, x, out, n);
            }
            Kind::Map(act) => simple::map(isa, *act, x, out, n),
            Kind::Binary(kind, act) => simple::binary(isa, *kind, *act, (x, inputs[1]), out, n),
            Kind::Concat => simple::concat(inputs, out, n),
            Kind::Resize(by, act) => {
                let resize = simple::Resize { isa, by, after: *act };
                simple::resize(resize, x, out, n, &mut scratch.conv.gathered);
            }
            Kind::MaxPool(slide) => simple::max_pool(slide, x, out, n),
            Kind::AveragePool(slide, padded) => simple::average_pool(slide, *padded, x, out, n),
            Kind::GlobalAverage => simple::global_average(x, out, n),
            Kind::Softmax => simple::softmax(x, out, n),
            Kind::Flatten => simple::flatten(x, out, n),
        }
    }
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Conv(_) => "convolution",
            Self::Winograd(_) => "convolution (Winograd)",
            Self::Depthwise(_) => "filter per channel",
            Self::Inverted(_) => "inverted residual",
            Self::Affine(..) => "scale and shift",
            Self::Map(_) => "function",
            Self::Binary(..) => "arithmetic",
            Self::Concat => "concatenation",
            Self::Resize(..) => "resize",
            Self::MaxPool(_) => "maximum",
            Self::AveragePool(..) | Self::GlobalAverage => "average",
            Self::Softmax => "softmax",
            Self::Flatten => "flatten",
        }
    }
}

/// Borders that each value needs for those that read it.
fn borders(ir: &Ir) -> Vec<usize> {
    let mut pads = vec![0; ir.shapes.len()];
    let mut need = |id: Id, n: usize| pads[id] = pads[id].max(n);
    let sliding = |slide: &Sliding, shape: Shape, out: Shape| {
        let far = |axis: usize, n: usize, o: usize| {
            let last =
                (o - 1) * slide.stride[axis] + (slide.kernel[axis] - 1) * slide.dilation[axis];
            slide.pads[axis].max((last + 1).saturating_sub(slide.pads[axis] + n))
        };
        far(0, shape.h, out.h).max(far(1, shape.w, out.w))
    };
    for step in &ir.steps {
        let out = ir.shapes[step.output];
        match &step.op {
            Op::Conv(c) => {
                for (id, up) in step.inputs.iter().zip(&c.up) {
                    let n = if *up { 1 } else { sliding(&c.slide, ir.shapes[*id], out) };
                    need(*id, n);
                }
            }
            Op::Depthwise(d) => need(step.inputs[0], d.slide.kernel[0] / 2),
            Op::Inverted(i) if i.expand.is_none() => {
                need(step.inputs[0], i.filter.slide.kernel[0] / 2);
            }
            _ => {}
        }
    }
    pads
}

fn build(
    ir: &Ir,
    isa: Isa,
    half: Option<HalfSteps<'_>>,
    together: usize,
) -> Result<Network, PlanError> {
    let pads = borders(ir);
    let (values, buffers) = place(ir, &pads);
    for len in &buffers {
        match len.checked_mul(together) {
            Some(n) if n <= MOST_VALUES => {}
            n => return Err(PlanError::TooLarge(n.unwrap_or(usize::MAX))),
        }
    }
    let steps = plan_steps(ir, isa, half, &pads);
    let macs = steps.iter().map(|s| s.macs).sum();
    let (input, output) = (ir.input, ir.output);
    Ok(Network { isa, steps, values, buffers, input, output, together, macs })
}

/// The steps with their weights packed: those of a large network on several threads, because nothing else of planning
/// takes as long.
fn plan_steps(ir: &Ir, isa: Isa, half: Option<HalfSteps<'_>>, pads: &[usize]) -> Vec<Step> {
    /// Weights that are worth a thread.
    const MANY: usize = 1 << 20;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = (ir.steps.iter().map(|s| s.op.weights()).sum::<usize>() / MANY).clamp(1, cores);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(step) = ir.steps.get(i) else { return own };
            own.push((i, plan_step(ir, step, isa, half, pads)));
        }
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, step)| step).collect()
}

fn plan_step(
    ir: &Ir,
    step: &ir::Step,
    isa: Isa,
    half: Option<HalfSteps<'_>>,
    pads: &[usize],
) -> Step {
    let layout = |id: Id| Layout::new(ir.shapes[id], pads[id]);
    let out = ir.shapes[step.output];
    let mut macs = 0;
    let kind = match &step.op {
        Op::Conv(c) => {
            let sources: Vec<Layout> =
                step.inputs.iter().take(c.up.len()).map(|id| layout(*id)).collect();
            let residual = step.inputs.get(c.up.len()).map(|id| layout(*id));
            let half = half.filter(|h| h.late[step.output]).map(|h| h.half);
            let to = layout(step.output);
            let tile = winograd::fit(c, &sources, to);
            if let Some(tile) = tile.filter(|t| half.is_none_or(|h| !h.outruns(*t))) {
                let planned = winograd::Planned::new(isa, tile, c, &sources);
                macs = planned.macs(out);
                Kind::Winograd(planned)
            } else {
                let planned = conv::Planned::new(isa, half, c, &sources, residual, to);
                macs = planned.macs(out);
                Kind::Conv(planned)
            }
        }
        Op::Depthwise(d) => {
            let planned = inverted::Alone::new(d);
            macs = planned.macs(out);
            Kind::Depthwise(planned)
        }
        Op::Inverted(i) => {
            let first = step.inputs[0];
            let planned = inverted::Planned::new(isa, i, layout(first));
            macs = planned.macs(ir.shapes[first], out);
            Kind::Inverted(planned)
        }
        Op::Affine { scale, shift, act } => Kind::Affine(scale.clone(), shift.clone(), *act),
        Op::Map(act) => Kind::Map(*act),
        Op::Binary(kind, act) => Kind::Binary(*kind, *act),
        Op::Concat => Kind::Concat,
        Op::Resize(by, act) => Kind::Resize(by.clone(), *act),
        Op::MaxPool(slide) => Kind::MaxPool(*slide),
        Op::AveragePool(slide, padded) => Kind::AveragePool(*slide, *padded),
        Op::GlobalAverage => Kind::GlobalAverage,
        Op::Softmax => Kind::Softmax,
        Op::Flatten => Kind::Flatten,
    };
    Step { kind, inputs: step.inputs.clone(), output: step.output, macs }
}

/// A buffer for each value; values that are never needed at once share one.
fn place(ir: &Ir, pads: &[usize]) -> (Vec<Slot>, Vec<usize>) {
    let mut last = vec![0; ir.shapes.len()];
    for (i, step) in ir.steps.iter().enumerate() {
        step.inputs.iter().for_each(|id| last[*id] = i);
    }
    last[ir.output] = usize::MAX;
    let mut buffers: Vec<(usize, usize)> = Vec::new(); // length, values in it
    let mut free: Vec<usize> = Vec::new();
    let mut at = vec![usize::MAX; ir.shapes.len()];
    let mut take = |id: Id, free: &mut Vec<usize>| {
        let len = Layout::new(ir.shapes[id], pads[id]).image();
        // The free buffer that grows least, then the smallest.
        let cost = |b: &usize| (len.saturating_sub(buffers[*b].0), buffers[*b].0);
        let best = (0..free.len()).min_by_key(|i| cost(&free[*i]));
        let buffer = match best {
            Some(i) => free.swap_remove(i),
            None => {
                buffers.push((0, 0));
                buffers.len() - 1
            }
        };
        buffers[buffer].0 = buffers[buffer].0.max(len);
        buffers[buffer].1 += 1;
        buffer
    };
    at[ir.input] = take(ir.input, &mut free);
    let mut placed: Vec<Id> = vec![ir.input];
    for (i, step) in ir.steps.iter().enumerate() {
        at[step.output] = take(step.output, &mut free);
        placed.push(step.output);
        // After this step its inputs may go; its output stays until its last reader.
        placed.retain(|id| {
            let done = last[*id] <= i && *id != step.output;
            if done {
                free.push(at[*id]);
            }
            !done
        });
    }
    let slots = (0..ir.shapes.len()).map(|id| {
        let layout = Layout::new(ir.shapes[id], pads[id]);
        let buffer = if at[id] == usize::MAX { 0 } else { at[id] };
        Slot { layout, buffer, shared: buffers[buffer].1 > 1 }
    });
    (slots.collect(), buffers.iter().map(|b| b.0).collect())
}
