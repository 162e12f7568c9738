// SPDX-License-Identifier: BSD-3-Clause
// Works of a device that computes on a GPU: each is launched behind the other, and ends
// when the kernels end.

#include "kernels/cpu_device.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/stream.hpp"
#include "tests/kernels/cuda/gpu_array.hpp"
#include "tests/kernels/cuda/judge.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace troupe::works_test {

using namespace std::chrono_literals;

namespace {

constexpr std::int64_t n = 1000;

/// A device of a GPU, an array in which the works count, and the reported ends.
class counting_device {
public:
  /// A work that adds 1 to each value of the array, `times` times.
  work adds(int times) {
    return {.run = [this, times] {
      for (int i = 0; i < times; ++i)
        cuda::arrays::add(ones_.data(), n, sum_.data(), on_.gpu()->handle());
    }};
  }

  void enqueue(work what) {
    device_->enqueue(std::move(what), [this](const work_end& how) {
      const std::lock_guard guard{lock_};
      // All launched kernels have ended, and this machine may read the result.
      seen_.push_back({how, sum_.values()[0]});
      told_.notify_all();
    });
  }

  struct end {
    work_end how;
    float sum;
  };

  std::deque<end> wait_for(std::size_t ends) {
    std::unique_lock guard{lock_};
    told_.wait(guard, [&] { return seen_.size() >= ends; });
    return seen_;
  }

  device& itself() { return *device_; }
  void forget() { device_.reset(); }
  stream& on() { return on_; }
  const occupation& at() const { return at_; }
  const launch_times& times() const { return times_; }

private:
  gpu::array<float> ones_{"ones", std::vector<float>(n, 1.0F)},
    sum_{"sum", std::vector<float>(n, 0.0F), gpu::use::updated};
  stream on_{1, precision::fp32, std::make_shared<cuda::stream>(0)};
  static inline const wall_clock clock_; // one for all devices, as times are compared
  occupation at_{clock_};
  launch_times times_;
  std::mutex lock_;
  std::condition_variable told_;
  std::deque<end> seen_;
  std::shared_ptr<compute_threads> threads_ = std::make_shared<compute_threads>(1, 1);
  std::unique_ptr<cpu_device> device_ =
    std::make_unique<cpu_device>(at_, threads_, 1, &on_, work_name{}, &times_);
};

} // namespace

TEST_CASE("a work of a GPU is over when its kernels are", "[works]") {
  GPU_OR_SKIP();
  counting_device d;
  for (int i = 0; i < 10; ++i)
    d.enqueue(d.adds(3));
  const auto ends = d.wait_for(10);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    CHECK(ends[i].sum >= 3.0F * static_cast<float>(i + 1)); // others follow at once
    CHECK(ends[i].how.start < ends[i].how.end);
    CHECK((i == 0 || ends[i].how.start >= ends[i - 1].how.end));
    CHECK_FALSE(ends[i].how.failure);
  }
  CHECK(ends.back().sum == 30);
  while (!d.itself().idle())
    std::this_thread::yield();
  CHECK_FALSE(d.at().now());
  CHECK(d.at().ended(0) == 10);
}

TEST_CASE("a work is launched before the end of the one before it is told", "[works]") {
  GPU_OR_SKIP();
  counting_device d;
  std::promise<void> release, launched;
  d.on().on_complete([&](const std::exception_ptr&) { release.get_future().wait(); });
  d.enqueue(d.adds(1));
  d.enqueue({.run = [&] { launched.set_value(); }});
  CHECK(launched.get_future().wait_for(10s) == std::future_status::ready);
  CHECK(d.wait_for(0).empty());
  CHECK_FALSE(d.itself().idle());
  release.set_value();
  CHECK(d.wait_for(2).size() == 2);
}

TEST_CASE("what lies between two works is told apart from what they take", "[works]") {
  GPU_OR_SKIP();
  counting_device d;
  const auto pause = 20ms;
  auto slow = d.adds(1);
  slow.run = [launches = slow.run, pause] {
    std::this_thread::sleep_for(pause);
    launches();
  };
  d.enqueue(slow);
  d.wait_for(1);
  std::this_thread::sleep_for(pause);
  d.enqueue(d.adds(1));
  d.wait_for(2);
  const auto& all = d.times().launches;
  REQUIRE(all.size() == 2);
  const double least = std::chrono::duration<double>(pause).count();
  CHECK(all[0].host_seconds >= least);
  CHECK(seconds_between(all[0].end, all[1].begin) >= 0.9 * least); // another clock
  CHECK(seconds_between(all[0].begin, all[0].end) > 0);
  CHECK(seconds_between(all[0].begin, all[1].end) > 0.9 * least);
}

TEST_CASE("work without arithmetic waits for what a GPU is at", "[works]") {
  GPU_OR_SKIP();
  counting_device d;
  std::promise<void> release, launched;
  d.on().on_complete([&](const std::exception_ptr&) { release.get_future().wait(); });
  d.enqueue({.run = [&] { launched.set_value(); }});
  launched.get_future().wait();
  std::this_thread::sleep_for(20ms); // until the thread continues
  d.enqueue({.kind = 1});
  CHECK(d.wait_for(0).empty());
  release.set_value();
  d.wait_for(2);
  CHECK(d.at().ended(0) == 1);
  CHECK(d.at().ended(1) == 1);
}

TEST_CASE("who cannot be told of a part ends the work with that", "[works]") {
  GPU_OR_SKIP();
  counting_device d;
  d.enqueue({.parts = {{.share = 1, .run = d.adds(1).run, .on_done = [] {
                          throw std::runtime_error{"no room"};
                        }}}});
  const auto end = d.wait_for(1).front();
  REQUIRE(end.how.failure);
  CHECK_THROWS_AS(std::rethrow_exception(end.how.failure), std::runtime_error);
}

TEST_CASE("parts of a work are told of in their order, when their kernels are over",
          "[works]") {
  GPU_OR_SKIP();
  counting_device d;
  std::mutex lock;
  std::string told;
  auto part = [&](char name) {
    return work_part{.share = 0.5, .run = d.adds(2).run, .on_done = [&, name] {
                       const std::lock_guard guard{lock};
                       told += name;
                     }};
  };
  d.enqueue({.parts = {part('a'), part('b')}});
  CHECK(d.wait_for(1).front().sum == 4);
  CHECK(told == "ab");
}

TEST_CASE("what cannot be launched is told, behind what was", "[works]") {
  GPU_OR_SKIP();
  counting_device d;
  int overs = 0;
  auto all = d.adds(2);
  d.enqueue({.parts = {{.share = 0.5, .run = all.run, .on_done = [&] { ++overs; }},
                       {.share = 0.5,
                        .run = [] { throw std::runtime_error{"no room"}; },
                        .on_done = [&] { ++overs; }}}});
  const auto end = d.wait_for(1).front();
  REQUIRE(end.how.failure);
  CHECK_THROWS_AS(std::rethrow_exception(end.how.failure), std::runtime_error);
  CHECK(end.sum == 2);
  CHECK(overs == 1);
  d.enqueue(d.adds(1)); // and the device continues
  CHECK(d.wait_for(2).back().sum == 3);
}

TEST_CASE("a device of a GPU waits for what it has launched", "[works]") {
  GPU_OR_SKIP();
  counting_device d;
  for (int i = 0; i < 5; ++i)
    d.enqueue(d.adds(4));
  d.wait_for(1);
  d.forget();
  const auto before = d.wait_for(1).size();
  CHECK_NOTHROW(d.on().wait());
  CHECK(d.wait_for(1).size() == before); // no end is reported afterwards
}

TEST_CASE("others can be launched behind a work that a GPU is still at", "[works]") {
  GPU_OR_SKIP();
  counting_device first, second;
  std::promise<void> release;
  std::promise<std::shared_ptr<gpu_completion>> launched;
  auto slow = first.adds(3);
  slow.launched = [&](std::shared_ptr<gpu_completion> end) {
    CHECK(first.wait_for(0).empty());
    launched.set_value(std::move(end));
  };
  first.on().on_complete(
    [&](const std::exception_ptr&) { release.get_future().wait(); });
  first.enqueue(first.adds(1)); // whose end the other's thread knows as soon
  first.enqueue(slow);
  const auto input = launched.get_future().get();
  CHECK(first.wait_for(0).empty()); // the end is not reported yet
  auto next = second.adds(1);
  next.inputs = {input};
  second.enqueue(next);
  second.enqueue(second.adds(1));
  release.set_value();
  const auto ends = first.wait_for(2);
  const auto &before = ends[0], &made = ends[1], read = second.wait_for(1).front();
  CHECK(before.how.start <= before.how.end);
  CHECK(before.how.end <= made.how.start);
  CHECK(made.how.start <= made.how.end);
  CHECK(made.how.end <= read.how.start); // in recorded times, for any order of reports
  CHECK(read.how.start <= read.how.end);
  CHECK(second.wait_for(2)[1].how.start >= read.how.end);
}

TEST_CASE("a work reads what another stream's has written", "[works]") {
  GPU_OR_SKIP();
  const gpu::array<float> one{"one", std::vector<float>(n, 1.0F)},
    a{"a", std::vector<float>(n, 0.0F), gpu::use::updated},
    b{"b", std::vector<float>(n, 0.0F), gpu::use::updated};
  counting_device first, second;
  const auto add = [](const auto& from, const auto& to, const stream& on) {
    cuda::arrays::add(from.data(), n, to.data(), on.gpu()->handle());
  };
  for (int i = 0; i < 20; ++i) {
    std::promise<std::shared_ptr<gpu_completion>> launched;
    first.enqueue({.run = [&] { add(one, a, first.on()); },
                   .launched = [&](auto end) { launched.set_value(std::move(end)); }});
    second.enqueue({.run = [&] { add(a, b, second.on()); },
                    .inputs = {launched.get_future().get()}});
    second.wait_for(static_cast<std::size_t>(i) + 1); // before `a` is written again
  }
  CHECK(b.values()[0] == 210); // 1 + 2 + .. + 20
}

TEST_CASE("a CPU reads nothing that a GPU may still be at", "[works]") {
  const work what{.run = [] {}, .inputs = {std::make_shared<gpu_completion>()}};
  CHECK_THROWS_AS(what.compute(), std::logic_error);
}

} // namespace troupe::works_test
