//! Where a network's tensors come from, and what is done to them on their way into a file.

use crate::weights::Arrays;

/// Tensors of a network by timm's names.
pub trait Source {
    /// The values of a tensor, row-major, as f32; `None` where no tensor has this name and shape.
    fn values(&self, name: &str, dims: &[i64]) -> Option<Vec<f32>>;
}

impl Source for Arrays {
    fn values(&self, name: &str, dims: &[i64]) -> Option<Vec<f32>> {
        self.get(name).filter(|t| t.dims() == dims).map(|t| t.to_f32())
    }
}

/// No values: what a network is made of, and not what it learnt.
pub(super) struct Shapes;

impl Source for Shapes {
    fn values(&self, _name: &str, _dims: &[i64]) -> Option<Vec<f32>> {
        Some(vec![])
    }
}

/// Weight, `[out, in]`, and bias of a linear layer.
#[derive(Clone, Debug)]
pub(super) struct Affine {
    pub weight: Values,
    pub bias: Option<Values>,
}

impl Affine {
    /// The first `rows` outputs times `factor`.
    pub fn rows_times(self, rows: i64, factor: f32) -> Self {
        let Self { weight, bias } = self;
        let bias = bias.map(|b| b.rows_times(rows, factor));
        Self { weight: weight.rows_times(rows, factor), bias }
    }

    /// Each output times its own factor.
    pub fn times(self, factors: &[f32]) -> Self {
        Self { weight: self.weight.times(factors), bias: self.bias.map(|b| b.times(factors)) }
    }
}

/// Values of a tensor; of [`Shapes`] the sides alone.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub dims: Vec<i64>,
    pub data: Vec<f32>,
}

impl Values {
    /// Values of a row, the first side's.
    pub fn row_len(&self) -> usize {
        self.dims[1..].iter().product::<i64>() as usize
    }

    /// The first `rows` rows times `factor`.
    pub fn rows_times(mut self, rows: i64, factor: f32) -> Self {
        let end = (rows as usize * self.row_len()).min(self.data.len());
        self.data[..end].iter_mut().for_each(|v| *v *= factor);
        self
    }

    /// Each row times its own factor.
    pub fn times(mut self, factors: &[f32]) -> Self {
        let length = self.row_len();
        for (row, factor) in self.data.chunks_mut(length).zip(factors) {
            row.iter_mut().for_each(|v| *v *= factor);
        }
        self
    }

    /// `[a, b]` to `[b, a]`.
    pub fn transposed(&self) -> Self {
        let (rows, columns) = (self.dims[0] as usize, self.dims[1] as usize);
        let mut data = vec![0.0; self.data.len()];
        for (i, row) in self.data.chunks(columns).enumerate() {
            for (j, v) in row.iter().enumerate() {
                data[j * rows + i] = *v;
            }
        }
        Self { dims: vec![self.dims[1], self.dims[0]], data }
    }

    /// One after the other along the second side, the first being 1.
    pub fn joined(parts: Vec<Self>) -> Option<Self> {
        let mut parts = parts.into_iter();
        let mut all = parts.next()?;
        for part in parts {
            all.dims[1] += part.dims[1];
            all.data.extend(part.data);
        }
        Some(all)
    }
}
