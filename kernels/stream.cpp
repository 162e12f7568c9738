#include "kernels/stream.hpp"

#include "kernels/cuda/dispatch.hpp"

namespace troupe {

void stream::wait() const {
  if constexpr (cuda::is_built)
    if (gpu_)
      gpu_->wait();
}

} // namespace troupe
