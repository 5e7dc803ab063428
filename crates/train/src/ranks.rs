//! The processes of one training: each computes on its share of a batch, the first writes the files.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use net::dist::{Group, Launch};
use tch::nn::VarStore;
use tch::{Device, Tensor};

use crate::error::{Result, TrainError};

thread_local! {
    /// Kept until the process ends, because folds follow each other in one group.
    static OWN: OnceCell<Rc<Group>> = const { OnceCell::new() };
}

/// Whether this process writes the files of a training, by its launcher's variables.
///
/// # Errors
/// Variables that cannot be.
pub fn is_first() -> Result<bool> {
    Ok(Launch::from_env()?.rank == 0)
}

/// The ranks that this process was started among, joined at the first call, and its device: every
/// rank of a machine takes its own GPU.
///
/// # Errors
/// A device that is not there, and ranks that do not come together.
pub(crate) fn join(asked: &str) -> Result<(Rc<Group>, Device)> {
    let launch = Launch::from_env()?;
    let device = match net::device::pick(asked)? {
        Device::Cuda(0) if launch.world > 1 => {
            net::device::pick(&format!("cuda:{}", launch.local))?
        }
        device => device,
    };
    let known = OWN.with(|own| own.get().cloned());
    let group = match known {
        Some(group) => group,
        None => {
            let group = Rc::new(Group::join(&launch, device)?);
            OWN.with(|own| own.get_or_init(|| group).clone())
        }
    };
    Ok((group, device))
}

/// This rank's samples of a batch; every rank has equally many.
///
/// # Errors
/// A batch that does not divide.
pub(crate) fn part(batch: usize, group: &Group) -> Result<Range<usize>> {
    let (rank, world) = (group.rank(), group.world());
    if !batch.is_multiple_of(world) {
        return Err(TrainError::Preset {
            path: "train.batch".into(),
            reason: format!("{batch} does not divide by {world} ranks"),
        });
    }
    let each = batch / world;
    Ok(rank * each..(rank + 1) * each)
}

/// That a network can be trained on shares of a batch: not one that normalises over the batch, whose
/// numbers would be those of a smaller one.
///
/// # Errors
/// [`TrainError::Preset`].
pub(crate) fn fits(vs: &VarStore, group: &Group) -> Result<()> {
    let norms = || vs.variables().keys().any(|n| n.ends_with("running_mean"));
    if group.world() > 1 && norms() {
        return Err(TrainError::Preset {
            path: "model".into(),
            reason: "normalises over the batch, of which each of several processes sees a part; \
                     train it in one process, or take a vision transformer"
                .into(),
        });
    }
    Ok(())
}

/// That there is one process alone.
///
/// # Errors
/// [`TrainError::Preset`].
pub(crate) fn alone() -> Result<()> {
    match Launch::from_env()?.world {
        1 => Ok(()),
        n => Err(TrainError::Preset {
            path: "WORLD_SIZE".into(),
            reason: format!("{n} processes were started; this stage trains in one"),
        }),
    }
}

/// Sums the gradients of all trainable variables over the ranks, and `more` with them.
///
/// # Errors
/// A rank that went away.
pub fn sum_gradients(vs: &VarStore, group: &Group, more: &[Tensor]) -> Result<()> {
    if group.world() == 1 {
        return Ok(());
    }
    let mut named: Vec<_> = vs.variables().into_iter().filter(|(_, t)| t.requires_grad()).collect();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    let grads = named.iter().map(|(_, t)| t.grad()).filter(Tensor::defined);
    let all: Vec<Tensor> = grads.chain(more.iter().map(Tensor::shallow_clone)).collect();
    Ok(group.sum(&all)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::encoder::{self, EncoderConfig};

    #[test]
    fn a_network_that_normalises_over_the_batch_is_trained_in_one_process() {
        let fit = |name: &str, group: &Group| {
            let vs = VarStore::new(Device::Cpu);
            encoder::build(&vs.root(), &EncoderConfig::new(name, 2)).unwrap();
            fits(&vs, group).map_err(|e| e.to_string())
        };
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let ranks: Vec<_> = (0..2)
            .map(|rank| {
                std::thread::spawn(move || {
                    let host = "127.0.0.1".to_owned();
                    let launch = Launch { rank, world: 2, local: rank, host, port, silence: 20 };
                    let group = Group::join(&launch, Device::Cpu).unwrap();
                    ["efficientnet_b0", "vit_tiny_patch16_224"].map(|name| fit(name, &group))
                })
            })
            .collect();
        for rank in ranks {
            let [normalises, other] = rank.join().unwrap();
            let refused = normalises.unwrap_err();
            let advice = "train it in one process, or take a vision transformer";
            assert!(refused.contains(advice), "{refused}");
            assert_eq!(other, Ok(()), "a vision transformer");
        }
        assert_eq!(fit("efficientnet_b0", &Group::single()), Ok(()));
    }
}
