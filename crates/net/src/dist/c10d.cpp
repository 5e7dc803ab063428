// Process groups over c10d: sum in place and gather. Tensors of a GPU travel through NCCL where the
// build has it (MITHRAS_NCCL, see build.rs), all others through Gloo. Every function returns 0, or
// 1 with the reason in mithras_dist_error().
#define USE_C10D_GLOO 1
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#ifdef MITHRAS_NCCL
#define USE_C10D_NCCL 1
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <chrono>
#include <exception>
#include <string>
#include <vector>

namespace {
thread_local std::string last_error;

struct Group {
  c10::intrusive_ptr<c10d::TCPStore> store;
  c10::intrusive_ptr<c10d::Backend> cpu;
  c10::intrusive_ptr<c10d::Backend> gpu;  // null: GPU tensors go over the CPU

  bool stays(const at::Tensor &t) const { return gpu && t.is_cuda(); }
  // Where a tensor like `t` is exchanged, and by whom.
  at::Device device(const at::Tensor &t) const {
    return stays(t) ? t.device() : at::Device(at::kCPU);
  }
  c10d::Backend &backend(const at::Tensor &t) const { return stays(t) ? *gpu : *cpu; }
};

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
}  // namespace

extern "C" {

const char *mithras_dist_error() { return last_error.c_str(); }

// `gpu`: index of this rank's CUDA device, or -1.
int mithras_dist_open(const char *host, unsigned short port, int rank, int world, int seconds,
                      int loopback, int gpu, Group **out) {
  return guarded([&] {
    std::chrono::milliseconds timeout(1000LL * seconds);
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = rank == 0;
    options.numWorkers = static_cast<std::size_t>(world);
    options.timeout = timeout;
    auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
    auto gloo = c10d::ProcessGroupGloo::Options::create(timeout);
    gloo->devices.push_back(loopback
                                ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                : c10d::ProcessGroupGloo::createDefaultDevice());
    c10::intrusive_ptr<c10d::Backend> fast;
#ifdef MITHRAS_NCCL
    if (gpu >= 0) {
      c10::cuda::set_device(static_cast<c10::DeviceIndex>(gpu));
      auto nccl = c10d::ProcessGroupNCCL::Options::create();
      nccl->timeout = timeout;
      auto keys = c10::make_intrusive<c10d::PrefixStore>("nccl", store);
      fast = c10::make_intrusive<c10d::ProcessGroupNCCL>(keys, rank, world, nccl);
    }
#else
    (void)gpu;
#endif
    *out = new Group{
        store, c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, world, gloo), fast};
  });
}

// The library that carries a GPU's tensors.
const char *mithras_dist_gpu_backend() {
#ifdef MITHRAS_NCCL
  return "nccl";
#else
  return "gloo";
#endif
}

void mithras_dist_close(Group *group) { delete group; }

int mithras_dist_sum(Group *group, at::Tensor **tensors, size_t n) {
  return guarded([&] {
    if (n == 0) return;
    at::NoGradGuard no_grad;
    // One message: the tensors side by side.
    auto place = group->device(*tensors[0]);
    std::vector<at::Tensor> flat;
    for (size_t i = 0; i < n; ++i)
      flat.push_back(tensors[i]->to(place, at::kFloat).reshape({-1}));
    std::vector<at::Tensor> all{at::cat(flat)};
    group->backend(*tensors[0]).allreduce(all)->wait();
    int64_t at = 0;
    for (size_t i = 0; i < n; ++i) {
      auto count = tensors[i]->numel();
      tensors[i]->copy_(all[0].narrow(0, at, count).reshape(tensors[i]->sizes()));
      at += count;
    }
  });
}

// `outputs` gets one new tensor per rank, in rank order, on the input's device.
int mithras_dist_gather(Group *group, at::Tensor *tensor, at::Tensor **outputs, size_t world) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> input{tensor->detach().to(group->device(*tensor)).contiguous()};
    std::vector<std::vector<at::Tensor>> found(1);
    for (size_t i = 0; i < world; ++i) found[0].push_back(at::empty_like(input[0]));
    group->backend(*tensor).allgather(found, input)->wait();
    for (size_t i = 0; i < world; ++i)
      outputs[i] = new at::Tensor(found[0][i].to(tensor->device()));
  });
}
}
