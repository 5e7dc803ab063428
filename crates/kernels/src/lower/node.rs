//! A node of the file, and what its inputs are.

use super::attributes::Attributes;
use crate::error::PlanError;
use crate::ir::Id;
use crate::tensor::Tensor;
use proto::NodeProto;
use std::rc::Rc;

/// The value of a name: a constant, or an image with so many dimensions.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Constant(Rc<Tensor>),
    Computed { id: Id, rank: usize },
}

/// One node with what its errors name.
pub(super) struct At<'a> {
    pub(super) node: &'a NodeProto,
    pub(super) attributes: Attributes<'a>,
}

impl At<'_> {
    pub(super) fn name(&self) -> String {
        let first = || self.node.output.first().cloned().unwrap_or_default();
        if self.node.name.is_empty() { first() } else { self.node.name.clone() }
    }

    pub(super) fn unsupported<T>(&self, reason: impl Into<String>) -> Result<T, PlanError> {
        let operator = self.node.op_type.clone();
        Err(PlanError::Unsupported { operator, node: self.name(), reason: reason.into() })
    }

    pub(super) fn misfit<T>(&self, reason: impl Into<String>) -> Result<T, PlanError> {
        let operator = self.node.op_type.clone();
        Err(PlanError::Shape { operator, node: self.name(), reason: reason.into() })
    }
}
