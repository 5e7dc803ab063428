//! One flat, readable training loop per stage (libtorch).
//!
//! | module | does |
//! |---|---|
//! | [`segment`] | first stage |
//! | [`finetune`] | second stage |
//! | [`pretrain`] | masked reconstruction and contrast, baselines |
//! | [`protocol`] | fine-tuning and linear probing over folds, the test part |
//! | [`port`] | trained weights behind the ports of `mitosis` |
//! | [`embed`] | frozen features |
//! | [`headed`] | frozen encoders with a head, for comparison |
//! | [`preset`] | what changes a number |
//! | [`ranks`] | several processes of one training |
//! | [`run`] | run directory, state, metrics |
//! | [`seen`] | slides that weights were trained on |

#![forbid(unsafe_code)]

pub mod batch;
pub mod bench;
pub mod data;
pub mod embed;
mod error;
pub mod finetune;
pub mod headed;
mod plot;
pub mod port;
pub mod preset;
pub mod pretrain;
pub mod protocol;
pub mod ranks;
pub mod run;
pub mod seen;
pub mod segment;
mod stage;
mod start;
mod text;

pub use error::{Result, TrainError};

/// Sets up the process: its allocator, the threads of libtorch and of the workers that draw samples
/// (0 leaves the defaults). Call it first.
pub fn set_up(n: usize) {
    net::device::keep_freed_memory();
    if n > 0 {
        tch::set_num_threads(i32::try_from(n).unwrap_or(i32::MAX));
        // A pool that already runs keeps its size.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(n).build_global();
    }
}
