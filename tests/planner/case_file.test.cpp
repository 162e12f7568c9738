// SPDX-License-Identifier: BSD-3-Clause
// Mistakes in case files: one sentence with the place and the allowed values.

#include "tests/planner/judged_cases.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace troupe::case_file_test {

using namespace planner;
using Catch::Matchers::ContainsSubstring;
using judged_cases::json;

json chain() {
  return json::parse(R"({"name": "chain", "kind": "pipedream", "model": "paper",
    "levels": [[2, 1e9]], "memory": null, "graph": {
    "operators": [["a", 1, 2, 8, 8], ["b", 1, 2, 8, 8]], "edges": [[0, 1]]}})");
}

std::string mistake_with(const std::string& pointer, const json& value) {
  auto broken = chain();
  broken[json::json_pointer{pointer}] = value;
  return judged_cases::mistake_of(broken);
}

TEST_CASE("a mistake in a case has its place and the allowed values", "[planner]") {
  REQUIRE(judged_cases::mistake_of(chain()).empty());
  CHECK(mistake_with("/graph/operators/1/3", -8)
        == "graph.operators[1][3] is -8, but a number from 0 to 1e30 is needed");
  CHECK(mistake_with("/graph/operators/1/3", "many")
        == "graph.operators[1][3] is \"many\", but a number from 0 to 1e30 is needed");
  CHECK(mistake_with("/levels/0/0", 1.5)
        == "levels[0][0] is 1.5, but a whole number from 1 to 4096 is needed");
  CHECK(mistake_with("/levels/0/1", 0)
        == "levels[0][1] is 0, but a number from 1e-30 to 1e30 is needed");
  CHECK(mistake_with("/graph/operators/1/3", 1e31)
        == "graph.operators[1][3] is 1e+31, but a number from 0 to 1e30 is needed");
  CHECK(mistake_with("/levels/0", json::array({2}))
        == "levels[0] has 1 elements, but 2 are needed");
  CHECK(mistake_with("/levels", json::array())
        == "levels is empty, but a level or more are needed");
  CHECK(mistake_with("/model", "other")
        == "model is 'other', but a model is paper or released");
  CHECK(mistake_with("/graph/edges/0/1", 2)
        == "graph.edges[0][1] is 2, but a whole number from 0 to 1 is needed");
  CHECK_THAT(mistake_with("/graph/edges/0", json::array({1, 0})),
             ContainsSubstring("graph.edges[0] leads from operator 1 to 0"));
  CHECK(mistake_with("/graph/operators", json::array())
        == "graph has no operators, but an operator or more are needed");
  CHECK(mistake_with("/graph", 3)
        == "graph is 3, but an object with 'operators' is needed");
  CHECK_THAT(mistake_with("/kind", "pipe"),
             ContainsSubstring("kind is 'pipe', but a case is one of pipedream, "));
  CHECK(mistake_with("/straight", 2)
        == "straight is 2, but true, false, 1 or 0 is needed");
}

TEST_CASE("members that a kind does not have are named", "[planner]") {
  auto problem = chain();
  problem["expected"] = {{"cost", 1}};
  problem["remark"] = "from a paper";
  CHECK(parse_case(problem.dump())->unknown.empty());
  problem["graph"]["file"] = "of another kind too";
  CHECK(parse_case(problem.dump())->unknown.empty());
  problem["straigth"] = true;
  CHECK(parse_case(problem.dump())->unknown == std::vector<std::string>{"straigth"});
  problem = judged_cases::cases_of("intra").front();
  problem.erase("nodes"); // nodes and edges follow from `stated`
  CHECK(parse_case(problem.dump())->unknown.empty());
  problem = judged_cases::cases_of("tarnawski").front();
  problem["graph"]["operators"][1]["color"] = 1;
  CHECK(parse_case(problem.dump())->unknown
        == std::vector<std::string>{"graph.operators[1].color"});
}

TEST_CASE("each member of a case is needed", "[planner]") {
  const std::string file =
    GENERATE("pipedream", "tarnawski", "piper", "alpa", "dapple", "placement", "intra");
  auto whole = judged_cases::cases_of(file).front();
  whole.erase("stated"); // costs of strategies follow from it
  REQUIRE(judged_cases::mistake_of(whole).empty());
  for (const auto& [name, value] : whole.items()) {
    if (name == "name" || name == "expected" || name == "baselines" || name == "memory")
      continue;
    auto broken = whole;
    broken.erase(name);
    CHECK(judged_cases::mistake_of(broken) == "the case has no '" + name + "'");
    broken[name] = nullptr;
    CHECK_FALSE(judged_cases::mistake_of(broken).empty());
  }
}

TEST_CASE("a file that is no case is named", "[planner]") {
  temporary_folder folder;
  const auto path = folder.path() / "case.json";
  CHECK_THAT(read_case(path).error(), ContainsSubstring(path.string()));
  const auto mistake_in = [&](const std::string& content) {
    std::ofstream{path} << content;
    return read_case(path).error();
  };
  CHECK(mistake_in("{\"kind\": ")
        == path.string()
             + ": line 1, column 9 is no JSON: a case is one JSON object with 'kind'");
  CHECK(mistake_in(" \n")
        == path.string()
             + ": the case is empty: a case is one JSON object with 'kind'");
  CHECK(mistake_in("{\"kind\": \"alpa\",\n  \"mesh\" [1]}")
        == path.string()
             + ": line 2, column 10 is no JSON: a case is one JSON object with 'kind'");
  CHECK(mistake_in("[]")
        == path.string()
             + ": the case is an array of 0, but an object with 'kind' is needed");
  CHECK(mistake_in("{\"graph\": {\"kind\": 1}, \"kind\": \"a\", \"kind\": \"b\"}")
        == path.string() + ": an object has the member 'kind' twice");
  CHECK(mistake_in("{}") == path.string() + ": the case has no 'kind'");
  CHECK_FALSE(read_case(folder.path()));
}

TEST_CASE("an option that an operator has twice is refused", "[planner]") {
  auto problem = judged_cases::cases_of("piper").front();
  auto& options = problem["graph"]["operators"][0]["options"];
  options.push_back(options[0]);
  CHECK_THAT(judged_cases::mistake_of(problem),
             ContainsSubstring("graph.operators[0].options["));
}

} // namespace troupe::case_file_test
