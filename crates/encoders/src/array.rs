//! A tensor of a file: bytes, their kind and their sides.

use std::fmt;

use bytes::Bytes;
use half::{bf16, f16};

/// What the values of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Kind {
    Float,
    Double,
    Half,
    BFloat16,
    Int64,
    Int,
    Int16,
    Int8,
    Uint8,
    Bool,
}

impl Kind {
    /// Bytes of a value.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::Double | Self::Int64 => 8,
            Self::Float | Self::Int => 4,
            Self::Half | Self::BFloat16 | Self::Int16 => 2,
            Self::Int8 | Self::Uint8 | Self::Bool => 1,
        }
    }

    /// Whether its values may be weights.
    #[must_use]
    pub fn is_floating_point(self) -> bool {
        matches!(self, Self::Float | Self::Double | Self::Half | Self::BFloat16)
    }
}

/// A tensor, row-major, little-endian. A part of a file is not copied.
#[derive(Clone, PartialEq)]
pub struct Array {
    dims: Vec<i64>,
    kind: Kind,
    data: Bytes,
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.kind, self.dims)
    }
}

impl Array {
    /// `None` where the bytes do not fill the sides.
    #[must_use]
    pub fn new(dims: Vec<i64>, kind: Kind, data: Bytes) -> Option<Self> {
        let count = dims.iter().try_fold(1_usize, |n, d| n.checked_mul(usize::try_from(*d).ok()?));
        (count?.checked_mul(kind.size())? == data.len()).then_some(Self { dims, kind, data })
    }

    /// Of f32 values.
    ///
    /// # Panics
    /// When they do not fill the sides.
    #[must_use]
    pub fn from_f32(dims: Vec<i64>, values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Self::new(dims, Kind::Float, bytes.into()).expect("as many values as the sides hold")
    }

    /// Sides.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// What its values are.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its values' bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// Its values as f64, of any kind.
    #[must_use]
    pub fn to_f64(&self) -> Vec<f64> {
        fn all<const N: usize>(data: &[u8], value: impl Fn([u8; N]) -> f64) -> Vec<f64> {
            data.as_chunks::<N>().0.iter().map(|b| value(*b)).collect()
        }
        let data = &self.data[..];
        match self.kind {
            Kind::Double => all(data, f64::from_le_bytes),
            Kind::Float => all(data, |b| f32::from_le_bytes(b).into()),
            Kind::Half => all(data, |b| f16::from_le_bytes(b).into()),
            Kind::BFloat16 => all(data, |b| bf16::from_le_bytes(b).into()),
            Kind::Int64 => all(data, |b| i64::from_le_bytes(b) as f64),
            Kind::Int => all(data, |b| i32::from_le_bytes(b).into()),
            Kind::Int16 => all(data, |b| i16::from_le_bytes(b).into()),
            Kind::Int8 => all(data, |b| i8::from_le_bytes(b).into()),
            Kind::Uint8 | Kind::Bool => all(data, |[b]: [u8; 1]| b.into()),
        }
    }

    /// Its values as f32.
    #[must_use]
    pub fn to_f32(&self) -> Vec<f32> {
        match self.kind {
            Kind::Float => {
                self.data.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
            }
            _ => self.to_f64().into_iter().map(|v| v as f32).collect(),
        }
    }

    /// As f32, whatever it was.
    #[must_use]
    pub fn float(&self) -> Self {
        match self.kind {
            Kind::Float => self.clone(),
            _ => Self::from_f32(self.dims.clone(), &self.to_f32()),
        }
    }

    /// The same values with other sides of as many.
    pub(crate) fn reshaped(&self, dims: Vec<i64>) -> Self {
        Self::new(dims, self.kind, self.data.clone()).expect("as many values")
    }

    /// Rows `from .. from + count` of the first side that is longer than 1, all sides before it being 1.
    pub(crate) fn rows(&self, axis: usize, from: i64, count: i64) -> Self {
        debug_assert!(self.dims[..axis].iter().all(|d| *d == 1), "rows are contiguous");
        let row = self.dims[axis + 1..].iter().product::<i64>() as usize * self.kind.size();
        let (start, end) = (from as usize * row, (from + count) as usize * row);
        let mut dims = self.dims.clone();
        dims[axis] = count;
        Self { dims, kind: self.kind, data: self.data.slice(start..end) }
    }

    /// One after the other along the first side; `None` where they are not alike.
    pub(crate) fn joined(parts: &[&Self]) -> Option<Self> {
        let first = parts.first()?;
        let alike = |p: &&&Self| p.kind == first.kind && p.dims.get(1..) == first.dims.get(1..);
        if first.dims.is_empty() || !parts.iter().all(|p| alike(&p)) {
            return None;
        }
        let mut dims = first.dims.clone();
        dims[0] = parts.iter().map(|p| p.dims[0]).sum();
        let data: Vec<u8> = parts.iter().flat_map(|p| p.data.iter().copied()).collect();
        Self::new(dims, first.kind, data.into())
    }

    /// `[a, b]` to `[b, a]`.
    pub(crate) fn transposed(&self) -> Self {
        let &[a, b] = &self.dims[..] else { return self.clone() };
        self.strided(vec![b, a], &[1, b], 0).expect("all its own values")
    }

    /// The values at these strides, counted in values from `offset`; `None` where one is outside.
    pub(crate) fn strided(&self, dims: Vec<i64>, strides: &[i64], offset: i64) -> Option<Self> {
        let size = self.kind.size();
        let count = dims.iter().map(|d| *d as usize).product::<usize>();
        if dims.len() != strides.len() {
            return None;
        }
        let mut plain = 1;
        let contiguous = dims.iter().zip(strides).rev().all(|(d, s)| {
            let fits = *d == 1 || *s == plain;
            plain *= d;
            fits
        });
        let start = usize::try_from(offset).ok()?.checked_mul(size)?;
        if contiguous {
            let end = start.checked_add(count.checked_mul(size)?)?;
            let data = (end <= self.data.len()).then(|| self.data.slice(start..end))?;
            return Self::new(dims, self.kind, data);
        }
        let mut data = Vec::with_capacity(count * size);
        let mut at = vec![0_i64; dims.len()];
        for _ in 0..count {
            let place = at.iter().zip(strides).map(|(i, s)| i * s).sum::<i64>();
            let from = start + usize::try_from(place).ok()? * size;
            data.extend_from_slice(self.data.get(from..from + size)?);
            for (i, d) in at.iter_mut().zip(&dims).rev() {
                *i += 1;
                if *i < *d {
                    break;
                }
                *i = 0;
            }
        }
        Self::new(dims, self.kind, data.into())
    }

    /// Whether every value is a number.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        match self.kind {
            Kind::Float => {
                self.data.as_chunks::<4>().0.iter().all(|b| f32::from_le_bytes(*b).is_finite())
            }
            kind if kind.is_floating_point() => self.to_f64().iter().all(|v| v.is_finite()),
            _ => true,
        }
    }
}
