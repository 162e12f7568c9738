// SPDX-License-Identifier: BSD-3-Clause
// The launches of a work are recorded, and launched together. A repeated list is
// launched as the graph made before, with the new arguments. So a key that lacks
// something shows as old values.

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch_list.hpp"
#include "kernels/cuda/stream.hpp"
#include "tests/kernels/cuda/gpu_array.hpp"
#include "tests/kernels/cuda/judge.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <array>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::graphs_test {

namespace {

/// Records each launch, and each time when a graph is made or launched.
struct notes {
  struct noted_graph : public cuda::launch_graphs::graph {
    noted_graph(notes& where, std::string of) : to(where), what(std::move(of)) {
      // nop
    }
    void launch() override { to.all.push_back("graph of " + what); }
    notes& to;
    std::string what;
  };

  cuda::launch_list list(const std::vector<int>& of) {
    cuda::launch_list result;
    for (const int one : of)
      result.add([this, one] { all.push_back(std::to_string(one)); });
    return result;
  }

  void launch(const std::vector<int>& of) {
    auto all_of = list(of);
    graphs.launch(all_of);
    CHECK(all_of.size() == 0);
  }

  std::vector<std::string> all;
  cuda::launch_graphs graphs{[this](const cuda::launch_list& what) {
    const auto before = all.size();
    what.launch();
    std::string of;
    while (all.size() > before) {
      of = all.back() + of;
      all.pop_back();
    }
    return std::make_unique<noted_graph>(*this, of);
  }};
};

using texts = std::vector<std::string>;

/// An array to which every launch of a work adds.
struct added {
  added() : on(0) {}

  /// A work of several launches: to += from, `times` times.
  void work(const gpu::array<float>& from, const gpu::array<float>& to, int times,
            std::int64_t values = n) {
    on.capture_launches();
    for (int i = 0; i < times; ++i)
      cuda::arrays::add(from.data(), values, to.data(), on.handle());
    on.launch_captured();
    on.stop_capture();
  }

  static constexpr std::int64_t n = 40;
  gpu::array<float> a{"a", std::vector<float>(n, 1.0F), gpu::use::updated},
    b{"b", std::vector<float>(n, 10.0F), gpu::use::updated},
    sum{"sum", std::vector<float>(n, 0.0F), gpu::use::updated};
  cuda::stream on;
};

} // namespace

TEST_CASE("what is launched twice becomes a graph, and is launched as one from then on",
          "[graphs]") {
  notes n;
  n.launch({1, 2});
  CHECK(n.all == texts{"1", "2"});
  n.launch({1, 2});
  n.launch({1, 2});
  CHECK(n.all == texts{"1", "2", "graph of 12", "graph of 12"});
}

TEST_CASE("what differs in anything is something else", "[graphs]") {
  notes n;
  for (int i = 0; i < 2; ++i) {
    n.launch({1, 2});
    n.launch({2, 1});
    n.launch({1, 2, 1});
  }
  CHECK(n.all
        == texts{"1", "2", "2", "1", "1", "2", "1", "graph of 12", "graph of 21",
                 "graph of 121"});
}

TEST_CASE("launches of one size and with equal arguments differ by what they call",
          "[graphs]") {
  notes n;
  const auto launch = [&](bool first) {
    cuda::launch_list list;
    for (int i = 0; i < 2; ++i)
      if (first)
        list.add([&n] { n.all.push_back("a"); });
      else
        list.add([&n] { n.all.push_back("b"); });
    n.graphs.launch(list);
  };
  for (const bool first : {true, false, true, false})
    launch(first);
  CHECK(n.all == texts{"a", "a", "b", "b", "graph of aa", "graph of bb"});
}

TEST_CASE("launches run in order, with the arguments at the time of the call",
          "[graphs]") {
  std::vector<std::string> all;
  cuda::launch_list list;
  for (int i = 0; i < 100; ++i) { // the list moves to larger memory on the way
    std::array<std::int64_t, 3> numbers{i, 2 * i, 3 * i};
    char letter = 'x';
    list.add([&all, numbers] {
      all.push_back(std::to_string(numbers[0] + numbers[1] + numbers[2]));
    });
    list.add([&all, letter] { all.push_back(std::string(1, letter)); });
    numbers = {};
    letter = '?';
  }
  texts expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(std::to_string(6 * i));
    expected.emplace_back("x");
  }
  list.launch();
  CHECK(all == expected);
  list.launch();
  CHECK(all.size() == 2 * expected.size());
}

TEST_CASE("a copy of a list stays as it is, whatever is added to the first",
          "[graphs]") {
  notes n;
  auto list = n.list({1, 2});
  const auto copy = list;
  const auto capacity = list.key().capacity();
  list.clear();
  n.list({3}).launch();
  list.add([&n] { n.all.push_back("4"); });
  list.launch();
  copy.launch();
  CHECK(n.all == texts{"3", "4", "1", "2"});
  CHECK(copy.key() == n.list({1, 2}).key());
  CHECK(list.key().capacity() == capacity); // a repeated action allocates nothing
}

TEST_CASE("what could not be launched is not tried again", "[graphs]") {
  notes n;
  cuda::launch_list list;
  list.add([&] { n.all.push_back("1"); });
  list.add([] { throw std::runtime_error{"no"}; });
  list.add([&] { n.all.push_back("3"); });
  CHECK_THROWS_WITH(n.graphs.launch(list), "no");
  CHECK(list.size() == 0);
  n.graphs.launch(list);
  CHECK(n.all == texts{"1"});
}

TEST_CASE("a single launch is no graph", "[graphs]") {
  notes n;
  for (int i = 0; i < 3; ++i)
    n.launch({7});
  CHECK(n.all == texts{"7", "7", "7"});
}

TEST_CASE("what never comes again pushes no graph out", "[graphs]") {
  notes n;
  n.launch({1, 2});
  n.launch({1, 2});
  for (int i = 0; i < 3 * static_cast<int>(cuda::launch_graphs::most_known); ++i)
    n.launch({i + 10, 0});
  n.all.clear();
  n.launch({1, 2});
  CHECK(n.all == texts{"graph of 12"});
}

TEST_CASE("what came once is forgotten when too much is known", "[graphs]") {
  notes n;
  const auto most = static_cast<int>(cuda::launch_graphs::most_known);
  for (int i = 0; i < most; ++i)
    n.launch({i, i});
  n.all.clear();
  n.launch({most - 1, 0}); // all others are forgotten
  n.launch({0, 0});
  n.launch({0, 0});
  CHECK(n.all == texts{std::to_string(most - 1), "0", "0", "0", "graph of 00"});
}

TEST_CASE("padding does not make lists differ", "[graphs]") {
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
  struct padded_launch {
    std::int64_t number;
    bool holds;
    void operator()() const {}
  };
  const auto key_over = [](unsigned char garbage) {
    alignas(padded_launch) std::array<unsigned char, sizeof(padded_launch)> bytes;
    bytes.fill(garbage);
    auto* volatile const launch = new (bytes.data()) padded_launch;
    launch->number = 5;
    launch->holds = true;
    cuda::launch_list list;
    list.add(*launch); // volatile: the compiler copies whole words, padding included
    return list.key();
  };
  CHECK(key_over(0x00) == key_over(0xff));
#endif
}

TEST_CASE("a work is launched together, in order, however often it comes", "[graphs]") {
  GPU_OR_SKIP();
  added s;
  for (int i = 0; i < 5; ++i)
    s.work(s.a, s.sum, 3);
  s.on.wait();
  CHECK(s.sum.values().front() == 15);
}

TEST_CASE("a graph is not launched with other arrays, sizes or kernels", "[graphs]") {
  GPU_OR_SKIP();
  added s;
  for (int i = 0; i < 3; ++i) {
    s.work(s.a, s.sum, 2);
    s.work(s.b, s.sum, 2);
    s.work(s.a, s.sum, 2, added::n / 2);
  }
  s.on.wait();
  CHECK(s.sum.values().front() == 3 * (2 + 20 + 2));
  CHECK(s.sum.values().back() == 3 * (2 + 20));
}

TEST_CASE("whoever waits within a work waits for what was launched before",
          "[graphs]") {
  GPU_OR_SKIP();
  added s;
  for (int i = 1; i <= 4; ++i) {
    s.on.capture_launches();
    cuda::arrays::add(s.a.data(), added::n, s.sum.data(), s.on.handle());
    cuda::arrays::add(s.a.data(), added::n, s.sum.data(), s.on.handle());
    s.on.wait();
    CHECK(s.sum.values().front() == static_cast<float>(3 * i - 1));
    cuda::arrays::add(s.a.data(), added::n, s.sum.data(), s.on.handle());
    s.on.launch_captured();
    s.on.stop_capture();
    s.on.wait();
    CHECK(s.sum.values().front() == static_cast<float>(3 * i));
  }
}

TEST_CASE("products are deferred as kernels are", "[graphs]") {
  GPU_OR_SKIP();
  added s;
  gpu::array<float> c{"c", 4};
  const auto one = dense(static_cast<const float*>(s.a.data()), 2, 2);
  for (int i = 0; i < 4; ++i) {
    s.on.capture_launches();
    cuda::arrays::add(s.b.data(), 4, s.a.data(), s.on.handle()); // 11, 21, ..
    s.on.launch_product({.a = one, .b = one, .c = dense(c.data(), 2, 2)});
    s.on.launch_captured();
    s.on.stop_capture();
    s.on.wait();
    const auto value = static_cast<float>(11 + 10 * i);
    CHECK(c.values().front() == 2 * value * value);
  }
}

} // namespace troupe::graphs_test
