#pragma once

#include "actors/run/run_callbacks.hpp"
#include "kernels/device.hpp"
#include "kernels/virtual_clock.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <utility>

namespace tiny {

using namespace troupe;

/// What a seed chooses.
using seeded = std::mt19937_64;

inline std::uint64_t up_to(seeded& dice, std::uint64_t most) {
  return dice() % (most + 1);
}

/// A device as a thread or a stream is one, but repeatable: whoever enqueues work goes
/// on, the arithmetic of each part happens some time later, and its end is heard later
/// still. One work after another.
class seeded_device : public device {
public:
  seeded_device(virtual_clock& clock, std::shared_ptr<seeded> dice)
    : clock_(clock), dice_(std::move(dice)) {
    // nop
  }

  void enqueue(work what, on_end ended) override {
    jobs_.push_back({std::move(what), std::move(ended), {}, 0});
    if (jobs_.size() == 1)
      later([this] { start(); });
  }

  void stop() override { jobs_.clear(); }
  bool idle() const override { return jobs_.empty(); }

private:
  struct job {
    work what;
    on_end ended;
    work_end end;
    std::size_t next_part;
  };

  template <class What>
  void later(What what) {
    clock_.at(clock_.now() + static_cast<nanoseconds>(up_to(*dice_, 3)), what);
  }

  void start() {
    auto& now = jobs_.front();
    now.end.start = clock_.now();
    compute(now.what.run);
    later([this] { go_on(); });
  }

  void go_on() {
    auto& now = jobs_.front();
    if (now.next_part < now.what.parts.size() && !now.end.failure) {
      const auto& part = now.what.parts[now.next_part++];
      compute(part.run);
      if (part.over && !now.end.failure)
        part.over();
      return later([this] { go_on(); });
    }
    now.end.end = clock_.now();
    later([ended = std::move(now.ended), end = now.end] { ended(end); });
    jobs_.pop_front();
    if (!jobs_.empty())
      later([this] { start(); });
  }

  void compute(const std::function<void()>& run) {
    try {
      if (run)
        run();
    } catch (...) {
      jobs_.front().end.failure = std::current_exception();
    }
  }

  virtual_clock& clock_;
  std::shared_ptr<seeded> dice_;
  std::deque<job> jobs_;
};

/// Such devices, and handlers that run between their works in any number.
inline virtual_disorder disorder_of(std::uint64_t seed) {
  const auto dice = std::make_shared<seeded>(seed);
  return {.make_device =
            [dice](virtual_clock& clock) {
              return std::make_unique<seeded_device>(clock, dice);
            },
          .handlers = [dice] { return static_cast<std::size_t>(up_to(*dice, 7)); }};
}

} // namespace tiny
