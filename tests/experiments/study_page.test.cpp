// SPDX-License-Identifier: BSD-3-Clause
// Tests that the page of a study holds its numbers, whatever their names are.

#include "experiments/report/study_page.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace troupe::study_page_test {

using nlohmann::json;

TEST_CASE("the page of a study holds the numbers that it is given", "[page]") {
  const json hostile{
    {"command", {"study", "</script>", "<!-- <script>"}},
    {"runs", {{{"schedule", "x:</ScRiPt><!--"}, {"options", {{"<!--", "</"}}}}}},
    {"summary", {{{"mean", 0.1}}}}};
  const auto page = study_page(hostile.dump());
  const std::string begin = R"(<script type="application/json" id="data">)";
  const auto from = page.find(begin);
  REQUIRE(from != std::string::npos);
  const auto data = from + begin.size();
  const auto text = page.substr(data, page.find("</script>", data) - data);
  CHECK(json::parse(text) == hostile);
  CHECK(text.find("</") == std::string::npos);
  CHECK(text.find("<!--") == std::string::npos);
  CHECK(page.find("@page_") == std::string::npos);
  // The page needs no other file, and a browser lets the page load none.
  CHECK(page.find("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
                  "'unsafe-inline'\"")
        != std::string::npos);
  CHECK(page.find("<link") == std::string::npos);
  CHECK(page.find("src=") == std::string::npos);
}

} // namespace troupe::study_page_test
