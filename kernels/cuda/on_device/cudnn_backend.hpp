// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

// The descriptors of cuDNN's backend interface. cuDNN is loaded at the first call.
// Functions throw std::runtime_error, with the reason that cuDNN gives, if cuDNN is not
// installed or refuses a call; std::bad_alloc if the GPU lacks memory.

namespace troupe::cuda::cudnn {

/// The functions of cuDNN. cuDNN loads larger parts of the library when a call needs
/// such a part.
struct functions {
  decltype(&cudnnGetVersion) version;
  decltype(&cudnnGetErrorString) name_of;
  decltype(&cudnnGetLastErrorString) last_error;
  decltype(&cudnnCreate) create_handle;
  decltype(&cudnnDestroy) destroy_handle;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create;
  decltype(&cudnnBackendDestroyDescriptor) destroy;
  decltype(&cudnnBackendSetAttribute) set;
  decltype(&cudnnBackendGetAttribute) get;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;

  functions();
};

const functions& library();

/// Throws if a call failed: std::bad_alloc if the GPU lacks memory, else
/// std::runtime_error.
/// \param request the verb and object of the call, for the message: "run a plan"
void check(cudnnStatus_t state, const std::string& request);

/// Version of the installed library: 91900 for 9.19.0.
std::int64_t version();

/// A handle of the current GPU. For one thread at a time.
class handle {
public:
  handle();
  ~handle();
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;

  cudnnHandle_t get() const { return handle_; }

private:
  cudnnHandle_t handle_ = nullptr;
};

/// A descriptor of the backend interface: attributes, then finalize().
class descriptor {
public:
  explicit descriptor(cudnnBackendDescriptorType_t kind);

  template <class Value>
  descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const Value& value) {
    return set(name, type, 1, &value);
  }

  descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::int64_t count, const void* values);

  /// Sets attributes that are descriptors.
  descriptor& set(cudnnBackendAttributeName_t name,
                  std::initializer_list<const descriptor*> values);

  descriptor& finalize();

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

private:
  std::shared_ptr<void> descriptor_;
};

} // namespace troupe::cuda::cudnn
