// SPDX-License-Identifier: BSD-3-Clause
// Tests --schedules: which schedules are named, with which parameters and options.

#include "experiments/options/schedule_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace troupe::schedule_options_test {

using Catch::Matchers::ContainsSubstring;

namespace {

using list = std::vector<std::string>;

const optimizer_options clipped{.name = "sgd", .rate = 0.1, .clip = 2};

tl::expected<schedule_options, std::string> parsed(const list& names) {
  return parse({.names = names}, {}, &clipped);
}

list texts_of(const list& names) {
  list result;
  const auto all = parsed(names).value();
  for (const auto& one : all.chosen)
    result.push_back(one.text);
  return result;
}

} // namespace

TEST_CASE("a comma begins a new schedule unless a parameter follows it",
          "[schedule_options]") {
  CHECK(texts_of({"gpipe,1f1b"}) == list{"gpipe", "1f1b"});
  CHECK(texts_of({"ampnet:max_active_keys=8,lr=0.01,2bw"})
        == list{"ampnet:max_active_keys=8,lr=0.01", "2bw"});
  CHECK(texts_of({"ampnet:lr=1,pipedream:lr=2,clip=stage"})
        == list{"ampnet:lr=1", "pipedream:lr=2,clip=stage"});
  CHECK(texts_of({"2bw", "ampnet:lr=1", "clip=stage,gpipe"})
        == list{"2bw", "ampnet:lr=1,clip=stage", "gpipe"});
  for (const char* names : {",", "gpipe,", ",gpipe", "gpipe,,1f1b"})
    CHECK_THAT(parsed({names}).error(),
               ContainsSubstring("--schedules has an empty name: write one comma"));
}

TEST_CASE("all is what is not named by itself, and may be left out",
          "[schedule_options]") {
  CHECK(texts_of({"all,gpipe"})
        == list{"naive", "1f1b", "interleaved", "looped_bfs", "zb-h1", "zb-h2", "zb-v",
                "zb-auto", "v-half", "v-min", "hanayo", "chimera", "dualpipe",
                "dualpipev", "pipedream", "2bw", "ampnet", "gpipe"});
  const auto both = parsed({"all,gpipe"})->chosen;
  CHECK(both.front().of_all);
  CHECK_FALSE(both.back().of_all);
}

TEST_CASE("options of a schedule's own hold for it alone", "[schedule_options]") {
  const auto chosen =
    parsed({"gpipe,ampnet:max-active-keys=2,lr=0.5,momentum=0.25,beta2=0.5,1f1b"})
      ->chosen;
  REQUIRE(chosen.size() == 3);
  CHECK(chosen[0].optimizer.rate == 0.1);
  CHECK(chosen[1].optimizer.rate == 0.5);
  CHECK(chosen[1].optimizer.momentum == 0.25);
  CHECK(chosen[1].optimizer.beta2 == 0.5);
  CHECK(chosen[1].optimizer.clip == 2);
  CHECK(
    chosen[1].values
    == std::map<std::string, std::string>{
      {"max_active_keys", "2"}, {"lr", "0.5"}, {"momentum", "0.25"}, {"beta2", "0.5"}});
  CHECK(std::get<backward_first>(chosen[1].sch.order).max_active_keys == 2);
  CHECK(chosen[2].optimizer.rate == 0.1);
}

TEST_CASE("a schedule clips by the norm that it says", "[schedule_options]") {
  const auto chosen = parsed({"1f1b,pipedream:clip=stage,gpipe:clip=0.5"})->chosen;
  CHECK(chosen[0].optimizer.scope == clip_scope::network);
  CHECK(chosen[1].optimizer.scope == clip_scope::stage);
  CHECK(chosen[1].optimizer.clip == 2);
  CHECK(chosen[2].optimizer.clip == 0.5);
  CHECK_THAT(parsed({"1f1b:clip=some"}).error(),
             ContainsSubstring("1f1b: clip=some: write stage, a norm"));
}

TEST_CASE("where nothing learns, a schedule has no options of an optimizer",
          "[schedule_options]") {
  CHECK_THAT(parse({.names = {"ampnet:lr=1"}}, {}, nullptr).error(),
             ContainsSubstring("ampnet has no parameter 'lr'"));
}

TEST_CASE("a schedule in a file may clip by the norm of each stage",
          "[schedule_options]") {
  const auto path = std::filesystem::temp_directory_path()
                    / ("troupe-clip-" + std::to_string(::getpid()) + ".csv");
  std::ofstream{path} << "0F0,0B0\n";
  typed_schedules typed{.names = {"file:" + path.string() + ",clip=stage"}};
  typed_mesh mesh;
  CHECK(set_sizes_from_files(typed, mesh).empty());
  CHECK(parsed(typed.names)->chosen[0].optimizer.scope == clip_scope::stage);
  typed.names = {"file:" + path.string() + ",lr=fast"};
  CHECK_THAT(parsed(typed.names).error(), ContainsSubstring(path.filename().string()));
  std::filesystem::remove(path);
}

} // namespace troupe::schedule_options_test
