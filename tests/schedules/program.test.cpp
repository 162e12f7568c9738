// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/program.hpp"

#include "schedules/bounds.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/check.hpp"
#include "schedules/prediction.hpp"
#include "tests/golden_sections.hpp"
#include "tests/schedules/examples.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>

namespace troupe::program_test {

namespace {

std::string text(const schedule& sch, const shape& dims) {
  std::string result;
  for (int rank = 0; rank < ranks_of(sch.where, dims); ++rank) {
    std::string row;
    for (const auto& a : generate(sch, dims, rank))
      row += (row.empty() ? "" : " ") + to_string(a);
    result += row + '\n';
  }
  return result;
}

std::string golden(const std::string& name) {
  return golden_section(TROUPE_GOLDEN "/schedules.txt", name);
}

} // namespace

TEST_CASE("programs are the ones in the papers", "[program]") {
  CHECK(text(naive(), {3, 2}) == golden("naive-3x2"));
  CHECK(text(gpipe(), {4, 4}) == golden("gpipe-4x4"));
  CHECK(text(one_f_one_b(), {4, 6}) == golden("1f1b-4x6"));
  CHECK(text(chimera(), {4, 4}) == golden("chimera-4x4"));
  CHECK(text(chimera(), {4, 6}) == golden("chimera-4x6"));
  CHECK(text(chimera({.forward_doubling = true}), {4, 8})
        == golden("chimera-doubled-4x8"));
  CHECK(text(pipedream(), {3, 4}) == golden("pipedream-3x4"));
  CHECK(text(two_bw(), {2, 2, 3}) == golden("2bw-2x2x3"));
}

TEST_CASE("a flush schedule repeats its batch, later microbatches in place of earlier",
          "[program]") {
  for (const auto& sch : {naive(), gpipe(), one_f_one_b(), chimera(),
                          chimera({.forward_doubling = true})}) {
    const auto once = generate(sch, {4, 6, 1}, 1);
    const auto thrice = generate(sch, {4, 6, 3}, 1);
    REQUIRE(thrice.size() == 3 * once.size());
    for (std::size_t i = 0; i < thrice.size(); ++i) {
      auto expected = once[i % once.size()];
      expected.microbatch += 6 * static_cast<int>(i / once.size());
      CHECK(thrice[i] == expected);
    }
  }
}

TEST_CASE("what remains at the end of a stream is updated as a smaller minibatch",
          "[program]") {
  const auto program = generate(pipedream(3), {2, 4, 2}, 0);
  int updates = 0;
  for (const auto& a : program)
    updates += a.op == op::update;
  CHECK(updates == 3);
  CHECK(program.back() == action{op::update, 0, 0, 7});
}

TEST_CASE("an explicit program may cross batches", "[program]") {
  const auto sch = examples::one_batch_ahead();
  const shape dims{2, 2, 3};
  CHECK(text(sch, dims)
        == "F0 F1 F2 F3 B0 B1 U1 F4 F5 B2 B3 U3 B4 B5 U5\n"
           "F0 F1 F2 F3 B0 B1 U1 F4 F5 B2 B3 U3 B4 B5 U5\n");
  CHECK_FALSE(check(sch, dims));
  const auto ran = predict(
    sch, dims, [](const action& a) { return a.op == op::update ? 0 : 1; },
    [](const action&) { return 0; });
  CHECK(draw(ran, 80)
        == "rank 0  F0 F1 F2 F3 .  .  B0 B1 F4 F5 .  .  B2 B3 B4 B5\n"
           "rank 1  .  F0 F1 F2 F3 B0 B1 .  .  F4 F5 B2 B3 B4 B5 .\n");
  for (const int rank : {0, 1})
    CHECK(bounds_of(sch, dims, rank) == std::vector<stage_bounds>{{4, 0, 2}});
}

TEST_CASE("a program that crosses batches is refused on weights of this batch",
          "[program]") {
  auto sch = examples::one_batch_ahead();
  sch.weights = weights::flush;
  const auto fault = check(sch, {2, 2, 3});
  REQUIRE(fault);
  CHECK(fault->text
        == "rank 0: F2 of stage 0 reads version 1, but this stage has made only 0");
}

TEST_CASE("a batch's actions are repeated with the microbatches of each batch",
          "[program]") {
  const schedule sch{.name = "by hand",
                     .order = batch_by_batch([](int, const shape&) {
                       return std::vector<action>{{op::forward, 0, 0, 0},
                                                  {op::forward, 0, 0, 1},
                                                  {op::backward, 0, 0, 0},
                                                  {op::backward, 0, 0, 1},
                                                  {op::update, 0, 0, 1}};
                     })};
  CHECK(text(sch, {1, 2, 2}) == "F0 F1 B0 B1 U1 F2 F3 B2 B3 U3\n");
  CHECK_FALSE(check(sch, {1, 2, 2}));
}

TEST_CASE("a program is generated as it runs, however long it is", "[program]") {
  for (const auto& sch : {one_f_one_b(), pipedream(), examples::one_batch_ahead()}) {
    program p{sch, {4, 1000, 1'000'000}, 3};
    for (int i = 0; i < 10; ++i)
      p.pop();
    REQUIRE(p.front() != nullptr);
    CHECK(p.front()->stage == 3);
  }
}

} // namespace troupe::program_test
