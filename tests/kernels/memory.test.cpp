// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/gpu_completion.hpp"
#include "kernels/pool.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

namespace troupe::memory_test {

TEST_CASE("tensor memory is zeroed, aligned and counted", "[memory]") {
  memory_account account;
  const tensor_memory small{10, account}, large{3'000'000, account}, none{0, account};
  CHECK(account.allocations() == 2);
  CHECK(account.reserved() == 4 * 3'000'010);
  CHECK(none.data() == nullptr);
  for (const auto* memory : {&small, &large}) {
    CHECK(reinterpret_cast<std::uintptr_t>(memory->data()) % 64 == 0);
    for (std::int64_t i = 0; i < memory->values(); i += 7)
      REQUIRE(memory->data()[i] == 0);
  }
}

namespace {

/// Memory of a device that counts its own bytes.
class counted_space : public memory_space {
public:
  void* allocate(std::int64_t bytes) override {
    if (held + bytes > most)
      throw std::bad_alloc{};
    held += bytes;
    ++taken;
    return host_memory().allocate(bytes);
  }

  void deallocate(void* memory, std::int64_t bytes) noexcept override {
    held -= bytes;
    host_memory().deallocate(memory, bytes);
  }

  std::int64_t held = 0, taken = 0, most = 1 << 20;
};

} // namespace

TEST_CASE("tensors and pools live in the space of their account", "[memory]") {
  counted_space device;
  memory_account rank{device};
  memory_account part{&rank};
  {
    tensor_memory one{10, part};
    pool two{"tests", 2, 100, part, element::int32};
    CHECK(one.space() == &device);
    CHECK(two.acquire().space() == &device);
    CHECK(device.held == 4 * (10 + 2 * 112));
    CHECK(device.taken == 2);
    CHECK(rank.allocations() == 2);
    CHECK(rank.reserved() == device.held);
    auto moved = std::move(one);
    moved = tensor_memory{20, part}; // gives the first back
    CHECK(device.held == 4 * (20 + 2 * 112));
  }
  CHECK(device.held == 0);
  device.most = 8;
  CHECK_THROWS_AS((tensor_memory{10, part}), std::bad_alloc);
  CHECK(rank.allocations() == 3); // refused allocations are not counted
  memory_account elsewhere;
  CHECK(tensor_memory(1, elsewhere).space() == &host_memory());
  CHECK(device.taken == 3);
}

TEST_CASE("memory holds one kind of value, and says nothing as another", "[memory]") {
  memory_account account;
  const tensor_memory values{4, account}, numbers{4, account, element::int32};
  CHECK(values.data() != nullptr);
  CHECK(values.integers() == nullptr);
  CHECK(numbers.data() == nullptr);
  CHECK(numbers.integers() != nullptr);
  pool tokens{"tokens", 2, 3, account, element::int32};
  const auto first = tokens.acquire(), second = tokens.acquire();
  CHECK(first.data() == nullptr);
  CHECK(second.integers() == first.integers() + padded(3));
  CHECK(buffer{}.integers() == nullptr);
  CHECK(buffer{}.space() == nullptr);
}

TEST_CASE("a buffer returns to its pool with the last handle", "[pool]") {
  memory_account account;
  pool two{"tests", 2, 100, account};
  auto a = two.acquire();
  const float* address = a.data();
  {
    const buffer copy = a;
    a = {};
    CHECK_FALSE(a);
    CHECK(copy.data() == address);
    CHECK(two.acquire().data() != address);
  }
  CHECK(two.acquire().data() == address);
}

TEST_CASE("a pool that is exhausted says whose bound is broken", "[pool]") {
  memory_account account;
  pool one{"activations of stage 2", 1, 8, account};
  const auto held = one.acquire();
  CHECK_THROWS_MATCHES(
    one.acquire(), std::logic_error,
    Catch::Matchers::Message(
      "no room is left for activations of stage 2: all 1 buffers are in use, which a "
      "schedule's bound rules out, unless a relay keeps handles of payloads"));
}

TEST_CASE("who gets a buffer that is still read is told by whom, and gets it last",
          "[pool]") {
  memory_account account;
  pool three{"tests", 3, 16, account};
  const auto reader = std::make_shared<gpu_completion>();
  auto a = three.acquire(), b = three.acquire();
  const auto *const read = a.data(), *const other = b.data();
  {
    const auto second = a; // as a pass that reads the version has
    a.set_reader(reader);
    a = {};
  }
  b = {};
  const auto first = three.acquire(), second = three.acquire(), last = three.acquire();
  CHECK(first.data() == other);
  CHECK(second.take_reader() == nullptr);
  CHECK(last.data() == read);
  CHECK(last.take_reader() == reader);
  CHECK(last.take_reader() == nullptr);
  CHECK(buffer{}.take_reader() == nullptr);
}

TEST_CASE("the peak counts what is held at once, not what is reserved", "[pool]") {
  memory_account account;
  pool four{"tests", 4, 16, account};
  CHECK(account.peak() == 0);
  for (int i = 0; i < 3; ++i) {
    const auto a = four.acquire(), b = four.acquire();
  }
  CHECK(account.peak() == 2 * 64);
  CHECK(account.reserved() == 4 * 64);
  CHECK(account.allocations() == 1);
}

TEST_CASE("buffers can be held and dropped by several threads", "[pool]") {
  memory_account account;
  pool some{"tests", 8, 16, account};
  const auto churn = [&] {
    for (int i = 0; i < 10'000; ++i) {
      const auto a = some.acquire();
      const auto b = a; // NOLINT(performance-unnecessary-copy-initialization)
      b.data()[0] = static_cast<float>(i);
    }
  };
  std::thread other{churn};
  churn();
  other.join();
  for (int i = 0; i < 8; ++i)
    CHECK_NOTHROW(some.acquire());
}

} // namespace troupe::memory_test
