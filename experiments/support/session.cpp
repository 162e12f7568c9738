#include "experiments/support/session.hpp"

#include "actors/bounded_list.hpp"
#include "experiments/support/files.hpp"
#include "experiments/support/results.hpp"
#include "experiments/support/timing.hpp"
#include "kernels/threads.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>
#include <utility>

namespace troupe {

namespace {

constexpr int widest_picture = 4000; // characters

std::atomic<bool> interrupted = false;

void on_signal(int number) {
  interrupted = true;
  std::signal(number, SIG_DFL);
}

double seconds_now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[200];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// Where a run stands, on standard error: on a terminal one line that changes, else a
/// line every few seconds.
class progress_line {
public:
  progress_line(const run_plan& plan, bool quiet) : plan_(plan), quiet_(quiet) {}

  void show(const progress& p, bool last) {
    tell_of_waiting(p.waits_for);
    const double now = seconds_now();
    if (quiet_ || !plan_.work || (!last && now - shown_at_ < (terminal_ ? 0.2 : 5)))
      return;
    shown_at_ = now;
    auto line = formatted("%-12s %lld of %lld samples", plan_.sch.name.c_str(),
                          static_cast<long long>(p.samples),
                          static_cast<long long>(plan_.work->batch * plan_.dims.steps));
    if (p.loss)
      line += formatted(", loss %.4f", *p.loss);
    write(line, last);
  }

  void show(int steps, const score& s) {
    auto line = formatted("%-12s step %d: evaluated loss %.4f", plan_.sch.name.c_str(),
                          steps, s.loss);
    if (s.accuracy)
      line += formatted(", accuracy %.1f%%", 100 * *s.accuracy);
    if (!quiet_)
      write(line, true);
  }

private:
  /// Says once what a run waits for, each time that it has for long.
  void tell_of_waiting(const std::string& for_whom) {
    const bool before = std::exchange(waits_, !for_whom.empty());
    if (waits_ && !before && !quiet_)
      write("no action has ended for a while:\n" + for_whom, true);
  }

  void write(const std::string& line, bool stays) const {
    if (terminal_)
      std::fprintf(stderr, "\r%-78s%s", line.c_str(), stays ? "\n" : "");
    else
      std::fprintf(stderr, "%s\n", line.c_str());
    std::fflush(stderr);
  }

  const run_plan& plan_;
  bool quiet_;
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  double shown_at_ = 0;
  bool waits_ = false;
};

class session {
public:
  session(const options& o, const setup& shared)
    : options_(o), shared_(shared), files_(o) {}

  int run_all() {
    if (auto wrong = files_.refusal(); !wrong.empty()) {
      complain(wrong);
      return 2;
    }
    announce();
    for (const auto& request : shared_.runs) {
      run(request);
      if (exit_code_ == 130)
        break;
    }
    if (!options_.quiet)
      out() << '\n' << results_table(shared_, accounts_) << std::flush;
    const auto text = results_json(options_, shared_, accounts_);
    complain(files_.write_results(text));
    if (!options_.quiet)
      out() << files_.summary();
    return exit_code_;
  }

private:
  std::ostream& out() const {
    return options_.results_on_stdout() ? std::cerr : std::cout;
  }

  void complain(const std::string& why) {
    if (why.empty())
      return;
    std::cerr << options_.command.front() << ": " << why << '\n';
    exit_code_ = std::max(exit_code_, 1);
  }

  void announce() const {
    if (options_.quiet || !shared_.runs.front().plan.work)
      return;
    const auto& plan = shared_.runs.front().plan;
    out() << shared_.model.model << " of " << plan.work->whole.values()
          << " parameters on " << shared_.data << "; " << plan.dims.stages
          << " stages, "
          << (plan.tensor > 1 ? std::to_string(plan.tensor) + " tensor shards"
                                  + (plan.sequence_parallel ? " by sequence, " : ", ")
                              : "")
          << (plan.data > 1 ? std::to_string(plan.data) + " data replicas by "
                                + plan.exchange->name + ", "
                            : "")
          << (plan.expert > 1
                ? "experts over " + std::to_string(plan.expert) + " of them, "
                : "")
          << plan.batches().microbatches << " microbatches, " << plan.dims.steps
          << (plan.dims.steps == 1 ? " step of " : " steps of ") << plan.work->batch
          << " samples\n"
          << std::endl;
  }

  void run(const run_request& request) {
    run_account account{.request = &request, .result = {}};
    progress_line line{request.plan, options_.quiet};
    auto plan = request.plan;
    plan.interrupted = &interruption();
    plan.keep_record = options_.print;
    plan.keep_first = options_.report.empty() ? 0 : actions_in_trace;
    plan.model_times = account.modelled = needs_modelled_times(plan);
    plan.report = [&](const progress& p) { line.show(p, false); };
    std::optional<evaluator> judge;
    bounded_list<std::pair<int, score>> evaluations{most_entries};
    const auto fail = [&account](const std::string& why) {
      account.result.how = ending::failed;
      account.result.failure = why;
    };
    try {
      if (plan.work) {
        judge.emplace(plan.work->whole, *plan.work->data, options_.evaluate_samples,
                      evaluation_batch(plan), plan.threads);
        plan.keep_weights = true;
        plan.evaluate = [&](int steps, const std::vector<const float*>& parameters) {
          const auto s = judge->evaluate(parameters);
          evaluations.add({steps, s},
                          [](auto& first, const auto& next) { first = next; });
          line.show(steps, s);
        };
      }
      account.result = perform(plan);
    } catch (const std::bad_alloc&) {
      fail("out of memory");
    } catch (const no_thread& wrong) {
      fail(wrong.what());
    }
    account.evaluations = evaluations.entries();
    const auto& result = account.result;
    if (result.how == ending::failed)
      complain(plan.sch.name + ": " + result.failure);
    if (result.how == ending::interrupted)
      exit_code_ = 130;
    if (!result.parameters.empty() && judge && judge->samples() > 0
        && result.how == ending::finished) {
      account.evaluated = judge->evaluate(readable(result.parameters));
      if (interruption())
        exit_code_ = 130;
    }
    if (!result.loss.empty())
      line.show({result.samples, result.loss.back()}, true);
    keep(account);
  }

  // Writes what is large, and forgets it.
  void keep(run_account& account) {
    const auto& request = *account.request;
    auto& result = account.result;
    complain(files_.write_weights(request, result, shared_.runs.size() == 1));
    result.parameters.clear();
    if (options_.print && !options_.quiet)
      out() << request.text << '\n'
            << draw(timeline_of(result.actions), widest_picture) << '\n';
    complain(files_.write_trace(request, result));
    result.actions.clear();
    accounts_.push_back(std::move(account));
  }

  const options& options_;
  const setup& shared_;
  output_files files_;
  std::vector<run_account> accounts_;
  int exit_code_ = 0;
};

} // namespace

const std::atomic<bool>& interruption() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  return interrupted;
}

int run_session(const options& o, const tl::expected<setup, std::string>& shared) {
  if (!shared) {
    std::cerr << o.command.front() << ": " << shared.error() << '\n';
    return 2;
  }
  return session{o, *shared}.run_all();
}

} // namespace troupe
