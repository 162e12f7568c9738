// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace troupe::cuda {

/// One of NVIDIA's libraries, which is loaded when it is first needed, and stays.
class library {
public:
  /// \param name "NCCL" \param version of its interface \param file without version
  /// \throws std::runtime_error if it is not there
  library(const std::string& name, int version, const std::string& file)
    : name_(name),
      handle_(
        dlopen((file + "." + std::to_string(version)).c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr)
      throw std::runtime_error{
        name + " " + std::to_string(version)
        + " is not installed, or not where LD_LIBRARY_PATH says: "
        + std::string{dlerror()}};
  }

  /// \throws std::runtime_error if it has none of that name
  template <class Function>
  void find(const char* name, Function& to) const {
    to = reinterpret_cast<Function>(dlsym(handle_, name));
    if (to == nullptr)
      throw std::runtime_error{name_ + " lacks " + name};
  }

private:
  std::string name_;
  void* handle_;
};

} // namespace troupe::cuda
