// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/tie_meeting.hpp"

#include "kernels/arrays.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// The place of a tied matrix in a stage.
struct tied_location {
  int stage;
  std::size_t bucket;  // of the stage
  std::int64_t offset; // of the matrix, in the whole bucket
  std::int64_t size;   // of that bucket
};

tied_location location_of(const run_plan& plan, position where, tied_end which) {
  const auto tied = *plan.network_of(where).tied();
  const auto& location = which == tied_end::head ? tied.head : tied.embedding;
  const auto& first = plan.work->first_layers;
  const auto stage =
    static_cast<int>(std::ranges::upper_bound(first, static_cast<int>(location.layer))
                     - first.begin() - 1);
  where.stage = stage;
  const auto buckets = plan.layer_buckets(where);
  const auto bucket = std::ranges::find_if(buckets, [&](const layer_bucket& b) {
    return b.of_layer == location.layer && b.expert < 0;
  });
  return {stage, static_cast<std::size_t>(bucket - buckets.begin()), location.offset,
          bucket->owner->bucket()};
}

/// The values of the matrix in a share of the matrix's bucket: [first, last).
std::pair<std::int64_t, std::int64_t> range_of(const run_plan& plan, position where,
                                               const tied_location& location,
                                               std::int64_t values) {
  const auto share = plan.shares_of(where)[location.bucket];
  const auto first =
    std::max(share.begin(location.size) - location.offset, std::int64_t{0});
  return {first, std::max(first, std::min(share.end(location.size) - location.offset,
                                          values))};
}

constexpr tied_end opposite_of(tied_end which) {
  return which == tied_end::head ? tied_end::embedding : tied_end::head;
}

} // namespace

bool tie_meeting::is_at(const run_plan& plan, position where) {
  if (!plan.work || !plan.network_of(where).tied())
    return false;
  return location_of(plan, where, tied_end::head).stage == where.stage
         || location_of(plan, where, tied_end::embedding).stage == where.stage;
}

std::vector<tie_meeting::end_here> tie_meeting::ends_of(const run_plan& plan,
                                                        position where) {
  std::vector<end_here> result;
  const auto values = plan.network_of(where).tied()->values;
  const auto extent = plan.extent_of(shared_out::gradients);
  for (const auto which : {tied_end::embedding, tied_end::head}) {
    const auto local = location_of(plan, where, which),
               remote = location_of(plan, where, opposite_of(which));
    if (local.stage != where.stage)
      continue;
    const auto [first, last] = range_of(plan, where, local, values);
    const auto share = plan.shares_of(where)[local.bucket].begin(local.size);
    auto& end = result.emplace_back();
    end = {which,
           local.bucket,
           first,
           last,
           local.offset + first - (extent == bucket_extent::share ? share : 0),
           {}};
    const bool shared = plan.shares_out(shared_out::optimizer_state);
    position peer{where.data, 0, remote.stage, where.tensor};
    for (int d = 0; d < plan.data; ++d) {
      if (shared)
        peer.data = d;
      else if (d != where.data)
        continue;
      const auto [begin, past_end] = range_of(plan, peer, remote, values);
      if (const auto from = std::max(first, begin), to = std::min(last, past_end);
          from < to)
        end.exchanges.push_back({peer, from, to});
    }
  }
  return result;
}

std::vector<position> tie_meeting::others_of(const run_plan& plan, position where) {
  std::vector<position> result;
  for (const auto& end : ends_of(plan, where))
    for (const auto& e : end.exchanges)
      if (std::ranges::find(result, e.peer) == result.end())
        result.push_back(e.peer);
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
  const auto& local_end = *std::ranges::find(ends_, which, &end_here::which);
  return gradients_[local_end.bucket].data() + local_end.place_of_first
         + (value - local_end.first);
}

void tie_meeting::expect(std::vector<buffer> gradients) {
  gradients_ = std::move(gradients);
  for (const auto& local_end : ends_)
    for (const auto& e : local_end.exchanges)
      outgoing_parts_.push_back(
        {local_end.which, e.peer, e.first, e.last, copies_->acquire()});
}

void tie_meeting::copy(stream& stream) {
  for (auto& g : outgoing_parts_)
    arrays<float>::copy(gradient_at(g.from, g.first), g.last - g.first,
                        g.payload.data(), stream);
}

meeting_messages tie_meeting::begin(int) {
  started_ = true;
  ++updates_;
  for (const auto& g : outgoing_parts_)
    missing_.push_back(g.to);
  meeting_messages messages;
  for (auto& g : std::exchange(outgoing_parts_, {})) {
    const auto values = g.last - g.first;
    messages.push_back(
      {{role::optimizer_shard, g.to},
       meeting_kind::tie,
       mail::tied_part{updates_, where_, opposite_of(g.from) == tied_end::head, g.first,
                       values, std::move(g.payload)},
       g.to == where_ ? std::nullopt : std::optional{traffic::tied},
       values * std::int64_t{sizeof(float)}});
  }
  std::erase_if(early_, [this](mail::tied_part& part) {
    if (part.update > updates_)
      return false;
    keep(std::move(part));
    return true;
  });
  return messages;
}

meeting_messages tie_meeting::receive(mail::meeting_message received) {
  if (const auto* sum = std::get_if<mail::sum_over>(&received.body)) {
    end_sum(sum->checked_number());
    return {};
  }
  auto& part = std::get<mail::tied_part>(received.body);
  if (part.update > updates_)
    early_.push_back(std::move(part));
  else if (started_ && part.update == updates_)
    keep(std::move(part));
  return {};
}

/// Each part counts once, even if the message is repeated.
void tie_meeting::keep(mail::tied_part part) {
  const bool repeated = std::ranges::any_of(parts_, [&](const auto& present) {
    return present.sender == part.sender && present.to_head == part.to_head
           && present.first == part.first;
  });
  if (repeated)
    return;
  const int number = asked_++;
  sums_.emplace(number, part.sender);
  const auto values = part.values;
  parts_.push_back(std::move(part));
  if (request_)
    return request_({meeting_kind::tie, number, {values, {}}});
  end_sum(number);
}

void tie_meeting::end_sum(int number) {
  missing_.erase(std::ranges::find(missing_, sums_.extract(number).mapped()));
}

/// No value is in two parts, so the order of sums does not matter.
void tie_meeting::add(stream& stream) {
  if (std::exchange(added_, true))
    return;
  for (const auto& part : parts_)
    arrays<float>::add(
      part.payload.data(), part.values,
      gradient_at(part.to_head ? tied_end::head : tied_end::embedding, part.first),
      stream);
}

void tie_meeting::next_update() {
  started_ = added_ = false;
  parts_.clear();
}

std::optional<missing_peer> tie_meeting::waits_for() const {
  if (missing_.empty())
    return {};
  if (!sums_.empty())
    return unfinished_sum();
  return missing_peer{"the other end's gradient of the tied matrix",
                      plan_->optimizer_of(missing_.front())};
}

} // namespace troupe
