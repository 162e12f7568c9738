// SPDX-License-Identifier: BSD-3-Clause
// Programs that the check accepts: every schedule of the catalog, and no program that
// cannot be run.

#include "schedules/bounds.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/check.hpp"
#include "schedules/program.hpp"
#include "tests/schedules/examples.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

namespace troupe::check_passes_test {

TEST_CASE("every schedule of the catalog passes at every size it allows", "[check]") {
  const auto& entry = GENERATE(from_range(catalog()));
  const auto sch = *find_schedule(entry.name);
  for (int stages = 1; stages <= 9; ++stages)
    for (const int microbatches : {1, 2, 3, 4, 7, 8, 12, 32})
      for (const int steps : {1, 3}) {
        const shape dims{stages, microbatches, steps};
        if (!validation_error(sch, dims).empty())
          continue;
        const auto fault = check(sch, dims);
        INFO(sch.name << " " << stages << "x" << microbatches << "x" << steps);
        INFO((fault ? to_string(*fault) : ""));
        CHECK_FALSE(fault.has_value());
      }
}

// The test need not count stashes: the version ledger itself throws.
TEST_CASE("programs that pass can be run, whatever was changed in them", "[check]") {
  std::mt19937 random{7};
  const auto below = [&](std::size_t n) { return random() % n; };
  int accepted = 0, refused = 0;
  for (const auto& made : {one_f_one_b(), pipedream(1, false), pipedream(2, true),
                           two_bw(), zb_h1(), zb_v(), dualpipev(),
                           chimera({.pairs = 2}), chimera({.forward_doubling = true})})
    for (int turn = 0; turn < 150; ++turn) {
      const shape dims{stages_on(made.where, 2) * (made.where.directions > 2 ? 2 : 1),
                       4, 2};
      REQUIRE(validation_error(made, dims).empty());
      std::vector<std::vector<action>> all;
      for (int rank = 0; rank < ranks_of(made.where, dims); ++rank)
        all.push_back(generate(made, dims, rank));
      auto& row = all[below(all.size())];
      const auto at = below(row.size() - 1);
      switch (below(4)) {
      case 0:
        row.erase(row.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        row.insert(row.begin() + static_cast<std::ptrdiff_t>(below(row.size())),
                   row[at]);
        break;
      case 2:
        std::swap(row[at], row[at + 1]);
        break;
      default:
        row[at].microbatch = static_cast<int>(below(8));
      }
      auto sch = made;
      sch.repeats = false;
      sch.order = explicit_program{[all](int rank, const shape&) -> action_generator {
        return [one = all[static_cast<std::size_t>(rank)],
                i = std::size_t{0}]() mutable -> std::optional<action> {
          return i == one.size() ? std::optional<action>{} : one[i++];
        };
      }};
      if (check(sch, dims)) {
        ++refused;
        continue;
      }
      ++accepted;
      INFO(sch.name << " turn " << turn);
      for (int rank = 0; rank < ranks_of(sch.where, dims); ++rank)
        for (const auto& [stashes, split, versions] : bounds_of(sch, dims, rank)) {
          CHECK(stashes <= dims.total());
          CHECK(versions <= dims.total() + 1);
        }
    }
  CHECK(accepted > 50);
  CHECK(refused > 500);
}

} // namespace troupe::check_passes_test
