// SPDX-License-Identifier: BSD-3-Clause
// Frames between processes: each arrives as sent, or the link ends with a reason.

#include "messaging/links/tensor_links.hpp"

#include "tests/dice.hpp"
#include "tests/messaging/stream_ends.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>

namespace troupe::switchboard_test {

using Catch::Matchers::ContainsSubstring;

namespace {

const session_id our_run{{11, 22}, 3};

/// A frame as received: payloads go to parts of 1,000 bytes.
struct frame_that_came {
  std::vector<unsigned char> text;
  std::vector<std::byte> payload;
};

class keeper : public frame_receiver {
public:
  tl::expected<areas, std::string> place(int, frame_kind,
                                         std::span<const unsigned char> text,
                                         std::uint64_t bytes) override {
    next_ = {{text.begin(), text.end()}, std::vector<std::byte>(bytes)};
    areas result;
    for (std::span rest{next_.payload}; !rest.empty();) {
      const auto part = rest.first(std::min<std::size_t>(rest.size(), 1000));
      result.push_back(part);
      rest = rest.subspan(part.size());
    }
    return result;
  }

  std::string deliver(int) override {
    {
      const std::lock_guard guard{lock_};
      came_.push_back(std::move(next_));
    }
    news_.notify_all();
    return {};
  }

  void lost(int, const std::string& why) override {
    {
      const std::lock_guard guard{lock_};
      lost_ = why;
    }
    news_.notify_all();
  }

  std::vector<frame_that_came> wait_for(std::size_t count) {
    std::unique_lock guard{lock_};
    news_.wait_for(guard, std::chrono::seconds{20},
                   [&] { return came_.size() >= count || !lost_.empty(); });
    return came_;
  }

  std::string wait_for_loss() {
    std::unique_lock guard{lock_};
    news_.wait_for(guard, std::chrono::seconds{20}, [&] { return !lost_.empty(); });
    return lost_;
  }

private:
  std::mutex lock_;
  std::condition_variable news_;
  frame_that_came next_;
  std::vector<frame_that_came> came_;
  std::string lost_;
};

constexpr std::uint64_t most_bytes = 1 << 20;

outgoing_frame frame_of(std::vector<unsigned char> text, std::size_t bytes) {
  const auto payload = std::make_shared<std::vector<std::byte>>(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    (*payload)[i] = static_cast<std::byte>(i * 7 + bytes);
  outgoing_frame result{.text = std::move(text)};
  const auto half = bytes / 3;
  result.payload.push_back({std::span{*payload}.first(half), payload});
  result.payload.push_back({std::span{*payload}.subspan(half), payload});
  return result;
}

/// The bytes of a frame on the wire.
std::vector<std::byte> wire_bytes_of(std::size_t payload,
                                     const session_id& of = our_run) {
  auto sockets = local_sockets();
  keeper nobody;
  tensor_link link{1, plain_stream(std::move(sockets.client)), of, most_bytes, nobody};
  link.add(frame_of({1, 2, 3}, payload));
  REQUIRE(link.write().empty());
  std::vector<std::byte> result(64 + 3 + payload);
  REQUIRE(read(sockets.server.get(), result.data(), result.size())
          == static_cast<ssize_t>(result.size()));
  return result;
}

/// Writes bytes to a link that reads, and closes the connection. Returns the reason
/// with which the link ended.
std::string end_after(const std::vector<std::byte>& bytes, keeper& reader) {
  auto sockets = local_sockets();
  tensor_links all{our_run, most_bytes, reader};
  all.add(1, plain_stream(std::move(sockets.server)));
  REQUIRE(write(sockets.client.get(), bytes.data(), bytes.size())
          == static_cast<ssize_t>(bytes.size()));
  sockets.client = {};
  return reader.wait_for_loss();
}

} // namespace

TEST_CASE("frames come whole and in order, both ways at once", "[links]") {
  auto sockets = tcp_sockets();
  keeper here, there;
  tensor_links ours{our_run, most_bytes, here}, theirs{our_run, most_bytes, there};
  ours.add(2, plain_stream(std::move(sockets.client)));
  theirs.add(1, plain_stream(std::move(sockets.server)));
  constexpr int count = 60;
  const auto size_of = [](int i) {
    return static_cast<std::size_t>(i % 3 == 0 ? i * 9000 : i);
  };
  for (int i = 0; i < count; ++i) {
    ours.send(2, frame_of({static_cast<unsigned char>(i)}, size_of(i)));
    theirs.send(1, frame_of({}, size_of(count - i)));
  }
  const auto at_there = there.wait_for(count), at_here = here.wait_for(count);
  REQUIRE(at_there.size() == count);
  REQUIRE(at_here.size() == count);
  for (int i = 0; i < count; ++i) {
    const auto n = static_cast<std::size_t>(i);
    CHECK(at_there[n].text == std::vector{static_cast<unsigned char>(i)});
    CHECK(at_there[n].payload
          == *std::static_pointer_cast<const std::vector<std::byte>>(
            frame_of({}, size_of(i)).payload.front().keeps));
    CHECK(at_here[n].payload.size() == size_of(count - i));
  }
}

TEST_CASE("a frame that is damaged anywhere ends the link, and is not delivered",
          "[links]") {
  const auto whole = wire_bytes_of(500);
  for (std::size_t at = 0; at < whole.size(); at += at < 70 ? 1 : 97) {
    auto damaged = whole;
    damaged[at] ^= std::byte{4};
    keeper reader;
    INFO("byte " << at);
    CHECK_FALSE(end_after(damaged, reader).empty());
    CHECK(reader.wait_for(0).empty());
  }
}

TEST_CASE("a frame that is cut off anywhere is not delivered", "[links]") {
  const auto whole = wire_bytes_of(500);
  for (std::size_t size = 0; size < whole.size(); size += size < 70 ? 1 : 97) {
    keeper reader;
    CHECK_THAT(end_after({whole.begin(), whole.begin() + std::ptrdiff_t(size)}, reader),
               ContainsSubstring("closed the connection"));
    CHECK(reader.wait_for(0).empty());
  }
}

TEST_CASE(
  "frames of another run end the link, those of an older generation are dropped",
  "[links]") {
  SECTION("another run") {
    keeper reader;
    CHECK_THAT(end_after(wire_bytes_of(10, {{11, 23}, 3}), reader),
               ContainsSubstring("another run"));
  }
  SECTION("a later generation") {
    keeper reader;
    CHECK_THAT(end_after(wire_bytes_of(10, {{11, 22}, 4}), reader),
               ContainsSubstring("another run"));
  }
  SECTION("an older generation") {
    keeper reader;
    auto sockets = local_sockets();
    auto old = wire_bytes_of(10, {{11, 22}, 2});
    auto next = wire_bytes_of(200);
    frame_header header;
    std::memcpy(&header, next.data(), sizeof header);
    header.sequence = 1;
    header.header_checksum = checksum_of(header);
    std::memcpy(next.data(), &header, sizeof header);
    old.insert(old.end(), next.begin(), next.end());
    tensor_links all{our_run, most_bytes, reader};
    all.add(1, plain_stream(std::move(sockets.server)));
    REQUIRE(write(sockets.client.get(), old.data(), old.size()) > 0);
    sockets.client = {};
    CHECK_THAT(reader.wait_for_loss(), ContainsSubstring("closed"));
    all.close();
    CHECK(all.stale() == 1);
    REQUIRE(reader.wait_for(1).size() == 1); // later frames are whole
    CHECK(reader.wait_for(1).front().payload.size() == 200);
  }
}

TEST_CASE("a frame larger than what is allowed is refused before memory is taken",
          "[links]") {
  auto bytes = wire_bytes_of(8);
  frame_header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool text = GENERATE(true, false);
  if (text)
    header.text_bytes = 0xffffffff;
  else
    header.payload_bytes = 0xffffffff;
  header.header_checksum = checksum_of(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  keeper reader;
  CHECK_THAT(end_after(bytes, reader), ContainsSubstring("too large"));
}

TEST_CASE("a repeated or missing frame ends the link", "[links]") {
  const auto one = wire_bytes_of(8);
  auto twice = one;
  twice.insert(twice.end(), one.begin(), one.end());
  keeper reader;
  CHECK_THAT(end_after(twice, reader), ContainsSubstring("frame 1 is missing"));
  CHECK(reader.wait_for(1).size() == 1);
}

} // namespace troupe::switchboard_test
