// SPDX-License-Identifier: BSD-3-Clause
// Any exception of user code becomes one sentence of the result, and no exception
// leaves train().

#include "tests/actors/brittle_data.hpp"
#include "tests/actors/embedded.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::own_failures_test {

using namespace embedded;

namespace {

using happening = std::function<void()>;

/// An exception to throw, and the text that a report has for it.
struct thrown {
  happening what;
  std::string text;
};

const thrown with_text{[] { throw std::runtime_error("no luck"); }, "no luck"},
  without_text{[] { throw 7; }, "an exception of unknown type"},
  of_memory{[] { throw std::bad_alloc(); }, "out of memory"};

/// A layer of which one function fails.
class brittle_own : public plain_linear {
public:
  enum class at : std::uint8_t { forward, input_gradient, weight_gradient, room, cost };

  brittle_own(at where, happening what)
    : plain_linear("b", 8, 8), where_(where), what_(std::move(what)) {}

  buffer_sizes buffers_for(std::int64_t samples) const override {
    happen(at::room);
    return plain_linear::buffers_for(samples);
  }
  double operations() const override {
    happen(at::cost);
    return plain_linear::operations();
  }
  void forward(const user_pass& p) const override {
    happen(at::forward);
    plain_linear::forward(p);
  }
  void input_gradient(const user_pass& p) const override {
    happen(at::input_gradient);
    plain_linear::input_gradient(p);
  }
  void weight_gradient(const user_pass& p) const override {
    happen(at::weight_gradient);
    plain_linear::weight_gradient(p);
  }

private:
  void happen(at here) const {
    if (here == where_)
      what_();
  }

  at where_;
  happening what_;
};

/// A meeting of which one function fails, in data replica 1.
class brittle_meeting : public user_exchange {
public:
  enum class at : std::uint8_t { begin, take, over };

  brittle_meeting(const exchange_member& here, at where, happening what)
    : here_(here), where_(where), what_(std::move(what)) {}

  std::vector<exchange_message> begin(std::span<const std::span<float>>) override {
    happen(at::begin);
    return {{1 - here_.replica, {}}};
  }
  std::vector<exchange_message> receive(int, std::span<const std::byte>) override {
    happen(at::take);
    return {};
  }
  bool is_done() const override {
    happen(at::over);
    return false;
  }

private:
  void happen(at here) const {
    if (here == where_ && here_.replica == 1)
      what_();
  }

  exchange_member here_;
  at where_;
  happening what_;
};

std::string failure_of(const training_job& job) {
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->outcome == ending::failed);
  return result->failure;
}

} // namespace

TEST_CASE("what layers of one's own throw is told", "[embedding]") {
  using at = brittle_own::at;
  const auto thrown = GENERATE(with_text, without_text, of_memory);
  const auto job_with = [&](at where) {
    auto job = images_job({linear("a", 28 * 28, 8),
                           std::make_shared<brittle_own>(where, thrown.what),
                           linear("c", 8, 10)});
    job.virtual_time = GENERATE(false, true);
    return job;
  };
  for (const auto where : {at::forward, at::input_gradient, at::weight_gradient})
    CHECK(failure_of(job_with(where)) == "stage 1: " + thrown.text);
  for (const auto where : {at::room, at::cost})
    if (thrown.text != of_memory.text) // after which train() is as before a run
      CHECK(refusal_of(job_with(where)) == "before the run: " + thrown.text);
}

TEST_CASE("what data of one's own throws is told", "[embedding]") {
  struct brittle : tiny::brittle_data {
    brittle(std::shared_ptr<const data_set> good, happening what)
      : brittle_data(std::move(good), -1, {}), what_(std::move(what)) {}
    std::int64_t evaluation_size() const override { return 8; }
    void evaluation(std::int64_t, const sample_view&) const override { what_(); }
    happening what_;
  };
  const auto thrown = GENERATE(with_text, without_text, of_memory);
  auto job = small_job();
  const auto data = job.data;
  job.virtual_time = GENERATE(false, true);
  job.data = std::make_shared<tiny::brittle_data>(data, 5, thrown.what);
  CHECK(failure_of(job) == "data_source: " + thrown.text);
  job.data = std::make_shared<brittle>(data, thrown.what);
  job.held_out = 8;
  CHECK(failure_of(job) == "evaluation: " + thrown.text);
}

TEST_CASE("what meetings of one's own and their maker throw is told", "[embedding]") {
  using at = brittle_meeting::at;
  const auto thrown = GENERATE(with_text, without_text, of_memory);
  auto job = small_job();
  job.stages = 1;
  job.replicas = 2;
  job.virtual_time = GENERATE(false, true);
  for (const auto where : {at::begin, at::take, at::over}) {
    job.user_exchange = [&, where](const exchange_member& here) {
      return std::make_unique<brittle_meeting>(here, where, thrown.what);
    };
    CHECK(failure_of(job) == "optimizer of stage 0 (data replica 1): " + thrown.text);
  }
  const std::string maker =
    "the maker of the user_exchange of stage 0 in data replica 0: ";
  job.user_exchange = [&](const exchange_member&) -> std::unique_ptr<user_exchange> {
    thrown.what();
    return nullptr;
  };
  CHECK(refusal_of(job) == maker + thrown.text);
  job.user_exchange = [&](const exchange_member&) {
    return std::unique_ptr<user_exchange>{};
  };
  CHECK(refusal_of(job) == maker + "made nothing");
}

TEST_CASE("what a schedule of one's own throws is told", "[embedding]") {
  const auto thrown = GENERATE(with_text, without_text);
  auto job = small_job();
  job.pipeline_schedule = {.name = "brittle",
                           .order = [&](op, int, int, const shape&) -> int {
                             thrown.what();
                             return 0;
                           }};
  CHECK(refusal_of(job) == "before the run: " + thrown.text);
}

} // namespace troupe::own_failures_test
