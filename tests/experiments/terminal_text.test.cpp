// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/terminal_text.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>

namespace troupe::terminal_text_test {

namespace {

std::string shown(const std::string& text) {
  std::string result;
  terminal_text told;
  for (const unsigned char byte : text)
    result += told(byte);
  return result;
}

} // namespace

TEST_CASE("a text is shown on a terminal, and does not command it", "[terminal_text]") {
  for (const char* plain : {"To be,\n\tor not", "gr\xc3\xbc\xc3\x9f", "\xc3\x80 la",
                            "\xe2\x82\xac 5", "\xf0\x9f\x98\x80", "\xc2\xa0"})
    CHECK(shown(plain) == plain);
  CHECK(shown("\x1b[31mA") == "\\x1b[31mA");
  CHECK(shown("a\rb\bc\a\x7f") == "a\\x0db\\x08c\\x07\\x7f");
  CHECK(shown("\xc2\x9b"
              "5m")
        == "\xc2\\x9b5m"); // C1's CSI, in UTF-8
  CHECK(shown("a\x9b"
              "5m")
        == "a\\x9b5m"); // and as a single byte
  CHECK(shown("a\x9b\x9b"
              "31mX")
        == "a\\x9b\\x9b31mX"); // after an escaped byte
  CHECK(shown("a\xb6\x9b"
              "1m")
        == "a\xb6\\x9b1m"); // after a stray byte
  CHECK(shown("\xe2\x82"
              "A\x9b")
        == "\xe2\x82"
           "A\\x9b");                              // of a truncated character
  CHECK(shown("\xc3\x80\x80") == "\xc3\x80\\x80"); // one byte too many
  CHECK(shown(std::string{'\0', 'a'}) == "\\x00a");
}

} // namespace troupe::terminal_text_test
