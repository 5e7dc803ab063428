//! Ranks of a distributed run: sum in place and gather, through c10d: NCCL between GPUs, Gloo else.
//!
//! Started by torchrun-style variables (`RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`,
//! `LOCAL_RANK`) or by Slurm (`SLURM_PROCID`, `SLURM_NTASKS`, `SLURM_LOCALID`, the first host of
//! `SLURM_JOB_NODELIST`). Built against a libtorch without CUDA, tensors travel over the CPU.

use std::ffi::{CStr, CString, c_char, c_int};

use tch::{Device, Kind, Tensor};

use crate::error::{NetError, Result};

type Raw = *mut torch_sys::C_tensor;

/// The C++ side's group.
#[repr(C)]
struct Handle {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn mithras_dist_error() -> *const c_char;
    // What the C++ side cannot take as one: a struct would have to be kept the same on both sides.
    fn mithras_dist_open(
        host: *const c_char,
        port: u16,
        rank: c_int,
        world: c_int,
        seconds: c_int,
        silence: c_int,
        loopback: c_int,
        gpu: c_int,
        out: *mut *mut Handle,
    ) -> c_int;
    fn mithras_dist_gpu_backend() -> *const c_char;
    fn mithras_dist_close(group: *mut Handle);
    fn mithras_dist_sum(group: *mut Handle, tensors: *const Raw, n: usize) -> c_int;
    fn mithras_dist_gather(
        group: *mut Handle,
        tensor: Raw,
        outputs: *mut Raw,
        world: usize,
    ) -> c_int;
}

/// Limit of one exchange, s: others may be validating meanwhile.
const LIMIT: c_int = 1800;
/// After how many seconds without a word a rank counts as gone, where nothing else is reported.
const SILENCE: usize = 20;

fn checked(status: c_int) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: a NUL-terminated thread-local string that lives until the next error.
    let reason = unsafe { CStr::from_ptr(mithras_dist_error()) }.to_string_lossy().into_owned();
    Err(NetError::Ranks { reason })
}

/// How this process was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// This process, `0..world`.
    pub rank: usize,
    /// Processes in all.
    pub world: usize,
    /// This process among those of its machine: the GPU it takes.
    pub local: usize,
    /// Host of rank 0.
    pub host: String,
    /// Port on that host.
    pub port: u16,
    /// After how many seconds without a word a rank counts as gone (`MITHRAS_RANK_SILENCE`).
    pub silence: usize,
}

impl Launch {
    /// One process.
    #[must_use]
    pub fn single() -> Self {
        Self {
            rank: 0,
            world: 1,
            local: 0,
            host: "127.0.0.1".into(),
            port: 29500,
            silence: SILENCE,
        }
    }

    /// Reads the variables through `get`; without any, one process.
    ///
    /// # Errors
    /// [`NetError::Encoder`] naming the variable that is missing or malformed.
    pub fn from_vars(get: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let slurm = get("WORLD_SIZE").is_none() && get("SLURM_NTASKS").is_some();
        let [rank, world, local] = if slurm {
            ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"]
        } else {
            ["RANK", "WORLD_SIZE", "LOCAL_RANK"]
        };
        let number = |name: &'static str| -> Result<Option<usize>> {
            let parse = |v: String| {
                v.trim()
                    .parse()
                    .map_err(|_| NetError::config(name, format!("`{v}` is not a number")))
            };
            get(name).map(parse).transpose()
        };
        let world = number(world)?.unwrap_or(1);
        if world <= 1 {
            return Ok(Self::single());
        }
        let rank = number(rank)?.ok_or_else(|| {
            NetError::config(rank, "is not set; start every rank by one launcher")
        })?;
        if rank >= world {
            return Err(NetError::config("RANK", format!("{rank} of {world} does not exist")));
        }
        let nodes = || get("SLURM_STEP_NODELIST").or_else(|| get("SLURM_JOB_NODELIST"));
        let host = get("MASTER_ADDR").or_else(|| nodes().as_deref().and_then(first_host));
        let host = host.ok_or_else(|| {
            NetError::config("MASTER_ADDR", "is not set; name the host of rank 0")
        })?;
        let port = number("MASTER_PORT")?.unwrap_or(29500);
        let port = u16::try_from(port)
            .map_err(|_| NetError::config("MASTER_PORT", format!("{port} is not a port")))?;
        let silence = number("MITHRAS_RANK_SILENCE")?.unwrap_or(SILENCE).max(2);
        Ok(Self { rank, world, local: number(local)?.unwrap_or(rank), host, port, silence })
    }

    /// [`Self::from_vars`] on this process's environment.
    ///
    /// # Errors
    /// As there.
    pub fn from_env() -> Result<Self> {
        Self::from_vars(|name| std::env::var(name).ok())
    }
}

/// The first host of a Slurm node list: `gpu[03-05,9],x` is `gpu03`.
fn first_host(list: &str) -> Option<String> {
    let end = list.find([',', '[']).unwrap_or(list.len());
    let name = &list[..end];
    let first = match list[end..].strip_prefix('[') {
        Some(range) => range.split([',', '-', ']']).next()?,
        None => "",
    };
    let host = format!("{name}{first}");
    (!host.is_empty()).then_some(host)
}

/// The ranks of a run. One process is a group that does nothing.
#[derive(Debug)]
pub struct Group {
    rank: usize,
    world: usize,
    handle: *mut Handle,
}

impl Group {
    /// One process.
    #[must_use]
    pub fn single() -> Self {
        Self { rank: 0, world: 1, handle: std::ptr::null_mut() }
    }

    /// What carries the tensors of `device` between ranks: `nccl` or `gloo`.
    #[must_use]
    pub fn backend(device: Device) -> &'static str {
        if !device.is_cuda() {
            return "gloo";
        }
        // SAFETY: a constant NUL-terminated string.
        unsafe { CStr::from_ptr(mithras_dist_gpu_backend()) }.to_str().unwrap_or("gloo")
    }

    /// Joins the other ranks, this one computing on `device`; waits for them for up to five
    /// minutes, and in every later call for up to half an hour. From then on a rank that dies or hangs ends the calls
    /// of all others within some seconds more than `silence`.
    ///
    /// # Errors
    /// [`NetError::Ranks`] with c10d's reason.
    pub fn join(launch: &Launch, device: Device) -> Result<Self> {
        if launch.world == 1 {
            return Ok(Self::single());
        }
        let fits = |n: usize| c_int::try_from(n).unwrap_or(c_int::MAX);
        let host = CString::new(launch.host.as_str())
            .map_err(|e| NetError::config("MASTER_ADDR", e.to_string()))?;
        let loopback = c_int::from(["127.0.0.1", "localhost"].contains(&launch.host.as_str()));
        let mut handle = std::ptr::null_mut();
        // SAFETY: `host` and `handle` outlive the call; the handle is ours to close.
        let status = unsafe {
            mithras_dist_open(
                host.as_ptr(),
                launch.port,
                fits(launch.rank),
                fits(launch.world),
                LIMIT,
                fits(launch.silence),
                loopback,
                match device {
                    Device::Cuda(i) => fits(i),
                    _ => -1,
                },
                &raw mut handle,
            )
        };
        checked(status)?;
        Ok(Self { rank: launch.rank, world: launch.world, handle })
    }

    /// This process, `0..world`.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Processes.
    #[must_use]
    pub fn world(&self) -> usize {
        self.world
    }

    /// Whether this process writes the files.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// Replaces each tensor by its sum over all ranks, in f32; one message for all.
    ///
    /// # Errors
    /// [`NetError::Ranks`]: one went away, or hangs.
    pub fn sum(&self, tensors: &[Tensor]) -> Result<()> {
        if self.world == 1 {
            return Ok(());
        }
        let list: Vec<Raw> = tensors.iter().map(|t| t.as_ptr().cast_mut()).collect();
        // SAFETY: live tensors, matching length, a live group.
        checked(unsafe { mithras_dist_sum(self.handle, list.as_ptr(), list.len()) })
    }

    /// Every rank's tensor (of equal shape), in rank order, joined along the first axis.
    ///
    /// # Errors
    /// As [`Self::sum`].
    pub fn gather(&self, tensor: &Tensor) -> Result<Tensor> {
        if self.world == 1 {
            return Ok(tensor.shallow_clone());
        }
        let mut outputs: Vec<Raw> = vec![std::ptr::null_mut(); self.world];
        // SAFETY: a live tensor and group; `outputs` has one place per rank.
        checked(unsafe {
            mithras_dist_gather(
                self.handle,
                tensor.as_ptr().cast_mut(),
                outputs.as_mut_ptr(),
                self.world,
            )
        })?;
        // SAFETY: each pointer was allocated by the call with `new` for us to own.
        let parts: Vec<Tensor> =
            outputs.into_iter().map(|p| unsafe { Tensor::from_ptr(p) }).collect();
        Ok(Tensor::cat(&parts, 0))
    }

    /// The first rank's bytes, on every rank; the others' own are not looked at.
    ///
    /// # Errors
    /// As [`Self::sum`].
    pub fn first_bytes(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        if self.world == 1 {
            return Ok(bytes.to_vec());
        }
        let mine = self.is_first();
        // Halves: a sum is in f32, which counts to 2^24.
        let n = if mine { bytes.len() as i64 } else { 0 };
        let halves = Tensor::from_slice(&[n >> 20, n & 0xf_ffff]).to_kind(Kind::Float);
        self.sum(&[halves.shallow_clone()])?;
        let n = (halves.int64_value(&[0]) << 20) | halves.int64_value(&[1]);
        let all = match mine {
            true => Tensor::from_slice(bytes).to_kind(Kind::Float),
            false => Tensor::zeros([n], (Kind::Float, Device::Cpu)),
        };
        self.sum(&[all.shallow_clone()])?;
        Ok(Vec::<u8>::try_from(all.to_kind(Kind::Uint8))?)
    }

    /// That all ranks are at the same step.
    ///
    /// # Errors
    /// [`NetError::Ranks`]: they are not, or one went away.
    pub fn same_step(&self, step: usize) -> Result<()> {
        let all = self.gather(&Tensor::from_slice(&[step as i64]))?;
        let steps = Vec::<i64>::try_from(all)?;
        match steps.iter().all(|s| *s == step as i64) {
            true => Ok(()),
            false => Err(NetError::Ranks {
                reason: format!(
                    "they start at the steps {steps:?}; the run directory has to be one folder that \
                     all machines see"
                ),
            }),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: opened by `join`, closed once.
            unsafe { mithras_dist_close(self.handle) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(vars: &[(&str, &str)]) -> Result<Launch> {
        let get = |name: &str| vars.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_string());
        Launch::from_vars(get)
    }

    #[test]
    fn launchers_are_understood() {
        assert_eq!(launch(&[]).unwrap(), Launch::single());
        let torchrun = launch(&[
            ("RANK", "3"),
            ("WORLD_SIZE", "4"),
            ("LOCAL_RANK", "1"),
            ("MASTER_ADDR", "a"),
            ("MASTER_PORT", "123"),
        ]);
        let want = Launch { rank: 3, world: 4, local: 1, host: "a".into(), port: 123, silence: 20 };
        assert_eq!(torchrun.unwrap(), want);
        let slurm = launch(&[
            ("SLURM_PROCID", "1"),
            ("SLURM_NTASKS", "2"),
            ("SLURM_LOCALID", "0"),
            ("SLURM_JOB_NODELIST", "gpu[03-05,9],x"),
        ])
        .unwrap();
        assert_eq!((slurm.rank, slurm.world, slurm.local), (1, 2, 0));
        assert_eq!((slurm.host.as_str(), slurm.port), ("gpu03", 29500));
        for (list, host) in [("n1,n2", "n1"), ("n1", "n1"), ("n[7]", "n7")] {
            assert_eq!(first_host(list).unwrap(), host);
        }
        let missing = launch(&[("WORLD_SIZE", "2"), ("MASTER_ADDR", "a")]);
        let missing = missing.unwrap_err().to_string();
        assert!(
            missing.contains("`RANK`: is not set; start every rank by one launcher"),
            "{missing}"
        );
        let ranked = [("WORLD_SIZE", "2"), ("RANK", "0"), ("MASTER_ADDR", "a")];
        assert_eq!(launch(&ranked).unwrap().rank, 0);
        let hostless = launch(&ranked[..2]).unwrap_err().to_string();
        assert!(hostless.contains("is not set; name the host of rank 0"), "{hostless}");
        assert_eq!(launch(&ranked).unwrap().host, "a");
        let beyond = launch(&[("WORLD_SIZE", "2"), ("RANK", "2"), ("MASTER_ADDR", "a")]);
        assert!(beyond.unwrap_err().to_string().contains("2 of 2"));
        let malformed = launch(&[("WORLD_SIZE", "two")]);
        assert!(malformed.unwrap_err().to_string().contains("two"));
    }

    #[test]
    fn one_process_is_a_group() {
        let g = Group::join(&Launch::single(), Device::Cpu).unwrap();
        let t = Tensor::from_slice(&[1f32, 2.0]);
        g.sum(&[t.shallow_clone()]).unwrap();
        assert_eq!(g.gather(&t).unwrap(), t);
        assert_eq!(g.first_bytes(b"abc").unwrap(), b"abc");
        g.same_step(7).unwrap();
    }
}
