// SPDX-License-Identifier: BSD-3-Clause
// The requests of an expert when rows arrive, in order.

#include "actors/experts/expert_core.hpp"

#include "tests/actors/tiny.hpp"
#include "tests/actors/written_port.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

namespace troupe::expert_core_test {

using Catch::Approx;
using Catch::Matchers::Message;
using lines = std::vector<std::string>;

namespace {

constexpr position host{1, 0, 1};

std::shared_ptr<const run_plan> spread_experts() {
  auto plan = tiny::simulation(one_f_one_b(), {2, 2, 2});
  plan.mesh[axis::data] = plan.mesh[axis::expert] = 2;
  plan.exchange = find_exchange("ring");
  return std::make_shared<const run_plan>(plan);
}

/// Work of the test's own: 100 operations for each sample of the stage. A row takes a
/// tenth of a sample.
class counting_work : public simulated_expert {
public:
  double operations_of_stage() const override { return 100; }
  double share_of(std::int64_t rows, double samples) const override {
    return 0.1 * static_cast<double>(rows) / samples;
  }
  void compute(const rows_by_source& rows) override {
    for (const auto& one : rows)
      computed.push_back(one.source);
  }

  std::vector<int> computed; ///< Sources, in order.
};

/// The expert of stage 1 that data replica 1 hosts.
struct asked_expert {
  void give(int source, std::int64_t rows, op what = op::forward, int microbatch = 0,
            bool begins_sum = false) {
    mail::rows_to_expert letter{{what, 0, 1, microbatch}, source, rows, {}, {}};
    if (source == host.data)
      letter.loan = mail::lent_arrays{{}, {}, 6, begins_sum};
    core.receive({{role::expert, host, 3}, meeting_kind::experts, std::move(letter)});
  }

  std::shared_ptr<const run_plan> plan = spread_experts();
  tiny::written_port port;
  std::shared_ptr<counting_work> work = std::make_shared<counting_work>();
  expert_core core{plan, host, 3, port, work};
};

const lines answers{"writes rows_from_expert", "writes rows_from_expert"};

} // namespace

TEST_CASE("an expert arrives when all data replicas have sent rows, and answers each",
          "[expert]") {
  asked_expert e;
  e.give(1, 2);
  CHECK(e.port.news().empty());
  e.give(0, 3);
  CHECK(e.port.news() == lines{"arrived F0"});
  e.core.run({op::forward, 0, 1, 0});
  CHECK(e.port.news() == lines{"computes F0"});
  const auto& work = e.port.works.front().first;
  CHECK(work.kind == static_cast<int>(op::forward));
  CHECK(work.operations == 100); // a microbatch is one sample
  REQUIRE(work.parts.size() == 1);
  CHECK(work.parts[0].share == 0.5);
  e.port.run_work(e.core, 4, 6);
  CHECK(e.work->computed == std::vector{0, 1}); // in the order of arrival
  CHECK(e.port.news() == lines{"done F0", answers[0], answers[1]});
  const auto& took = e.port.measured.back();
  CHECK(took.part);
  CHECK(took.expert == 3);
  CHECK(took.version == 6); // that was borrowed
  CHECK(took.start == 4);
  CHECK(took.end == 6);
  const auto letters = e.port.mail();
  for (int d = 0; d < 2; ++d) {
    const auto& one = letters[static_cast<std::size_t>(d)];
    CHECK(one.to == performer{role::stage, {d, 0, 1}});
    CHECK(one.meeting == meeting_kind::experts);
    CHECK(std::get<mail::rows_from_expert>(one.body).expert == 1); // of the stage's two
    CHECK(one.kind == (d == 1 ? std::nullopt : std::optional{traffic::experts}));
    CHECK(one.bytes == (d == 0 ? 12 : 8));
  }
}

TEST_CASE("an expert's work is what its action asks for", "[expert]") {
  asked_expert e;
  const auto ask = [&](op what, int microbatch) {
    e.give(0, 2, what, microbatch);
    e.give(1, 1, what, microbatch);
    e.core.run({what, 0, 1, microbatch});
    const auto work = e.port.works.front().first;
    e.port.run_work(e.core);
    return work.operations * work.parts[0].share;
  };
  CHECK(ask(op::forward, 0) == Approx(30));
  CHECK(ask(op::backward, 0) == Approx(60));
  CHECK(ask(op::recompute, 1) == Approx(30));
  CHECK(ask(op::input_gradient, 1) == Approx(30));
  CHECK(ask(op::weight_gradient, 1) == Approx(30));
}

TEST_CASE("an answer to a weight gradient weighs nothing", "[expert]") {
  asked_expert e;
  e.give(0, 2, op::weight_gradient);
  e.give(1, 1, op::weight_gradient);
  e.core.run({op::weight_gradient, 0, 1, 0});
  e.port.run_work(e.core);
  for (const auto& letter : e.port.mail())
    CHECK(letter.bytes == 0);
}

TEST_CASE("an expert that nobody sends rows answers at once, and asks no scheduler",
          "[expert]") {
  asked_expert e;
  e.give(0, 0);
  e.give(1, 0);
  CHECK(e.port.news() == answers);
  CHECK(e.work->computed.empty());
  e.give(0, 0, op::backward);
  e.give(1, 0, op::backward, 0, true); // an update's gradients begin as 0
  CHECK(e.port.news() == lines{"arrived B0"});
}

TEST_CASE("rows of the next action may come while those of one are computed on",
          "[expert]") {
  asked_expert e;
  e.give(0, 1);
  e.give(1, 1);
  e.core.run({op::forward, 0, 1, 0});
  e.port.news();
  e.give(0, 2, op::forward, 1);
  CHECK(e.port.news().empty());
  e.port.run_work(e.core);
  e.port.news();
  e.give(1, 2, op::forward, 1);
  CHECK(e.port.news() == lines{"arrived F1"});
}

TEST_CASE("rows that do not belong together are refused", "[expert]") {
  asked_expert twice, mixed;
  twice.give(0, 1);
  CHECK_THROWS_MATCHES(
    twice.give(0, 1, op::forward, 1), std::logic_error,
    Message("got rows of F1 of stage 1 before F0 of stage 1 was done"));
  mixed.give(0, 1);
  CHECK_THROWS_MATCHES(mixed.give(1, 1, op::backward), std::logic_error,
                       Message("got rows of F0 of stage 1 and of B0 of stage 1"));
}

TEST_CASE("an expert says whose rows are missing", "[expert]") {
  asked_expert e;
  CHECK(e.core.name() == "expert 1 with stage 1 (replica 1)");
  CHECK(e.core.explain().input.empty());
  e.give(1, 2);
  CHECK(e.core.explain().actor == e.core.name());
  CHECK(e.core.explain().input == "the rows of F0 of stage 1");
  CHECK(e.core.explain().peer == "stage 1");
  e.give(0, 2);
  CHECK(e.core.explain().input.empty());
}

TEST_CASE("an expert has given back what its stage lent when it answers", "[expert]") {
  memory_account account;
  pool gradients{"gradients", 1, 16, account};
  tiny::pool_watching_port port{gradients};
  const auto plan = spread_experts();
  expert_core core{plan, host, 3, port, std::make_shared<simulated_expert>()};
  for (const int source : {0, 1}) {
    mail::rows_to_expert letter{{op::forward, 0, 1, 0}, source, 2, {}, {}};
    if (source == host.data)
      letter.loan = mail::lent_arrays{{}, gradients.acquire(), 6, false};
    core.receive({{role::expert, host, 3}, meeting_kind::experts, std::move(letter)});
  }
  core.run({op::forward, 0, 1, 0});
  port.run_work(core);
  CHECK(port.mail().size() == 2);
}

} // namespace troupe::expert_core_test
