// SPDX-License-Identifier: BSD-3-Clause
// Nodes without capacity for another connection, or without threads.

#include "messaging/links/acceptor.hpp"
#include "tests/experiments/started.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::crowded_nodes_test {

TEST_CASE("who asks a node that has no place left is told so", "[nodes]") {
  const temporary_folder folder;
  const started_nodes nodes{folder, 1};
  const auto where = *troupe::parse_address(nodes.list.front());
  std::vector<std::unique_ptr<troupe::byte_stream>> crowd;
  for (int i = 0; i < 16 + 8; ++i) // 8 runs may wait unless --queue says otherwise
    crowd.push_back(std::move(*troupe::connect_and_greet(
      where, troupe::plain_stream, troupe::greeting{}, std::chrono::seconds{5})));
  const auto asked = run_program_in(folder, "node --status " + nodes.list.front());
  CHECK(asked.exit_code == 1);
  CHECK(asked.err
        == "node: node " + nodes.list.front()
             + ": it accepts no more connections: 24 wait already, and silent "
               "connections are closed after 30 s\n");
}

#ifndef TROUPE_SANITIZED // sanitizers start threads of their own
TEST_CASE("a node whose user may start few threads ends with a sentence", "[nodes]") {
  const temporary_folder folder;
  // Root has no such limit of processes.
  const std::string user =
    geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups -- " : "";
  const auto allowed = GENERATE(1, 2, 4, 6, 8);
  const auto limited = [&](const std::string& typed) {
    return run_shell_in(folder, "timeout -s KILL 60 prlimit --nproc="
                                  + std::to_string(allowed) + " " + user + typed);
  };
  const auto node = limited(program_path("node") + " --listen 127.0.0.1:0 --folder /");
  INFO(allowed << ": " << node.err);
  CHECK(node.exit_code == 2);
  CHECK_THAT(node.err, Catch::Matchers::StartsWith(
                         "node: connections to other processes need 8 more threads; "
                         "the system lets this user start "));
}
#endif

} // namespace troupe::crowded_nodes_test
