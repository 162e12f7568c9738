#include "actors/meetings/tie_meeting.hpp"

#include "kernels/arrays.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// A place of a tied matrix, as a stage holds it.
struct tied_place {
  int stage;
  std::size_t bucket;  // of the stage
  std::int64_t offset; // of the matrix in the whole bucket
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

/// The values of the matrix that a share of its bucket holds: [first, last).
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

// A message may still be under way when the next update gives, but no longer: that one
// cannot end before everyone has begun it.
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

const tie_meeting::end_here& tie_meeting::end(tied_end which) const {
  return *std::ranges::find(ends_, which, &end_here::which);
}

letters tie_meeting::begin(int) {
  begun_ = true;
  ++updates_;
  for (const auto& here : ends_)
    for (const auto& e : here.exchanges)
      missing_.push_back(e.with);
  letters all;
  for (const auto& here : ends_)
    for (const auto& e : here.exchanges) {
      auto payload = copies_->acquire();
      const auto* const from =
        gradients_[here.bucket].data() + here.place_of_first + (e.first - here.first);
      arrays<float>::copy(from, e.last - e.first, payload.data());
      const bool is_here = e.with == where_;
      all.push_back(
        {{role::optimizer_shard, e.with},
         meeting_kind::tie,
         mail::tied_part{updates_, where_, other(here.which) == tied_end::head, e.first,
                         e.last - e.first, std::move(payload)},
         is_here ? std::nullopt : std::optional{traffic::tied},
         (e.last - e.first) * std::int64_t{sizeof(float)}});
    }
  std::erase_if(early_, [this](mail::tied_part& part) {
    if (part.update > updates_)
      return false;
    add(std::move(part));
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
  if (part.update == updates_)
    add(std::move(part));
  else
    early_.push_back(std::move(part));
  return {};
}

/// No value is in two parts, so the order of sums does not matter.
void tie_meeting::add(mail::tied_part part) {
  const auto& here = end(part.to_head ? tied_end::head : tied_end::embedding);
  auto* const to =
    gradients_[here.bucket].data() + here.place_of_first + (part.first - here.first);
  collective_sum sum{part.values, [from = part.payload.data(), values = part.values,
                                   to] { arrays<float>::add(from, values, to); }};
  const int number = asked_++;
  sums_.emplace(number, std::move(part));
  if (ask_)
    return ask_({meeting_kind::tie, number, std::move(sum)});
  sum.run();
  end_sum(number);
}

void tie_meeting::end_sum(int number) {
  const auto over = sums_.extract(number);
  missing_.erase(std::ranges::find(missing_, over.mapped().of));
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
