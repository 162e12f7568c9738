// SPDX-License-Identifier: BSD-3-Clause
// Layouts that follow from a few annotations, and changes of layout.

#include "plan/propagation.hpp"
#include "plan/repartition.hpp"
#include "tests/planner/judged_cases.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <stdexcept>

namespace troupe::layouts_test {

using namespace troupe::judged_cases;

// Random networks have answers of a program of another language.
TEST_CASE("layouts and collectives of every case are the stated ones") {
  for (const auto* file : {"propagation", "propagation_random"})
    for (const auto& problem : cases_of(file)) {
      INFO(problem.dump());
      const auto answer = asked(problem, "gspmd");
      const auto& expected = problem.at("expected");
      CHECK(answer.at("shardings").size() == expected.at("shardings").size());
      for (const auto& [tensor, layout] : expected.at("shardings").items())
        CHECK(answer.at("shardings").at(tensor) == layout);
      auto found = answer.at("collectives"), stated = expected.at("collectives");
      std::sort(found.begin(), found.end());
      std::sort(stated.begin(), stated.end());
      CHECK(found == stated);
    }
}

using layout = tensor_layout;

einsum_operator product(std::string a, std::string b, std::string c) {
  return {{std::move(a), std::move(b)}, {"mk", "kn"}, std::move(c), "mn"};
}

TEST_CASE("a tensor has each axis once, and annotations stay") {
  const auto found =
    propagated({product("a", "b", "c")}, {{"a", {"x", {}}}, {"b", {{}, "x"}}});
  CHECK(found.at("c") == layout{"x", {}}); // the first input decides
  CHECK(found.at("a") == layout{"x", {}});
  CHECK(found.at("b") == layout{{}, "x"});
  CHECK(needed_collectives({product("a", "b", "c")}, found)
        == std::vector<needed_collective>{{"all-gather", 0, "x", "b"}});
}

TEST_CASE("elementwise operators pass layouts before others do") {
  // The product alone would give c the axis along n.
  const std::vector<einsum_operator> operators{product("a", "b", "c"),
                                               {{"c"}, {"mn"}, "d", "mn"}};
  const auto found = propagated(operators, {{"b", {{}, "x"}}, {"d", {"x", {}}}});
  CHECK(found.at("c") == layout{"x", {}});
}

TEST_CASE("no layout passes an operator with reshard") {
  auto op = product("a", "b", "c");
  op.reshard = true;
  const auto found = propagated({op}, {{"a", {"x", {}}}});
  CHECK(found.at("c") == layout{{}, {}});
  CHECK(needed_collectives({op}, found)
        == std::vector<needed_collective>{{"all-gather", 0, "x", "a"}});
}

TEST_CASE("a split sum is scattered if the output has its axis, else reduced") {
  const tensor_layouts apart{{"a", {{}, "x"}}, {"b", {"x", {}}}, {"c", {{}, {}}}};
  CHECK(needed_collectives({product("a", "b", "c")}, apart)
        == std::vector<needed_collective>{{"all-reduce", 0, "x", "c"}});
  // m needs the axis that k has: the input goes all-to-all, and no sum is left.
  const tensor_layouts scattered{{"a", {{}, "x"}}, {"b", {"x", {}}}, {"c", {"x", {}}}};
  CHECK(needed_collectives({product("a", "b", "c")}, scattered)
        == std::vector<needed_collective>{{"reduce-scatter", 0, "x", "c"}});
}

// Counts elements of an i x j tensor on devices along one axis: those of the wanted
// shard that a device lacks come from others, and all devices send equally many.
double elements_received(char held, char wanted, int i, int j, int devices) {
  const auto holds = [&](char split, int device, int row, int column) {
    if (split == 'i')
      return row / (i / devices) == device;
    if (split == 'j')
      return column / (j / devices) == device;
    return true;
  };
  int lacking = 0;
  for (int device = 0; device < devices; ++device)
    for (int row = 0; row < i; ++row)
      for (int column = 0; column < j; ++column)
        lacking +=
          holds(wanted, device, row, column) && !holds(held, device, row, column);
  return static_cast<double>(lacking) / devices;
}

TEST_CASE("a change of layout moves the elements that devices lack") {
  const int devices = GENERATE(1, 2, 3, 4, 8);
  const int i = 24, j = 48;
  const std::vector<device_axis> mesh{{devices, 10}};
  for (const char held : {'i', 'j', '-'})
    for (const char wanted : {'i', 'j', '-'}) {
      INFO(held << " to " << wanted);
      const double seconds =
        repartition_seconds(i * j, std::string(1, held), std::string(1, wanted), mesh);
      CHECK(is_near(seconds, elements_received(held, wanted, i, j, devices) / 10));
    }
}

TEST_CASE("a change along one axis moves the shard that other axes leave") {
  const std::vector<device_axis> mesh{{2, 10}, {4, 100}};
  CHECK(is_near(repartition_seconds(800, "i-", "j-", mesh), 800 / 4. / 10));
  CHECK(is_near(repartition_seconds(800, "ij", "-j", mesh), 800 / 4. / 2 / 10));
  CHECK(is_near(repartition_seconds(800, "ij", "i-", mesh), 800 / 2. * 3 / 4 / 100));
  // Axis by axis, each while the other still splits as before.
  CHECK(is_near(repartition_seconds(800, "ij", "--", mesh),
                800 / 4. / 2 / 10 + 800 / 2. * 3 / 4 / 100));
  CHECK(repartition_seconds(800, "--", "ij", mesh) == 0);
}

TEST_CASE("an all_reduce sends as much as its two halves") {
  const int devices = GENERATE(1, 2, 3, 8);
  using enum collective_operation;
  CHECK(is_near(bytes_sent(all_reduce, 96, devices),
                bytes_sent(reduce_scatter, 96, devices)
                  + bytes_sent(all_gather, 96, devices)));
  CHECK_THROWS_AS(bytes_sent(broadcast, 96, devices), std::invalid_argument);
}

TEST_CASE("a broken case of layouts gets a sentence with its place") {
  const auto problem = cases_of("propagation").at(0);
  CHECK(mistake_of(problem).empty());
  const auto mistake = [&](const std::function<void(json&)>& change) {
    json broken = problem;
    change(broken);
    return mistake_of(broken);
  };
  CHECK(mistake([](json& p) {
          p["operators"][0]["einsum"] = "bd";
        }).starts_with("operators[0].einsum is 'bd'"));
  CHECK(mistake([](json& p) {
          p["operators"][0]["inputs"] = {"a", "b"};
        }).starts_with("operators[0].inputs "));
  CHECK(mistake([](json& p) {
          p["annotated"]["a"] = {"z", nullptr};
        }).starts_with("annotated.a[0] is 'z'"));
  CHECK(mistake([](json& p) {
          p["annotated"]["a"] = {"x", "x"};
        }).starts_with("annotated.a[1] is 'x', which splits another dimension"));
  CHECK(mistake([](json& p) { p["annotated"]["a"] = {"x"}; })
        == "annotated.a gives tensor 'a' 1 dimensions, but elsewhere it has 2");
  CHECK(mistake([](json& p) { p["annotated"]["q"] = {"x"}; })
        == "annotated.q annotates 'q', but no operator has such a tensor");
}

TEST_CASE("layouts that a planner invents are refused") {
  planner::propagation_problem problem;
  problem.operators = {product("a", "b", "c")};
  problem.mesh = {{"x", 4}};
  problem.annotated = {{"a", {"x", {}}}};
  const planner::propagation_plan good{
    {{"a", {"x", {}}}, {"b", {{}, {}}}, {"c", {"x", {}}}}, {}};
  CHECK(planner::cost(problem, good) == 0);
  auto plan = good;
  plan.shardings["a"] = {{}, {}};
  CHECK(!planner::cost(problem, plan));
  plan = good;
  plan.shardings.erase("b");
  CHECK(!planner::cost(problem, plan));
  plan = good;
  plan.shardings["c"] = {{}, {}};
  CHECK(!planner::cost(problem, plan)); // a gather is missing
  plan.collectives = {{"all-gather", 0, "x", "a"}};
  CHECK(planner::cost(problem, plan) == 1);
}

} // namespace troupe::layouts_test
