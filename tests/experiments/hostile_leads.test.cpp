// SPDX-License-Identifier: BSD-3-Clause
// Messages of hostile leaders to a node: any peer that can reach the node may claim to
// be a leader.

#include "actors/nodes/node_links.hpp"
#include "experiments/options/options_text.hpp"
#include "kernels/version.hpp"
#include "messaging/links/frame.hpp"
#include "messaging/links/node_address.hpp"
#include "tests/dice.hpp"
#include "tests/experiments/started.hpp"
#include "tests/experiments/tiny_options.hpp"
#include "tests/messaging/some_mail.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace troupe::hostile_leads_test {

using namespace std::chrono_literals;

namespace {

/// A leader's first request to a node: to run both ranks of a run.
troupe::wire::node_message part_of_a_run(const std::string& node) {
  using namespace troupe;
  const auto options = parse(typed_options{.model = {.name = "mlp", .width = 8},
                                           .mesh = {.stages = 2},
                                           .schedules = {.names = {"1f1b"}}},
                             true);
  return mail::prepare{.version = version(),
                       .generation = 1,
                       .node = 1,
                       .nodes = {node},
                       .node_map = {1, 1},
                       .options = to_text(*options),
                       .failure_timeout = 1'000'000'000};
}

} // namespace

TEST_CASE("a node goes on, whatever leads have said to it", "[nodes]") {
  temporary_folder folder;
  started_nodes nodes{folder, 1};
  const auto where = *troupe::parse_address(nodes.list.front());
  dice random{5};
  int played = 0;
  for (int visit = 0; visit < 60; ++visit) {
    const auto socket = troupe::connect_to(where, 1s);
    REQUIRE(socket);
    const troupe::greeting hello{.intent = visit % 6 == 5
                                             ? troupe::greeting::purpose::tensors
                                             : troupe::greeting::purpose::leader};
    const auto say = [&](const void* bytes, std::size_t size) {
      (void)send(socket->get(), bytes, size, MSG_NOSIGNAL);
    };
    say(&hello, sizeof hello);
    auto all = some_mail::each_of<troupe::wire::node_message>(random);
    if (visit % 2 == 0) { // then the node runs its part, or tries
      all.insert(all.begin(), part_of_a_run(nodes.list.front()));
      ++played;
    }
    std::uint64_t sequence = 0;
    for (const auto& mail : all) {
      const auto text = troupe::wire::encode(mail);
      const auto kind = random.coin() || &mail == &all.front()
                          ? troupe::control_kind::node
                          : troupe::control_kind::actors;
      const auto header = troupe::header_of(
        kind, static_cast<std::uint32_t>(random.number(0, 2)), sequence++, text);
      say(&header, sizeof header);
      say(text.data(), text.size());
      if (random.number(0, 3) == 0)
        std::this_thread::sleep_for(1ms);
    }
  }
  CHECK(played == 30);
  const auto common = std::string{"--model mlp --d-model 8 --stages 2 --steps 2 "
                                  "--evaluate-samples 0 --quiet --save "};
  const auto there = run_program_in(folder, "train " + common + "b.safetensors --nodes "
                                              + nodes.addresses());
  INFO(there.err << nodes.all.front().said());
  REQUIRE(there.exit_code == 0);
  REQUIRE(run_program_in(folder, "train " + common + "a.safetensors").exit_code == 0);
  CHECK(content_of(folder.path() / "a.safetensors")
        == content_of(folder.path() / "b.safetensors"));
}

} // namespace troupe::hostile_leads_test
