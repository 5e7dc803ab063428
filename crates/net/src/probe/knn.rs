//! Nearest neighbours by cosine.

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use crate::error::{NetError, Result};

/// Queries compared with all references at a time.
const QUERIES: i64 = 256;

/// Classes by the nearest references, by cosine similarity. A vector of zeros is as far from all as a
/// right angle; of references equally near, those listed first count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbours {
    /// References that vote.
    pub k: i64,
    /// A vote weighs `exp(similarity / temperature)`; without one all weigh the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

impl Neighbours {
    /// Checks ranges.
    ///
    /// # Errors
    /// [`NetError::Encoder`] with the key.
    pub fn check(&self) -> Result<()> {
        if self.k < 1 {
            return Err(NetError::config("k", format!("{} is below 1", self.k)));
        }
        match self.temperature {
            Some(t) if !(t.is_finite() && t > 0.0) => {
                Err(NetError::config("temperature", format!("{t} is not positive")))
            }
            _ => Ok(()),
        }
    }

    /// Shares of the votes, `[Q, classes]` in f64, for `queries [Q, D]` among `references [N, D]` with
    /// the classes `labels`.
    ///
    /// # Errors
    /// [`NetError::Encoder`] for settings out of range, and for more votes than references.
    pub fn probabilities(
        &self,
        references: &Tensor,
        labels: &[i64],
        queries: &Tensor,
        classes: i64,
    ) -> Result<Tensor> {
        self.check()?;
        let n = references.size()[0];
        if self.k > n {
            let why = format!("{} neighbours are asked for, and there are {n}", self.k);
            return Err(NetError::config("k", why));
        }
        let known = unit(references).transpose(0, 1);
        let labels = Tensor::from_slice(labels);
        let part = |from: i64| {
            let some = queries.narrow(0, from, QUERIES.min(queries.size()[0] - from));
            let (near, at) = unit(&some).matmul(&known).sort_stable(true, -1, true);
            let (near, at) = (near.narrow(1, 0, self.k), at.narrow(1, 0, self.k));
            let votes = match self.temperature {
                Some(t) => (near / t).softmax(-1, Kind::Double),
                None => near.full_like(1.0 / self.k as f64),
            };
            let of = labels.take(&at);
            let none = Tensor::zeros([some.size()[0], classes], (Kind::Double, some.device()));
            none.scatter_add(1, &of, &votes)
        };
        let parts: Vec<Tensor> =
            (0..queries.size()[0]).step_by(QUERIES as usize).map(part).collect();
        Ok(Tensor::cat(&parts, 0))
    }
}

/// Rows of length one in f64; a row of zeros stays.
fn unit(x: &Tensor) -> Tensor {
    let x = x.to_kind(Kind::Double);
    let length = x.norm_scalaropt_dim(2.0, [-1i64].as_slice(), true);
    &x / length.clamp_min(f64::MIN_POSITIVE)
}
