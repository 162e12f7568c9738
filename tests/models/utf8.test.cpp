// SPDX-License-Identifier: BSD-3-Clause
#include "models/utf8.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace troupe::utf8_test {

namespace {

const std::string replaced = "\xef\xbf\xbd"; // U+FFFD

} // namespace

TEST_CASE("text from outside becomes UTF-8", "[utf8]") {
  CHECK(utf8("").empty());
  CHECK(utf8("plain \"text\" with \\ and\nlines")
        == "plain \"text\" with \\ and\nlines");
  CHECK(utf8("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80")
        == "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(utf8("caf\xe9.bin") == "caf" + replaced + ".bin"); // Latin-1
  CHECK(utf8("cut short \xe2\x82") == "cut short " + replaced);
  CHECK(utf8("\xff") == replaced);
  const std::string zero{"a\0b", 3};
  CHECK(utf8(zero) == zero);
}

TEST_CASE("JSON of text from outside is read again, keys too", "[utf8]") {
  const nlohmann::json bad{{"caf\xe9", "na\xefve"}};
  const auto good = nlohmann::json{{"caf" + replaced, "na" + replaced + "ve"}};
  CHECK(nlohmann::json::parse(json_text(bad)) == good);
  CHECK(nlohmann::json::parse(json_text(bad, 2)) == good);
  CHECK(json_text(good, 1) == good.dump(1));
  nlohmann::ordered_json ordered;
  ordered["z"] = "\xe9";
  ordered["a"] = 1;
  CHECK(json_text(ordered) == R"({"z":")" + replaced + R"(","a":1})");
}

} // namespace troupe::utf8_test
