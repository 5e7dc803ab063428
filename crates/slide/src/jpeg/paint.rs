//! Upsampling and colour, as libjpeg does them.

use super::scan::Plane;

/// ITU-R BT.601 full range, in libjpeg's fixed point.
#[inline(always)]
pub(crate) fn ycc(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    const HALF: i32 = 1 << 15;
    let r = y + ((91_881 * cr + HALF) >> 16);
    let g = y + ((-22_554 * cb - 46_802 * cr + HALF) >> 16);
    let b = y + ((116_130 * cb + HALF) >> 16);
    [r, g, b].map(|v| v.clamp(0, 255) as u8)
}

/// Interleaved RGB of `w x h` pixels.
pub(super) fn rgb(planes: &[Plane], size: (usize, usize), ycbcr: bool) -> Result<Vec<u8>, String> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { rgb_avx2(planes, size, ycbcr) };
    }
    body(planes, size, ycbcr)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn rgb_avx2(planes: &[Plane], size: (usize, usize), ycbcr: bool) -> Result<Vec<u8>, String> {
    body(planes, size, ycbcr)
}

#[inline(always)]
fn body(planes: &[Plane], (w, h): (usize, usize), ycbcr: bool) -> Result<Vec<u8>, String> {
    let mut data = vec![0u8; 3 * w * h];
    if let [grey] = planes {
        for (y, line) in data.chunks_exact_mut(3 * w).enumerate() {
            for (pixel, v) in line.as_chunks_mut::<3>().0.iter_mut().zip(grey.row(y)) {
                *pixel = [*v; 3];
            }
        }
        return Ok(data);
    }
    let [first, second, third] = planes else {
        return Err(format!("JPEG: {} components", planes.len()));
    };
    let mut rows = [first, second, third].map(|p| Upsampler::new(p, w));
    for (y, line) in data.chunks_exact_mut(3 * w).enumerate() {
        let [a, b, c] = &mut rows;
        let (a, b, c) = (a.row(y, w), b.row(y, w), c.row(y, w));
        let samples = a.iter().zip(b).zip(c);
        let pixels = line.as_chunks_mut::<3>().0.iter_mut().zip(samples);
        if ycbcr {
            for (pixel, ((&a, &b), &c)) in pixels {
                *pixel = ycc(a, b, c);
            }
        } else {
            for (pixel, ((&a, &b), &c)) in pixels {
                *pixel = [a, b, c];
            }
        }
    }
    Ok(data)
}

impl Plane {
    #[inline(always)]
    fn row(&self, y: usize) -> &[u8] {
        &self.data[y * self.stride..][..self.width]
    }

    /// The row in which row `y` of a plane upsampled twofold is, and its nearer neighbour (itself
    /// at the edges).
    #[inline(always)]
    fn near_far(&self, y: usize) -> (&[u8], &[u8]) {
        let near = (y / 2).min(self.height - 1);
        let far = if y.is_multiple_of(2) {
            near.saturating_sub(1)
        } else {
            (near + 1).min(self.height - 1)
        };
        (self.row(near), self.row(far))
    }
}

/// Gives full-width rows of one plane: triangle filter for 2:1 ("fancy"), replication otherwise.
struct Upsampler<'a> {
    plane: &'a Plane,
    sums: Vec<u16>,
    out: Vec<u8>,
}

impl<'a> Upsampler<'a> {
    fn new(plane: &'a Plane, w: usize) -> Self {
        let most = w.max(plane.fx * plane.width);
        Self { plane, sums: vec![0; plane.width], out: vec![0; most] }
    }

    #[inline(always)]
    fn row(&mut self, y: usize, w: usize) -> &[u8] {
        let p = self.plane;
        match (p.fx, p.fy) {
            (1, 1) => return &p.row(y)[..w],
            // libjpeg replicates on very narrow planes.
            (2, 1) if p.width > 2 => self.h2v1(y),
            (2, 2) if p.width > 2 => self.h2v2(y),
            (1, 2) => self.h1v2(y),
            (fx, fy) => {
                let row = p.row((y / fy).min(p.height - 1));
                for (pixels, v) in self.out.chunks_mut(fx).zip(row) {
                    pixels.fill(*v);
                }
            }
        }
        &self.out[..w]
    }

    #[inline(always)]
    fn h2v1(&mut self, y: usize) {
        let row = self.plane.row(y);
        let (n, out) = (row.len(), &mut self.out[..2 * row.len()]);
        let three = |v: u8| 3 * u16::from(v);
        for (pair, win) in out[2..].as_chunks_mut::<2>().0.iter_mut().zip(row.windows(3)) {
            let v = three(win[1]);
            *pair = [
                ((v + u16::from(win[0]) + 1) >> 2) as u8,
                ((v + u16::from(win[2]) + 2) >> 2) as u8,
            ];
        }
        out[0] = row[0];
        out[1] = ((three(row[0]) + u16::from(row[1]) + 2) >> 2) as u8;
        out[2 * n - 2] = ((three(row[n - 1]) + u16::from(row[n - 2]) + 1) >> 2) as u8;
        out[2 * n - 1] = row[n - 1];
    }

    #[inline(always)]
    fn h2v2(&mut self, y: usize) {
        let (near, far) = self.plane.near_far(y);
        for (s, (&a, &b)) in self.sums.iter_mut().zip(near.iter().zip(far)) {
            *s = 3 * u16::from(a) + u16::from(b);
        }
        let sums = &self.sums;
        let (n, out) = (sums.len(), &mut self.out[..2 * sums.len()]);
        for (pair, win) in out[2..].as_chunks_mut::<2>().0.iter_mut().zip(sums.windows(3)) {
            let v = 3 * win[1];
            *pair = [((v + win[0] + 8) >> 4) as u8, ((v + win[2] + 7) >> 4) as u8];
        }
        out[0] = ((4 * sums[0] + 8) >> 4) as u8;
        out[1] = ((3 * sums[0] + sums[1] + 7) >> 4) as u8;
        out[2 * n - 2] = ((3 * sums[n - 1] + sums[n - 2] + 8) >> 4) as u8;
        out[2 * n - 1] = ((4 * sums[n - 1] + 7) >> 4) as u8;
    }

    #[inline(always)]
    fn h1v2(&mut self, y: usize) {
        let (near, far) = self.plane.near_far(y);
        let bias = if y.is_multiple_of(2) { 1 } else { 2 };
        for (o, (&a, &b)) in self.out.iter_mut().zip(near.iter().zip(far)) {
            *o = ((3 * u16::from(a) + u16::from(b) + bias) >> 2) as u8;
        }
    }
}
