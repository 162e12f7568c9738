// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_device/cudnn_backend.hpp"

#include "kernels/cuda/on_device/library.hpp"

#include <array>
#include <new>
#include <stdexcept>
#include <vector>

namespace troupe::cuda::cudnn {

functions::functions() {
  const cuda::library loaded{"cuDNN", CUDNN_MAJOR, "libcudnn.so"};
  loaded.find("cudnnGetVersion", version);
  loaded.find("cudnnGetErrorString", name_of);
  loaded.find("cudnnGetLastErrorString", last_error);
  loaded.find("cudnnCreate", create_handle);
  loaded.find("cudnnDestroy", destroy_handle);
  loaded.find("cudnnSetStream", set_stream);
  loaded.find("cudnnBackendCreateDescriptor", create);
  loaded.find("cudnnBackendDestroyDescriptor", destroy);
  loaded.find("cudnnBackendSetAttribute", set);
  loaded.find("cudnnBackendGetAttribute", get);
  loaded.find("cudnnBackendFinalize", finalize);
  loaded.find("cudnnBackendExecute", execute);
}

const functions& library() {
  static const functions loaded;
  return loaded;
}

void check(cudnnStatus_t state, const std::string& request) {
  if (state == CUDNN_STATUS_SUCCESS)
    return;
  if (state == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
    throw std::bad_alloc{}; // memory may be free later: no reason for a choice
  std::array<char, 1024> reason{};
  library().last_error(reason.data(), reason.size());
  throw std::runtime_error{"cuDNN cannot " + request + ": " + library().name_of(state)
                           + " " + reason.data()};
}

std::int64_t version() {
  return static_cast<std::int64_t>(library().version());
}

handle::handle() {
  check(library().create_handle(&handle_), "make a handle");
}

handle::~handle() {
  if (handle_ != nullptr)
    library().destroy_handle(handle_);
}

descriptor::descriptor(cudnnBackendDescriptorType_t kind) {
  cudnnBackendDescriptor_t made = nullptr;
  check(library().create(kind, &made), "make a descriptor");
  descriptor_ = {made, library().destroy};
}

descriptor& descriptor::set(cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, std::int64_t count,
                            const void* values) {
  check(library().set(get(), name, type, count, values),
        "set attribute " + std::to_string(static_cast<int>(name)));
  return *this;
}

descriptor& descriptor::set(cudnnBackendAttributeName_t name,
                            std::initializer_list<const descriptor*> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const auto* const value : values)
    raw.push_back(value->get());
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()),
             raw.data());
}

descriptor& descriptor::finalize() {
  check(library().finalize(get()), "finalize a descriptor");
  return *this;
}

} // namespace troupe::cuda::cudnn
