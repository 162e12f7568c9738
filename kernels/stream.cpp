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

void stream::name_launches(const std::string& of) const {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->name_launches(of);
}

void stream::defer_launches() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->defer_launches();
}

void stream::launch_deferred() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->launch_deferred();
}

void stream::stop_deferring() const noexcept {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->stop_deferring();
}

void stream::wait() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->wait();
}

void stream::when_over(std::function<void(std::exception_ptr failure)> then) const {
  if constexpr (cuda::is_built)
    if (gpu_)
      return gpu_->when_over(std::move(then));
  then(nullptr);
}

std::shared_ptr<void> stream::moment() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      return gpu_->moment();
  return {};
}

std::shared_ptr<void> stream::mark() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      return gpu_->mark();
  return {};
}

void stream::wait_for(const std::shared_ptr<void>& mark) const {
  if constexpr (cuda::is_built)
    if (gpu_)
      return gpu_->wait_for(mark);
  throw std::logic_error{"the CPU cannot wait for a mark of a GPU's"};
}

double seconds_between(const std::shared_ptr<void>& earlier,
                       const std::shared_ptr<void>& later) {
  if constexpr (cuda::is_built)
    return cuda::seconds_between(earlier, later);
  return 0;
}

} // namespace troupe
