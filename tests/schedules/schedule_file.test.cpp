// SPDX-License-Identifier: BSD-3-Clause
// Schedules in files: PyTorch's own, the catalog's written and read back, and files
// that are refused.

#include "schedules/files/schedule_file.hpp"

#include "schedules/bounds.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/check.hpp"
#include "schedules/program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace troupe::schedule_file_test {

using Catch::Matchers::ContainsSubstring;

namespace {

filed_schedule read(const std::string& text,
                    const std::map<std::string, std::string>& values = {}) {
  auto result = read_schedule("mine", text, values);
  INFO((result ? "" : result.error()));
  REQUIRE(result);
  return std::move(*result);
}

std::string refused(const std::string& text,
                    const std::map<std::string, std::string>& values = {}) {
  const auto result = read_schedule("mine", text, values);
  REQUIRE_FALSE(result);
  CHECK(result.error().starts_with("mine: "));
  return result.error();
}

filed_schedule pytorch(const std::string& name) {
  std::ifstream file{TROUPE_GOLDEN "/pytorch_csv/" + name + ".csv"};
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  return read(text.str());
}

/// The actions of a rank, without updates.
std::vector<action> passes(const schedule& sch, const shape& dims, int rank) {
  auto result = generate(sch, dims, rank);
  std::erase_if(result, [](const action& a) { return a.op == op::update; });
  return result;
}

/// Whether two schedules have the same placement and programs.
bool same(const schedule& a, const schedule& b, const shape& dims) {
  for (int rank = 0; rank < ranks_of(a.where, dims); ++rank)
    if (hosted_by(a.where, dims, rank) != hosted_by(b.where, dims, rank)
        || generate(a, dims, rank) != generate(b, dims, rank))
      return false;
  return ranks_of(a.where, dims) == ranks_of(b.where, dims);
}

} // namespace

// PyTorch exported these files; interleaved 1F1B is also Megatron's order.
TEST_CASE("PyTorch's files are the catalog's schedules, action by action", "[files]") {
  const auto [name, made] =
    GENERATE(std::pair{"interleaved-4x8", interleaved(2)}, std::pair{"zbv-4x8", zb_v()},
             std::pair{"dualpipev-4x10", dualpipev()});
  const auto filed = pytorch(name);
  CHECK(filed.dims.stages == 8);
  CHECK_FALSE(filed.is_whole_run);
  CHECK_FALSE(check(filed.sch, filed.dims).has_value());
  for (int rank = 0; rank < 4; ++rank)
    CHECK(passes(filed.sch, filed.dims, rank) == passes(made, filed.dims, rank));
}

TEST_CASE("PyTorch's other files are well-formed schedules", "[files]") {
  const auto zb = pytorch("interleaved_zb-4x8"), bfs = pytorch("looped_bfs-4x8");
  CHECK_FALSE(check(zb.sch, zb.dims).has_value());
  CHECK_FALSE(zb.sch.sums_in_any_order);
  CHECK_FALSE(check(bfs.sch, bfs.dims).has_value());
  CHECK(bfs.sch.sums_in_any_order);
  for (const auto& order : summing_orders(bfs.sch, bfs.dims))
    CHECK(order == std::vector{7, 6, 5, 4, 3, 2, 1, 0});
  // The actions are the catalog's, except for the order of backwards.
  for (int rank = 0; rank < 4; ++rank) {
    auto there = passes(bfs.sch, bfs.dims, rank),
         here = passes(looped_bfs(2), bfs.dims, rank);
    std::ranges::sort(there);
    std::ranges::sort(here);
    CHECK(there == here);
  }
}

TEST_CASE("what is written is read again", "[files]") {
  const auto& entry = GENERATE(from_range(catalog()));
  const auto sch = *find_schedule(entry.name);
  if (sch.local_rule())
    return;
  for (const int microbatches : {8, 12})
    for (const int steps : {1, 3}) {
      const shape dims{stages_on(sch.where, 4), microbatches, steps};
      if (!validation_error(sch, dims).empty())
        continue;
      INFO(entry.name);
      const auto again = read(write_schedule(sch, dims));
      CHECK(again.is_whole_run == sch.asynchronous());
      CHECK(again.sch.weights.name == sch.weights.name);
      CHECK(same(again.sch, sch, dims));
      for (int s = 0; s < dims.stages; ++s)
        for (int m = 0; m < dims.total() && sch.asynchronous(); ++m)
          CHECK(version_read(again.sch, dims, s, m) == version_read(sch, dims, s, m));
      CHECK_FALSE(check(again.sch, dims).has_value());
    }
}

TEST_CASE("the lowered form is checked, and computes the same", "[files]") {
  const std::string lowered =
    "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,"
    "0RESHARD\n"
    "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1REDUCE_GRAD,"
    "1RESHARD\n";
  const auto filed = read(lowered);
  CHECK(same(filed.sch, read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n").sch, filed.dims));
  const auto without = [&](const std::string& cell, const std::string& instead = "") {
    auto text = lowered;
    text.replace(text.find(cell), cell.size(), instead);
    return refused(text);
  };
  CHECK_THAT(without("1RECV_F1,"),
             ContainsSubstring("row 1: F1 of stage 1 has no RECV_F"));
  CHECK_THAT(without("0RECV_B0,"), ContainsSubstring("has no RECV_B"));
  CHECK_THAT(without("0F0,0SEND_F0", "0SEND_F0,0F0"),
             ContainsSubstring("is sent twice, or before"));
  CHECK_THAT(without("0SEND_F1", "0SEND_F0"), ContainsSubstring("is sent twice"));
  CHECK_THAT(without("1RECV_F0,1F0", "1F0,1RECV_F0"), ContainsSubstring("no RECV_F"));
  CHECK_THAT(without("0UNSHARD,"), ContainsSubstring("has RESHARD without UNSHARD"));
  CHECK_THAT(without("1UNSHARD,1RECV_F0,1F0", "1RECV_F0,1F0,1UNSHARD"),
             ContainsSubstring("UNSHARD before the action"));
  CHECK_THAT(without("0SEND_F1,"),
             ContainsSubstring("row 0: the output of 0F1 has no SEND_F"));
  CHECK_THAT(without("1B1,1SEND_B1", "1B1"), ContainsSubstring("has no SEND_B"));
  CHECK_THAT(without("0F1,0SEND_F1", "0F1,0SEND_F1,0RECV_F1"),
             ContainsSubstring("is received twice, or after"));
  CHECK_THAT(without("0F0,0SEND_F0", "0RECV_F0,0F0,0SEND_F0"),
             ContainsSubstring("comes from no other row"));
  CHECK_THAT(without("1F0,1B0", "1F0,1SEND_F0,1B0"),
             ContainsSubstring("goes to no other row"));
  CHECK_THAT(without("0B1,0REDUCE_GRAD", "0REDUCE_GRAD,0B1"),
             ContainsSubstring("B1 of stage 0 adds a gradient after REDUCE_GRAD"));
  CHECK_THAT(without("0REDUCE_GRAD", "0REDUCE_GRAD,0REDUCE_GRAD"),
             ContainsSubstring("twice"));
  CHECK_THAT(without("0REDUCE_GRAD", "7REDUCE_GRAD"),
             ContainsSubstring("7REDUCE_GRAD is a transfer of stage 7"));
  // One row sends nothing, and another row receives.
  CHECK_THAT(refused("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0\n"),
             ContainsSubstring("row 1: F0 of stage 1 has no RECV_F"));
}

TEST_CASE("an asynchronous schedule can be written down", "[files]") {
  // PipeDream's 1F1B on two stages, an update behind every backward.
  const std::string rows = "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n"
                           "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n";
  const auto stashed =
    read("# troupe: weights=stash,update_every=1,microbatches=2\n" + rows);
  CHECK(stashed.is_whole_run);
  CHECK(stashed.dims.microbatches == 2);
  CHECK(stashed.dims.steps == 2);
  CHECK_FALSE(check(stashed.sch, stashed.dims).has_value());
  for (int m = 0; m < 4; ++m) {
    CHECK(version_read(stashed.sch, stashed.dims, 0, m) == std::max(0, m - 1));
    CHECK(version_read(stashed.sch, stashed.dims, 1, m) == m);
  }
  const auto synced = read(rows, {{"weights", "vertical_sync"}, {"update_every", "1"}});
  CHECK(version_read(synced.sch, synced.dims, 1, 3) == 2);
  const auto late =
    read("0F0,0F1,0B0,0B1,0U1\n", {{"weights", "latest"}, {"update_every", "2"}});
  CHECK_FALSE(version_read(late.sch, late.dims, 0, 1).has_value());
  CHECK_FALSE(check(late.sch, late.dims).has_value());
}

TEST_CASE("double buffering counts updates, as versions do", "[files]") {
  const auto filed =
    read("# troupe: weights=double_buffered,update_every=2,microbatches=4\n"
         "0F0,0B0,0F1,0B1,0F2,0B2,0F3,0B3,0F4,0B4,0F5,0B5,0F6,0B6,0F7,0B7\n");
  CHECK_FALSE(check(filed.sch, filed.dims).has_value());
  for (int m = 0; m < 8; ++m)
    CHECK(version_read(filed.sch, filed.dims, 0, m) == std::max(0, m / 2 - 1));
  CHECK(bounds_of(filed.sch, filed.dims, 0)[0].versions == 2);
}

TEST_CASE("a header is one however it is spaced and quoted", "[files]") {
  for (const char* header : {"# troupe: weights=latest,update_every=1",
                             "#troupe:weights=latest,update_every=1",
                             "  #  Troupe : weights = latest , update_every = 1",
                             "\"# troupe: weights=latest\",\"update_every=1\"",
                             "\xEF\xBB\xBF# troupe: weights=latest,update_every=1\r"})
    CHECK(read(std::string{header} + "\n0F0,0B0\n").sch.weights.name == "latest");
  CHECK_FALSE(read("# troupes: update_every=1\n0F0,0B0\n").is_whole_run);
  CHECK_THAT(refused("# toupe: weights=latest\n0F0,0B0\n"),
             ContainsSubstring("line 1 is a comment with weights="));
  CHECK_FALSE(read("\xEF\xBB\xBF"
                   "0F0,0B0\n")
                .is_whole_run);
  CHECK_THAT(refused("# troupe weights=latest\n0F0,0B0\n"),
             ContainsSubstring("line 1 does not have the form '# troupe: key=value"));
}

TEST_CASE("remarks, spaces, quotes and empty cells say nothing", "[files]") {
  const auto plain = read("0F0,0B0\n"),
             noted = read("# a remark\r\n\n , \"0F0\" ,,0B0,,\r\n\n");
  CHECK(same(plain.sch, noted.sch, plain.dims));
}

TEST_CASE("what is wrong with a file is said with where", "[files]") {
  CHECK_THAT(refused(""), ContainsSubstring("the file has no action"));
  for (const char* nothing : {"0UNSHARD", "0SEND_F0\n", "0F0,0B0\n1F0,1B0\n0RESHARD\n"})
    CHECK_THAT(refused(nothing), ContainsSubstring("has no action"));
  CHECK_THAT(refused("# troupe: weights=stash\n0F0,0B0", {{"weights", "latest"}}),
             ContainsSubstring("leave either out"));
  CHECK(refused(std::string(1'000'000, '\a')).size() < 500);
  CHECK_THAT(refused("0F0,0X0\n"), ContainsSubstring("line 1: '0X0' is no action"));
  for (const std::string line : {"0B0,0F\x01", "\x01", "# a remark\x01",
                                 "# troupe: weights=flush\x01", "0B0\x01,0"}) {
    auto text = "0F0\n" + line + "\n";
    std::ranges::replace(text, '\x01', '\0');
    CHECK_THAT(refused(text), ContainsSubstring("line 2 has a NUL byte"));
  }
  for (const char* cell :
       {"F0", "0F", "-1F0", "0F-1", "0F0x", "99999999999F0", "0SEND_F", "0UNSHARD3",
        "(0F0;1F0)OVERLAP_F_B", "(0F0)OVERLAP_F_B", "(0F0;1B0)", "0F2000000"})
    CHECK_THAT(refused(std::string{"\n"} + cell), ContainsSubstring("line 2"));
  CHECK_THAT(refused("0F0,0B0\n0F1,0B1\n"),
             ContainsSubstring("is in row 0, and by F1 of stage 0 also in row 1"));
  CHECK_THAT(refused("0F0,0B0\n2F0,2B0\n"), ContainsSubstring("stage 1 is in no row"));
  CHECK_THAT(refused("# troupe: weights=odd\n0F0,0B0"),
             ContainsSubstring("write flush"));
  CHECK_THAT(refused("# troupe: weights\n0F0,0B0"), ContainsSubstring("key=value"));
  CHECK_THAT(refused("0F0,0B0", {{"depth", "1"}}),
             ContainsSubstring("a file has no parameter 'depth'"));
  CHECK_THAT(refused("0F0,0B0", {{"most_held", "0"}}), ContainsSubstring("from 1"));
  CHECK_THAT(refused("0F0,0B0", {{"update_every", "1"}}),
             ContainsSubstring("needs weights without a flush"));
  CHECK_THAT(refused("0F0,0B0", {{"microbatches", "2"}}),
             ContainsSubstring("the single batch"));
  CHECK_THAT(
    refused("0F0,0F1,0F2,0B0,0B1,0B2", {{"weights", "latest"}, {"microbatches", "2"}}),
    ContainsSubstring("whole batches"));
  CHECK_THAT(refused("0F0,0B0", {{"directions", "3"}}),
             ContainsSubstring("multiple of 2"));
  CHECK_THAT(refused("0F0,0B0", {{"directions", "2"}}),
             ContainsSubstring("equal shares"));
  CHECK_THAT(refused("0F0,1F1,1B1,0B0,0U0\n1F0,0F1,0B1,1B0\n", {{"directions", "2"}}),
             ContainsSubstring("leave U0 of stage 0 out"));
  CHECK_THAT(
    refused("0F0,0SEND_F0,1F1,1B1,0B0\n1F0,0F1,0B1,1B0\n", {{"directions", "2"}}),
    ContainsSubstring("allows no transfers like SEND_F and UNSHARD"));
  CHECK_THAT(refused("0F0,0F1,0B1,0B0", {{"weights", "latest"}}),
             ContainsSubstring("out of the order of microbatches"));
  const auto filed = read("0F0,0F1,0B0,0B1\n");
  CHECK_THAT(validation_error(filed.sch, {1, 3}),
             ContainsSubstring("fits only the sizes of its file"));
  CHECK_THAT(validation_error(filed.sch, {2, 2}),
             ContainsSubstring("1 stage on 1 rank and 2 microbatches a batch"));
  CHECK(validation_error(filed.sch, {1, 2, 7}).empty());
  const auto whole = read("0F0,0B0,0F1,0B1", {{"weights", "latest"}});
  CHECK_THAT(
    validation_error(whole.sch, {.stages = 1, .microbatches = 2, .batches_before = 2}),
    ContainsSubstring("a schedule of the catalog"));
}

TEST_CASE("a file in PyTorch 2.5's notation is the same schedule as in today's",
          "[files]") {
  const auto same_as = [](const std::string& older, const std::string& newer) {
    const auto a = read(older), b = read(newer);
    REQUIRE(a.dims.stages == b.dims.stages);
    CHECK_FALSE(check(a.sch, a.dims));
    CHECK(same(a.sch, b.sch, b.dims));
  };
  std::ifstream file{TROUPE_GOLDEN "/reports/pytorch-2.5-notation.csv"};
  std::stringstream text;
  text << file.rdbuf();
  same_as(text.str(), "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n"
                      "1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1F3,1I3,1W2,1W3\n");
  // Files without a whole backward, and with one in a pair.
  same_as("0F0,0B0,0W0\n1F0,1B0,1W0\n", "0F0,0I0,0W0\n1F0,1I0,1W0\n");
  same_as("0F0,0F1,(0F2;0BW0)OVERLAP_F_B,0BW1,0BW2\n",
          "0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n");
  same_as("0F0,0SEND_F0,0RECV_B0,0BW0\n1RECV_F0,1F0,1B0,1SEND_B0,1W0\n",
          "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1I0,1SEND_B0,1W0\n");
  // B and W of different microbatches are of no older notation.
  CHECK(read("0F0,0F1,0B0,0I1,0W1\n").dims.microbatches == 2);
  CHECK_THAT(
    refused("0F0,0BW0\n1F0,1I0,1W0\n"),
    ContainsSubstring("'0BW0' is in the notation of PyTorch 2.5, but '1I0' in the "
                      "notation of later versions: write B for a whole backward"));
}

TEST_CASE("a wrong schedule of each kind is drawn with the step marked", "[files]") {
  const auto told = [](const std::string& text, const std::string& values = "") {
    const auto filed =
      read((values.empty() ? "" : "# troupe: " + values + "\n") + text);
    const auto fault = check(filed.sch, filed.dims);
    REQUIRE(fault.has_value());
    return to_string(*fault);
  };
  const auto holds = [&](const std::string& is, const std::string& what,
                         const std::string& step, const std::string& mend) {
    CHECK_THAT(is, ContainsSubstring(what));
    CHECK_THAT(is, ContainsSubstring("[" + step + "]"));
    CHECK_THAT(is, ContainsSubstring("It might help to " + mend));
  };
  holds(told("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"), "deadlock", "B0",
        "run F1 of rank 0");
  CHECK_THAT(told("0F0,0B0,0B1\n1F0,1B0,1F1,1B1\n"),
             ContainsSubstring("F1 of stage 0") && ContainsSubstring("[B1]"));
  holds(told("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1F1,1B1\n"), "comes twice", "F1",
        "leave the second F1 of stage 1 out");
  holds(told("0F0,0F1,0B0,0B1\n1F0,1B0,1B1,1F1\n"), "comes before its forward", "B1",
        "move B1 of stage 1 after F1 of stage 1");
  holds(told("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "most_held=1"),
        "the rank may hold 1", "F1", "run a backward before F1 of stage");
  holds(told("0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n",
             "weights=double_buffered,update_every=1,microbatches=1"),
        "reads version 1", "F2",
        "move F2 of stage 0 after the update that makes version 1");
  CHECK_THAT(told("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n"), ContainsSubstring("[U1]"));
}

} // namespace troupe::schedule_file_test
