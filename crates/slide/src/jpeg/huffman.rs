//! Huffman tables and the bit reader.

/// Natural position of the k-th coefficient in zigzag order.
pub(super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Bits resolved by one look-up.
const LOOK: u32 = 10;

/// A Huffman table.
pub(super) struct Table {
    /// By the next `LOOK` bits: code length << 8 | symbol; 0 where the code is longer.
    short: Box<[u16; 1 << LOOK]>,
    /// For AC tables, by the next `LOOK` bits: value << 16 | run << 8 | bits used, where code and
    /// value together fit; 0 otherwise.
    whole: Box<[i32; 1 << LOOK]>,
    /// First code that is longer than `l` bits, left-aligned to 16 bits.
    limit: [u32; 17],
    /// Value index minus code, per length.
    offset: [i32; 17],
    values: Vec<u8>,
}

impl Table {
    pub(super) fn new(counts: &[u8; 16], values: &[u8], ac: bool) -> Result<Self, String> {
        if values.len() > 256 {
            return Err("JPEG: a Huffman table of more than 256 codes".into());
        }
        let mut t = Self {
            short: Box::new([0; 1 << LOOK]),
            whole: Box::new([0; 1 << LOOK]),
            limit: [0; 17],
            offset: [0; 17],
            values: values.to_vec(),
        };
        let (mut code, mut k) = (0u32, 0usize);
        for (l, &n) in (1u32..).zip(counts) {
            t.offset[l as usize] = k as i32 - code as i32;
            for _ in 0..n {
                if code >= 1 << l {
                    return Err("JPEG: an over-full Huffman table".into());
                }
                if l <= LOOK {
                    let first = (code << (LOOK - l)) as usize;
                    t.short[first..first + (1 << (LOOK - l))]
                        .fill((l << 8) as u16 | u16::from(values[k]));
                }
                code += 1;
                k += 1;
            }
            t.limit[l as usize] = code << (16 - l);
            code <<= 1;
        }
        if ac {
            t.fill_whole();
        }
        Ok(t)
    }

    fn fill_whole(&mut self) {
        for bits in 0..1u32 << LOOK {
            let entry = self.short[bits as usize];
            let (len, symbol) = (u32::from(entry >> 8), entry as u8);
            let size = u32::from(symbol & 15);
            if len == 0 || size == 0 || len + size > LOOK {
                continue;
            }
            let extra = bits >> (LOOK - len - size) & ((1 << size) - 1);
            let value = extend(extra, size);
            self.whole[bits as usize] =
                value << 16 | i32::from(symbol >> 4) << 8 | (len + size) as i32;
        }
    }
}

/// A coded magnitude of `size` bits as a signed number.
#[inline(always)]
pub(super) fn extend(bits: u32, size: u32) -> i32 {
    let v = bits as i32;
    if size > 0 && v < 1 << (size - 1) { v - (1 << size) + 1 } else { v }
}

/// Bits of one unstuffed segment; zeros follow its end.
pub(super) struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    /// Left-aligned.
    buffer: u64,
    have: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0, buffer: 0, have: 0 }
    }

    /// Makes at least 56 bits available.
    #[inline(always)]
    fn refill(&mut self) {
        let eight = match self.data.get(self.at..self.at + 8) {
            Some(b) => u64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
            None => self.tail(),
        };
        self.buffer |= eight >> self.have;
        self.at += ((63 - self.have) >> 3) as usize;
        self.have |= 56;
    }

    #[cold]
    fn tail(&self) -> u64 {
        let mut b = [0; 8];
        let rest = self.data.get(self.at..).unwrap_or_default();
        b[..rest.len()].copy_from_slice(rest);
        u64::from_be_bytes(b)
    }

    /// Bits of the segment that were not taken.
    pub(super) fn left(&self) -> usize {
        (self.data.len() * 8).saturating_sub(self.at * 8 - self.have as usize)
    }

    /// Whether more bits were taken than the segment has.
    pub(super) fn overrun(&self) -> bool {
        self.at * 8 - self.have as usize > self.data.len() * 8
    }

    #[inline(always)]
    fn skip(&mut self, n: u32) {
        self.buffer <<= n;
        self.have -= n;
    }

    /// The next `n` bits, at most 16.
    #[inline(always)]
    pub(super) fn take(&mut self, n: u32) -> u32 {
        if self.have < 32 {
            self.refill();
        }
        // In two shifts, as `n` may be 0.
        let bits = (self.buffer >> 1 >> (63 - n)) as u32;
        self.skip(n);
        bits
    }

    /// The next code of a table.
    #[inline(always)]
    pub(super) fn code(&mut self, t: &Table) -> Result<u8, String> {
        if self.have < 32 {
            self.refill();
        }
        self.symbol(t)
    }

    #[inline(always)]
    fn symbol(&mut self, t: &Table) -> Result<u8, String> {
        let entry = t.short[(self.buffer >> (64 - LOOK)) as usize];
        if entry != 0 {
            self.skip(u32::from(entry >> 8));
            return Ok(entry as u8);
        }
        self.long_symbol(t)
    }

    #[cold]
    fn long_symbol(&mut self, t: &Table) -> Result<u8, String> {
        let bits = (self.buffer >> 48) as u32;
        for l in LOOK + 1..=16 {
            if bits < t.limit[l as usize] {
                let index = (bits >> (16 - l)) as i32 + t.offset[l as usize];
                self.skip(l);
                let value = usize::try_from(index).ok().and_then(|i| t.values.get(i));
                return value.copied().ok_or_else(|| "JPEG: a code of no table".into());
            }
        }
        Err("JPEG: a code of no table".into())
    }

    /// Decodes one block into dequantised coefficients in natural order; `out` must be zero.
    /// Returns whether any AC coefficient is set.
    #[inline]
    pub(super) fn block(
        &mut self,
        (dc, ac): (&Table, &Table),
        predictor: &mut i32,
        quant: &[i32; 64],
        out: &mut [i32; 64],
    ) -> Result<bool, String> {
        self.refill();
        let size = u32::from(self.symbol(dc)?);
        if size > 15 {
            return Err("JPEG: a DC difference of more than 15 bits".into());
        }
        if size > 0 {
            *predictor = predictor.wrapping_add(extend((self.buffer >> (64 - size)) as u32, size));
            self.skip(size);
        }
        out[0] = predictor.wrapping_mul(quant[0]);
        let (mut k, mut any) = (1usize, false);
        while k < 64 {
            if self.have < 32 {
                self.refill();
            }
            let entry = ac.whole[(self.buffer >> (64 - LOOK)) as usize];
            let value = if entry != 0 {
                self.skip((entry & 0xFF) as u32);
                k += (entry >> 8 & 0xFF) as usize;
                entry >> 16
            } else {
                let symbol = self.symbol(ac)?;
                let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
                if size == 0 {
                    if run != 15 {
                        break;
                    }
                    k += 16;
                    continue;
                }
                k += run;
                let value = extend((self.buffer >> (64 - size)) as u32, size);
                self.skip(size);
                value
            };
            if k > 63 {
                return Err("JPEG: more than 64 coefficients in a block".into());
            }
            let natural = usize::from(ZIGZAG[k]) & 63;
            out[natural] = value.wrapping_mul(quant[natural]);
            any = true;
            k += 1;
        }
        Ok(any)
    }
}
