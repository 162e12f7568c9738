#include "kernels/device.hpp"

#include <chrono>

namespace troupe {

namespace {

/// Counts an action as running, also if it throws.
class running_now {
public:
  explicit running_now(activity& seen) : seen_(seen) { ++seen_.running; }
  ~running_now() {
    ++seen_.ended;
    --seen_.running;
  }
  running_now(const running_now&) = delete;
  running_now& operator=(const running_now&) = delete;

private:
  activity& seen_;
};

} // namespace

nanoseconds wall_clock::steady() {
  return std::chrono::nanoseconds{std::chrono::steady_clock::now().time_since_epoch()}
    .count();
}

wall_clock::wall_clock() : origin_(steady()) {
  // nop
}

nanoseconds wall_clock::now() const {
  const auto paused_at = paused_at_.load();
  return (paused_at >= 0 ? paused_at : steady()) - origin_;
}

void wall_clock::restart() {
  origin_ = steady();
}

void wall_clock::pause() {
  paused_at_ = steady();
}

void wall_clock::resume() {
  origin_ += steady() - paused_at_;
  paused_at_ = -1;
}

void cpu_device::enqueue(work what, on_end ended) {
  const bool computes = what.run || (!what.parts.empty() && what.parts.front().run);
  if (computes && before_work_)
    before_work_();
  const auto start = clock_.now();
  {
    const running_now guard{seen_};
    if (what.run)
      what.run();
    for (const auto& part : what.parts) {
      if (part.run)
        part.run();
      if (part.over)
        part.over();
    }
  }
  ended(start, clock_.now());
}

} // namespace troupe
