// What tch does not expose: fused AdamW, foreach operations, autocast to bfloat16, memory formats.
// Every function returns 0, or 1 with the reason in mithras_net_error().
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/version.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cmath>
#include <exception>
#include <string>
#include <vector>

namespace {
thread_local std::string last_error;

template <typename F>
int guarded(F &&body) {
  try {
    body();
    return 0;
  } catch (const std::exception &e) {
    last_error = e.what();
  } catch (...) {
    last_error = "unknown C++ exception";
  }
  return 1;
}

std::vector<at::Tensor> list(at::Tensor **items, size_t n) {
  std::vector<at::Tensor> out;
  out.reserve(n);
  for (size_t i = 0; i < n; ++i) out.push_back(*items[i]);
  return out;
}
}  // namespace

extern "C" {

const char *mithras_net_error() { return last_error.c_str(); }

const char *mithras_net_version() { return TORCH_VERSION; }

void mithras_net_keep_freed_memory() {
#ifdef __GLIBC__
  // Large blocks from the heap too, and the heap never shrinks.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

int mithras_net_fused_adamw(at::Tensor **params, at::Tensor **grads, at::Tensor **exp_avg,
                            at::Tensor **exp_avg_sq, size_t n, at::Tensor *step, double lr,
                            double beta1, double beta2, double weight_decay, double eps) {
  return guarded([&] {
    if (n == 0) return;
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> steps(n, *step);
    at::_fused_adamw_(list(params, n), list(grads, n), list(exp_avg, n), list(exp_avg_sq, n), {},
                      steps, lr, beta1, beta2, weight_decay, eps, /*amsgrad=*/false,
                      /*maximize=*/false);
  });
}

int mithras_net_grad_norm(at::Tensor **grads, size_t n, double *norm) {
  return guarded([&] {
    *norm = 0.0;
    if (n == 0) return;
    at::NoGradGuard no_grad;
    auto norms = at::_foreach_norm(list(grads, n), 2);
    *norm = at::stack(norms).norm().item<double>();
  });
}

int mithras_net_scale(at::Tensor **tensors, size_t n, double factor) {
  return guarded([&] {
    if (n == 0) return;
    at::NoGradGuard no_grad;
    auto all = list(tensors, n);
    at::_foreach_mul_(all, factor);
  });
}

// a <- a + weight * (b - a)
int mithras_net_lerp(at::Tensor **a, at::Tensor **b, size_t n, double weight) {
  return guarded([&] {
    if (n == 0) return;
    at::NoGradGuard no_grad;
    auto left = list(a, n);
    at::_foreach_lerp_(left, list(b, n), weight);
  });
}

int mithras_net_channels_last(at::Tensor *in, at::Tensor **out) {
  return guarded(
      [&] { *out = new at::Tensor(in->contiguous(at::MemoryFormat::ChannelsLast)); });
}

// Enters autocast to bfloat16 on a device type; `previous` gets the state to restore.
int mithras_net_autocast_enter(int cuda, int *previous) {
  return guarded([&] {
    auto device = cuda ? at::kCUDA : at::kCPU;
    *previous = at::autocast::is_autocast_enabled(device) ? 1 : 0;
    at::autocast::set_autocast_dtype(device, at::kBFloat16);
    at::autocast::set_autocast_enabled(device, true);
    at::autocast::increment_nesting();
  });
}

int mithras_net_autocast_leave(int cuda, int previous) {
  return guarded([&] {
    auto device = cuda ? at::kCUDA : at::kCPU;
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device, previous != 0);
  });
}
}
