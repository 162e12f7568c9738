// SPDX-License-Identifier: BSD-3-Clause
// Tests that docs/results.md has a row for each key of results.json, and that each row
// has a key.

#include "experiments/report/results.hpp"
#include "tests/experiments/run_program.hpp"
#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <functional>
#include <set>
#include <sstream>

namespace troupe::results_document_test {

using json = nlohmann::ordered_json;
using keys = std::set<std::string>;

namespace {

/// Adds the paths of all keys, as "runs[].loss".
void add_keys(const json& value, const std::string& path, keys& to) {
  for (const auto& element : value.is_array() ? value : json::array())
    add_keys(element, path + "[]", to);
  // The keys below are names of a user, or of options.
  if (!value.is_object() || path == "runs[].parameters" || path == "runs[].options")
    return;
  for (const auto& [key, member] : value.items()) {
    const auto name = path.empty() ? key : path + "." + key;
    to.insert(name);
    add_keys(member, name, to);
  }
}

/// The keys of the results of a run that was planned but not run.
keys keys_of(const typed_options& typed,
             const std::function<void(run_result&, run_plan&)>& change) {
  const auto o = *parse(typed, true);
  const auto shared = *set_up(o);
  auto request = shared.runs.front();
  run_account account{.request = &request, .result = {}};
  account.evaluations = {{{1}, {.loss = 1, .accuracy = {}}}};
  account.proved =
    verification{ending::finished, "", {{"replay", verdict::holds, ""}}, 1};
  change(account.result, request.plan);
  keys result;
  add_keys(json::parse(results_json(o, shared, {account})), "", result);
  return result;
}

} // namespace

TEST_CASE("each key of results.json has a row of its document, and each row a key",
          "[results]") {
  keys written;
  const auto add = [&](const keys& some) { written.insert(some.begin(), some.end()); };
  auto o = tiny::options_of("1f1b,gpipe");
  o.model.name = "moe";
  o.evaluation.target = 2;
  add(keys_of(o, [](run_result& result, run_plan& plan) {
    plan.machine.processors = {processor{.gpu = 0}};
    plan.work->whole.options.stored = precision::bf16;
    result.peak_parts.resize(4);
    result.loss = {1};
    result.loss_samples = {8};
    result.loss_times = {1};
    result.exchange = {{0}, {0}};
    result.loads.add(0, 2, {1, 2}, 0);
  }));
  add(keys_of(o, [](run_result& result, run_plan&) {
    result.sums.wall_time = {2, 2, 2, 2};
    result.sums.off_processor_time = {1, 1, 1, 1};
  }));
  add(
    keys_of(o, [](run_result& result, run_plan&) { result.outcome = ending::failed; }));
  keys documented;
  const auto text =
    content_of(std::filesystem::path{TROUPE_GOLDEN} / "../../docs/results.md");
  const auto begin = text.find("\n## results.json\n");
  REQUIRE(begin != text.npos);
  std::istringstream lines{text.substr(begin, text.find("\n## ", begin + 1) - begin)};
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("| `")) {
      const auto key = line.substr(3, line.find('`', 3) - 3);
      INFO(key);
      CHECK(documented.insert(key).second); // once
    }
  for (const auto& key : written) {
    INFO(key << " has no row");
    CHECK(documented.contains(key));
  }
  for (const auto& key : documented) {
    INFO(key << " is no key");
    CHECK(written.contains(key));
  }
}

} // namespace troupe::results_document_test
