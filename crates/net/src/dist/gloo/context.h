// Just enough of gloo's names for c10d's ProcessGroupGloo.hpp to be read: torch's wheels hold the
// class, compiled, and its header, but not gloo's own headers. Only pointers to these types appear
// in the class, so its layout does not depend on them.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
namespace gloo {
struct Context {
  void setTimeout(std::chrono::milliseconds);
};
namespace transport {
class Device;
class UnboundBuffer;
}  // namespace transport
namespace rendezvous {
class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string &, const std::vector<char> &) = 0;
  virtual std::vector<char> get(const std::string &) = 0;
  virtual void wait(const std::vector<std::string> &) = 0;
  virtual void wait(const std::vector<std::string> &, const std::chrono::milliseconds &) = 0;
};
}  // namespace rendezvous
}  // namespace gloo
