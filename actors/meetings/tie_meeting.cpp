// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/tie_meeting.hpp"

#include "kernels/arrays.hpp"
#include "plan/run_plan.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

tie_meeting::tie_meeting(const run_plan& plan, position where,
                         std::shared_ptr<pool> copies)
  : plan_(&plan),
    where_(where),
    ends_(tied_values_of(plan, where)),
    copies_(std::move(copies)) {
  // nop
}

/// The address of a value's gradient, in this shard's array of an end.
float* tie_meeting::gradient_at(tied_end which, std::int64_t value) {
  const auto& local_end = *std::ranges::find(ends_, which, &tied_values::end);
  return gradients_[local_end.bucket].data() + local_end.offset_of_first
         + (value - local_end.first);
}

void tie_meeting::expect(std::vector<buffer> gradients) {
  gradients_ = std::move(gradients);
  for (const auto& local_end : ends_)
    for (const auto& e : local_end.exchanges)
      outgoing_parts_.push_back(
        {local_end.end, e.peer, e.first, e.last, copies_->acquire()});
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
