// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/stream.hpp"

#include "kernels/cuda/dispatch.hpp"

#include <stdexcept>

namespace troupe {

memory_space& stream::memory() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      return cuda::unified_memory(gpu_->gpu());
  return host_memory();
}

void stream::name_launches(const std::string& name) const {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->name_launches(name);
}

void stream::capture_launches() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->capture_launches();
}

void stream::launch_captured() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->launch_captured();
}

void stream::stop_capture() const noexcept {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->stop_capture();
}

void stream::measure_choices(std::shared_ptr<cuda::product_choices> to) const {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->measure_choices(std::move(to));
}

void stream::wait() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->wait();
}

void stream::on_complete(
  std::function<void(std::exception_ptr failure)> callback) const {
  if constexpr (cuda::is_built)
    if (gpu_)
      return gpu_->on_complete(std::move(callback));
  callback(nullptr);
}

std::shared_ptr<void> stream::gpu_timestamp() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      return gpu_->gpu_timestamp();
  return {};
}

std::shared_ptr<void> stream::event() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      return gpu_->event();
  return {};
}

void stream::wait_for(const std::shared_ptr<void>& event) const {
  if constexpr (cuda::is_built)
    if (gpu_)
      return gpu_->wait_for(event);
  throw std::logic_error{"the CPU cannot wait for a mark of a GPU's"};
}

double seconds_between(const std::shared_ptr<void>& earlier,
                       const std::shared_ptr<void>& later) {
  if constexpr (cuda::is_built)
    return cuda::seconds_between(earlier, later);
  return 0;
}

} // namespace troupe
