#include "kernels/pool.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <cstdint>
#include <stdexcept>
#include <thread>

using namespace troupe;

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
    Catch::Matchers::Message("all 1 buffers for activations of stage 2 are held"));
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
