#include "kernels/stream.hpp"

#include "kernels/cuda/dispatch.hpp"

namespace troupe {

void stream::name_launches(const std::string& of) const {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->name_launches(of);
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

} // namespace troupe
