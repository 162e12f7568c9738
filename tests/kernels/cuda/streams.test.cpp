// SPDX-License-Identifier: BSD-3-Clause
// Launches on several streams are ordered only as far as streams wait. Watched accesses
// show each place where nothing orders two launches.

#include "kernels/cross_entropy.hpp"
#include "kernels/cuda/epilogue_check.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/library_checks.hpp"
#include "kernels/cuda/on_host/plain_attention.hpp"
#include "kernels/cuda/on_host/spoiled_epilogue.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/stream.hpp"
#include "tests/kernels/cuda/gpu_array.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <future>
#include <memory>
#include <stdexcept>
#include <vector>

namespace troupe::streams_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr std::int64_t n = 40;

/// Two streams, and arrays that both reach.
struct pair_of_streams {
  gpu::array<float> a{"a", std::vector<float>(n, 3.0F), gpu::use::updated},
    b{"b", std::vector<float>(n, 4.0F), gpu::use::updated},
    c{"c", std::vector<float>(n, 5.0F), gpu::use::updated};
  cuda::stream first{0}, second{0};

  static void add(const gpu::array<float>& from, const gpu::array<float>& to,
                  const cuda::stream& on) {
    cuda::arrays::add(from.data(), n, to.data(), on.handle());
  }

  static void clear(const gpu::array<float>& what, const cuda::stream& on) {
    cuda::arrays::clear(n, what.data(), on.handle());
  }

  void wait() {
    first.wait();
    second.wait();
  }
};

void wait_by_event(cuda::stream& on) {
  std::promise<void> over;
  on.on_complete([&](const std::exception_ptr&) { over.set_value(); });
  over.get_future().wait();
}

} // namespace

#ifndef TROUPE_SANITIZED // where accesses are watched

#define CHECK_RACE(streams, name)                                                      \
  CHECK_THROWS_MATCHES(                                                                \
    (streams).wait(), std::runtime_error,                                              \
    MessageMatches(ContainsSubstring("race on '" name "' at byte 0")                   \
                   && ContainsSubstring("on stream ")                                  \
                   && ContainsSubstring("stored.hpp:")                                 \
                   && ContainsSubstring("nothing orders the streams")))

TEST_CASE("two streams that write one array are told of, both ways round",
          "[streams]") {
  pair_of_streams s;
  s.clear(s.a, s.first);
  s.clear(s.a, s.second);
  CHECK_RACE(s, "a");
}

TEST_CASE("a race of streams names whose launches they are", "[streams]") {
  pair_of_streams s;
  s.first.name_launches("F1 of stage 0");
  s.clear(s.a, s.first);
  s.second.name_launches("B1 of stage 1");
  s.clear(s.a, s.second);
  CHECK_THROWS_MATCHES(
    s.wait(), std::runtime_error,
    MessageMatches(ContainsSubstring("of F1 of stage 0 on stream ")
                   && ContainsSubstring("of B1 of stage 1 on stream ")));
}

TEST_CASE("a stream that reads what another writes is told of", "[streams]") {
  pair_of_streams s;
  s.add(s.a, s.b, s.first);
  s.add(s.b, s.c, s.second);
  CHECK_RACE(s, "b");
}

TEST_CASE("a stream that writes what another still reads is told of", "[streams]") {
  pair_of_streams s;
  s.add(s.a, s.b, s.first);
  s.clear(s.a, s.second);
  CHECK_RACE(s, "a");
}

TEST_CASE("of two readers neither may be forgotten", "[streams]") {
  pair_of_streams s;
  s.add(s.a, s.b, s.first);
  s.add(s.a, s.c, s.second);
  wait_by_event(s.second);
  s.clear(s.a, s.second); // and the first?
  CHECK_RACE(s, "a");
}

TEST_CASE("whoever waits for another end has not waited", "[streams]") {
  pair_of_streams s;
  s.add(s.a, s.b, s.first);
  wait_by_event(s.first);
  s.add(s.a, s.b, s.first); // behind that
  s.add(s.b, s.c, s.second);
  CHECK_RACE(s, "b");
}

TEST_CASE("a mark orders what is before it, and not what follows", "[streams]") {
  pair_of_streams s;
  const auto mark = s.first.event();
  s.clear(s.a, s.first);
  s.second.wait_for(mark);
  s.clear(s.a, s.second);
  CHECK_RACE(s, "a");
}

TEST_CASE("what is launched before a stream waits for a mark is not ordered",
          "[streams]") {
  pair_of_streams s;
  s.clear(s.a, s.first);
  const auto mark = s.first.event();
  s.clear(s.a, s.second);
  s.second.wait_for(mark);
  CHECK_RACE(s, "a");
}

TEST_CASE("who waits for a mark is not waited for", "[streams]") {
  pair_of_streams s;
  s.second.wait_for(s.first.event());
  s.clear(s.a, s.second);
  s.clear(s.a, s.first);
  CHECK_RACE(s, "a");
}

#endif

TEST_CASE("streams that wait for each other's marks are ordered, and nobody here waits",
          "[streams]") {
  pair_of_streams s;
  cuda::stream third{0};
  std::promise<void> release;
  s.first.on_complete([&](const std::exception_ptr&) { release.get_future().wait(); });
  for (int i = 0; i < 20; ++i) {
    s.add(s.a, s.b, s.first);
    s.second.wait_for(s.first.event());
    s.add(s.b, s.c, s.second);
    third.wait_for(s.second.event()); // and so for the first stream's launch, too
    s.add(s.b, s.a, third);
    s.add(s.c, s.a, third);
    s.first.wait_for(third.event());
  }
  release.set_value();
  CHECK_NOTHROW(s.wait());
  CHECK_NOTHROW(third.wait());
  CHECK(s.a.values()[0] > 1e9F);
}

TEST_CASE("a stream that waits for one that fails has failed", "[streams]") {
  pair_of_streams s;
  s.first.handle()->enqueue([] { throw std::runtime_error{"broken"}; });
  s.second.wait_for(s.first.event());
  CHECK_THROWS_MATCHES(s.second.wait(), std::runtime_error,
                       MessageMatches(ContainsSubstring("broken"))); // the cause
  CHECK_THROWS_MATCHES(s.first.wait(), std::runtime_error,
                       MessageMatches(ContainsSubstring("broken")));
}

TEST_CASE("streams whose ends are waited for are ordered", "[streams]") {
  pair_of_streams s;
  for (int i = 0; i < 20; ++i) {
    s.add(s.a, s.b, s.first);
    s.add(s.a, s.c, s.second);
    wait_by_event(s.first);
    wait_by_event(s.second);
    s.add(s.b, s.a, s.second);
    s.second.wait();
  }
  CHECK_NOTHROW(s.wait());
  CHECK(s.a.values()[0] > 1e5F);
}

TEST_CASE("ends are told in their order, each once, before anybody has waited",
          "[streams]") {
  pair_of_streams s;
  std::vector<int> told;
  for (int i = 0; i < 30; ++i) {
    s.add(s.a, s.b, s.first);
    s.first.on_complete([&told, i](const std::exception_ptr& failure) {
      CHECK_FALSE(failure);
      told.push_back(i);
    });
  }
  s.first.wait();
  REQUIRE(told.size() == 30);
  for (int i = 0; i < 30; ++i)
    CHECK(told[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("places for results are nobody else's while they are held", "[streams]") {
  pair_of_streams s;
  auto one = s.first.result(), other = s.first.result();
  CHECK(one != other);
  auto* const place = one.get();
  const auto kept = other;
  one.reset();
  other.reset();
  CHECK(s.first.result().get() == place);
  const auto again = s.first.result(), more = s.first.result();
  CHECK(again.get() != kept.get());
  CHECK(more.get() != kept.get());
}

TEST_CASE("losses of a GPU that are reported late are each its own", "[streams]") {
  stream on{1, precision::fp32, std::make_shared<cuda::stream>(0)};
  constexpr int calls = 40; // ends are reported late at random
  std::vector<loss_sum> sums(calls);
  std::deque<gpu::array<float>> logits, row_losses; // elements never move
  const gpu::array<std::int32_t> labels{"labels", std::vector<std::int32_t>{0}};
  for (int i = 0; i < calls; ++i) {
    logits.emplace_back("logits", std::vector{0.0F, static_cast<float>(i)},
                        gpu::use::updated);
    row_losses.emplace_back("row losses", std::int64_t{1});
  }
  for (std::size_t i = 0; i < calls; ++i) {
    const matrix<float> row{logits[i].data(), 1, 2, 2};
    cross_entropy<float>::forward(row, labels.data(), 1, row, row_losses[i].data(),
                                  sums[i], on);
  }
  on.wait();
  for (int i = 0; i < calls; ++i) {
    CAPTURE(i);
    const double expected = std::log1p(std::exp(static_cast<double>(i)));
    CHECK(std::abs(sums[static_cast<std::size_t>(i)].loss - expected)
          < 1e-5 * (1 + expected));
  }
}

TEST_CASE("a library whose attention differs from the kernels' is not used", "[cuda]") {
  cuda::stream first{4}, second{4}; // a GPU that no other test compares
  on_host::spoil_attention(true);
  const auto why = cuda::use_attention_library(first);
  on_host::spoil_attention(false);
  CHECK_THAT(why, ContainsSubstring("its gradients of queries differ"));
  CHECK(first.attention_version() == 0);
  CHECK(cuda::use_attention_library(second) == why); // found once for each GPU
  CHECK(cuda::libraries_of(4).attention == why);
  cuda::stream other{0};
  CHECK(cuda::use_attention_library(other).empty());
  CHECK(cuda::libraries_of(0).attention == "cuDNN 9.0.0");
}

TEST_CASE("an epilogue of a library that differs from the kernel's is not used",
          "[cuda]") {
  const auto all = {epilogue_kind::none, epilogue_kind::bias, epilogue_kind::bias_gelu,
                    epilogue_kind::bias_residual, epilogue_kind::gelu_gradient};
  const auto wrong = GENERATE_COPY(values(all));
  cuda::stream on{3};
  const auto accepts = [&](epilogue_kind kind) {
    const stored_matrix<float> m = matrix<bf16>{nullptr, 8, 8, 8, false};
    return on.is_available({.a = m, .b = m, .c = m, .end = kind});
  };
  on_host::spoil_epilogue(wrong);
  const auto found = cuda::compare_epilogues(on, cuda::unified_memory(3));
  on_host::spoil_epilogue({});
  CHECK_THAT(found.errors,
             ContainsSubstring(std::string{"epilogue "} + name_of(wrong)
                               + " is not used: differs from this program's"));
  for (const auto kind : all) {
    CHECK((std::ranges::count(found.kinds, kind) == 1) == (kind != wrong));
    CHECK_FALSE(accepts(kind));
  }
  CHECK(cuda::use_library_epilogues(on).empty()); // another comparison
  CHECK(accepts(wrong));
  CHECK(cuda::libraries_of(3).epilogues == "cuBLASLt 13.0.0");
}

} // namespace troupe::streams_test
