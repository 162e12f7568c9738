// SPDX-License-Identifier: BSD-3-Clause
// Bytes from unknown senders: a decoder returns a message, or an error.

#include "messaging/wire/codec.hpp"
#include "tests/fuzz/codec.hpp"
#include "tests/messaging/some_mail.hpp"

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>

namespace {

std::atomic<std::size_t> taken = 0; // By this whole program, of the heap.

} // namespace

#ifndef TROUPE_SANITIZED // a sanitizer counts by itself, and needs its own operators
// Inlined operators make g++ warn of memory that new did not allocate.
[[gnu::noinline]] void* operator new(std::size_t size) {
  taken += size;
  if (void* result = std::malloc(size > 0 ? size : 1))
    return result;
  throw std::bad_alloc{};
}

[[gnu::noinline]] void operator delete(void* what) noexcept {
  std::free(what);
}
[[gnu::noinline]] void operator delete(void* what, std::size_t) noexcept {
  std::free(what);
}

#endif

namespace troupe::hostile_mail_test {

namespace {

using input = std::vector<unsigned char>;

/// Inputs that fuzz::is_mail() accepts: a message of each kind, and a long one.
std::vector<input> one_of_each(unsigned seed) {
  dice random{seed};
  std::vector<input> result;
  const auto add = [&result](unsigned char kind, const wire::bytes& mail) {
    result.push_back({kind});
    result.back().insert(result.back().end(), mail.begin(), mail.end());
  };
  for (const auto& m : some_mail::one_of_each(random))
    add(0, wire::encode(m));
  for (const auto& m : some_mail::each_of<wire::node_message>(random))
    add(1, wire::encode(m));
  add(0, wire::encode({{}, mail::samples{1, std::vector<measured_action>(64)}, {}}));
  return result;
}

/// Whether decoding takes little memory: for the message, a copy, and an error text.
bool takes_little(const input& from) {
  const std::span bytes{from.data() + 1, from.size() - 1};
  const auto before = taken.load();
  if (from[0] % 2 == 0)
    static_cast<void>(wire::decode_actor_message(bytes));
  else
    static_cast<void>(wire::decode_node_message(bytes));
  return taken - before <= 40 * bytes.size() + 4096;
}

} // namespace

TEST_CASE("no beginning of a mail is a mail, and none does harm", "[hostile mail]") {
  for (const auto& whole : one_of_each(5)) {
    REQUIRE(fuzz::is_mail(whole));
    for (std::size_t size = 0; size < whole.size(); ++size)
      REQUIRE_FALSE(fuzz::is_mail(std::span{whole}.first(size)));
  }
}

TEST_CASE("bytes behind a mail are refused", "[hostile mail]") {
  for (auto whole : one_of_each(6)) {
    whole.resize(whole.size() + 8);
    REQUIRE_FALSE(fuzz::is_mail(whole));
  }
}

TEST_CASE("flipped bits make another mail, or none", "[hostile mail]") {
  dice random{7};
  int decoded = 0;
  int refused = 0;
  for (unsigned seed = 0; seed < 4; ++seed)
    for (const auto& whole : one_of_each(seed))
      for (int trial = 0; trial < 100; ++trial) {
        auto bytes = whole;
        for (int flips = random.number(1, 4); flips > 0; --flips)
          bytes[static_cast<std::size_t>(
            random.number(1, static_cast<int>(bytes.size()) - 1))] ^=
            static_cast<unsigned char>(1 << random.number(0, 7));
        REQUIRE(takes_little(bytes));
        ++(fuzz::is_mail(bytes) ? decoded : refused);
      }
  CHECK(decoded > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("bytes of any values make no mail, and do no harm", "[hostile mail]") {
  dice random{8};
  for (int trial = 0; trial < 5000; ++trial) {
    input bytes(static_cast<std::size_t>(1 + 8 * random.number(0, 40)));
    for (auto& b : bytes)
      b = static_cast<unsigned char>(random.number(0, 255));
    if (bytes.size() > 8 && random.coin()) // one segment, of the right size
      for (std::size_t i = 0; i < 8; ++i)
        bytes[1 + i] = i == 4 ? static_cast<unsigned char>(bytes.size() / 8 - 1) : 0;
    fuzz::is_mail(bytes);
    REQUIRE(takes_little(bytes));
  }
}

// Pointers of a message that are invalid, or point to much more than there is. In a
// list pointer the element size is in bits 32 to 34, and the count above. In a struct
// pointer the counts are of words and pointers.
TEST_CASE("no lie about a length takes memory", "[hostile mail]") {
  std::vector<std::uint64_t> lies{~std::uint64_t{0},
                                  0,
                                  0xffff'ffff'0000'0000,
                                  0x0000'0000'ffff'fffc,
                                  0x0000'ffff'0000'0000,
                                  0xffff'0000'0000'0000,
                                  2,
                                  0xffff'ffff'0000'0002,
                                  0x0000'0000'0000'0006,
                                  3,
                                  0xffff'ffff'0000'0003};
  for (std::uint64_t size = 0; size < 8; ++size)
    for (const std::uint64_t count : {1U, 100U, 100000U, 0x1fffffffU})
      for (const std::uint64_t offset : {0x00000000U, 0x00000004U, 0xfffffffcU})
        lies.push_back(count << 35 | size << 32 | offset | 1);
  int refused = 0;
  for (const auto& whole : one_of_each(9)) {
    if (whole.size() > 2000)
      continue;
    for (std::size_t word = 1; word + 8 <= whole.size(); word += 8)
      for (const auto lie : lies) {
        auto bytes = whole;
        std::memcpy(&bytes[word], &lie, sizeof lie);
        REQUIRE(takes_little(bytes));
        refused += !fuzz::is_mail(bytes);
      }
  }
  CHECK(refused > 10000);
}

TEST_CASE("a long mail whose lists are of nothing takes no memory", "[hostile mail]") {
  // 100,000 words, and a list of as many actions of no size.
  dice random{10};
  auto bytes =
    wire::encode({{}, mail::samples{1, std::vector<measured_action>(12500)}, {}});
  bytes.insert(bytes.begin(), 0);
  for (std::size_t word = 1; word < 400; word += 8)
    for (const std::uint64_t count : {100'000U, 400'000U, 1'600'000U, 0x1fffffffU}) {
      auto lying = bytes;
      const std::uint64_t lie = count << 35 | 1;
      std::memcpy(&lying[word], &lie, sizeof lie);
      REQUIRE(takes_little(lying));
    }
}

TEST_CASE("what fuzzing has found interesting does no harm", "[hostile mail]") {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator{TROUPE_CORPUS "/codec"}) {
    std::ifstream file{entry.path(), std::ios::binary};
    const input bytes{std::istreambuf_iterator<char>{file}, {}};
    INFO(entry.path());
    REQUIRE_NOTHROW(fuzz::is_mail(bytes));
    REQUIRE((bytes.empty() || takes_little(bytes)));
    ++files;
  }
  CHECK(files > 50);
}

} // namespace troupe::hostile_mail_test
