// SPDX-License-Identifier: BSD-3-Clause
// The code that calls NCCL, with another library in NCCL's place (fake_nccl.cpp).

#include "kernels/cuda/communicator.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace troupe::nccl_test {

using way = transfer::way;

namespace {

/// While an object of this class lives, calls of one kind fail.
struct failing {
  explicit failing(const char* what) { setenv("FAKE_NCCL_FAILS", what, 1); }
  ~failing() { unsetenv("FAKE_NCCL_FAILS"); }
  failing(const failing&) = delete;
  failing& operator=(const failing&) = delete;
};

/// Two members.
struct pair_of_members {
  pair_of_members() {
    const auto id = cuda::new_group();
    // Destroyed when the members are joined: members keep no reference.
    const auto ended = std::make_unique<std::atomic<bool>>(false);
    std::thread other{[&] { ends[1] = cuda::join_group(on[1], {id, 1, 2}, *ended); }};
    ends[0] = cuda::join_group(on[0], {id, 0, 2}, *ended);
    other.join();
    *ended = true;
  }

  std::array<cuda::stream, 2> on{cuda::stream{0}, cuda::stream{1}};
  std::array<std::unique_ptr<communicator>, 2> ends;
};

/// A number that the library counts, by the name of the counting function.
auto number_of(const char* what) {
  auto* const library = dlopen("libnccl.so.2", RTLD_NOW);
  REQUIRE(library != nullptr);
  const auto result = reinterpret_cast<int (*)()>(dlsym(library, what));
  REQUIRE(result != nullptr);
  return result;
}

} // namespace

TEST_CASE("a group takes no more of a GPU than it is told", "[nccl]") {
  cuda::stream on{0};
  const std::atomic<bool> ended = false;
  const auto blocks = number_of("fake_nccl_blocks");
  for (const int most : {4, 16}) {
    const auto end = cuda::join_group(on, {cuda::new_group(), 0, 1, most}, ended);
    CHECK(blocks() == most);
  }
}

TEST_CASE("members join, exchange, and go", "[nccl]") {
  REQUIRE(cuda::absence_of_communicators() == "");
  pair_of_members two;
  std::array<std::vector<float>, 2> given{std::vector<float>(5, 1), {}}, taken;
  given[1].assign(5, 2);
  taken[0].resize(5);
  taken[1].resize(5);
  for (int times = 0; times < 3; ++times)
    for (const std::size_t m : {0U, 1U})
      two.ends[m]->exchange(std::array{
        transfer{way::send, static_cast<int>(1 - m), given[m].data(), 5},
        transfer{way::receive, static_cast<int>(1 - m), taken[m].data(), 5}});
  CHECK(taken[0] == given[1]);
  CHECK(taken[1] == given[0]);
  CHECK_NOTHROW(two.ends[0]->check());
}

TEST_CASE("who is ended exchanges nothing more", "[nccl]") {
  pair_of_members two;
  two.ends[0]->abort();
  two.ends[0]->abort(); // as the run does when in doubt
  float value = 0;
  const std::array all{transfer{way::send, 1, &value, 1}};
  CHECK_THROWS_WITH(two.ends[0]->exchange(all), "the group of GPUs has been ended");
  CHECK_THROWS_WITH(two.ends[0]->check(), "the group of GPUs has been ended");
  CHECK_NOTHROW(two.ends[1]->check());
}

TEST_CASE("who waits for members that do not come goes when it is told", "[nccl]") {
  cuda::stream on{0};
  std::atomic<bool> ended = false;
  std::thread other{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    ended = true;
  }};
  CHECK_THROWS_WITH(cuda::join_group(on, {cuda::new_group(), 0, 2}, ended),
                    "the group of GPUs has been ended");
  other.join();
}

TEST_CASE("NCCL's errors are sentences", "[nccl]") {
  using Catch::Matchers::ContainsSubstring;
  float value = 0;
  const std::array all{transfer{way::send, 1, &value, 1}};
  {
    const failing of{"id"};
    CHECK_THROWS_WITH(cuda::new_group(), "NCCL cannot make a group: a made-up error");
  }
  pair_of_members two;
  {
    const failing of{"send"};
    CHECK_THROWS_WITH(two.ends[0]->exchange(all),
                      "NCCL cannot exchange arrays: a made-up error: as the test said");
  }
  const failing of{"later"};
  CHECK_THROWS_WITH(two.ends[1]->exchange(all),
                    "NCCL cannot exchange arrays: a made-up error: as the test said");
  CHECK_THROWS_WITH(two.ends[1]->check(),
                    "NCCL cannot exchange arrays: a made-up error: as the test said");
}

TEST_CASE("a group whose library fails while nobody asks is ended, and says why later",
          "[nccl]") {
  pair_of_members two;
  const auto aborted = number_of("fake_nccl_aborted");
  const int before = aborted();
  {
    const failing of{"later"};
    for (int i = 0; i < 10'000 && aborted() < before + 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  for (const auto& end : two.ends)
    CHECK_THROWS_WITH(end->check(),
                      "NCCL cannot exchange arrays: a made-up error: as the test said");
}

TEST_CASE("the environment can leave NCCL out", "[nccl]") {
  setenv("TROUPE_NCCL", "off", 1);
  CHECK(cuda::absence_of_communicators() == "TROUPE_NCCL says off");
  unsetenv("TROUPE_NCCL");
}

} // namespace troupe::nccl_test
