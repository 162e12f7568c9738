// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/run_observer.hpp"

#include <utility>

namespace troupe {

run_observer::run_observer(const run_account& run, const output_options& o,
                           const std::filesystem::path& events, live_page* watched,
                           std::function<void(const std::string&)> complain)
  : request_(run.request),
    timing_(run.timing()),
    line_(request_->plan, o.quiet),
    watched_(watched) {
  if (watched_ != nullptr)
    watched_->begin(*request_, timing_);
  if (events.empty())
    return;
  events_.emplace(events, o.typed(),
                  [this, complain = std::move(complain)](const std::string& why) {
                    end_line();
                    complain(why);
                  });
  events_->begin(request_->plan);
}

void run_observer::restart(const run_request& next) {
  request_ = &next;
  line_.restart(next.plan);
  if (watched_ != nullptr)
    watched_->begin(next, timing_);
  if (events_)
    events_->begin(next.plan);
}

void run_observer::report_progress(const progress& p) {
  line_.show(p, false);
  if (watched_ != nullptr)
    watched_->add(p);
  if (events_)
    events_->add(p);
}

void run_observer::report_actions(const recent_actions& recent) {
  if (watched_ != nullptr)
    watched_->add(recent);
}

void run_observer::report_simulation(double microbatches) {
  line_.show_simulation(microbatches);
  if (watched_ != nullptr)
    watched_->add_simulated(microbatches);
}

void run_observer::report_evaluation(total_steps steps, const score& s) {
  line_.show_evaluation(steps, s);
  if (watched_ != nullptr)
    watched_->add_evaluation(steps, s);
  if (events_)
    events_->add_evaluation(samples_after(steps, request_->plan), s);
}

void run_observer::report_end(const run_result& result) {
  line_.end();
  if (!result.loss.empty())
    line_.show({result.samples, result.loss.back()}, true);
}

void run_observer::end(const run_account& run) {
  if (events_)
    events_->end(run);
}

} // namespace troupe
