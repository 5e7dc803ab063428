//! What judges the features of a frozen encoder: a linear head trained step by step, logistic
//! regression, nearest neighbours.

mod knn;
mod linear;
mod logistic;

pub use self::knn::Neighbours;
pub use self::linear::Probe;
pub use self::logistic::{Logistic, LogisticFit};
