// SPDX-License-Identifier: BSD-3-Clause
// Exported schedules, as PyTorch reads each.

#include "schedules/catalog/catalog.hpp"
#include "schedules/files/schedule_file.hpp"
#include "schedules/program.hpp"
#include "tests/schedules/pytorch_reader.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>

namespace troupe::pytorch_files_test {

namespace {

/// The actions that PyTorch should read for a rank: the passes of the first batch.
std::vector<pytorch::action> expected(const schedule& sch, const shape& dims,
                                      int rank) {
  std::vector<pytorch::action> result;
  for (const auto& a : generate(sch, dims, rank))
    if (a.op != op::update && a.microbatch < dims.microbatches)
      result.push_back({a.stage, std::string{letter_of(a.op)}, a.microbatch});
  return result;
}

} // namespace

TEST_CASE("PyTorch reads every exported schedule that flushes and has a stage once",
          "[files]") {
  const auto& entry = GENERATE(from_range(catalog()));
  const int ranks = GENERATE(2, 4), microbatches = GENERATE(8, 12),
            steps = GENERATE(1, 3);
  const auto sch = *find_schedule(entry.name);
  const shape dims{stages_on(sch.where, ranks), microbatches, steps};
  if (sch.local_rule() || !validation_error(sch, dims).empty())
    return;
  CAPTURE(entry.name, ranks, microbatches, steps);
  const auto text = write_schedule(sch, dims);
  CAPTURE(text);
  if (sch.asynchronous() || sch.where.directions > 1) {
    CHECK_FALSE(is_pytorch_form(sch));
    CHECK(text.starts_with("# "));
    CHECK_THROWS(pytorch::load_csv(text, ranks, microbatches));
    return;
  }
  CHECK(is_pytorch_form(sch));
  CHECK(text.find('#') == std::string::npos);
  const auto read = pytorch::load_csv(text, ranks, microbatches);
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(read.ranks[static_cast<std::size_t>(rank)] == expected(sch, dims, rank));
    for (const auto& hosted : hosted_by(sch.where, dims, rank))
      CHECK(read.rank_of_stage.at(hosted.stage) == rank);
  }
}

TEST_CASE("a batch is exported as a run of several has it", "[files]") {
  const shape one{4, 8}, several{4, 8, 3};
  int differ = 0;
  for (int i = 1; i < 10; ++i)
    for (int w = 1; w < 10; ++w) {
      const auto sch = zb_auto({{3, i, w}});
      const auto read = pytorch::load_csv(write_schedule(sch, several), 4, 8);
      for (int rank = 0; rank < 4; ++rank) {
        const auto batch = expected(sch, several, rank);
        CHECK(read.ranks[static_cast<std::size_t>(rank)] == batch);
        differ += batch != expected(sch, one, rank);
      }
    }
  CHECK(differ > 0); // else all sizes give the same actions
}

TEST_CASE("PyTorch reads schedules whose ranks may hold only so many", "[files]") {
  const auto sch = *find_schedule("zb-auto", {{"most_held", "3"}});
  const auto text = write_schedule(sch, {4, 8});
  CHECK(pytorch::load_csv(text, 4, 8).ranks[0] == expected(sch, {4, 8}, 0));
}

TEST_CASE("the reader of PyTorch's files refuses what PyTorch does", "[files]") {
  const auto load = [](const std::string& text) {
    return pytorch::load_csv(text, 2, 1);
  };
  CHECK(load("0F0,,,0B0\n,1F0,1B0,\n").rank_of_stage.at(1) == 1);
  CHECK(load("(0F0;0B0)OVERLAP_F_B\n1F0,1I0,1W0\n").ranks[0].size() == 2);
  for (const char* wrong :
       {"# 2 stages\n0F0,0B0\n1F0,1B0\n", "0F0,0B0\n\n1F0,1B0\n", "0F0,0B0\n",
        "0F0,0U0,0B0\n1F0,1B0\n", "0B0,0F0\n1F0,1B0\n", "0F0,0B0\n1F0,1W0,1I0\n",
        "0F0,0B0,1F0\n1F0,1B0\n", "0F0\n1F0,1B0\n"})
    CHECK_THROWS(load(wrong));
}

} // namespace troupe::pytorch_files_test
