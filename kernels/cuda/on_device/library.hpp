// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace troupe::cuda {

/// A shared library of NVIDIA, which is loaded by the constructor and never unloaded.
class library {
public:
  /// \param name for error messages: "NCCL"
  /// \param version of the library's interface
  /// \param file name of the file without the version: "libnccl.so"
  /// \throws std::runtime_error if the library is not installed, or cannot be loaded
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

  /// Finds a function by name.
  /// \param to receives the function's address
  /// \throws std::runtime_error if the library has no such function
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
