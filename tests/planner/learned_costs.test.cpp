// SPDX-License-Identifier: BSD-3-Clause
// Times of operators that are learned from measured ones.

#include "planner/learned_costs.hpp"

#include "tests/planner/judged_cases.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>

#include <numeric>

namespace troupe::learned_costs_test {

using namespace troupe::judged_cases;
using planner::described_operator;
using planner::learned_costs;
using planner::measured_operator;

std::vector<measured_operator> all_measured() {
  auto read = planner::read_measured_operators(std::string{TROUPE_PLANNER_CASES}
                                               + "/operator_times.csv");
  REQUIRE(read);
  return *read;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto lower =
      std::ranges::count_if(values, [&](double x) { return x < value; });
    const auto equal = std::ranges::count(values, value);
    ranks.push_back(static_cast<double>(lower) + (static_cast<double>(equal) + 1) / 2);
  }
  return ranks;
}

// Spearman's coefficient.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto x = ranks_of(a), y = ranks_of(b);
  const auto count = static_cast<double>(x.size());
  const double mean = (count + 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xy / std::sqrt(xx * yy);
}

TEST_CASE("five networks predict the sixth: median error and order of times") {
  const auto measured = all_measured();
  std::set<std::string> networks;
  for (const auto& op : measured)
    networks.insert(op.network);
  REQUIRE(networks.size() == 6);
  int below_20_percent = 0;
  for (const auto& left_out : networks) {
    std::vector<measured_operator> others;
    for (const auto& op : measured)
      if (op.network != left_out)
        others.push_back(op);
    const auto costs = learned_costs::fit(others);
    std::vector<double> errors, predicted, truth;
    for (const auto& op : measured)
      if (op.network == left_out && op.seconds.forward > 5e-5) {
        predicted.push_back(costs.predict(op.content).forward);
        truth.push_back(op.seconds.forward);
        errors.push_back(std::abs(predicted.back() - truth.back()) / truth.back());
      }
    INFO(left_out << ": " << median(errors));
    CHECK(median(errors) < 0.23);
    CHECK(rank_correlation(predicted, truth) >= 0.9);
    below_20_percent += median(errors) < 0.2;
  }
  CHECK(below_20_percent >= 5);
}

TEST_CASE("operations of layers are those of their sizes") {
  // 2 x 3 images of 8 x 8 to 16 channels by windows of 5 x 5, without bias
  const described_operator convolution{"node7 Conv2d(3, 16, kernel_size=(5, 5), "
                                       "stride=(1, 1), padding=(2, 2), bias=False)",
                                       2 * 3 * 64 * 4, 2 * 16 * 64 * 4,
                                       3 * 16 * 25 * 4};
  CHECK(convolution.kind() == "Conv2d");
  CHECK(convolution.operations() == 2. * (2 * 16 * 64) * (3 * 25));
  const described_operator linear{"Linear(in_features=10, out_features=7, bias=False)",
                                  4 * 5 * 10, 4 * 5 * 7, 4 * 10 * 7};
  CHECK(linear.operations() == 2. * 5 * 10 * 7);
  const described_operator pool{"MaxPool2d(kernel_size=3, stride=2)", 400, 100, 0};
  CHECK(pool.operations() == 25 * 9);
  const described_operator relu{"ReLU(inplace)", 400, 400, 0};
  CHECK(relu.operations() == 100);
  CHECK(described_operator{"stack node Add", 8, 4, 0}.kind() == "Add");
}

// Times that lie on lines are learned exactly; a kind that is new has all kinds' line.
TEST_CASE("a line is learned from its points") {
  std::vector<measured_operator> measured;
  for (int i = 1; i <= 6; ++i) {
    const described_operator op{
      "Linear(in_features=10, out_features=" + std::to_string(i) + ", bias=False)",
      400. * i * i, 80. * i, 40. * i};
    const double seconds = 3e-8 * op.operations() + 2e-8 * op.bytes() + 1e-4;
    measured.push_back({"line", op, {seconds, 2 * seconds}});
  }
  const auto costs = learned_costs::fit(measured);
  const described_operator other{"Linear(in_features=10, out_features=9, bias=False)",
                                 5000, 720, 360};
  const double seconds = 3e-8 * other.operations() + 2e-8 * other.bytes() + 1e-4;
  CHECK(is_near(costs.predict(other).forward, seconds, 1e-6));
  CHECK(is_near(costs.predict(other).backward, 2 * seconds, 1e-6));
  auto unknown = other;
  unknown.text = "Embedding(3)";
  CHECK(costs.predict(unknown).forward > 0);
}

TEST_CASE("learned costs come back from their file, bit for bit") {
  const temporary_folder folder;
  const auto path = folder.path() / "costs.json";
  const auto costs = learned_costs::fit(all_measured());
  REQUIRE(costs.save(path));
  const auto loaded = learned_costs::load(path);
  REQUIRE(loaded);
  CHECK(*loaded == costs);
  std::ofstream{path} << R"({"any_kind": {"forward": [1, 2]}})";
  const auto broken = learned_costs::load(path);
  REQUIRE(!broken);
  CHECK(broken.error()
        == path.string() + ": any_kind.forward has 2 elements, but 3 are needed");
  std::ofstream{path} << R"({"any_kind": 1, "any_kind": 2})";
  CHECK(learned_costs::load(path).error().find("'any_kind' twice")
        != std::string::npos);
}

TEST_CASE("a broken file of measured operators gets a sentence with its line") {
  const temporary_folder folder;
  const auto path = folder.path() / "times.csv";
  const std::string header = "model,operator,input_bytes,output_bytes,parameter_bytes,"
                             "forward_ms,backward_ms\n";
  const auto mistake = [&](const std::string& text) {
    std::ofstream{path} << text;
    const auto read = planner::read_measured_operators(path);
    REQUIRE(!read);
    REQUIRE(read.error().starts_with(path.string() + ": "));
    return read.error().substr(path.string().size() + 2);
  };
  const std::string needed = header.substr(0, header.size() - 1);
  CHECK(mistake("model,op\n") == "line 1: 2 fields, but 7 are needed: " + needed);
  CHECK(mistake("a,b,c,d,e,f,g\n").starts_with("line 1: the header must be model,"));
  CHECK(mistake(header) == "the file has no measured operator");
  CHECK(mistake(header + "n,Add,1,2,3,4\n")
        == "line 2: 6 fields, but 7 are needed: " + needed);
  CHECK(mistake(header + "n,\"Conv(1, 2),1,2,3,4,5\n")
        == "line 2: a quotation does not end");
  CHECK(mistake(header + "n,\"C(\"\"x\"\", 2)\",1,2,3,fast,5\n")
        == "line 2: forward_ms is 'fast', but a number of 0 or more is needed");
}

TEST_CASE("stages by learned times are PipeDream's stages for those times") {
  const temporary_folder folder;
  const auto path = folder.path() / "costs.json";
  const auto measured = all_measured();
  const auto costs = learned_costs::fit(measured);
  REQUIRE(costs.save(path));
  json problem{{"name", "chain"}, {"kind", "pipedream"}, {"model", "paper"}};
  problem["levels"] = {{3, 1e9}};
  auto predicted = problem;
  double before = 0;
  for (std::size_t i = 0; i < 12; ++i) {
    auto op = measured[i].content;
    op.input_bytes = before;
    before = op.output_bytes;
    const auto seconds = costs.predict(op);
    problem["graph"]["operators"].push_back(
      {op.text, 1, 1, op.output_bytes, op.parameter_bytes});
    predicted["graph"]["operators"].push_back({op.text, seconds.forward,
                                               seconds.backward, op.output_bytes,
                                               op.parameter_bytes});
    if (i > 0)
      for (auto* each : {&problem, &predicted})
        (*each)["graph"]["edges"].push_back({i - 1, i});
  }
  CHECK(asked(problem, "learned:costs=" + path.string())
        == asked(predicted, "pipedream"));
  CHECK_FALSE(asked(problem, "learned:costs=" + path.string()).contains("remark"));
  problem["graph"]["operators"][3][0] = "Unheard(3)";
  CHECK(asked(problem, "learned:costs=" + path.string()).at("remark")
        == "no operator of kind 'Unheard' was measured: the line of all kinds predicts "
           "the times");
  const auto parsed = planner::parse_case(problem.dump());
  REQUIRE(parsed);
  const auto found =
    planner::search(*planner::parse_planner("learned"), parsed->content);
  REQUIRE(!found);
  CHECK(found.error()
        == "planner learned needs a file of learned costs: learned:costs=FILE");
}

} // namespace troupe::learned_costs_test
