// SPDX-License-Identifier: BSD-3-Clause
// Tests --machines: which ranks share a machine, and the links between machines.

#include "experiments/options/machine_options.hpp"

#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

namespace troupe::machine_options_test {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("machines are ranks on each, and links between them", "[setup]") {
  temporary_folder folder;
  const auto parsed = [&](const std::string& text, const std::string& links = "") {
    folder.write("links.csv", links);
    return parse_machines(text, {.latency = 5, .bytes_per_second = 7}, 12);
  };
  CHECK(parsed("")->model.ranks_each == 0);
  const auto four = parsed("ranks=4,latency=0.5,bandwidth=1e9");
  REQUIRE(four);
  CHECK(four->model.ranks_each == 4);
  CHECK(four->model.inside == link_cost{5, 7});
  CHECK(four->model.between == link_cost{500'000, 1e9});
  const auto links =
    "ranks=4,bandwidth=1e9,links=" + (folder.path() / "links.csv").string();
  const auto pairs = parsed(links, "# two machines\n\n2,0,40,2.5e7\r\n");
  REQUIRE(pairs);
  CHECK(pairs->links == (folder.path() / "links.csv").string());
  CHECK(pairs->model.between_machines(0, 2) == link_cost{40'000'000, 2.5e7});
  CHECK(pairs->model.between_machines(2, 0) == link_cost{40'000'000, 2.5e7});
  CHECK(pairs->model.between_machines(0, 1) == link_cost{0, 1e9});
  CHECK(parsed(links, "\xef\xbb\xbf# marked\n2,0,40,2.5e7")); // as some editors write
  for (const char* wrong : {"ranks=0", "ranks=1.5", "latency=1", "ranks=2,ranks=2",
                            "ranks=2,speed=1", "ranks=2,latency=-1", "8"})
    CHECK_THAT(parsed(wrong).error(), ContainsSubstring("write ranks=8,latency=0.05"));
  for (const char* wrong : {"0,3,1,1e9", "1,1,1,1e9", "0,1,1", "0,1,x,1e9",
                            "0,1,1,1e9\n1,0,1,1e9", "0,1,1,0.5"})
    CHECK_THAT(parsed(links, wrong).error(), ContainsSubstring("from 0 to 2"));
  CHECK_THAT(parsed("ranks=4,links=/nowhere").error(),
             ContainsSubstring("cannot read the links /nowhere"));
  REQUIRE(mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(parsed("ranks=4,links=" + (folder.path() / "pipe").string()).error(),
             ContainsSubstring("it is a FIFO"));
}

} // namespace troupe::machine_options_test
