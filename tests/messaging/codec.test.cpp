// SPDX-License-Identifier: BSD-3-Clause
// Messages as bytes, and decoded again.

#include "messaging/wire/codec.hpp"

#include "tests/messaging/some_mail.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::codec_test {

namespace {

bool same_journey(const wire::addressed_message& sent,
                  const wire::addressed_message& came) {
  return sent.to == came.to && sent.tensors == came.tensors
         && some_mail::same(sent.message, came.message);
}

mail::meeting_message letter_with(mail::meeting_message::content what) {
  return {.to = {role::stage, {0, 0, 0}},
          .meeting = meeting_kind::sums,
          .body = std::move(what)};
}

using bytes_of_mail = std::vector<unsigned char>;

bool read_all(int from, void* to, std::size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const auto n = ::read(from, at, bytes);
    if (n <= 0)
      return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

/// A frame: first the size, then the bytes.
std::optional<bytes_of_mail> read_frame(int from) {
  std::uint32_t size = 0;
  if (!read_all(from, &size, sizeof size))
    return {};
  bytes_of_mail result(size);
  return read_all(from, result.data(), size) ? std::optional{result} : std::nullopt;
}

bool write_frame(int to, const bytes_of_mail& all) {
  const auto size = static_cast<std::uint32_t>(all.size());
  bytes_of_mail frame(sizeof size);
  std::memcpy(frame.data(), &size, sizeof size);
  frame.insert(frame.end(), all.begin(), all.end());
  return ::send(to, frame.data(), frame.size(), MSG_NOSIGNAL) == std::ssize(frame);
}

/// A process that decodes each message and encodes the result again.
class other_process {
public:
  other_process() {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    here_ = ends[0];
    child_ = fork();
    if (child_ == 0) {
      close(ends[0]);
      answer(ends[1]);
    }
    close(ends[1]);
    REQUIRE(child_ > 0);
  }
  ~other_process() {
    close(here_);
    int status = 0;
    waitpid(child_, &status, 0);
    CHECK(status == 0);
  }
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;

  /// \param of kind of message: of actors, or of nodes
  bytes_of_mail say_again(bytes_of_mail mail, char of) const {
    mail.insert(mail.begin(), static_cast<unsigned char>(of));
    REQUIRE(write_frame(here_, mail));
    auto answer = read_frame(here_);
    REQUIRE(answer);
    return std::move(*answer);
  }

private:
  [[noreturn]] static void answer(int socket) {
    bool right = true;
    try {
      while (const auto heard = read_frame(socket)) {
        const auto mail = std::span{*heard}.subspan(1);
        right = right
                && write_frame(
                  socket, heard->front() == 'a'
                            ? wire::encode(wire::decode_actor_message(mail).value())
                            : wire::encode(wire::decode_node_message(mail).value()));
      }
    } catch (const std::exception&) {
      right = false;
    }
    _exit(right ? 0 : 1);
  }

  int here_ = -1;
  pid_t child_ = -1;
};

wire::addressed_message failed_mail() {
  return {.to = {}, .message = mail::failed{"why"}};
}

} // namespace

TEST_CASE("every mail of actors comes as it was sent", "[codec]") {
  dice random{1};
  std::set<std::size_t> kinds;
  for (int round = 0; round < 200; ++round)
    for (const auto& sent : some_mail::one_of_each(random)) {
      kinds.insert(sent.message.index());
      const auto came = wire::decode_actor_message(wire::encode(sent));
      INFO("alternative " << sent.message.index());
      REQUIRE(came);
      REQUIRE(same_journey(sent, *came));
    }
  CHECK(kinds.size() == std::variant_size_v<wire::actor_message>);
}

// Each message decoded and encoded by another process. Values include infinities, NaN,
// -0 and denormals, which the serialisation of CAF 0.17.6 breaks.
TEST_CASE("every mail keeps its bits through another process", "[codec]") {
  const other_process there;
  dice random{5};
  for (int round = 0; round < 20; ++round) {
    for (const auto& sent : some_mail::one_of_each(random)) {
      const auto came =
        wire::decode_actor_message(there.say_again(wire::encode(sent), 'a'));
      INFO("alternative " << sent.message.index());
      REQUIRE(came);
      REQUIRE(same_journey(sent, *came));
    }
    for (const auto& sent : some_mail::each_of<wire::node_message>(random)) {
      const auto came =
        wire::decode_node_message(there.say_again(wire::encode(sent), 'n'));
      INFO("alternative " << sent.index() << " of nodes");
      REQUIRE(came);
      REQUIRE(some_mail::same(sent, *came));
    }
  }
}

TEST_CASE("every mail of nodes comes as it was sent", "[codec]") {
  dice random{2};
  for (int round = 0; round < 200; ++round)
    for (const auto& sent : some_mail::each_of<wire::node_message>(random)) {
      const auto came = wire::decode_node_message(wire::encode(sent));
      INFO("alternative " << sent.index());
      REQUIRE(came);
      REQUIRE(some_mail::same(sent, *came));
    }
}

TEST_CASE("times may lie before the run's start", "[codec]") {
  const wire::node_message sent = mail::clock_probe{-5, -(std::int64_t{1} << 61)};
  CHECK(some_mail::same(sent, wire::decode_node_message(wire::encode(sent)).value()));
}

TEST_CASE("many samples come as they were sent", "[codec]") {
  dice random{3};
  mail::samples all{.rank = 3, .actions = std::vector<measured_action>(1000)};
  for (auto& s : all.actions)
    some_mail::fill(s, random);
  const wire::addressed_message sent{.to = {}, .message = all, .tensors = {}};
  const auto bytes = wire::encode(sent);
  CHECK(bytes.size() < 1000 * 72 + 200);
  CHECK(same_journey(sent, wire::decode_actor_message(bytes).value()));
}

TEST_CASE("a mail may lie at any address", "[codec]") {
  dice random{4};
  for (const auto& sent : some_mail::one_of_each(random)) {
    const auto bytes = wire::encode(sent);
    for (std::size_t shift = 0; shift < 8; ++shift) {
      std::vector<unsigned char> room(bytes.size() + shift);
      std::copy(bytes.begin(), bytes.end(),
                room.begin() + static_cast<std::ptrdiff_t>(shift));
      const auto came = wire::decode_actor_message(std::span{room}.subspan(shift));
      REQUIRE(came);
      REQUIRE(same_journey(sent, *came));
    }
  }
}

TEST_CASE("letters that never leave their rank are not sent", "[codec]") {
  const auto why = [](mail::meeting_message::content what) -> std::string {
    try {
      wire::actor_message letter = letter_with(std::move(what));
      wire::encode({.to = {},
                    .message = letter,
                    .tensors = std::vector<std::int64_t>(wire::tensor_count(letter))});
    } catch (const std::logic_error& e) {
      return e.what();
    }
    return "sent";
  };
  CHECK(why(mail::bucket_ready{}) == "bucket_ready never leaves its rank");
  CHECK(why(mail::update_request{}) == "update_request never leaves its rank");
  CHECK(why(mail::updated{}) == "updated never leaves its rank");
  CHECK(why(mail::version_there{}) == "version_there never leaves its rank");
  CHECK(why(mail::push{}) == "push never leaves its rank");
  CHECK(why(mail::pulled{}) == "pulled never leaves its rank");
  CHECK(why(mail::sum_over{}) == "sum_over never leaves its rank");
  CHECK(why(mail::rows_to_expert{}) == "sent");
  CHECK(why(mail::rows_to_expert{.loan = mail::lent_arrays{}})
        == "rows_to_expert with a loan never leaves its rank");
}

TEST_CASE("tensors of a mail are found in its order", "[codec]") {
  mail::collected all{};
  all.parameters.resize(2);
  all.gradients.resize(1);
  wire::actor_message what = std::move(all);
  auto& in = std::get<mail::collected>(what);
  CHECK(
    wire::buffers_of(what)
    == std::vector<buffer*>{&in.parameters[0], &in.parameters[1], &in.gradients[0]});
  CHECK(wire::arrays_of(what).empty());

  mail::saved copies{.ages = {0, 2}};
  copies.versions.resize(2);
  copies.state.resize(1);
  what = std::move(copies);
  auto& saved = std::get<mail::saved>(what);
  CHECK(
    wire::buffers_of(what)
    == std::vector<buffer*>{&saved.versions[0], &saved.versions[1], &saved.state[0]});

  what = mail::version_made{{}, 1, {{1, 2}, {}}, {{3}}};
  auto& made = std::get<mail::version_made>(what);
  CHECK(wire::arrays_of(what)
        == std::vector<std::vector<float>*>{&made.parameters[0], &made.parameters[1],
                                            &made.gradients[0]});
  CHECK(wire::buffers_of(what).empty());
}

TEST_CASE("what a GPU is still to make stays in its process", "[codec]") {
  const auto made = std::make_shared<gpu_completion>();
  CHECK_NOTHROW(wire::encode({.to = {}, .message = activation{}, .tensors = {4}}));
  CHECK_THROWS_AS(
    wire::encode(
      {.to = {}, .message = activation{.pending_write = made}, .tensors = {4}}),
    std::logic_error);
  CHECK_THROWS_AS(
    wire::encode(
      {.to = {}, .message = gradient{.pending_write = made}, .tensors = {4}}),
    std::logic_error);
  const tensor_header call{.call = 0}; // by which another GPU receives the tensor
  CHECK_NOTHROW(
    wire::encode({.to = {}, .message = gradient{call, {}, made}, .tensors = {0}}));
}

TEST_CASE("a mail has as many sizes as tensors", "[codec]") {
  auto sent = failed_mail();
  sent.tensors = {4};
  CHECK_THROWS_AS(wire::encode(sent), std::logic_error);
  CHECK_THROWS_AS(wire::encode({.to = {}, .message = activation{}, .tensors = {}}),
                  std::logic_error);

  // The count of parameters follows from no other number: a count of 2 must not become
  // 3.
  mail::snapshot shown{.batches = 0x5a5a, .where = {0, 0, 0}, .parameters = {}};
  shown.parameters.resize(2);
  auto bytes = wire::encode({.to = {}, .message = shown, .tensors = {4, 8}});
  const unsigned char batches_and_count[] = {0x5a, 0x5a, 0, 0, 2, 0, 0, 0};
  const auto at = std::search(bytes.begin(), bytes.end(), std::begin(batches_and_count),
                              std::end(batches_and_count));
  REQUIRE(at != bytes.end());
  at[4] = 3;
  CHECK(wire::decode_actor_message(bytes).error()
        == "a message has 3 tensors, and the number of sizes is 2");
}

TEST_CASE("numbers that no sender says are refused by name", "[codec]") {
  const auto why = [](wire::actor_message what, std::vector<std::int64_t> sizes = {}) {
    const auto came =
      wire::decode_actor_message(wire::encode({{}, std::move(what), sizes}));
    return came ? "decoded" : came.error();
  };
  const auto begins = [](const std::string& all, const char* with) {
    return all.compare(0, std::strlen(with), with) == 0;
  };
  CHECK(why(mail::finished{-1}) == "a rank is -1, and must be from 0 to 1073741823");
  CHECK(why(mail::snapshot{1, {0, -2, 0}, {}})
        == "a direction is -2, and must be from 0 to 1073741823");
  CHECK(begins(why(mail::failed{}, {}), "decoded"));
  CHECK(begins(why(activation{}, {6}), "the bytes of a tensor are 6"));
  CHECK(begins(why(activation{}, {-4}), "the bytes of a tensor is -4"));
  CHECK(
    begins(why(activation{}, {(std::int64_t{1} << 40) + 4}), "the bytes of a tensor"));
  // The product of such numbers would overflow.
  activation many{};
  many.header.samples = many.header.values = std::int64_t{1} << 32;
  CHECK(begins(why(many, {0}), "values of a sample is 4294967296"));

  auto letter = letter_with(mail::clip_by{1, 1});
  letter.meeting = meeting_kind::user; // stays in this process; other kinds are unknown
  CHECK(why(letter) == "a meeting is 9, and must be from 0 to 8");
  letter.meeting = meeting_kind::norm;
  letter.kind = static_cast<traffic>(traffic_kinds);
  CHECK(why(letter) == "a kind of traffic is 7, and must be from 0 to 6");
  letter.kind = {};
  letter.to.kind = static_cast<role>(4);
  CHECK(why(letter) == "a role is 4, and must be from 0 to 3");
  CHECK(why(mail::samples{0, {{.action = {static_cast<op>(op_count), 0, 0, 0}}}})
        == "an op is 6, and must be from 0 to 5");
}

namespace {

/// A message of the older files: `a` for actors or `n` for nodes, and the bytes.
struct older_message {
  char kind;
  bytes_of_mail bytes;
};

/// The messages of the version before names were changed: a letter, a size of 4 bytes,
/// and the message.
std::vector<older_message> older_messages() {
  std::ifstream file{TROUPE_OLDER_FILES "/frames.bin", std::ios::binary};
  std::vector<older_message> result;
  for (char kind = 0; file.get(kind);) {
    std::uint32_t size = 0;
    REQUIRE(file.read(reinterpret_cast<char*>(&size), sizeof size));
    auto& bytes = result.emplace_back(older_message{kind, bytes_of_mail(size)}).bytes;
    REQUIRE(file.read(reinterpret_cast<char*>(bytes.data()), size));
  }
  return result;
}

/// The message without times without a processor, which the older messages do not have.
wire::addressed_message without_new_fields(wire::addressed_message message) {
  if (auto* sums = std::get_if<mail::sums>(&message.message))
    sums->totals.off_processor_time = 0;
  if (auto* samples = std::get_if<mail::samples>(&message.message))
    for (auto& s : samples->actions)
      s.off_processor_time = 0;
  return message;
}

/// True for a message with a struct that has more fields, and so more bytes, than the
/// older messages.
bool has_grown(const wire::addressed_message& message) {
  return std::holds_alternative<mail::samples>(message.message)
         || std::holds_alternative<mail::sums>(message.message);
}

} // namespace

TEST_CASE("messages of the version before names were changed keep their bytes",
          "[codec]") {
  const auto messages = older_messages();
  CHECK(messages.size() > 100);
  for (const auto& older : messages) {
    const std::span<const unsigned char> bytes{older.bytes};
    if (older.kind == 'n') {
      CHECK(wire::encode(wire::decode_node_message(bytes).value()) == older.bytes);
    } else if (const auto came = wire::decode_actor_message(bytes).value();
               !has_grown(came)) {
      CHECK(wire::encode(came) == older.bytes);
    }
  }
}

// The older messages are those of `some_mail` for the number 6. A new kind of message
// or a new field that draws a number changes what follows: then this test goes, and the
// one above stays.
TEST_CASE("messages of the version before names were changed keep their values",
          "[codec]") {
  const auto messages = older_messages();
  auto older = messages.begin();
  dice random{6};
  for (int round = 0; round < 3; ++round) {
    for (const auto& sent : some_mail::one_of_each(random)) {
      INFO("alternative " << sent.message.index());
      if (some_mail::is_new_kind(sent.message))
        continue;
      REQUIRE(older != messages.end());
      CHECK(same_journey(without_new_fields(sent),
                         wire::decode_actor_message((older++)->bytes).value()));
    }
    for (const auto& sent : some_mail::each_of<wire::node_message>(random)) {
      INFO("alternative " << sent.index() << " of nodes");
      REQUIRE(older != messages.end());
      CHECK(some_mail::same(sent, wire::decode_node_message((older++)->bytes).value()));
    }
  }
  CHECK(older == messages.end());
}

} // namespace troupe::codec_test
