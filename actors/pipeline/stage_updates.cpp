#include "actors/pipeline/stage_updates.hpp"

#include <stdexcept>

namespace troupe {

stage_updates::stage_updates(const run_plan& plan, position where, stage_port& port,
                             stage_work& work, stage_meetings& meetings,
                             stage_ledger& books)
  : plan_(plan),
    where_(where),
    port_(port),
    work_(work),
    meetings_(meetings),
    books_(books) {
  // nop
}

stage_updates::place_in_sum stage_updates::begin_backward() {
  const bool first = sums_begun_++ == 0;
  const int size = update_size(plan_.sch, plan_.dims) / plan_.directions();
  const bool is_last =
    ++backwards_begun_ == microbatches_of_direction(plan_.sch, plan_.dims);
  return {first, sums_begun_ == size || is_last};
}

void stage_updates::end_backward(int microbatch) {
  for (int d = 0; d < plan_.data; ++d) // they all sum the same microbatches
    if (d == where_.data || plan_.updates_are_by(update_by::all))
      samples_summed_ += plan_.samples_of(d, microbatch);
  ++backwards_ended_;
  // The parameters are what an evaluation wants, or will be with the update that
  // follows.
  const int share = plan_.dims.microbatches / plan_.directions();
  if (plan_.evaluate_every > 0 && plan_.in_snapshot(where_)
      && backwards_ended_ % (std::int64_t{plan_.evaluate_every} * share) == 0)
    snapshot_due_ = backwards_ended_ / share;
}

bool stage_updates::has_all_gradients() const {
  return backwards_ended_ == microbatches_of_direction(plan_.sch, plan_.dims);
}

void stage_updates::begin(const action& a) {
  work_.keep_only(books_);
  const auto facts = books_.begin_update();
  under_way_ = true;
  sums_begun_ = 0;
  samples_updated_ += samples_summed_;
  meetings_.begin_update();
  update_ = {.what = a,
             .version = facts.from + 1,
             .versions_alive = books_.versions_alive(),
             .gradients = facts.gradients,
             .stalest = facts.stalest,
             .staleness = facts.staleness};
  mail::update_request request{.what = update_,
                               .samples = std::exchange(samples_summed_, 0),
                               .gradients = work_.gradients(),
                               .from = work_.parameters(facts.from),
                               .to = work_.make_room(facts)};
  if (plan_.tells_buckets() && !plan_.tells_at_once())
    tell_all_buckets(request.gradients);
  port_.send(
    {{role::optimizer_shard, where_}, meeting_kind::directions, std::move(request)});
}

void stage_updates::tell_all_buckets(const std::vector<buffer>& gradients) {
  const auto tell = port_.teller();
  for (std::size_t b = 0; b < gradients.size(); ++b)
    tell({where_.direction, static_cast<int>(b), gradients[b]});
}

measured_action stage_updates::end(const mail::updated& last) {
  update_.versions_alive = books_.versions_alive();
  update_.start = last.start;
  update_.end = last.end;
  under_way_ = false;
  books_.end_update();
  if (plan_.keep_versions)
    port_.report(last_version());
  report_snapshot_if_due();
  return update_;
}

void stage_updates::report_snapshot_if_due() {
  if (snapshot_due_ > 0 && !under_way_)
    port_.report(mail::snapshot{std::exchange(snapshot_due_, 0), where_,
                                work_.copy(books_.newest())});
}

mail::collected stage_updates::collect() const {
  if (under_way_)
    throw std::logic_error("its update " + std::to_string(books_.newest())
                           + " was not made");
  return {where_, books_.newest(), samples_updated_, work_.parameters(books_.newest()),
          work_.gradients()};
}

mail::version_made stage_updates::last_version() const {
  mail::version_made result{where_, books_.newest(), {}, {}};
  const auto copy = [&](shared_out what, const std::vector<buffer>& from,
                        std::vector<std::vector<float>>& to) {
    const auto held = plan_.held_of(what, where_);
    for (std::size_t b = 0; b < from.size(); ++b)
      to.emplace_back(from[b].data(), from[b].data() + held[b]);
  };
  copy(shared_out::parameters, work_.parameters(result.version), result.parameters);
  copy(shared_out::gradients, work_.gradients(), result.gradients);
  return result;
}

} // namespace troupe
