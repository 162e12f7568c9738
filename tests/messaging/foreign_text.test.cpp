// SPDX-License-Identifier: BSD-3-Clause
// Texts that come from other processes, and that this process prints.

#include "messaging/wire/codec.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <variant>

namespace troupe::foreign_text_test {

namespace {

/// A reason as the receiver decodes it.
std::string received(const std::string& why) {
  const auto frame = wire::encode(wire::node_message{mail::refused{why}});
  return std::get<mail::refused>(*wire::decode_node_message(frame)).why;
}

std::string received_in_lines(const std::string& at_work) {
  mail::beat sent;
  sent.at_work = at_work;
  return std::get<mail::beat>(
           *wire::decode_node_message(wire::encode(wire::node_message{sent})))
    .at_work;
}

} // namespace

TEST_CASE("a text of another process is printed as it is if it commands nothing",
          "[foreign_text]") {
  for (const std::string plain :
       {"", "it is busy with another run", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac 5",
        "\xf0\x9f\x98\x80", "\xc2\xa0"})
    CHECK(received(plain) == plain);
  CHECK(received_in_lines("rank 0\nrank 1") == "rank 0\nrank 1");
}

TEST_CASE("a text of another process commands no terminal", "[foreign_text]") {
  CHECK(received("\x1b[2J\x1b]0;owned\a") == "\\x1b[2J\\x1b]0;owned\\x07");
  CHECK(received("over\ntroupe: saved\r\t") == "over\\x0atroupe: saved\\x0d\\x09");
  CHECK(received_in_lines("a\n\x1b[31m\b") == "a\n\\x1b[31m\\x08");
  CHECK(received("\xc2\x9b"
                 "5m")
        == "\\xc2\\x9b5m"); // C1's CSI
  CHECK(received("\x9b"
                 "5m")
        == "\\x9b5m");
  CHECK(received("\xe2\x80\xae"
                 "gnp")
        == "\\xe2\\x80\\xaegnp");              // reverses the line's direction
  CHECK(received("\xff\xc3") == "\\xff\\xc3"); // no UTF-8
  CHECK(received("\xc0\x9b\xed\xa0\x80") == "\\xc0\\x9b\\xed\\xa0\\x80");
  CHECK(received("a\x7f") == "a\\x7f");
}

TEST_CASE("a text of another process is bounded", "[foreign_text]") {
  const auto printed = received(std::string(200'000, 'x'));
  CHECK(printed.size() <= 4'000);
  CHECK(received(printed) == printed); // a text that is forwarded again stays unchanged
  CHECK(printed.ends_with("xx.. (200000 bytes)"));
  CHECK(received(std::string(100'000, '\x1b')).size() < 5'000);
  CHECK(received_in_lines(std::string(100'000, '\n')).size() < 5'000);
  CHECK(received(std::string(3'000, 'x')) == std::string(3'000, 'x'));
}

TEST_CASE("options are received as they were sent", "[foreign_text]") {
  mail::prepare sent;
  sent.options = "{\"data\": \"\x1b\n\"" + std::string(50'000, ' ') + "}";
  const auto got = wire::decode_node_message(wire::encode(wire::node_message{sent}));
  CHECK(std::get<mail::prepare>(*got).options == sent.options);
}

} // namespace troupe::foreign_text_test
