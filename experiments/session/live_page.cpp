// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/live_page.hpp"

#include "experiments/report/page.hpp"
#include "experiments/report/results.hpp"
#include "experiments/session/progress_line.hpp"
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;
using namespace std::chrono_literals;

constexpr std::size_t most_points = 1000; // more than a screen shows
constexpr double between_shows = 0.5;     // seconds; a page asks once a second
// of all ranks together, above the least number of each rank
constexpr int most_actions = 4000;
constexpr int least_of_rank = 8, most_of_rank = 250;

json loss_json(double x) {
  return std::isfinite(x) ? json(x) : json(nullptr);
}

} // namespace

void live_page::point::join(point& a, const point& b) {
  a.value = (a.value * a.count + b.value * b.count) / (a.count + b.count);
  a.count += b.count;
  a.samples = b.samples;
}

tl::expected<std::unique_ptr<live_page>, std::string>
live_page::open(int port, const std::vector<run_request>& runs,
                const std::string& command, const std::string& report) {
  auto server = page_server::open(port);
  if (!server)
    return tl::unexpected{"--watch: " + server.error()};
  return std::unique_ptr<live_page>{
    new live_page{std::move(*server), runs, command, report}};
}

live_page::live_page(std::unique_ptr<page_server> server,
                     const std::vector<run_request>& runs, std::string command,
                     std::string report)
  : server_(std::move(server)),
    runs_(runs),
    command_(std::move(command)),
    report_(std::move(report)),
    losses_(most_points),
    evaluations_(most_points) {
  server_->put("/", std::string{live_text}, "text/html");
  show(true);
}

void live_page::prove(const run_request& run) {
  proved_ = run.text;
  show(true);
}

void live_page::begin(const run_request& run, timing_kind timing) {
  run_ = &run;
  timing_ = timing;
  proved_.clear();
  throughput_ = {};
  loss_.reset();
  losses_ = evaluations_ = bounded_list<point>{most_points};
  waits_for_.clear();
  ran_.assign(static_cast<std::size_t>(run.plan.ranks()), {});
  known_from_.assign(ran_.size(), 0);
  done_ = 0;
  total_ = all_of(run.plan);
  show(true);
}

void live_page::add(const progress& p) {
  for (const auto& loss : p.losses)
    losses_.add({static_cast<double>(loss.samples), loss.loss, 1}, point::join);
  loss_ = p.loss;
  waits_for_ = p.waits_for;
  add_part(static_cast<double>(p.samples));
}

void live_page::add(const recent_actions& recent) {
  const auto most = static_cast<std::size_t>(
    std::clamp(most_actions / run_->plan.ranks(), least_of_rank, most_of_rank));
  for (auto& from : known_from_)
    from = std::max(from, recent.dropped_to);
  for (const auto& [rank, measured] : recent.ran) {
    const auto index = static_cast<std::size_t>(rank);
    auto& row = ran_[index];
    if (row.size() == most) {
      known_from_[index] = std::max(known_from_[index], row.front().end);
      row.pop_front();
    }
    row.push_back(measured);
  }
}

void live_page::add_simulated(double microbatches) {
  add_part(microbatches);
}

void live_page::add_part(double done) {
  done_ = done;
  throughput_.add(seconds_now(), done);
  show(false);
}

void live_page::add_evaluation(total_steps steps, const score& s) {
  const auto samples = samples_of_run(samples_after(steps, run_->plan), run_->plan);
  evaluations_.add({static_cast<double>(samples.count), s.loss, 1}, point::join);
  show(false);
}

void live_page::end_run(ending outcome, std::string report) {
  run_ = nullptr;
  outcomes_.push_back(outcome);
  if (!report.empty()) {
    ++version_;
    server_->put("/report.html", std::move(report), "text/html");
  }
  show(true);
}

void live_page::end(bool written) {
  constexpr auto recent = 1500ms, at_most = 3000ms, look = 20ms;
  ended_ = true;
  if (!written)
    report_.clear();
  show(true);
  // A page asks once a second, and stops after it has received the end.
  for (auto waited = 0ms; waited < at_most && server_->is_read(recent); waited += look)
    std::this_thread::sleep_for(look);
}

/// The latest actions of the current run, as JSON for the page.
std::string live_page::recent() const {
  record ran;
  for (const auto& row : ran_)
    ran.emplace_back(row.begin(), row.end());
  return recent_json(run_->plan, timing_, known_from_, ran);
}

/// Publishes all known values for pages, immediately if `now`, else if half a second
/// has passed.
void live_page::show(bool now) {
  const double time = seconds_now();
  if (!now && time - shown_at_ < between_shows)
    return;
  shown_at_ = time;
  json state{{"command", command_}, {"runs", json::array()}, {"over", json::array()},
             {"version", version_}, {"report", report_},     {"ended", ended_},
             {"proves", proved_},   {"now", nullptr}};
  for (const auto outcome : outcomes_)
    state["over"].push_back(name_of(outcome));
  for (const auto& run : runs_)
    state["runs"].push_back(run.text);
  if (run_ != nullptr) {
    auto losses = json::array(), evaluations = json::array();
    for (const auto& entry : losses_.entries())
      losses.push_back({entry.samples, loss_json(entry.value)});
    for (const auto& entry : evaluations_.entries())
      evaluations.push_back({entry.samples, loss_json(entry.value)});
    const auto rate = throughput_.rate();
    const auto left = throughput_.left(total_);
    state["now"] = {{"text", run_->text},
                    {"done", std::floor(done_)},
                    {"all", total_},
                    {"unit", run_->plan.work ? "samples" : "microbatches"},
                    {"rate", rate ? rate_text(*rate) : ""},
                    {"left", left ? time_left(*left) : ""},
                    {"waits_for", waits_for_},
                    {"loss", loss_ ? loss_json(*loss_) : json(nullptr)},
                    {"losses", std::move(losses)},
                    {"losses_every", losses_.every()},
                    {"evaluations", std::move(evaluations)}};
  }
  auto text = json_text(state);
  if (run_ != nullptr) { // the recent actions come last
    text.pop_back();
    text += ",\"recent\":" + recent() + "}";
  }
  server_->put("/progress.json", std::move(text), "application/json");
}

} // namespace troupe
