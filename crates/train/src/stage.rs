//! The one training loop, and what a stage of training brings to it.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::time::Duration;

use base::prefetch::each_step;

use crate::error::Result;
use crate::run::{Loss, Session, Validation};

/// What differs between trainings: the samples, the loss and how the network is judged. [`Session`]
/// does the rest: optimiser, average, metrics, files, resuming.
pub(crate) trait Stage {
    /// What one step is computed from.
    type Batch: Send;

    /// Draws the batch of a step, on another thread and ahead of the loop. It depends on the step
    /// alone, not on workers, ranks' number, or where a run was resumed.
    fn draw(&self) -> impl Fn(usize) -> Self::Batch + Sync;

    /// The mean loss of this rank's share of a step.
    ///
    /// # Errors
    /// A batch that could not be drawn, and ranks that went away.
    fn loss(&self, batch: Self::Batch) -> Result<Loss>;

    /// The loss and metric on what is held out, if anything is. Called at the end of an epoch, on
    /// the first rank alone, under the averaged weights.
    fn validate(&self, step: usize) -> Option<Validation>;

    /// After the optimiser's step; gives what the live line adds.
    ///
    /// # Errors
    /// A log of the stage that cannot be written.
    fn updated(&self, updated: &Updated) -> Result<String> {
        let _ = updated;
        Ok(String::new())
    }

    /// Keeps what a failed update was computed from; gives the file.
    fn keep_failed(&self, step: usize) -> Option<PathBuf> {
        let _ = step;
        None
    }
}

/// An update of the weights.
pub(crate) struct Updated {
    /// The step, from 0.
    pub step: usize,
    /// Learning rate.
    pub rate: f64,
    /// Norm of the gradients before clipping.
    pub norm: f64,
    /// How long the loop waited for the batch.
    pub waited: Duration,
}

impl Session {
    /// Trains `steps`. [`ControlFlow::Break`] after the last step of the run, or where it was to stop.
    ///
    /// # Errors
    /// Of the stage, and a loss that is not a number.
    pub fn train(&mut self, stage: &impl Stage, steps: Range<usize>) -> Result<ControlFlow<()>> {
        each_step(steps, stage.draw(), |step, batch, waited| {
            self.seed_step(step);
            self.zero_grad();
            let loss = stage.loss(batch).map_err(|e| self.rescue(step, e))?;
            let norm = self.update(step, loss).inspect_err(|_| {
                if let Some(file) = stage.keep_failed(step) {
                    self.note(&format!("the batch is kept in {}", file.display()));
                }
            })?;
            let status = stage.updated(&Updated { step, rate: self.rate(step), norm, waited })?;
            self.finish_step(step, &status, &|| stage.validate(step))
        })
    }
}
