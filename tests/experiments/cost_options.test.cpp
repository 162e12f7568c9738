// SPDX-License-Identifier: BSD-3-Clause
// Tests --cost: the time of actions and messages in virtual time.

#include "experiments/options/cost_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace troupe::cost_options_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

namespace {

const mesh_options four_stages{.stages = 4};

std::string cost_refusal(const std::string& text) {
  const auto result = parse_costs(text, four_stages);
  return result ? "" : result.error();
}

} // namespace

TEST_CASE("costs are milliseconds; what is not given follows from what is",
          "[cost_options]") {
  const auto of = [](const std::string& text, op what) {
    return parse_costs(text, four_stages)
      ->actions.by_op[static_cast<std::size_t>(what)];
  };
  using times = std::vector<nanoseconds>;
  CHECK(of("F=1.5,B=2", op::forward) == times{1'500'000});
  CHECK(of("F=1,B=3", op::input_gradient) == times{1'500'000});
  CHECK(of("F=1,B=3,W=1", op::weight_gradient) == times{1'000'000});
  CHECK(of("F=1/2/1/1", op::forward)
        == times{1'000'000, 2'000'000, 1'000'000, 1'000'000});
  CHECK(of("F=1/2/1/1", op::backward)
        == times{2'000'000, 4'000'000, 2'000'000, 2'000'000});
  CHECK(of("I=1,W=0.25", op::backward) == times{1'250'000});
  CHECK(of("F=1", op::update) == times{0});
  const auto messages =
    *parse_costs("latency=0.5,bandwidth=1e9,bytes=1e6", four_stages);
  CHECK(messages.link.latency == 500'000);
  CHECK(messages.link.occupied(messages.sizes.message) == 1'000'000);
  CHECK(messages.sum_rate == 0);
}

TEST_CASE("a rank adds so many bytes a second beside its actions", "[cost_options]") {
  const auto given = *parse_costs("sums=3,sum=4e8", four_stages);
  CHECK(given.sum_rate == 4e8);
  CHECK(given.sizes.sums == 3);
  const auto cost = costs_of_sums(given.sum_rate);
  CHECK(cost({.operations = 5}) == 50); // values have four bytes
  CHECK(cost({.operations = 0}) == 0);
}

TEST_CASE("costs that make no sense are refused with what does", "[cost_options]") {
  for (const char* text : {"F", "G=1", "=1", ""})
    CHECK_THAT(cost_refusal(std::string{"B=1,"} + text),
               ContainsSubstring("write KEY=VALUE, for example F=1"));
  for (const char* text : {"F=", "F=x", "F=-1", "F=nan", "F=1/", "F=1e400", "F=2e12"})
    CHECK_THAT(
      cost_refusal(text),
      ContainsSubstring("give F= a number from 0 to 1e12, or one for each rank"));
  for (const std::string key :
       {"latency", "bandwidth", "bytes", "gradient", "tensor", "experts"})
    for (const char* value : {"=-1", "=1.1e12", "="})
      CHECK_THAT(cost_refusal(key + value),
                 EndsWith(": give " + key + "= a number from 0 to 1e12"));
  for (const char* text : {"sum=-1", "sum=2e12", "sum="})
    CHECK_THAT(cost_refusal(text), EndsWith(": give sum= a number from 1 to 1e12"));
  for (const char* text : {"buckets=-1", "sums=x", "sums=1.5"})
    CHECK_THAT(cost_refusal(text), EndsWith("= a whole number from 1 to 10,000"));
  CHECK_THAT(cost_refusal("replica=1/-1"),
             EndsWith("= a number from 0 to 1e12 for each data replica"));
  for (const char* text :
       {"buckets=0", "buckets=1.5", "buckets=1e9", "sums=0", "buckets=1000,sums=1000"})
    CHECK_THAT(cost_refusal(text), ContainsSubstring("from 1 to 10,000"));
  CHECK_THAT(cost_refusal("F=1/2"),
             ContainsSubstring("a value for each of the 4 ranks"));
  CHECK_THAT(cost_refusal("latency=1/2/1/1"), ContainsSubstring("a single value"));
  for (const char* text : {"sum=0", "sum=0.5"})
    CHECK_THAT(cost_refusal(text), ContainsSubstring("give 1 to 1e12 bytes"));
  CHECK_THAT(cost_refusal("sum=1e9/1e9/1e9/1e9"),
             ContainsSubstring("give sum a single value, as ranks do not differ"));
  CHECK_THAT(cost_refusal("F=1,F=2"), ContainsSubstring("F is given twice"));
}

} // namespace troupe::cost_options_test
