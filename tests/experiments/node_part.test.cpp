// SPDX-License-Identifier: BSD-3-Clause
// Tests a node's answer to a leader's request: a part of a run, or an error. Any peer
// that can reach the node may claim to be a leader.

#include "experiments/session/node_part.hpp"

#include "experiments/options/options_text.hpp"
#include "kernels/bf16_choice.hpp"
#include "tests/experiments/tiny_options.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <functional>

namespace troupe::node_part_test {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

/// Options of a tiny training in two stages, in the leader's format.
json honest() {
  return json::parse(
    to_text(*parse(typed_options{.model = {.name = "mlp", .width = 8},
                                 .mesh = {.stages = 2},
                                 .schedules = {.names = {"1f1b"}, .steps = 4}},
                   true)));
}

mail::prepare facts_of(const json& options) {
  return {.node = 1,
          .nodes = {"127.0.0.1:1", "127.0.0.1:2"},
          .node_map = {1, 2},
          .options = options.dump()};
}

std::string refusal_of(const mail::prepare& facts, const std::string& folder = ".") {
  const auto plan = plan_of_part(facts, {.folder = folder});
  return plan ? "" : plan.error();
}

std::string refusal_of(const std::function<void(json&)>& change) {
  auto options = honest();
  change(options);
  return refusal_of(facts_of(options));
}

} // namespace

TEST_CASE("an honest lead gets the part that it asks for", "[nodes]") {
  const auto plan = plan_of_part(facts_of(honest()), {.threads = 3});
  REQUIRE(plan);
  CHECK(plan->ranks() == 2);
  CHECK(plan->machine.threads == 3);
  CHECK(plan->dims.steps == 4);
}

TEST_CASE("a leader with a job of a user's program is sent to that program",
          "[nodes]") {
  auto facts = facts_of(honest());
  facts.options = R"({"training_job": "yes", "--lr": "0.1"})";
  CHECK_THAT(refusal_of(facts),
             ContainsSubstring("start the node by the program that leads"));
}

TEST_CASE("a node reads no file outside its folder, whatever a lead calls it",
          "[nodes]") {
  temporary_folder folder;
  const auto secret = folder.write("secret", std::string(4000, 's'));
  std::filesystem::create_directory(folder.path() / "own");
  std::filesystem::create_symlink(secret, folder.path() / "own/link");
  const auto own = (folder.path() / "own").string();
  const auto* const said_path = GENERATE("", "data", "own/x");
  for (const auto& path : {secret.string(), std::string{"../secret"},
                           std::string{"link"}, own + "/link"}) {
    auto options = honest();
    options["model"]["model"] = "gpt";
    options["data"]["text"] = "text:" + path;
    options["data"]["path"] = said_path;
    CHECK_THAT(refusal_of(facts_of(options), own),
               ContainsSubstring("reads only files of its --folder"));
    options["data"]["text"] = "synthetic";
    options["data"]["evaluation"] = "text:" + path;
    CHECK_THAT(refusal_of(facts_of(options), own),
               ContainsSubstring("reads only files of its --folder"));
  }
}

namespace {

/// Returns a node's error for data in its folder, which holds `own`; empty if the node
/// reads the data.
std::string refusal_of_data(const std::string& model, const std::string& data,
                            const std::filesystem::path& folder) {
  auto options = honest();
  options["model"]["model"] = model;
  options["model"]["length"] = 4;
  options["model"]["words"] = 256;
  options["data"]["text"] = data;
  return refusal_of(facts_of(options), folder.string());
}

} // namespace

TEST_CASE("a node reads no file that a link in its folder leads to outside",
          "[nodes]") {
  namespace fs = std::filesystem;
  temporary_folder all;
  const auto own = all.path() / "own";
  const std::string letters(4000, 's');
  for (const char* name : {"own", "own/texts", "own/images", "own/inside"})
    fs::create_directory(all.path() / name);
  const auto outside = all.write("secret", letters), inside = own / "inside/a.txt";
  all.write("own/inside/a.txt", letters);
  all.write("own/texts/a.txt", letters);
  fs::create_symlink(inside, own / "texts/b.txt");
  const auto text = "text:" + (own / "texts").string();
  CHECK(refusal_of_data("gpt", text, own) == "");
  const auto link = own / "texts/c.txt";
  fs::create_symlink(outside, link);
  CHECK_THAT(refusal_of_data("gpt", text, own),
             ContainsSubstring("c.txt: it is outside the folder"));
  CHECK_THAT(refusal_of_data("gpt", "tokens:" + link.string(), own),
             ContainsSubstring("reads only files of its --folder"));
  // The path is the text before the last keys, and nothing else.
  for (const char* keys : {":order=random", ",order=random", ",width=16,order=random"})
    CHECK_THAT(refusal_of_data("gpt", "tokens:" + link.string() + keys, own),
               ContainsSubstring("reads only files of its --folder"));
  fs::create_symlink(outside, own / "images/t10k-images-idx3-ubyte");
  CHECK_THAT(refusal_of_data("mlp", "mnist:" + (own / "images").string(), own),
             ContainsSubstring("t10k-images-idx3-ubyte: it is outside the folder"));
}

TEST_CASE("a FIFO or a device in a node's folder is neither read nor waited for",
          "[nodes]") {
  namespace fs = std::filesystem;
  temporary_folder folder;
  folder.write("a.txt", std::string(4000, 's'));
  REQUIRE(mkfifo((folder.path() / "fifo").c_str(), 0600) == 0);
  fs::create_symlink("/dev/zero", folder.path() / "zero");
  const auto path = folder.path().string();
  CHECK(refusal_of_data("gpt", "text:" + path, folder.path()) == "");
  CHECK_THAT(refusal_of_data("gpt", "tokens:" + path + "/fifo", folder.path()),
             ContainsSubstring("it is a FIFO"));
  CHECK_THAT(refusal_of_data("gpt", "text:" + path + "/zero", folder.path()),
             ContainsSubstring("reads only files of its --folder"));
}

TEST_CASE("sizes that no command line takes are refused, and not computed with",
          "[nodes]") {
  for (const auto& [group, key] : {std::pair{"mesh", "data"},
                                   {"mesh", "stages"},
                                   {"mesh", "tensor"},
                                   {"mesh", "expert"},
                                   {"schedules", "microbatches"},
                                   {"schedules", "steps"},
                                   {"model", "layers"},
                                   {"model", "width"},
                                   {"model", "heads"},
                                   {"data", "batch"},
                                   {"run", "stall_timeout"}})
    for (const auto value : {0, -1, -2147483647}) {
      INFO(group << "." << key << " = " << value);
      CHECK_FALSE(refusal_of([value, group = group, key = key](json& o) {
                    o[group][key] = value;
                  }).empty());
    }
  CHECK_FALSE(refusal_of([](json& o) { o["run"]["clock"] = 1; }).empty());
  CHECK_FALSE(refusal_of([](json& o) { o["trains"] = false; }).empty());
  CHECK_FALSE(refusal_of([](json& o) { o.erase("model"); }).empty());
}

TEST_CASE("what no run leaves is nothing to go on from", "[nodes]") {
  auto facts = facts_of(honest());
  SECTION("older versions without batches") {
    facts.older = 1;
  }
  SECTION("a layer that there is not") {
    facts.batches_before = 1;
    facts.layers = {0, 99};
  }
  SECTION("a layer twice") {
    facts.layers = {0, 0};
  }
  SECTION("more batches than the run has") {
    facts.batches_before = 4;
    facts.layers = {0};
  }
  SECTION("state that the optimizer has not") {
    facts.batches_before = 1;
    facts.layers = {0};
    facts.state_arrays = 1;
  }
  CHECK_THAT(refusal_of(facts), ContainsSubstring("resumes from a state"));
}

TEST_CASE("places that are not those of the ranks are refused", "[nodes]") {
  auto facts = facts_of(honest());
  facts.node_map = GENERATE(std::vector<int>{}, std::vector<int>{1},
                            std::vector<int>{1, 1}, std::vector<int>{1, 3});
  CHECK_FALSE(refusal_of(facts).empty());
}

TEST_CASE("ranks take their own node's GPUs in turns, or those that are listed",
          "[nodes]") {
  using list = std::vector<processor>;
  const asked_processors all{.processors = {{.gpu = 0, .tf32 = true}}};
  const std::vector<int> every_second{1, 3, 5};
  CHECK(processors_of_part(all, every_second, 6, {0, 3})
        == list{{}, {0, true}, {}, {3, true}, {}, {0, true}});
  CHECK(processors_of_part(all, {0, 1}, 2, {0, 1, 2, 3}) == list{{0, true}, {1, true}});

  const asked_processors listed{.processors = {{1}, {}}, .is_list = true};
  CHECK(processors_of_part(listed, {0, 1, 2}, 4, {0, 1}) == list{{1}, {}, {1}, {}});
  CHECK(processors_of_part(listed, {1, 3}, 4, {}) == list(4)); // the CPU alone
  CHECK(processors_of_part(listed, {1, 2}, 4, {0, 2}).error()
        == "rank 2 needs cuda:1, and the node offers cuda:0, cuda:2");
  CHECK(processors_of_part({}, {0}, 2, {}) == list{});
  CHECK(processors_of_part(all, {1}, 2, {}).error()
        == "rank 1 needs a GPU, and the node offers no GPU");
}

TEST_CASE("a node whose ranks are on the CPU needs no GPU", "[nodes]") {
  auto options = honest();
  options["run"]["processors"] =
    json::parse(R"([{"gpu": 0, "tf32": false}, {"gpu": -1, "tf32": false}])");
  options["run"]["lists_processors"] = true;
  auto facts = facts_of(options);
  facts.node = 2;
  CHECK(plan_of_part(facts, {.gpus = std::vector<int>{}}).has_value());
  facts.node = 1;
  CHECK_THAT(plan_of_part(facts, {.gpus = std::vector<int>{}}).error(),
             ContainsSubstring("rank 0 needs cuda:0, and the node offers no GPU"));
}

TEST_CASE("processors that no command line names are refused", "[nodes]") {
  for (const auto* const gpu :
       {"-2", "1024", "4294967296", "4294967295", "18446744073709551615", "-2147483649",
        "1.5", "-1.0", "true", "null", R"("cpu")", "[0]"}) {
    INFO(gpu);
    CHECK_THAT(refusal_of([gpu](json& o) {
                 o["run"]["processors"] =
                   json::parse(R"([{"tf32": false, "gpu": )" + std::string{gpu} + "}]");
               }),
               ContainsSubstring("there is no processor"));
  }
  for (const auto* const text :
       {R"([{"gpu": -1, "tf32": true}])",
        R"([{"gpu": -1, "tf32": false}, {"gpu": -1, "tf32": false},
            {"gpu": -1, "tf32": false}])"})
    CHECK_THAT(
      refusal_of([text](json& o) { o["run"]["processors"] = json::parse(text); }),
      ContainsSubstring("the leader's request has invalid devices"));
  CHECK(refusal_of([](json& o) {
          o["run"]["processors"] = json::parse(R"([{"gpu": -1, "tf32": false}])");
        })
        == "");
}

TEST_CASE("a node sums products of bf16 as the lead does, or not at all", "[nodes]") {
  const auto here = *chosen_bf16_path();
  const auto refusal_of_lead_by = [](bf16_path path) {
    return refusal_of([&](json& o) {
      o["run"]["products"] = 1;
      o["run"]["sums"] = static_cast<int>(sums_of(path));
    });
  };
  CHECK(refusal_of_lead_by(here).empty());
  for (const auto path : {bf16_path::dot, bf16_path::widen, bf16_path::plain}) {
    if (sums_of(path) == sums_of(here))
      continue;
    const auto why = refusal_of_lead_by(path);
    CHECK_THAT(why, ContainsSubstring("computes products of bf16 by TROUPE_BF16="
                                      + to_text(here)));
    CHECK_THAT(why, ContainsSubstring("the leader by " + paths_of(sums_of(path))));
    const auto all = bf16_paths();
    const bool may_follow = std::ranges::find(all, path) != all.end();
    CHECK((why.find(to_text(path) + " on the node") != std::string::npos)
          == may_follow);
    CHECK((why.find("widen on all nodes and the leader") != std::string::npos)
          == (path != bf16_path::widen));
  }
  CHECK_THAT(refusal_of([](json& o) {
               o["run"]["products"] = 1;
               o["run"]["sums"] = 3;
             }),
             ContainsSubstring("an unknown kind of bf16 sums"));
  CHECK_THAT(refusal_of([](json& o) { o["run"]["products"] = 7; }),
             ContainsSubstring("an unknown precision"));
}

} // namespace troupe::node_part_test
