#include "actors/experts/expert.hpp"

#include "actors/mail/failure.hpp"
#include "actors/mail/ship.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

std::int64_t rows_of(const std::vector<mail::rows_to_expert>& by_source) {
  return std::accumulate(
    by_source.begin(), by_source.end(), std::int64_t{0},
    [](std::int64_t sum, const auto& part) { return sum + part.rows; });
}

} // namespace

expert_tensors::expert_tensors(const run_plan& plan, position where, int expert,
                               int stashes, rank_memory& memory, team& threads)
  : network_(plan.work->whole.experts[static_cast<std::size_t>(expert)].what),
    sizes_(sizes_of_expert(plan, expert)),
    threads_(threads),
    stashes_("stashes of " + plan.name_of_expert(expert, where), stashes, sizes_.stash,
             memory.of(memory_use::activations)),
    answers_("answers of " + plan.name_of_expert(expert, where), 2 * sizes_.sources,
             sizes_.payload, memory.of(memory_use::passing)),
    scratch_(sizes_.scratch, memory.of(memory_use::passing)) {
  memory.of(memory_use::passing).use(scratch_.bytes());
}

std::int64_t expert_tensors::gather(const std::vector<mail::rows_to_expert>& by_source,
                                    float* to) {
  std::int64_t rows = 0;
  for (const auto& part : by_source) {
    if (part.rows > 0)
      std::copy_n(part.payload.data(), part.rows * sizes_.width,
                  to + rows * sizes_.width);
    rows += part.rows;
  }
  return rows;
}

void expert_tensors::compute(const std::vector<mail::rows_to_expert>& by_source) {
  const auto& a = by_source.front().what;
  const auto& loan = *std::ranges::find_if(by_source, [](const auto& part) {
                        return !!part.loan;
                      })->loan;
  const auto most = sizes_.rows * sizes_.sources * sizes_.width;
  if (rows_of(by_source) == 0) { // only to set the gradients to 0
    frame<float> f;
    f.gradients = loan.gradients.data();
    return network_->weight_gradient(f);
  }
  auto& stash = held_[a.microbatch];
  if (a.what == op::forward)
    stash = stashes_.acquire();
  auto *const upper = scratch_.data(), *const lower = upper + padded(most);
  frame<float> f;
  f.x = stash.data();
  f.saved = stash.data() + padded(most);
  f.y = upper;
  f.dy = upper;
  f.dx = lower;
  f.kept = lower + padded(most);
  f.parameters = loan.parameters.data();
  f.threads = &threads_;
  if (a.what == op::forward) {
    f.samples = gather(by_source, stash.data());
    network_->forward(f);
    made_ = upper;
    return;
  }
  f.samples = gather(by_source, upper);
  f.gradients = loan.gradients.data();
  f.beta = loan.begins_sum ? 0.0F : 1.0F;
  network_->input_gradient(f);
  network_->weight_gradient(f);
  held_.erase(a.microbatch);
  made_ = lower;
}

std::vector<buffer>
expert_tensors::results(const std::vector<mail::rows_to_expert>& by_source) {
  std::vector<buffer> result;
  const auto* from = made_;
  for (const auto& part : by_source) {
    auto& answer = result.emplace_back();
    if (part.rows == 0)
      continue;
    answer = answers_.acquire();
    const auto values = part.rows * sizes_.width;
    std::copy_n(from, values, answer.data());
    from += values;
  }
  return result;
}

expert_core::expert_core(const run_plan& plan, position where, int expert, int in_stage,
                         std::shared_ptr<expert_tensors> tensors)
  : plan_(&plan),
    where_(where),
    name_(plan.name_of_expert(expert, where)),
    expert_(expert),
    in_stage_(in_stage),
    width_(width_of_rows(plan)),
    tensors_(std::move(tensors)),
    inbox_(static_cast<std::size_t>(plan.expert)) {
  // nop
}

bool expert_core::take(const mail::rows_to_expert& rows) {
  auto& place = inbox_[static_cast<std::size_t>(rows.source)];
  if (place)
    throw std::logic_error("got rows of " + to_string(rows.what, true) + " before "
                           + to_string(place->what, true) + " was done");
  place = rows;
  if (!std::ranges::all_of(inbox_, [](const auto& part) { return part.has_value(); }))
    return false;
  for (auto& part : inbox_) {
    if (part->what != rows.what)
      throw std::logic_error("got rows of " + to_string(part->what, true) + " and of "
                             + to_string(rows.what, true));
    pass_.push_back(std::move(*part));
    part.reset();
  }
  return true;
}

bool expert_core::idle() const {
  return std::ranges::all_of(pass_, [](const auto& part) {
    return part.rows == 0 && !(part.loan && part.loan->begins_sum);
  });
}

/// Of what the forward of its stage takes for the microbatch under way.
double expert_core::share_of(std::int64_t rows) const {
  if (!tensors_) // as many from every data replica that it serves
    return simulated_expert_share;
  const auto samples = plan_->samples_of(where_.data, pass_.front().what.microbatch);
  return tensors_->network().operations() * static_cast<double>(rows)
         / (plan_->operations_of(where_.stage) * static_cast<double>(samples));
}

// What the stage's action takes counts the work of its layers' experts. An expert has
// made both gradients when the input's is asked for.
work expert_core::next_work() {
  const auto& a = pass_.front().what;
  work result{
    .kind = static_cast<int>(a.what), .stage = a.stage, .microbatch = a.microbatch};
  if (tensors_)
    result.operations =
      plan_->operations_of(where_.stage) * (a.what == op::backward ? 2 : 1)
      * static_cast<double>(plan_->samples_of(where_.data, a.microbatch));
  auto& part = result.parts.emplace_back();
  part.share = share_of(rows_of(pass_)) * (a.what == op::input_gradient ? 2 : 1);
  if (tensors_)
    part.run = [this] { tensors_->compute(pass_); };
  return result;
}

sample expert_core::made() const {
  const auto lent =
    std::ranges::find_if(pass_, [](const auto& part) { return !!part.loan; });
  return {.what = pass_.front().what,
          .start = 0,
          .end = 0,
          .version = lent->loan->version,
          .versions_alive = 1,
          .part = true,
          .gradients = 0,
          .stalest = 0,
          .staleness = 0,
          .expert = expert_};
}

std::vector<mail::rows_from_expert> expert_core::end() {
  std::vector<mail::rows_from_expert> result;
  auto made = tensors_ ? tensors_->results(pass_) : std::vector<buffer>(pass_.size());
  for (auto& one : made)
    result.push_back({in_stage_, std::move(one)});
  pass_.clear();
  return result;
}

std::int64_t expert_core::bytes_for(int source) const {
  return pass_[static_cast<std::size_t>(source)].rows * width_
         * std::int64_t{sizeof(float)};
}

mail::waiting_for expert_core::explain() const {
  const auto some = std::ranges::find_if(inbox_, [](const auto& p) { return !!p; });
  if (!pass_.empty() || some == inbox_.end())
    return {name_, "", ""};
  const auto missing =
    std::ranges::find_if(inbox_, [](const auto& p) { return !p; }) - inbox_.begin();
  auto source = where_;
  source.data = where_.data / plan_->expert * plan_->expert + static_cast<int>(missing);
  return {name_, "the rows of " + to_string((*some)->what, true),
          plan_->name_of(source)};
}

namespace {

using self_pointer = expert_actor::stateful_pointer<expert_state>;

template <class Handle, class Message>
void send(self_pointer self, const Handle& to, Message&& what) {
  tell(self, *self->state.shared.meter, to, std::forward<Message>(what));
}

// What goes to its own rank costs nothing.
void answer(self_pointer self) {
  auto& state = self->state;
  std::vector<std::int64_t> bytes;
  for (std::size_t s = 0; s < state.peers.sources.size(); ++s)
    bytes.push_back(state.core->bytes_for(static_cast<int>(s)));
  auto answers = state.core->end();
  const int sources = state.shared.plan->expert;
  auto source = state.where;
  source.data = state.where.data / sources * sources;
  for (std::size_t s = 0; s < answers.size(); ++s, ++source.data) {
    const auto& to = state.peers.sources[s];
    if (source == state.where)
      send(self, to, std::move(answers[s]));
    else
      ship(self, state.shared, {traffic::experts, bytes[s], state.where, source}, to,
           std::move(answers[s]));
  }
}

void take(self_pointer self, const mail::rows_to_expert& rows) {
  if (!self->state.core->take(rows))
    return;
  if (self->state.core->idle())
    answer(self);
  else
    send(self, self->state.peers.scheduler, mail::expert_arrived{self->state.on_rank});
}

void compute(self_pointer self) {
  auto& state = self->state;
  state.computer->enqueue(state.core->next_work(),
                          [meter = state.shared.meter,
                           me = expert_actor{self}](nanoseconds from, nanoseconds to) {
                            post(*meter, me, mail::expert_ended{from, to});
                          });
}

void finish(self_pointer self, const mail::expert_ended& end) {
  auto made = self->state.core->made();
  made.start = end.start;
  made.end = end.end;
  send(self, self->state.peers.scheduler, mail::expert_done{made});
  answer(self);
}

} // namespace

expert_actor::behavior_type expert(self_pointer self, props shared, device* computer,
                                   position where, int number, int in_stage,
                                   int on_rank,
                                   std::shared_ptr<expert_tensors> tensors) {
  report_failures(self);
  auto& state = self->state;
  state.core = std::make_unique<expert_core>(*shared.plan, where, number, in_stage,
                                             std::move(tensors));
  state.name = state.core->name();
  state.where = where;
  state.shared = std::move(shared);
  state.computer = computer;
  state.on_rank = on_rank;
  auto& meter = *state.shared.meter;
  return {
    hear(self, meter, [self](const mail::rows_to_expert& rows) { take(self, rows); }),
    hear(self, meter, [self](const mail::expert_run&) { compute(self); }),
    hear(self, meter, [self](const mail::expert_ended& end) { finish(self, end); }),
    hear(self, meter,
         [self](const mail::explain&) {
           send(self, self->state.peers.coordinator, self->state.core->explain());
         }),
    hear(self, meter, [self](const expert_peers& peers) { self->state.peers = peers; }),
  };
}

} // namespace troupe
