// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/job_line.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::job_line_test {

namespace {

device_job job(int microbatch, std::int64_t turn = no_turn) {
  return {{.microbatch = microbatch, .turn = turn}, {}};
}

/// The microbatches of all jobs that can run now.
std::string all(job_line& line) {
  std::string result;
  while (!line.empty())
    result += std::to_string(line.next().item.microbatch);
  return result;
}

} // namespace

TEST_CASE("works with turns come into line in the order of their turns", "[device]") {
  std::vector<int> turns{0, 1, 2, 3};
  do {
    job_line line;
    for (const int turn : turns)
      line.add(job(turn, turn));
    CHECK(all(line) == "0123");
    CHECK(line.idle());
  } while (std::ranges::next_permutation(turns).found);
}

TEST_CASE("a work whose turn has not come is no work to do, but the line is not idle",
          "[device]") {
  job_line line;
  line.add(job(5, 1));
  CHECK(line.empty());
  CHECK_FALSE(line.idle());
  line.add(job(4, 0));
  CHECK(all(line) == "45");
  line.add(job(7, 3));
  line.add(job(6, 2));
  CHECK(all(line) == "67"); // turns continue at the same number
}

TEST_CASE("works without turns go behind those that are in line", "[device]") {
  job_line line;
  line.add(job(0, 0));
  line.add(job(8));
  line.add(job(2, 2)); // early
  line.add(job(9));
  line.add(job(1, 1));
  CHECK(all(line) == "08912");
}

TEST_CASE("a line that is cleared is idle", "[device]") {
  job_line line;
  line.add(job(0, 0));
  line.add(job(2, 2));
  line.clear();
  CHECK(line.empty());
  CHECK(line.idle());
}

} // namespace troupe::job_line_test
