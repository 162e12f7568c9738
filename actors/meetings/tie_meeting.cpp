// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/tie_meeting.hpp"

#include "kernels/arrays.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// The place of a tied matrix in a stage.
struct tied_place {
  int stage;
  std::size_t bucket;  // of the stage
  std::int64_t offset; // of the matrix, in the whole bucket
  std::int64_t size;   // of that bucket
};

tied_place place_of(const run_plan& plan, position where, tied_end which) {
  const auto tied = *plan.network_of(where).tied();
  const auto& place = which == tied_end::head ? tied.head : tied.embedding;
  const auto& first = plan.work->first_layers;
  const auto stage = static_cast<int>(
    std::ranges::upper_bound(first, static_cast<int>(place.layer)) - first.begin() - 1);
  where.stage = stage;
  const auto buckets = plan.layer_buckets(where);
  const auto bucket = std::ranges::find_if(buckets, [&](const layer_bucket& b) {
    return b.of_layer == place.layer && b.expert < 0;
  });
  return {stage, static_cast<std::size_t>(bucket - buckets.begin()), place.offset,
          bucket->what->bucket()};
}

/// The values of the matrix in a share of the matrix's bucket: [first, last).
std::pair<std::int64_t, std::int64_t> range_of(const run_plan& plan, position where,
                                               const tied_place& place,
                                               std::int64_t values) {
  const auto share = plan.shares_of(where)[place.bucket];
  const auto first = std::max(share.begin(place.size) - place.offset, std::int64_t{0});
  return {first,
          std::max(first, std::min(share.end(place.size) - place.offset, values))};
}

constexpr tied_end other(tied_end which) {
  return which == tied_end::head ? tied_end::embedding : tied_end::head;
}

} // namespace

bool tie_meeting::is_at(const run_plan& plan, position where) {
  if (!plan.work || !plan.network_of(where).tied())
    return false;
  return place_of(plan, where, tied_end::head).stage == where.stage
         || place_of(plan, where, tied_end::embedding).stage == where.stage;
}

std::vector<tie_meeting::end_here> tie_meeting::ends_of(const run_plan& plan,
                                                        position where) {
  std::vector<end_here> result;
  const auto values = plan.network_of(where).tied()->values;
  const auto extent = plan.extent_of(shared_out::gradients);
  for (const auto which : {tied_end::embedding, tied_end::head}) {
    const auto here = place_of(plan, where, which),
               there = place_of(plan, where, other(which));
    if (here.stage != where.stage)
      continue;
    const auto [first, last] = range_of(plan, where, here, values);
    const auto share = plan.shares_of(where)[here.bucket].begin(here.size);
    auto& end = result.emplace_back();
    end = {which,
           here.bucket,
           first,
           last,
           here.offset + first - (extent == bucket_extent::share ? share : 0),
           {}};
    const bool shared = plan.shares_out(shared_out::optimizer_state);
    position with{where.data, 0, there.stage, where.tensor};
    for (int d = 0; d < plan.data; ++d) {
      if (shared)
        with.data = d;
      else if (d != where.data)
        continue;
      const auto [begin, behind] = range_of(plan, with, there, values);
      if (const auto from = std::max(first, begin), to = std::min(last, behind);
          from < to)
        end.exchanges.push_back({with, from, to});
    }
  }
  return result;
}

std::vector<position> tie_meeting::others_of(const run_plan& plan, position where) {
  std::vector<position> result;
  for (const auto& end : ends_of(plan, where))
    for (const auto& e : end.exchanges)
      if (std::ranges::find(result, e.with) == result.end())
        result.push_back(e.with);
  return result;
}

// A buffer is held until the update of its receiver has ended. That is before the
// receiver begins the next update, and so before the sender can begin the update after
// that.
payload_bound tie_meeting::copies_of(const run_plan& plan, position where) {
  payload_bound result;
  for (const auto& end : ends_of(plan, where))
    for (const auto& e : end.exchanges) {
      result.values = std::max(result.values, e.last - e.first);
      result.buffers += 2;
    }
  return result;
}

tie_meeting::tie_meeting(const run_plan& plan, position where,
                         std::shared_ptr<pool> copies)
  : plan_(&plan),
    where_(where),
    ends_(ends_of(plan, where)),
    copies_(std::move(copies)) {
  // nop
}

/// The address of a value's gradient, in this shard's array of an end.
float* tie_meeting::gradient_at(tied_end which, std::int64_t value) {
  const auto& here = *std::ranges::find(ends_, which, &end_here::which);
  return gradients_[here.bucket].data() + here.place_of_first + (value - here.first);
}

void tie_meeting::expect(std::vector<buffer> gradients) {
  gradients_ = std::move(gradients);
  for (const auto& here : ends_)
    for (const auto& e : here.exchanges)
      gifts_.push_back({here.which, e.with, e.first, e.last, copies_->acquire()});
}

void tie_meeting::copy(stream& on) {
  for (auto& g : gifts_)
    arrays<float>::copy(gradient_at(g.from, g.first), g.last - g.first,
                        g.payload.data(), on);
}

letters tie_meeting::begin(int) {
  begun_ = true;
  ++updates_;
  for (const auto& g : gifts_)
    missing_.push_back(g.to);
  letters all;
  for (auto& g : std::exchange(gifts_, {})) {
    const auto values = g.last - g.first;
    all.push_back({{role::optimizer_shard, g.to},
                   meeting_kind::tie,
                   mail::tied_part{updates_, where_, other(g.from) == tied_end::head,
                                   g.first, values, std::move(g.payload)},
                   g.to == where_ ? std::nullopt : std::optional{traffic::tied},
                   values * std::int64_t{sizeof(float)}});
  }
  std::erase_if(early_, [this](mail::tied_part& part) {
    if (part.update > updates_)
      return false;
    keep(std::move(part));
    return true;
  });
  return all;
}

letters tie_meeting::take(mail::letter what) {
  if (const auto* sum = std::get_if<mail::sum_over>(&what.what)) {
    end_sum(sum->over());
    return {};
  }
  auto& part = std::get<mail::tied_part>(what.what);
  if (part.update > updates_)
    early_.push_back(std::move(part));
  else if (begun_ && part.update == updates_)
    keep(std::move(part));
  return {};
}

/// Each part counts once, even if the message is repeated.
void tie_meeting::keep(mail::tied_part part) {
  const bool repeated = std::ranges::any_of(parts_, [&](const auto& other) {
    return other.of == part.of && other.to_head == part.to_head
           && other.first == part.first;
  });
  if (repeated)
    return;
  const int number = asked_++;
  sums_.emplace(number, part.of);
  const auto values = part.values;
  parts_.push_back(std::move(part));
  if (ask_)
    return ask_({meeting_kind::tie, number, {values, {}}});
  end_sum(number);
}

void tie_meeting::end_sum(int number) {
  missing_.erase(std::ranges::find(missing_, sums_.extract(number).mapped()));
}

/// No value is in two parts, so the order of sums does not matter.
void tie_meeting::add(stream& on) {
  if (std::exchange(added_, true))
    return;
  for (const auto& part : parts_)
    arrays<float>::add(
      part.payload.data(), part.values,
      gradient_at(part.to_head ? tied_end::head : tied_end::embedding, part.first), on);
}

void tie_meeting::next_update() {
  begun_ = added_ = false;
  parts_.clear();
}

std::optional<absence> tie_meeting::waits_for() const {
  if (missing_.empty())
    return {};
  if (!sums_.empty())
    return own_sum();
  return absence{"the other end's gradient of the tied matrix",
                 plan_->optimizer_of(missing_.front())};
}

} // namespace troupe
