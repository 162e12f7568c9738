// SPDX-License-Identifier: BSD-3-Clause
// Control lines: frames that are damaged, repeated or missing, on one line and in whole
// runs.

#include "actors/nodes/control_lines.hpp"

#include "actors/checkpoints/gathered_state.hpp"
#include "actors/nodes/receive_queue.hpp"
#include "tests/actors/nodes.hpp"
#include "tests/actors/slow_relay.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/dice.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::control_lines_test {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

using frame_bytes = std::vector<unsigned char>;

frame_bytes frame_of(std::uint64_t sequence, const wire::node_message& mail) {
  const auto text = wire::encode(mail);
  const auto header = header_of(control_kind::node, 0, sequence, text);
  frame_bytes result(sizeof header + text.size());
  std::memcpy(result.data(), &header, sizeof header);
  std::memcpy(result.data() + sizeof header, text.data(), text.size());
  return result;
}

/// The events that a line's listener receives: a message, or the reason of the line's
/// end.
using news = std::variant<wire::node_message, std::string>;

/// A control line whose other end is a socket of the test's own.
class open_line {
public:
  explicit open_line(control_lines& lines) {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    other_ = socket_descriptor{ends[1]};
    line = lines.add(socket_descriptor{ends[0]},
                     {.received =
                        [this](const control_frame& frame) {
                          all_.put(*wire::decode_node_message(frame.text));
                        },
                      .ended =
                        [this](const std::string& why) {
                          if (answer)
                            line->send(*answer);
                          all_.put(why);
                        }});
  }
  ~open_line() { line->close(); }
  open_line(const open_line&) = delete;
  open_line& operator=(const open_line&) = delete;

  void say(const frame_bytes& bytes) const {
    (void)send(other_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  /// All bytes that come before the line is closed.
  frame_bytes heard() const {
    frame_bytes result;
    std::array<unsigned char, 4096> some{};
    for (ssize_t count = 1; count > 0;) {
      count = recv(other_.get(), some.data(), some.size(), 0);
      result.insert(result.end(), some.begin(),
                    some.begin() + std::max<ssize_t>(count, 0));
    }
    return result;
  }

  news next() {
    auto one = all_.take(10s);
    REQUIRE(one);
    return std::move(*one);
  }

  /// The reason of the line's end. \pre no message comes before that
  std::string end() {
    auto one = next();
    REQUIRE(std::holds_alternative<std::string>(one));
    return std::get<std::string>(one);
  }

  std::shared_ptr<control_line> line;
  std::optional<wire::node_message> answer; ///< Sent when the line ends.

private:
  socket_descriptor other_;
  receive_queue<news> all_;
};

/// Changes the frames of control lines in one direction; other bytes pass.
class frame_changer {
public:
  /// \param change receives a whole frame, returns the frame to send
  frame_changer(bool to_node, std::function<frame_bytes(frame_bytes)> change)
    : greeting_(to_node ? sizeof(greeting) : 0), change_(std::move(change)) {
    // nop
  }

  std::vector<char> operator()(std::vector<char> bytes) {
    if (passes_)
      return bytes;
    kept_.insert(kept_.end(), bytes.begin(), bytes.end());
    std::vector<char> result;
    if (kept_.size() < greeting_)
      return result;
    take(result, std::exchange(greeting_, 0));
    while (kept_.size() >= sizeof(control_header)) {
      control_header header;
      std::memcpy(&header, kept_.data(), sizeof header);
      passes_ = header.magic != control_header::right_magic;
      const auto size = passes_ ? kept_.size() : sizeof header + header.text_bytes;
      if (kept_.size() < size)
        break;
      if (passes_) {
        take(result, size);
        break;
      }
      frame_bytes frame;
      take(frame, size);
      frame = change_(std::move(frame));
      result.insert(result.end(), frame.begin(), frame.end());
    }
    return result;
  }

private:
  /// Moves the first kept bytes to the end of others.
  template <class Bytes>
  void take(Bytes& to, std::size_t count) {
    const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(count);
    to.insert(to.end(), kept_.begin(), end);
    kept_.erase(kept_.begin(), end);
  }

  std::size_t greeting_; // bytes of the greeting that have not passed
  bool passes_ = false;  // a tensor link
  std::function<frame_bytes(frame_bytes)> change_;
  std::vector<char> kept_; // of a frame that is incomplete
};

/// A run whose shards exchange parts of the gradients' norm by control lines.
run_plan clipped() {
  return tiny::training_on({.data = 2, .exchange = "zero1", .clips = true},
                           one_f_one_b(), {2, 4, 3}, clock_kind::real);
}

} // namespace

TEST_CASE("a control frame that is damaged anywhere ends the line with that reason",
          "[nodes]") {
  control_lines lines;
  dice random{7};
  const auto right = frame_of(0, mail::lost_node{3, "why"});
  for (std::size_t byte = 0; byte < right.size(); ++byte) {
    open_line at{lines};
    auto frame = right;
    frame[byte] ^= static_cast<unsigned char>(1 << random.number(0, 7));
    at.say(frame);
    at.say(frame_of(1, mail::ready{})); // is not delivered
    const auto why = at.end();
    INFO("byte " << byte << ": " << why);
    const bool in_magic = byte < sizeof(control_header::magic);
    CHECK((why.find(in_magic ? "troupe's protocol" : "damaged on the way")
           != std::string::npos));
  }
}

TEST_CASE("a line of another protocol ends at its first bytes", "[nodes]") {
  control_lines lines;
  open_line at{lines};
  at.say({'S', 'S', 'H', '-', '2'}); // and nothing more before an answer
  CHECK(at.end() == "it does not use troupe's protocol");
}

TEST_CASE("a control frame counts once, and none is missing", "[nodes]") {
  control_lines lines;
  open_line at{lines};
  const auto first = frame_of(0, mail::lost_node{1, ""}),
             second = frame_of(1, mail::lost_node{2, ""});
  for (const auto& frame : {first, first, second, first, second})
    at.say(frame);
  at.say(frame_of(3, mail::ready{}));
  for (const int node : {1, 2}) {
    const auto one = at.next();
    REQUIRE(std::holds_alternative<wire::node_message>(one));
    CHECK(std::get<mail::lost_node>(std::get<wire::node_message>(one)).node == node);
  }
  CHECK(at.end() == "control frame 2 is missing");
}

TEST_CASE("who ends a line for damage can say so, and a closed line has no reason",
          "[nodes]") {
  control_lines lines;
  open_line at{lines};
  at.answer = mail::refused{"it was damaged", true};
  auto frame = frame_of(0, mail::ready{});
  frame.back() ^= 1;
  at.say(frame);
  CHECK_THAT(at.end(), ContainsSubstring("damaged"));
  CHECK(at.heard() == frame_of(0, *at.answer));
}

TEST_CASE("control frames that come twice change no bit of a run", "[nodes]") {
  auto plan = clipped();
  const auto whole = perform(plan);
  plan.copies.evaluate_every = plan.copies.checkpoint_every = 1;
  nodes_here there{plan, 2};
  const auto twice = [](frame_bytes frame) {
    const auto again = frame;
    frame.insert(frame.end(), again.begin(), again.end());
    return frame;
  };
  const auto relays =
    relays_before(there.reached_by().nodes, 0ms, [&](bool to_node) -> byte_changer {
      return frame_changer{to_node, twice};
    });
  std::vector<int> evaluated;
  const auto result = there.perform(
    plan, {.evaluate = [&](int batches, const auto&) { evaluated.push_back(batches); },
           .save = [](const training_copies&) {}});
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  CHECK(result.parameters == whole.parameters);
  CHECK(result.loss == whole.loss);
  CHECK(evaluated == std::vector{1, 2, 3});
}

TEST_CASE("a run whose control frames are damaged ends with that reason", "[nodes]") {
  const int seed = GENERATE(range(0, 6));
  dice random{static_cast<unsigned>(seed)};
  const auto plan = clipped();
  nodes_here there{plan, 2};
  there.reached_by().failure_timeout = 5s;     // sanitizers start slowly
  std::atomic<int> left = random.number(1, 8); // frames of actors that pass
  const auto bit = random.number(0, 1 << 20);
  const auto relays =
    relays_before(there.reached_by().nodes, 0ms, [&](bool to_node) -> byte_changer {
      return frame_changer{to_node, [&](frame_bytes frame) {
                             control_header header;
                             std::memcpy(&header, frame.data(), sizeof header);
                             if (header.kind == control_kind::actors && --left == 0) {
                               const auto text = frame.size() - sizeof header;
                               const auto at =
                                 static_cast<std::size_t>(bit) % (8 * text);
                               frame[sizeof header + at / 8] ^=
                                 static_cast<unsigned char>(1 << at % 8);
                             }
                             return frame;
                           }};
    });
  const auto result = there.perform(plan);
  CHECK(result.outcome == ending::failed);
  CHECK_THAT(result.failure,
             ContainsSubstring("a control frame was damaged on the way"));
}

} // namespace troupe::control_lines_test
