// Process groups over c10d: sum in place and gather. Tensors of a GPU travel through NCCL where the
// build has it (MITHRAS_NCCL, see build.rs), all others through Gloo. Every function returns 0, or
// 1 with the reason in mithras_dist_error().
//
// A rank that dies takes its sockets along, and Gloo fails at once. One that hangs, a machine that
// disappears and every fault between GPUs would be noticed after the exchange's own time limit: so
// each rank tells a thread of every other one that it lives, and that thread ends the exchanges.
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
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {
thread_local std::string last_error;

// Tells the others that this rank lives, and listens for them.
class Watch {
 public:
  // `lost` is called once, on a thread of its own, when a rank was not heard of for `silence`.
  Watch(std::string host, unsigned short port, int rank, int world, std::chrono::seconds silence,
        std::function<void()> lost)
      : thread_([=, this] { run(host, port, rank, world, silence, lost); }) {}
  ~Watch() {
    {
      std::lock_guard<std::mutex> held(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  // Why the exchanges were ended; empty while all is well.
  std::string reason() {
    std::lock_guard<std::mutex> held(mutex_);
    return reason_;
  }

 private:
  static std::string key(int rank) { return "alive/" + std::to_string(rank); }
  static std::vector<uint8_t> bytes(uint64_t n) {
    auto text = std::to_string(n);
    return {text.begin(), text.end()};
  }

  void run(const std::string &host, unsigned short port, int rank, int world,
           std::chrono::seconds silence, const std::function<void()> &lost) {
    auto why = listen(host, port, rank, world, silence);
    if (why.empty()) return;
    {
      // A rank that has all it needs continues to its end meanwhile: the first rank ends its own way, too.
      std::unique_lock<std::mutex> held(mutex_);
      if (wake_.wait_for(held, std::chrono::seconds(3), [this] { return ends_; })) return;
      reason_ = why;
    }
    lost();
  }

  // Returns why the ranks are no more whole, or nothing when this one ends.
  std::string listen(const std::string &host, unsigned short port, int rank, int world,
                     std::chrono::seconds silence) {
    using Clock = std::chrono::steady_clock;
    try {
      c10d::TCPStoreOptions options;  // a connection of its own: the other one may be waiting
      options.port = port;
      options.waitWorkers = false;
      options.timeout = silence;
      c10d::TCPStore store(host, options);
      std::vector<std::vector<uint8_t>> last(static_cast<size_t>(world));
      std::vector<Clock::time_point> heard(last.size(), Clock::now());
      for (uint64_t n = 0;; ++n) {
        store.set(key(rank), bytes(n));
        for (int other = 0; other < world; ++other) {
          auto at = static_cast<size_t>(other);
          if (other == rank) continue;
          auto now = store.check({key(other)}) ? store.get(key(other)) : last[at];
          if (now != last[at]) {
            last[at] = now;
            heard[at] = Clock::now();
          } else if (Clock::now() - heard[at] > silence) {
            return "rank " + std::to_string(other) + " was not heard of for " +
                   std::to_string(silence.count()) + " s";
          }
        }
        std::unique_lock<std::mutex> held(mutex_);
        if (wake_.wait_for(held, std::chrono::seconds(1), [this] { return ends_; })) return "";
      }
    } catch (const std::exception &) {
      return "rank 0 is gone";  // which keeps the store
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::string reason_;
  std::thread thread_;  // last: it uses the others
};

struct Group {
  c10::intrusive_ptr<c10d::TCPStore> store;
  c10::intrusive_ptr<c10d::Backend> cpu;
  c10::intrusive_ptr<c10d::Backend> gpu;  // null: GPU tensors go over the CPU
  std::unique_ptr<Watch> watch;           // last: it ends first

  bool stays(const at::Tensor &t) const { return gpu && t.is_cuda(); }
  // Where a tensor like `t` is exchanged, and by whom.
  at::Device device(const at::Tensor &t) const {
    return stays(t) ? t.device() : at::Device(at::kCPU);
  }
  c10d::Backend &backend(const at::Tensor &t) const { return stays(t) ? *gpu : *cpu; }

  // Waits for the exchange of a tensor like `t`. Gloo's do not hear of `abort`: they are left behind.
  void finish(const at::Tensor &t, const c10::intrusive_ptr<c10d::Work> &work) const {
    if (stays(t)) {
      work->wait();
      return;
    }
    for (;;) {
      try {
        work->wait(std::chrono::milliseconds(500));
        return;
      } catch (const std::exception &) {
        if (work->isCompleted() || !watch->reason().empty()) throw;
      }
    }
  }
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

// An exchange; where the watch ended it, its reason is the one to tell.
template <typename F>
int exchanged(Group *group, F &&body) {
  int status = guarded(body);
  auto reason = status == 0 ? std::string() : group->watch->reason();
  if (!reason.empty()) last_error = reason;
  return status;
}
}  // namespace

extern "C" {

const char *mithras_dist_error() { return last_error.c_str(); }

// `gpu`: index of this rank's CUDA device, or -1. `seconds`: limit of an exchange; `silence`: after
// how many seconds without a word a rank counts as gone.
int mithras_dist_open(const char *host, unsigned short port, int rank, int world, int seconds,
                      int silence, int loopback, int gpu, Group **out) {
  return guarded([&] {
    std::chrono::milliseconds timeout(1000LL * seconds);
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = rank == 0;
    options.numWorkers = static_cast<std::size_t>(world);
    options.timeout = std::chrono::minutes(5);  // of joining
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
    c10::intrusive_ptr<c10d::Backend> slow =
        c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, world, gloo);
    auto abort = [slow, fast] {
      if (fast) fast->abort();
      slow->abort();
    };
    auto watch = std::make_unique<Watch>(host, port, rank, world, std::chrono::seconds(silence), abort);
    *out = new Group{store, slow, fast, std::move(watch)};
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

void mithras_dist_close(Group *group) {
  bool left = !group->watch->reason().empty();
  group->watch.reset();
  // An exchange that was left behind keeps its threads, for which the destructor would wait.
  if (!left) delete group;
}

int mithras_dist_sum(Group *group, at::Tensor **tensors, size_t n) {
  return exchanged(group, [&] {
    if (n == 0) return;
    at::NoGradGuard no_grad;
    // One message: the tensors side by side.
    auto place = group->device(*tensors[0]);
    std::vector<at::Tensor> flat;
    for (size_t i = 0; i < n; ++i)
      flat.push_back(tensors[i]->to(place, at::kFloat).reshape({-1}));
    std::vector<at::Tensor> all{at::cat(flat)};
    group->finish(*tensors[0], group->backend(*tensors[0]).allreduce(all));
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
  return exchanged(group, [&] {
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> input{tensor->detach().to(group->device(*tensor)).contiguous()};
    std::vector<std::vector<at::Tensor>> found(1);
    for (size_t i = 0; i < world; ++i) found[0].push_back(at::empty_like(input[0]));
    group->finish(*tensor, group->backend(*tensor).allgather(found, input));
    for (size_t i = 0; i < world; ++i)
      outputs[i] = new at::Tensor(found[0][i].to(tensor->device()));
  });
}
}
