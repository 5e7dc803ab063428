//! Safe faces of `shim.cpp`: the few libtorch calls that tch does not expose.

use std::ffi::{CStr, c_char, c_int};

use tch::{Device, Tensor};

use crate::error::{NetError, Result};

type Raw = *mut torch_sys::C_tensor;

unsafe extern "C" {
    fn mithras_net_error() -> *const c_char;
    fn mithras_net_version() -> *const c_char;
    fn mithras_net_keep_freed_memory();
    // As many arguments as the function of libtorch that it hands them to.
    fn mithras_net_fused_adamw(
        params: *const Raw,
        grads: *const Raw,
        exp_avg: *const Raw,
        exp_avg_sq: *const Raw,
        n: usize,
        step: Raw,
        lr: f64,
        beta1: f64,
        beta2: f64,
        weight_decay: f64,
        eps: f64,
    ) -> c_int;
    fn mithras_net_grad_norm(grads: *const Raw, n: usize, norm: *mut f64) -> c_int;
    fn mithras_net_scale(tensors: *const Raw, n: usize, factor: f64) -> c_int;
    fn mithras_net_lerp(a: *const Raw, b: *const Raw, n: usize, weight: f64) -> c_int;
    fn mithras_net_channels_last(input: Raw, output: *mut Raw) -> c_int;
    fn mithras_net_autocast_enter(cuda: c_int, previous: *mut c_int) -> c_int;
    fn mithras_net_autocast_leave(cuda: c_int, previous: c_int) -> c_int;
}

fn checked(call: &'static str, status: c_int) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the shim returns a NUL-terminated thread-local string that lives until the next error.
    let reason = unsafe { CStr::from_ptr(mithras_net_error()) }.to_string_lossy().into_owned();
    Err(NetError::Shim { call, reason })
}

/// Version of the libtorch that this build was compiled against.
pub(crate) fn version() -> String {
    // SAFETY: a string literal.
    unsafe { CStr::from_ptr(mithras_net_version()) }.to_string_lossy().into_owned()
}

/// Sets glibc's allocator; nothing elsewhere.
pub(crate) fn keep_freed_memory() {
    // SAFETY: sets parameters of the allocator, which takes its own lock.
    unsafe { mithras_net_keep_freed_memory() }
}

fn raw(tensors: &[Tensor]) -> Vec<Raw> {
    tensors.iter().map(|t| t.as_ptr().cast_mut()).collect()
}

/// Hyper-parameters of one fused AdamW call.
pub(crate) struct AdamwCall {
    pub lr: f64,
    pub betas: (f64, f64),
    pub weight_decay: f64,
    pub eps: f64,
}

/// One AdamW step in place; `step` is a scalar f32 tensor, already counted up.
pub(crate) fn fused_adamw(
    params: &[Tensor],
    grads: &[Tensor],
    exp_avg: &[Tensor],
    exp_avg_sq: &[Tensor],
    step: &Tensor,
    call: &AdamwCall,
) -> Result<()> {
    let n = params.len();
    assert!(
        grads.len() == n && exp_avg.len() == n && exp_avg_sq.len() == n,
        "AdamW lists differ in length"
    );
    let (p, g, m, v) = (raw(params), raw(grads), raw(exp_avg), raw(exp_avg_sq));
    // SAFETY: every pointer comes from a live Tensor borrowed for the call, the lists have `n` items.
    let status = unsafe {
        mithras_net_fused_adamw(
            p.as_ptr(),
            g.as_ptr(),
            m.as_ptr(),
            v.as_ptr(),
            n,
            step.as_ptr().cast_mut(),
            call.lr,
            call.betas.0,
            call.betas.1,
            call.weight_decay,
            call.eps,
        )
    };
    checked("fused_adamw", status)
}

/// L2 norm over all values of all tensors.
pub(crate) fn total_norm(tensors: &[Tensor]) -> Result<f64> {
    let list = raw(tensors);
    let mut norm = 0.0;
    // SAFETY: live tensors, matching length, `norm` outlives the call.
    let status = unsafe { mithras_net_grad_norm(list.as_ptr(), list.len(), &raw mut norm) };
    checked("grad_norm", status).map(|()| norm)
}

/// Multiplies all tensors in place.
pub(crate) fn scale(tensors: &[Tensor], factor: f64) -> Result<()> {
    let list = raw(tensors);
    // SAFETY: live tensors, matching length.
    checked("scale", unsafe { mithras_net_scale(list.as_ptr(), list.len(), factor) })
}

/// `a <- a + weight (b - a)` in place.
pub(crate) fn lerp(a: &[Tensor], b: &[Tensor], weight: f64) -> Result<()> {
    assert_eq!(a.len(), b.len(), "lerp lists differ in length");
    let (x, y) = (raw(a), raw(b));
    // SAFETY: live tensors, matching lengths.
    checked("lerp", unsafe { mithras_net_lerp(x.as_ptr(), y.as_ptr(), x.len(), weight) })
}

/// The same values with channels innermost (NHWC strides); a no-op copy-free clone where they
/// already are.
pub(crate) fn channels_last(tensor: &Tensor) -> Result<Tensor> {
    let mut out: Raw = std::ptr::null_mut();
    // SAFETY: a live tensor in; the shim hands back an owned tensor.
    let status = unsafe { mithras_net_channels_last(tensor.as_ptr().cast_mut(), &raw mut out) };
    checked("channels_last", status)?;
    // SAFETY: `out` was allocated by the shim with `new` for us to own.
    Ok(unsafe { Tensor::from_ptr(out) })
}

/// While alive, matrix multiplications and convolutions of this thread run in bfloat16.
pub(crate) struct AutocastGuard {
    cuda: c_int,
    previous: c_int,
}

impl AutocastGuard {
    pub(crate) fn new(device: Device) -> Result<Self> {
        let cuda = c_int::from(device.is_cuda());
        let mut previous = 0;
        // SAFETY: `previous` outlives the call.
        checked("autocast", unsafe { mithras_net_autocast_enter(cuda, &raw mut previous) })?;
        Ok(Self { cuda, previous })
    }
}

impl Drop for AutocastGuard {
    fn drop(&mut self) {
        // SAFETY: no pointers; balances the enter call of `new`.
        unsafe { mithras_net_autocast_leave(self.cuda, self.previous) };
    }
}
