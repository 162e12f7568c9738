// SPDX-License-Identifier: BSD-3-Clause
// Nodes that are lost before a run begins: losses, and mistakes of the user.

#include "actors/nodes/control_lines.hpp"
#include "messaging/links/expects_tls.hpp"
#include "tests/actors/nodes.hpp"
#include "tests/actors/slow_relay.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <memory>
#include <string>

namespace troupe::roll_call_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using Catch::Matchers::ContainsSubstring;
using step = node_registry::step;

namespace {

/// A line to an address that never answers.
class silent_line : public control_line {
public:
  void send(control_frame) override {}
  void limit_unsent(std::size_t) override {}
  void close() override {}
};

/// The failure with which a wait for nodes ends.
node_failure failure_of(node_registry& nodes, step how_far = step::ready) {
  try {
    nodes.await(how_far, nullptr);
  } catch (const node_failure& wrong) {
    return wrong;
  }
  FAIL("all nodes have come so far");
  return node_failure{""};
}

} // namespace

TEST_CASE("a node that has answered and goes is a loss; others are a user's mistake",
          "[nodes]") {
  node_registry nodes{{"node 1", "node 2"}, 5s, {}};
  SECTION("it has answered") {
    nodes.receive(1, mail::beat{});
    nodes.lose(1, "it has closed the connection");
    const auto wrong = failure_of(nodes);
    CHECK(wrong.is_loss);
    CHECK(wrong.what() == std::string{"node 1 is lost: it has closed the connection"});
  }
  SECTION("it has never answered") {
    nodes.lose(1, "it has closed the connection");
    const auto wrong = failure_of(nodes);
    CHECK_FALSE(wrong.is_loss);
    CHECK_THAT(wrong.what(),
               ContainsSubstring("perhaps --tls is given only on one side")
                 && ContainsSubstring("before it sent anything"));
  }
  SECTION("it speaks another protocol") {
    nodes.lose(1, "it does not use troupe's protocol");
    const auto wrong = failure_of(nodes);
    CHECK_FALSE(wrong.is_loss);
    CHECK_THAT(wrong.what(),
               ContainsSubstring("node 1: it does not use troupe's protocol; perhaps "
                                 "--tls is given only on one side"));
  }
  SECTION("it expects TLS") {
    nodes.lose(1, expects_tls);
    CHECK(failure_of(nodes).what()
          == "node 1: it expects TLS; say --tls CERTIFICATE,KEY,AUTHORITY"s);
  }
  SECTION("it refuses") {
    nodes.receive(1, mail::refused{"it runs at most 1 ranks"});
    CHECK_FALSE(failure_of(nodes).is_loss);
  }
  SECTION("it refuses for a reason that stays") {
    const auto sent = wire::encode(
      wire::node_message{mail::refused{.why = "it has no such file", .lasts = true}});
    nodes.receive(1, wire::decode_node_message(sent).value());
    CHECK_THROWS_AS(nodes.await(step::ready, nullptr), lasting_refusal);
  }
  SECTION("its owner ends it") {
    nodes.receive(1, mail::refused{"a user ended the node", true});
    CHECK(failure_of(nodes).is_loss);
  }
  SECTION("a mistake is named before a loss") {
    nodes.receive(1, mail::beat{});
    nodes.lose(1, "it has closed the connection");
    nodes.lose(2, "it has closed the connection");
    const auto wrong = failure_of(nodes);
    CHECK_FALSE(wrong.is_loss);
    CHECK_THAT(wrong.what(), ContainsSubstring("node 2"));
  }
}

TEST_CASE("an address that says nothing is told of as one that may be no node",
          "[nodes]") {
  node_registry nodes{{"node 1"}, 20ms, {}};
  nodes.add(1, std::make_shared<silent_line>());
  const auto wrong = failure_of(nodes);
  CHECK_FALSE(wrong.is_loss);
  CHECK_THAT(wrong.what(),
             ContainsSubstring("node 1: it has sent nothing for 20 ms; perhaps --tls "
                               "is given only on one side"));
}

TEST_CASE("a link between nodes that breaks at the start is a loss if it was there",
          "[nodes]") {
  node_registry nodes{{"node 1", "node 2"}, 20ms, {}};
  for (const std::uint64_t node : {1, 2}) {
    nodes.receive(static_cast<int>(node), mail::identity{{node, node}});
    nodes.receive(static_cast<int>(node), mail::prepared{});
  }
  SECTION("it was") {
    nodes.receive(1, mail::connected{});
    nodes.receive(1, mail::lost_node{2, "closed"});
    const auto wrong = failure_of(nodes);
    CHECK(wrong.is_loss);
    CHECK_THAT(wrong.what(), ContainsSubstring("closed"));
  }
  SECTION("they have never reached each other") {
    nodes.receive(1, mail::lost_node{2, "no route"});
    const auto wrong = failure_of(nodes);
    CHECK_FALSE(wrong.is_loss);
    CHECK_THAT(wrong.what(), ContainsSubstring("between node 1 and node 2"));
  }
  SECTION("a reason has the names of both ends") {
    nodes.receive(1, mail::lost_node{2, "it refuses this side's certificate"});
    CHECK_THAT(failure_of(nodes).what(),
               ContainsSubstring("between node 1 and node 2 is broken: node 2 refuses "
                                 "node 1's certificate"));
  }
  SECTION("the end that says why goes before the end that saw the line end") {
    nodes.receive(2, mail::lost_node{1, line_end});
    nodes.receive(1, mail::lost_node{2, "it refuses this side's certificate"});
    CHECK_THAT(failure_of(nodes).what(),
               ContainsSubstring("node 2 refuses node 1's certificate"));
  }
  SECTION("the other one is gone") {
    nodes.receive(1, mail::lost_node{2, "refused"});
    nodes.lose(2, "it has closed the connection");
    const auto wrong = failure_of(nodes);
    CHECK(wrong.is_loss);
    CHECK_THAT(wrong.what(), ContainsSubstring("node 2 is lost"));
  }
}

TEST_CASE("a node that goes while parameters are handed out is a loss", "[nodes]") {
  auto plan = tiny::training_of(one_f_one_b(), {2, 2, 2}, clock_kind::real);
  plan.work->from_values = true;
  nodes_here there{plan, 2};
  auto& cluster = there.reached_by();
  const auto direct = cluster.nodes[1];
  auto to_second = std::make_unique<slow_relay>(direct, 0ms);
  cluster.nodes[1].port = to_second->port();
  plan.work->weights = [values = plan.work->weights, &to_second](std::size_t layer,
                                                                 float* bucket) {
    to_second.reset();
    values(layer, bucket);
  };
  try {
    (void)there.perform(plan);
    FAIL("nobody was lost");
  } catch (const node_failure& wrong) {
    INFO(wrong.what());
    CHECK(wrong.is_loss);
  }
  cluster.nodes[1] = direct;
  CHECK(there.perform(plan).outcome == ending::finished);
}

TEST_CASE("an address that does not answer is no loss", "[nodes]") {
  const auto plan = tiny::training_of(one_f_one_b(), {2, 2, 1}, clock_kind::real);
  nodes_here there{plan, 2};
  there.reached_by().nodes[1].port = 1;
  try {
    (void)there.perform(plan);
    FAIL("nobody listens there");
  } catch (const node_failure& wrong) {
    CHECK_FALSE(wrong.is_loss);
  }
}

} // namespace troupe::roll_call_test
