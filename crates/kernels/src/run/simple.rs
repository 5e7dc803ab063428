//! Operators without products: one pass over the values.

use super::conv::{Read, Write};
use crate::aligned::Aligned;
use crate::ir::{Act, Arithmetic, Blend, Resample, Sliding};
use crate::isa::{Clamp, Isa, Scale, exp, limit};
use crate::layout::Layout;

/// A clamp, then a function.
fn act(isa: Isa, act: Act, values: &mut [f32]) {
    if act.clamp != Clamp::NONE {
        values.iter_mut().for_each(|v| *v = limit(*v, act.clamp.low, act.clamp.high));
    }
    if let Some(f) = act.then {
        isa.map(f, values);
    }
}

/// A factor and a summand per channel, then a function.
pub(crate) struct Affine<'a> {
    pub scale: &'a [f32],
    pub shift: &'a [f32],
    pub after: Act,
}

pub(crate) fn affine(
    isa: Isa,
    Affine { scale, shift, after }: Affine<'_>,
    x: Read<'_>,
    Write { data: out, layout: ol }: Write<'_>,
    images: usize,
) {
    for (image, y) in rows(images, ol.h) {
        let row = ol.inner_mut(out, image, y);
        let from = x.layout.inner(x.data, image, y);
        isa.scale(Scale { from, scale, shift, clamp: after.clamp, out: row });
        if let Some(f) = after.then {
            isa.map(f, row);
        }
    }
}

pub(crate) fn map(
    isa: Isa,
    after: Act,
    x: Read<'_>,
    Write { data: out, layout: ol }: Write<'_>,
    images: usize,
) {
    for (image, y) in rows(images, ol.h) {
        let row = ol.inner_mut(out, image, y);
        row.copy_from_slice(x.layout.inner(x.data, image, y));
        act(isa, after, row);
    }
}

pub(crate) fn binary(
    isa: Isa,
    kind: Arithmetic,
    after: Act,
    (a, b): (Read<'_>, Read<'_>),
    Write { data: out, layout: ol }: Write<'_>,
    images: usize,
) {
    let f = match kind {
        Arithmetic::Add => |a: f32, b: f32| a + b,
        Arithmetic::Sub => |a, b| a - b,
        Arithmetic::Mul => |a, b| a * b,
        Arithmetic::Div => |a, b| a / b,
    };
    let point = (b.layout.h, b.layout.w) == (1, 1);
    for (image, y) in rows(images, ol.h) {
        let row = ol.inner_mut(out, image, y);
        let first = a.layout.inner(a.data, image, y);
        let second = b.layout.inner(b.data, image, if point { 0 } else { y });
        for (i, (to, a)) in row.chunks_exact_mut(ol.c).zip(first.chunks_exact(ol.c)).enumerate() {
            let from = if point { 0 } else { i * ol.c };
            let b = &second[from..from + ol.c];
            to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = f(*a, *b));
        }
        act(isa, after, row);
    }
}

pub(crate) fn concat(
    sources: &[Read<'_>],
    Write { data: out, layout: ol }: Write<'_>,
    images: usize,
) {
    for (image, y) in rows(images, ol.h) {
        let row = ol.inner_mut(out, image, y);
        let mut channel = 0;
        for x in sources {
            let c = x.layout.c;
            let from = x.layout.inner(x.data, image, y);
            for (to, from) in row.chunks_exact_mut(ol.c).zip(from.chunks_exact(c)) {
                to[channel..channel + c].copy_from_slice(from);
            }
            channel += c;
        }
    }
}

/// Where values come from, then a function.
pub(crate) struct Resize<'a> {
    pub isa: Isa,
    pub by: &'a Resample,
    pub after: Act,
}

pub(crate) fn resize(
    Resize { isa, by, after }: Resize<'_>,
    x: Read<'_>,
    Write { data: out, layout: ol }: Write<'_>,
    images: usize,
    scratch: &mut Aligned,
) {
    let c = ol.c;
    // The last two rows of the input that were widened; an even and an odd one.
    let wide = ol.w * c;
    let mut held = [None; 2];
    if matches!(by, Resample::Linear(..)) {
        scratch.grow(2 * wide);
    }
    for (image, y) in rows(images, ol.h) {
        let row = ol.inner_mut(out, image, y);
        match by {
            Resample::Nearest(ys, xs) => {
                let from = x.layout.inner(x.data, image, ys[y]);
                for (to, sx) in row.chunks_exact_mut(c).zip(xs) {
                    to.copy_from_slice(&from[sx * c..(sx + 1) * c]);
                }
            }
            Resample::Linear(ys, xs) => {
                let Blend { first, second, share } = ys[y];
                for source in [first, second] {
                    let half = source % 2;
                    if held[half] != Some((image, source)) {
                        held[half] = Some((image, source));
                        let to = &mut scratch[half * wide..(half + 1) * wide];
                        widen(x.layout.inner(x.data, image, source), xs, c, to);
                    }
                }
                let [above, below] =
                    [first, second].map(|source| &scratch[source % 2 * wide..][..wide]);
                for ((to, a), b) in row.iter_mut().zip(above).zip(below) {
                    *to = a * (1.0 - share) + b * share;
                }
            }
        }
        act(isa, after, row);
    }
}

/// A row of pixels blended to more or fewer.
fn widen(from: &[f32], xs: &[Blend], c: usize, to: &mut [f32]) {
    for (to, blend) in to.chunks_exact_mut(c).zip(xs) {
        let a = &from[blend.first * c..(blend.first + 1) * c];
        let b = &from[blend.second * c..(blend.second + 1) * c];
        for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
            *to = a * (1.0 - blend.share) + b * blend.share;
        }
    }
}

/// Rows or columns of the input under output `i`.
fn under(slide: &Sliding, axis: usize, i: usize, n: usize) -> std::ops::Range<usize> {
    let from = (i * slide.stride[axis]) as isize - slide.pads[axis] as isize;
    let to = from + slide.kernel[axis] as isize;
    from.max(0) as usize..to.clamp(0, n as isize) as usize
}

pub(crate) fn max_pool(
    slide: &Sliding,
    x: Read<'_>,
    Write { data: out, layout: ol }: Write<'_>,
    images: usize,
) {
    let c = ol.c;
    for (image, y) in rows(images, ol.h) {
        let row = ol.inner_mut(out, image, y);
        row.fill(f32::NEG_INFINITY);
        for sy in under(slide, 0, y, x.layout.h) {
            let from = x.layout.inner(x.data, image, sy);
            for (ox, to) in row.chunks_exact_mut(c).enumerate() {
                for sx in under(slide, 1, ox, x.layout.w) {
                    let from = &from[sx * c..(sx + 1) * c];
                    // A NaN is kept: it compares as neither.
                    to.iter_mut().zip(from).for_each(|(to, v)| {
                        *to = if *v > *to || v.is_nan() { *v } else { *to };
                    });
                }
            }
        }
    }
}

pub(crate) fn average_pool(
    slide: &Sliding,
    counts_padding: bool,
    x: Read<'_>,
    Write { data: out, layout: ol }: Write<'_>,
    images: usize,
) {
    let c = ol.c;
    for (image, y) in rows(images, ol.h) {
        let row = ol.inner_mut(out, image, y);
        row.fill(0.0);
        let ys = under(slide, 0, y, x.layout.h);
        for (ox, to) in row.chunks_exact_mut(c).enumerate() {
            let xs = under(slide, 1, ox, x.layout.w);
            for sy in ys.clone() {
                let from = x.layout.inner(x.data, image, sy);
                for v in from[xs.start * c..xs.end * c].chunks_exact(c) {
                    to.iter_mut().zip(v).for_each(|(to, v)| *to += v);
                }
            }
            let n = match counts_padding {
                true => slide.kernel[0] * slide.kernel[1],
                false => ys.len() * xs.len(),
            };
            to.iter_mut().for_each(|to| *to /= n as f32);
        }
    }
}

pub(crate) fn global_average(
    x: Read<'_>,
    Write { data: out, layout: ol }: Write<'_>,
    images: usize,
) {
    let n = (x.layout.h * x.layout.w) as f32;
    for image in 0..images {
        let to = ol.inner_mut(out, image, 0);
        to.fill(0.0);
        for y in 0..x.layout.h {
            for v in x.layout.inner(x.data, image, y).chunks_exact(ol.c) {
                to.iter_mut().zip(v).for_each(|(to, v)| *to += v);
            }
        }
        to.iter_mut().for_each(|v| *v /= n);
    }
}

pub(crate) fn softmax(x: Read<'_>, Write { data: out, layout: ol }: Write<'_>, images: usize) {
    for (image, y) in rows(images, ol.h) {
        let row = ol.inner_mut(out, image, y);
        row.copy_from_slice(x.layout.inner(x.data, image, y));
        for v in row.chunks_exact_mut(ol.c) {
            let most = v.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            v.iter_mut().for_each(|v| *v = exp(*v - most));
            let sum: f32 = v.iter().sum();
            v.iter_mut().for_each(|v| *v /= sum);
        }
    }
}

/// To channels in the order of planes.
pub(crate) fn flatten(x: Read<'_>, Write { data: out, layout: ol }: Write<'_>, images: usize) {
    for image in 0..images {
        planes(x, image, ol.inner_mut(out, image, 0));
    }
}

/// One image as `[c][h][w]`.
pub(crate) fn planes(x: Read<'_>, image: usize, out: &mut [f32]) {
    let Layout { c, h, w, .. } = x.layout;
    for y in 0..h {
        let row = x.layout.inner(x.data, image, y);
        for channel in 0..c {
            let to = &mut out[(channel * h + y) * w..][..w];
            let from = row[channel..].iter().step_by(c);
            to.iter_mut().zip(from).for_each(|(to, v)| *to = *v);
        }
    }
}

/// `[c][h][w]` into an image.
pub(crate) fn pixels(from: &[f32], Write { data: out, layout: ol }: Write<'_>, image: usize) {
    let Layout { c, h, w, .. } = ol;
    for y in 0..h {
        let row = ol.inner_mut(out, image, y);
        if c == 3 {
            let [first, second, third] =
                [0, 1, 2].map(|channel| &from[(channel * h + y) * w..][..w]);
            let values = first.iter().zip(second).zip(third);
            for (to, ((a, b), c)) in row.as_chunks_mut().0.iter_mut().zip(values) {
                *to = [*a, *b, *c];
            }
            continue;
        }
        for channel in 0..c {
            let from = &from[(channel * h + y) * w..][..w];
            row[channel..].iter_mut().step_by(c).zip(from).for_each(|(to, v)| *to = *v);
        }
    }
}

fn rows(images: usize, h: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..images).flat_map(move |image| (0..h).map(move |y| (image, y)))
}
