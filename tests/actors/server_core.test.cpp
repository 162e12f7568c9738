// SPDX-License-Identifier: BSD-3-Clause
// A parameter server without a mailbox: one push after another, and the replicas that
// wait.

#include "actors/updates/server_core.hpp"

#include "tests/actors/tiny.hpp"
#include "tests/actors/written_port.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::server_core_test {

using lines = std::vector<std::string>;

namespace {

constexpr position place{0, 0, 0};

std::shared_ptr<const run_plan> with_servers(const std::string& exchange, int data) {
  auto plan = tiny::simulation(*find_schedule("1f1b"), {1, 1, 4});
  plan.mesh[axis::data] = data;
  plan.exchange = find_exchange(exchange);
  return std::make_shared<const run_plan>(plan);
}

struct served {
  explicit served(const std::string& exchange, int data = 2)
    : plan(with_servers(exchange, data)),
      core(plan, place, port,
           {std::make_shared<shared_parameters>(*plan, place, nullptr), nullptr}) {
    // nop
  }

  void push(int data) {
    core.receive(
      {{role::parameter_server, place},
       meeting_kind::servers,
       mail::push{.data = data, .samples = 1, .factor = 1, .gradients = {}, .to = {}}});
  }

  /// Applies what has arrived; returns the data replicas that are answered.
  std::vector<int> applied() {
    core.run({op::update, 0, 0, 0});
    port.run_work(core);
    std::vector<int> answered;
    for (const auto& letter : port.mail()) {
      CHECK(letter.to.kind == role::optimizer_shard);
      CHECK(letter.kind.has_value() == (letter.to.where.data != place.data));
      answered.push_back(letter.to.where.data);
    }
    return answered;
  }

  std::shared_ptr<const run_plan> plan;
  tiny::written_port port;
  server_core core;
};

} // namespace

TEST_CASE("a server applies pushes one by one, in the order in which they come",
          "[server]") {
  served s{"server:async", 3};
  s.push(2);
  s.push(0);
  s.push(1);
  CHECK(s.port.news() == lines{"arrived U0"});
  CHECK(s.applied() == std::vector{2});
  CHECK(
    s.port.news()
    == lines{"computes U0", "writes pulled from server 0", "done U0", "arrived U0"});
  CHECK(s.applied() == std::vector{0});
  CHECK(s.applied() == std::vector{1});
  CHECK(s.port.news().back() == "done U0"); // and no push arrives any more
}

TEST_CASE("a server has given a version's buffers back when it answers", "[server]") {
  memory_account account;
  pool versions{"versions", 1, 16, account};
  const auto plan = with_servers("server:async", 2);
  tiny::pool_watching_port port{versions};
  server_core core{
    plan,
    place,
    port,
    {std::make_shared<shared_parameters>(*plan, place, nullptr), nullptr}};
  core.receive({{role::parameter_server, place},
                meeting_kind::servers,
                mail::push{.data = 1,
                           .samples = 1,
                           .factor = 1,
                           .gradients = {},
                           .to = {versions.acquire()}}});
  core.run({op::update, 0, 0, 0});
  port.run_work(core);
  CHECK(port.mail().size() == 1);
}

TEST_CASE("servers let wait until the slowest comes, and say for whom", "[server]") {
  served s{"server:staleness=1"};
  s.push(0);
  CHECK(s.applied() == std::vector{0});
  CHECK(s.core.explain().input.empty());
  s.push(0);
  CHECK(s.applied().empty());
  CHECK(s.core.explain().peer == s.plan->optimizer_of({1, 0, 0}));
  s.push(1);
  CHECK(s.applied() == std::vector{0, 1});
  CHECK(s.core.explain().input.empty());
}

} // namespace troupe::server_core_test
