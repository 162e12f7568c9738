// SPDX-License-Identifier: BSD-3-Clause
// The layers of data replicas that share layers out, in any order of messages.

#include "actors/meetings/layer_meeting.hpp"

#include "plan/replica_rules.hpp"
#include "tests/actors/meeting_office.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <memory>

namespace troupe::layer_meeting_test {

using tiny::meeting_office;
using array = std::vector<float>;

namespace {

constexpr int layer_count = 3;
constexpr std::size_t layer_values = 10;

/// The values of a layer in a version; below, the values that a data replica adds to
/// the gradients with a microbatch. All numbers differ.
array version_of(int layer, int version) {
  array result;
  for (std::size_t i = 0; i < layer_values; ++i)
    result.push_back(static_cast<float>(1000 * version + 100 * layer) + float(i));
  return result;
}
array gradient_of(int data, int microbatch, int layer) {
  array result;
  for (std::size_t i = 0; i < layer_values; ++i)
    result.push_back(static_cast<float>((data + 1) * (microbatch + 2) * 50 + 17 * layer)
                     + float(i));
  return result;
}

/// A data replica that holds a share of each layer. Backwards run layer by layer, with
/// buffers for two layers, as the picture of weave.hpp says.
class layer_member {
public:
  layer_member(const run_plan& plan, int d)
    : data_(d),
      count_(static_cast<std::size_t>(plan.mesh[axis::data])),
      gathers_(shares_out(plan, shared_out::parameters)),
      // Buffers for two layers, each in use until the layer's last message has arrived.
      sum_copies_("a test's sums", 4 * bound(plan, exchange_step::sum).buffers,
                  bound(plan, exchange_step::sum).values, memory_),
      gather_copies_("a test's gathers", 4 * bound(plan, exchange_step::gather).buffers,
                     bound(plan, exchange_step::gather).values, memory_),
      meets_(plan, {d, 0, 0},
             {.to_gather = [this](int layer, int v) { return to_gather(layer, v); },
              .gradients = [this](int l) { return gradients_[l % 2].data(); },
              .add_share = [this](int l, bool first) { add_share(l, first); },
              .gathers = &gather_copies_,
              .sums = &sum_copies_}) {
    // nop
  }

  layer_meeting& meets() { return meets_; }
  const array& sum(int layer) const { return sums_[static_cast<std::size_t>(layer)]; }

  void add_backward(std::vector<meeting_office::step>& to, int microbatch, int version,
                    bool begins_sum) {
    using m = layer_meeting;
    to.push_back({{}, [=, this] {
                    meets_.expect(version, begins_sum);
                    return gathers_ ? meets_.begin(m::gather_of(layer_count - 1))
                                    : meeting_messages{};
                  }});
    for (int l = layer_count - 1; l >= 0; --l) {
      to.push_back({[=, this] {
                      return (!gathers_ || meets_.is_done(m::gather_of(l)))
                             && (l + 2 >= layer_count
                                 || meets_.is_done(m::sum_of(l + 2)));
                    },
                    [=, this] {
                      if (gathers_)
                        CHECK(places_[l % 2] == version_of(l, version));
                      return gathers_ && l > 0 ? meets_.begin(m::gather_of(l - 1))
                                               : meeting_messages{};
                    }});
      to.push_back({{}, [=, this] {
                      gradients_[l % 2] = gradient_of(data_, microbatch, l);
                      return meets_.begin(m::sum_of(l));
                    }});
    }
    to.push_back(
      {[this] { return meets_.is_done(m::sum_of(1)) && meets_.is_done(m::sum_of(0)); },
       [] { return meeting_messages{}; }});
  }

private:
  static payload_bound bound(const run_plan& plan, exchange_step step) {
    if (step == exchange_step::gather && !plan.exchange->gather)
      return {1, 1};
    return payloads_of(even_part(plan.exchange->order_of(step), 0,
                                 plan.mesh[axis::data],
                                 static_cast<std::int64_t>(layer_values)));
  }

  float* to_gather(int layer, int version) {
    auto& place = places_[layer % 2];
    place.assign(layer_values, -1);
    const auto all = version_of(layer, version);
    const auto first = layer_values * static_cast<std::size_t>(data_) / count_;
    std::ranges::copy(tiny::part_of(all, static_cast<std::size_t>(data_), count_),
                      place.begin() + static_cast<std::ptrdiff_t>(first));
    return place.data();
  }

  void add_share(int layer, bool first) {
    const auto share =
      tiny::part_of(gradients_[layer % 2], static_cast<std::size_t>(data_), count_);
    auto& sum = sums_[static_cast<std::size_t>(layer)];
    sum = first ? share : tiny::sum_of({sum, share});
  }

  int data_;
  std::size_t count_;
  bool gathers_;
  array places_[2], gradients_[2];
  std::vector<array> sums_ = std::vector<array>(layer_count);
  memory_account memory_;
  pool sum_copies_, gather_copies_;
  layer_meeting meets_;
};

} // namespace

TEST_CASE("data replicas gather each layer whole, and keep their share of its sum",
          "[meetings][layers]") {
  const auto* exchange = GENERATE("zero2", "zero3");
  const int data = GENERATE(2, 3, 4);
  const unsigned seed = GENERATE(range(0U, 12U));
  const auto plan =
    tiny::replicas(exchange, data, layer_count, static_cast<int>(layer_values));
  std::vector<std::unique_ptr<layer_member>> members;
  meeting_office office{seed % 2 == 1};
  for (int d = 0; d < data; ++d) {
    members.push_back(std::make_unique<layer_member>(plan, d));
    std::vector<meeting_office::step> steps;
    members.back()->add_backward(steps, 0, 3, true); // of an update that has ended
    members.back()->add_backward(steps, 1, 4, true);
    members.back()->add_backward(steps, 2, 4, false);
    office.join({role::stage, {d, 0, 0}}, meeting_kind::layers, members.back()->meets(),
                std::move(steps));
  }
  office.run(seed);
  CHECK((office.sums > 0) == (seed % 2 == 1));
  for (int layer = 0; layer < layer_count; ++layer) {
    std::vector<array> all;
    for (int d = 0; d < data; ++d)
      for (const int microbatch : {1, 2})
        all.push_back(gradient_of(d, microbatch, layer));
    const auto sum = tiny::sum_of(all);
    for (std::size_t d = 0; d < members.size(); ++d)
      CHECK(members[d]->sum(layer) == tiny::part_of(sum, d, members.size()));
  }
}

TEST_CASE("a place is free when nothing is under way in it", "[meetings][layers]") {
  const auto plan = tiny::replicas("zero3", 2, 4, 8);
  layer_meeting meets{plan, {0, 0, 0}, {}};
  using m = layer_meeting;
  for (int l = 0; l < 4; ++l)
    CHECK((meets.is_done(m::gather_of(l)) && meets.is_done(m::sum_of(l))));
  const auto out = meets.begin(m::gather_of(3));
  REQUIRE(!out.empty());
  CHECK(out[0].to == performer{role::stage, {1, 0, 0}});
  CHECK(out[0].kind == traffic::parameters);
  CHECK(out[0].bytes == 16); // the replica's share
  CHECK_FALSE(meets.is_done(m::gather_of(3)));
  CHECK_FALSE(meets.is_done(m::gather_of(1))); // the same buffer
  CHECK(meets.is_done(m::gather_of(2)));
  CHECK(meets.is_done(m::sum_of(3)));
  REQUIRE(meets.waits_for());
  CHECK(meets.waits_for()->input == "a part of the array");
  CHECK(meets.waits_for()->peer == "stage 0 (replica 1)");
  CHECK(meets.begin(m::sum_of(2))[0].kind == traffic::gradients);
  CHECK_FALSE(meets.is_done(m::sum_of(0)));
  CHECK(meets.is_done(m::sum_of(1)));
}

} // namespace troupe::layer_meeting_test
