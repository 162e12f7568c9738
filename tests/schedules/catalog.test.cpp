// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/catalog/catalog.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <limits>

namespace troupe::catalog_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

TEST_CASE("every entry of the catalog makes a schedule of its name", "[catalog]") {
  for (const auto& entry : catalog()) {
    const auto made = find_schedule(entry.name);
    REQUIRE(made.has_value());
    CHECK(made->name == entry.name);
    CHECK_FALSE(entry.summary.empty());
  }
}

TEST_CASE("parameters are set by name", "[catalog]") {
  CHECK(find_schedule("pipedream", {{"update_every", "3"}})->update_every == 3);
  CHECK(find_schedule("pipedream", {{"vertical_sync", "on"}})->weights.name
        == "vertical_sync");
  const auto busy =
    find_schedule("ampnet", {{"max_active_keys", "7"}, {"min_update_frequency", "2"}});
  CHECK(std::get<backward_first>(busy->order).max_active_keys == 7);
  CHECK(busy->update_every == 2);
}

TEST_CASE("what the catalog does not know is refused with what it knows", "[catalog]") {
  CHECK_THAT(find_schedule("pipedreem").error(),
             ContainsSubstring("no schedule 'pipedreem'")
               && ContainsSubstring("naive, gpipe, 1f1b, interleaved")
               && ContainsSubstring("zb-h1, zb-h2, zb-v")
               && ContainsSubstring("2bw, ampnet"));
  CHECK_THAT(find_schedule("gpipe", {{"depth", "3"}}).error(),
             ContainsSubstring("no parameter 'depth'")
               && ContainsSubstring("the schedule has no parameters"));
  CHECK_THAT(find_schedule("ampnet", {{"keys", "3"}}).error(),
             ContainsSubstring("max_active_keys, min_update_frequency"));
  for (const char* bad : {"0", "-1", "two", "1.5", "", "99999999999"})
    CHECK_THAT(find_schedule("pipedream", {{"update_every", bad}}).error(),
               ContainsSubstring("a whole number of at least 1"));
  CHECK_THAT(find_schedule("pipedream", {{"vertical_sync", "2"}}).error(),
             ContainsSubstring("on or off"));
}

TEST_CASE("numbers that no run could have are refused with the largest", "[catalog]") {
  CHECK_THAT(find_schedule("interleaved", {{"v", "1025"}}).error(),
             ContainsSubstring("at least 1 and at most 1024"));
  CHECK_THAT(find_schedule("hanayo", {{"waves", "99999999999"}}).error(),
             ContainsSubstring("at most 512"));
  const auto searched = zb_auto({{1, 1, 1}}, 0);
  CHECK(validation_error(searched, {512, 512}).empty());
  CHECK_THAT(validation_error(searched, {512, 513}), ContainsSubstring("262,144"));
  const auto most = std::numeric_limits<int>::max();
  CHECK(stages_on(placement::looped(1024), most) == most);
  CHECK_THAT(validation_error(gpipe(), {most, 1}),
             ContainsSubstring("at most 1,048,576"));
}

TEST_CASE("sizes that a schedule does not allow are refused with what is",
          "[catalog]") {
  CHECK_THAT(validation_error(chimera(), {3, 4}),
             ContainsSubstring("needs even --stages"));
  CHECK_THAT(validation_error(chimera(), {4, 3}),
             ContainsSubstring("even --stages and an even number of microbatches"));
  CHECK_THAT(validation_error(two_bw(), {4, 3}),
             ContainsSubstring("as many microbatches as stages"));
  CHECK_THAT(validation_error(gpipe(), {0, 3}), ContainsSubstring("at least 1"));
  CHECK_THAT(validation_error(gpipe(), {2, 3, 0}), ContainsSubstring("at least 1"));
  CHECK_THAT(validation_error(gpipe(), {2, 1 << 20, 1 << 20}),
             ContainsSubstring("at most"));
  CHECK_THAT(validation_error(chimera({.pairs = 3}), {6, 8}),
             ContainsSubstring("multiples of 6"));
  CHECK_THAT(validation_error(chimera({.pairs = 3}), {8, 6}),
             ContainsSubstring("multiples of 6"));
  CHECK_THAT(validation_error(chimera({.pairs = 2, .forward_doubling = true}), {8, 8}),
             ContainsSubstring("forward_doubling=on needs pairs=1"));
  CHECK_THAT(validation_error(interleaved(3), {8, 6}),
             ContainsSubstring("3 stages on each"));
  CHECK_THAT(validation_error(zb_v(), {3, 6}),
             ContainsSubstring("2 stages on each rank"));
  CHECK_THAT(validation_error(dualpipe(), {4, 6}),
             ContainsSubstring("at least 2 * ranks"));
  CHECK_THAT(validation_error(dualpipe(), {3, 6}),
             ContainsSubstring("an even number of ranks"));
  CHECK_THAT(validation_error(dualpipev(), {4, 3}),
             ContainsSubstring("at least 2 * ranks"));
  CHECK(validation_error(chimera(), {4, 2}).empty());
  CHECK(validation_error(two_bw(), {4, 4}).empty());
}

TEST_CASE("too few microbatches are refused with the number to type", "[catalog]") {
  CHECK_THAT(validation_error(two_bw(), {4, 3}, 1), EndsWith(": say --microbatches 4"));
  CHECK_THAT(validation_error(two_bw(), {4, 2}, 2),
             EndsWith(": say --microbatches 8, 4 for each data replica"));
  CHECK_THAT(validation_error(dualpipe(), {4, 4}, 3),
             EndsWith(": say --microbatches 24, 8 for each data replica"));
  CHECK_THAT(validation_error(dualpipev(), {8, 2}, 2),
             EndsWith(": say --microbatches 16, 8 for each data replica"));
  CHECK_THAT(validation_error(chimera(), {4, 3}, 2),
             EndsWith(": say --microbatches 8, 4 for each data replica"));
  CHECK_THAT(validation_error(chimera({.pairs = 3}), {6, 13}, 1),
             EndsWith(": say --microbatches 18"));
  // More microbatches help neither against odd stages nor against too large sizes.
  for (const auto& error :
       {validation_error(chimera(), {3, 3}, 2), validation_error(dualpipe(), {3, 6}, 1),
        validation_error(gpipe(), {0, 1}, 2),
        validation_error(zb_auto({{1, 1, 1}}, 0), {512, 513}, 2)}) {
    CHECK_FALSE(error.empty());
    CHECK_THAT(error, !ContainsSubstring("say --microbatches"));
  }
  CHECK(validation_error(two_bw(), {4, 4}, 2).empty());
}

} // namespace troupe::catalog_test
