// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_callbacks.hpp"
#include "kernels/job_line.hpp"
#include "kernels/virtual_clock.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <utility>

namespace tiny {

using namespace troupe;

/// Random numbers of a seed.
using seeded = std::mt19937_64;

inline std::uint64_t up_to(seeded& dice, std::uint64_t most) {
  return dice() % (most + 1);
}

/// A device that behaves like a thread or a stream, but repeatably. The sender of work
/// continues at once. The arithmetic of each part happens later, and the end is
/// reported later still. Works run one after another, in the order of turns, and so do
/// the reports of ends. The device accepts two actions at once.
class seeded_device : public device {
public:
  seeded_device(virtual_clock& clock, std::shared_ptr<seeded> dice)
    : clock_(clock), dice_(std::move(dice)) {
    // nop
  }

  void enqueue(work what, on_end ended) override {
    if (stopped_)
      return;
    line_.add({std::move(what), std::move(ended)});
    start_next();
  }

  void stop() override {
    stopped_ = true;
    line_.clear();
    now_.reset();
  }
  bool idle() const override { return line_.idle() && !now_; }
  int depth() const override { return 2; }

private:
  /// The work under way.
  struct job {
    device_job what;
    work_end end;
    std::size_t next_part = 0;
  };

  void start_next() {
    if (now_ || line_.empty())
      return;
    now_ = job{line_.next(), {}};
    later([this] { start(); });
  }

  template <class What>
  void later(What what) {
    clock_.call_at(clock_.now() + static_cast<nanoseconds>(up_to(*dice_, 3)), what);
  }

  void start() {
    if (!now_)
      return; // the device was stopped
    now_->end.start = clock_.now();
    compute(now_->what.item.run);
    later([this] { go_on(); });
  }

  void go_on() {
    if (!now_)
      return;
    auto& now = *now_;
    const auto& parts = now.what.item.parts;
    if (now.next_part < parts.size() && !now.end.failure) {
      const auto& part = parts[now.next_part++];
      compute(part.run);
      if (part.on_done && !now.end.failure)
        part.on_done();
      return later([this] { go_on(); });
    }
    now.end.end = clock_.now();
    last_heard_ =
      std::max(last_heard_, clock_.now() + static_cast<nanoseconds>(up_to(*dice_, 3)));
    clock_.call_at(last_heard_,
                   [ended = std::move(now.what.ended), end = now.end] { ended(end); });
    now_.reset();
    start_next();
  }

  void compute(const std::function<void()>& run) {
    try {
      if (run)
        run();
    } catch (...) {
      now_->end.failure = std::current_exception();
    }
  }

  virtual_clock& clock_;
  std::shared_ptr<seeded> dice_;
  job_line line_;
  std::optional<job> now_;
  nanoseconds last_heard_ = 0;
  bool stopped_ = false;
};

/// Such devices, and random numbers of handlers between works.
inline virtual_disorder disorder_of(std::uint64_t seed) {
  const auto dice = std::make_shared<seeded>(seed);
  return {.make_device =
            [dice](virtual_clock& clock) {
              return std::make_unique<seeded_device>(clock, dice);
            },
          .handlers = [dice] { return static_cast<std::size_t>(up_to(*dice, 7)); }};
}

} // namespace tiny
