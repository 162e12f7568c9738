// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/session.hpp"

#include "actors/checkpoints/checkpoint_folder.hpp"
#include "actors/plan/evaluated_parts.hpp"
#include "actors/run/timing.hpp"
#include "experiments/options/saved_options.hpp"
#include "experiments/options/training_options.hpp"
#include "experiments/report/files.hpp"
#include "experiments/report/loss_history.hpp"
#include "experiments/report/results.hpp"
#include "experiments/report/results_legend.hpp"
#include "experiments/session/checkpoint_saver.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/new_beginning.hpp"
#include "experiments/session/node_runs.hpp"
#include "experiments/session/patience.hpp"
#include "experiments/session/run_audience.hpp"
#include "experiments/session/verification.hpp"
#include "experiments/session/verified_catalog.hpp"
#include "kernels/folder_lock.hpp"
#include "messaging/bounded_list.hpp"
#include "schedules/files/schedule_file.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <list>
#include <memory>
#include <new>

namespace troupe {

namespace {

constexpr int widest_picture = 4000; // characters

/// The number of losses that a new start of a run may repeat: all from the oldest kept
/// checkpoint until the next checkpoint is written.
std::size_t losses_apart(const run_plan& plan, const checkpoint_options& o) {
  constexpr std::int64_t most = 1'000'000;
  const std::int64_t steps = std::int64_t{plan.checkpoint_every} * (o.keep + 2) + 2;
  return static_cast<std::size_t>(std::min(most, steps * plan.batches().microbatches));
}

class session {
public:
  session(const options& o, const setup& shared, node_runs& performs)
    : options_(o), output_(o.output), shared_(shared), performs_(performs), files_(o) {}

  int run_all() {
    if (auto wrong = files_.refusal(shared_.runs); !wrong.empty()) {
      complain(wrong);
      return 2;
    }
    if (const auto& to = options_.checkpoint; !to.folder.empty())
      if (auto wrong = refusal_of_folder(to, checkpoints_lock_); !wrong.empty()) {
        complain(wrong);
        return 2;
      }
    if (auto wrong = try_texts(); !wrong.empty()) {
      complain(wrong);
      return 2;
    }
    if (auto wrong = begin_watching(); !wrong.empty()) {
      complain(wrong);
      return 2;
    }
    for (const auto& note : shared_.notes)
      std::cerr << output_.command.front() << ": " << note << '\n';
    for (const auto& why : shared_.passed_over)
      std::cerr << output_.command.front() << ": passed over: " << why << '\n';
    if (!shared_.checkpoint.empty() && !shared_.before)
      std::cerr << output_.command.front() << ": " << without_facts(shared_.checkpoint)
                << '\n';
    if (const auto slow = warning_of(options_.run); options_.trains && !slow.empty())
      std::cerr << output_.command.front() << ": " << slow << '\n';
    announce();
    if (!std::cout.flush()) // before hours of training are lost
      return 1;
    for (const auto& request : shared_.runs) {
      if (interruption())
        break;
      run(request);
    }
    if (accounts_.size() < shared_.runs.size())
      exit_code_ = ended_by_user;
    if (!has_begun_) // results of an earlier command stay as they are
      return exit_code_;
    const auto table = results_table(shared_, accounts_);
    if (!output_.quiet)
      out() << '\n' << table << std::flush;
    const auto results = results_json(options_, shared_, accounts_);
    complain(files_.end_results(results));
    const auto page_failed = files_.write_page(results, table);
    complain(page_failed);
    if (!output_.quiet)
      out() << files_.summary() << std::flush;
    if (live_)
      live_->end(page_failed.empty());
    return exit_code_;
  }

private:
  std::ostream& out() const {
    return output_.results_on_stdout() ? std::cerr : std::cout;
  }

  void complain(const std::string& why) {
    if (why.empty())
      return;
    std::cerr << output_.command.front() << ": " << why << '\n';
    exit_code_ = std::max(exit_code_, 1);
  }

  /// Makes once the texts that runs will write, before hours of training are lost.
  /// Returns one sentence if a text cannot be made, else an empty text.
  std::string try_texts() const {
    try {
      (void)results_json(options_, shared_, {});
      for (const auto& request : shared_.runs)
        if (const auto& work = request.plan.work) {
          const training_facts facts{work->options, work->data->identity()};
          (void)manifest_of({.training = facts});
          (void)safetensors_header({}, facts_to_save(options_, facts.data));
        }
      return {};
    } catch (const std::exception& wrong) {
      return std::string{"the results of these runs cannot be written: "}
             + wrong.what();
    }
  }

  /// Starts the live page, if one is asked for. Returns one sentence about a failure,
  /// else an empty text.
  std::string begin_watching() {
    const auto port = output_.watch_port();
    if (!port)
      return {};
    std::error_code failed;
    const auto file = files_.page_file();
    auto made = live_page::at(
      *port, shared_.runs, output_.typed(),
      file.empty() ? "" : std::filesystem::absolute(file, failed).string());
    if (!made)
      return made.error();
    live_ = std::move(*made);
    std::cerr << output_.command.front() << ": watch at " << live_->address()
              << std::endl;
    return {};
  }

  void announce() const {
    std::string text;
    if (shared_.runs.front().plan.work)
      text = description_of(shared_) + '\n';
    if (!shared_.beginning.empty())
      text += shared_.beginning + '\n';
    if (!shared_.left_out.empty())
      text += left_out_line(shared_) + '\n';
    if (!output_.quiet && !text.empty())
      out() << text << '\n';
  }

  void run(const run_request& request) {
    auto& account =
      accounts_.emplace_back(run_account{.request = &request, .result = {}});
    if (options_.evaluation.verify > 0)
      prove(account);
    if (interruption()) { // the run has not begun
      accounts_.pop_back();
      return;
    }
    auto plan = request.plan;
    run_callbacks told{.interrupted = &interruption()};
    plan.keep_record = output_.print || !output_.exported.empty();
    plan.keep_first = files_.actions_shown(plan);
    plan.model_times = account.modelled =
      needs_modelled_times(plan, performs_.elsewhere());
    plan.watched = live_ != nullptr;
    run_audience audience{account, output_, files_.events_of(request), live_.get(),
                          [this](const std::string& wrong) { complain(wrong); }};
    std::optional<evaluator> judge;
    std::optional<checkpoint_saver> saver;
    evaluations_kept found{most_entries};
    std::optional<loss_history> losses; // of a run that may start again
    if (options_.nodes.restart && plan.work)
      losses.emplace(plan.batches().before, losses_apart(plan, options_.checkpoint));
    bool refused = false; // by nodes, before the run began
    try {
      if (plan.work)
        watch_training(plan, told, found, losses, judge, audience);
      else
        watch_simulation(plan, told, audience);
      if (live_)
        told.watch = [&](const recent_actions& recent) {
          audience.tell_of_actions(recent);
        };
      if (plan.checkpoint_every > 0) {
        saver.emplace(options_.checkpoint, request.plan, [&](const std::string& wrong) {
          audience.step_aside();
          complain(wrong);
        });
        told.save = [&](training_copies all) { saver->save(std::move(all)); };
        told.await_saved = [&] { saver->wait(); };
      }
      restarts::new_start again;
      std::shared_ptr<const saved_training> kept; // by the nodes that remain
      if (options_.nodes.restart)
        again = [&](const run_result& lost) {
          if (saver)
            saver->wait();
          audience.step_aside();
          if (lost.survives)
            kept = lost.survives;
          auto next = begin_again(lost, plan, kept, account);
          evaluations_kept before{most_entries}; // repeated evaluations are kept once
          for (const auto& one : found.entries())
            if (one.first.count <= next.dims.before)
              before.add(one, [](auto& first, const auto& second) { first = second; });
          found = std::move(before);
          if (losses)
            losses->begin_again(next.batches().before);
          audience.begin_again(*account.request);
          return next;
        };
      account.result = performs_.perform(request.text, plan, told, again);
    } catch (const node_failure& wrong) {
      account.result.how = ending::failed;
      account.result.failure = wrong.what();
      refused = true;
    } catch (const std::bad_alloc&) {
      account.result.how = ending::failed;
      account.result.failure = "out of memory";
    } catch (const std::exception& wrong) {
      account.result.how = ending::failed;
      account.result.failure = wrong.what();
    }
    saver.reset(); // after all checkpoints are written
    account.evaluations = found.entries();
    if (losses && account.request != &request)
      account.losses_of_all_starts = losses->all();
    const auto& result = account.result;
    audience.tell_of_end(result);
    if (result.how == ending::failed)
      complain(plan.sch.name + ": " + result.failure
               + last_checkpoint(options_.checkpoint));
    if (result.how == ending::interrupted)
      exit_code_ = ended_by_user;
    if (const auto missing = missing_losses(account); !missing.empty())
      std::cerr << output_.command.front() << ": " << plan.sch.name << ": " << missing
                << '\n'; // the weights contain the updates: no failure
    if (!result.ungrouped.empty() && !output_.quiet)
      complain(plan.sch.name
               + ": the GPUs of the ranks cannot exchange tensors directly, so that "
                 "this machine sums for them: "
               + result.ungrouped);
    has_begun_ = has_begun_ || !refused;
    if (has_begun_)
      keep(account);
    if (judge)
      evaluate(*judge, account);
    audience.end(account);
    account.result.parameters.clear();
    if (live_)
      show_end(account.how());
  }

  /// Proves the first steps of a run before the run begins.
  void prove(run_account& account) {
    const auto& request = *account.request;
    if (live_)
      live_->prove(request);
    const patience asked{output_.quiet ? "" : request.text + ": proving"};
    const auto& v =
      account.proved.emplace(verify_first(request, options_.evaluation.verify));
    if (interruption())
      return;
    if (!v.holds())
      complain(request.text + ": " + v.sentence()
               + (always_holds(options_)
                    ? ""
                    : "; the run may still be right, as tensor shards sum in another "
                      "order, and bf16 rounds the sums differently"));
    else if (!output_.quiet)
      out() << request.text << ": " << v.sentence() << std::endl;
  }

  /// Shows browsers that a run has ended, and the page of all ended runs.
  void show_end(ending how) {
    std::string page;
    try {
      page = files_.page(results_json(options_, shared_, accounts_),
                         results_table(shared_, accounts_));
    } catch (const std::bad_alloc&) { // browsers keep the previous page
    }
    live_->end_run(how, std::move(page));
  }

  /// The plan of a new start after the loss of nodes, from the last step that other
  /// nodes have kept, or from the last checkpoint.
  run_plan begin_again(const run_result& lost, const run_plan& first,
                       std::shared_ptr<const saved_training> kept,
                       run_account& account) {
    auto next = first;
    auto begins =
      beginning_behind(lost, first, std::move(kept), options_.checkpoint.folder);
    if (begins.from) {
      next.dims.steps = first.dims.before + first.dims.steps - begins.from->batches;
      go_on_from(std::move(begins.from), next);
    }
    for (const auto& why : begins.passed_over)
      std::cerr << output_.command.front() << ": passed over: " << why << '\n';
    const auto nodes = performs_.nodes();
    std::cerr << output_.command.front() << ": " << lost.failure
              << (lost.lost_for.empty() ? "" : "; no step survives: " + lost.lost_for)
              << "; begins again "
              << (begins.behind.empty() ? "from the first step"
                                        : "behind " + begins.behind)
              << " on " << nodes << (nodes == 1 ? " node\n" : " nodes\n");
    if (begun_again_.empty() || account.request != &begun_again_.back())
      begun_again_.push_back(*account.request);
    begun_again_.back().plan = next; // each older plan holds a whole network
    account.request = &begun_again_.back();
    return next;
  }

  using evaluations_kept = bounded_list<std::pair<total_steps, score>>;

  /// Makes a run report losses, and evaluate at intervals.
  void watch_training(run_plan& plan, run_callbacks& told, evaluations_kept& all,
                      std::optional<loss_history>& losses,
                      std::optional<evaluator>& judge, run_audience& audience) const {
    judge.emplace(plan.work->whole, *plan.work->data, options_.evaluation.samples,
                  evaluation_batch(plan.work->batch), plan.threads,
                  evaluated_parts(plan, !performs_.elsewhere()));
    told.report = [&audience, &losses](const progress& p) {
      if (losses)
        losses->add(p.losses);
      audience.tell(p);
    };
    plan.keep_weights = true;
    told.evaluate = [&](int batches, const std::vector<const float*>& parameters) {
      const total_steps steps{batches};
      if (steps == last_step(plan))
        return; // the weights are saved before the last evaluation
      const auto found = judge->evaluate(parameters, &interruption());
      if (!found)
        return;
      all.add({steps, *found}, [](auto& first, const auto& next) { first = next; });
      audience.tell_of_evaluation(steps, *found);
    };
  }

  /// Makes a run without arithmetic report the number of microbatches that are done.
  static void watch_simulation(run_plan& plan, run_callbacks& told,
                               run_audience& audience) {
    told.report = [done = count_microbatches(plan), &audience](const progress&) {
      audience.tell_of_simulation(*done);
    };
  }

  /// Writes the large results, and frees their memory.
  void keep(run_account& account) {
    const auto& request = *account.request;
    auto& result = account.result;
    complain(files_.write_weights(request, result, shared_.runs.size() == 1));
    if (output_.print && !output_.quiet)
      out() << request.text << '\n'
            << draw(timeline_of(result.actions), widest_picture) << '\n';
    complain(files_.write_trace(account));
    complain(files_.write_schedule(request, result));
    if (result.how == ending::finished)
      tell_of_export(request.plan.sch);
    result.actions.clear();
    // The last write reports a failure.
    (void)files_.write_results(results_json(options_, shared_, accounts_));
  }

  /// Says so if the exported schedule has a form that only troupe reads.
  void tell_of_export(const schedule& sch) const {
    if (output_.exported.empty() || output_.quiet || is_pytorch_form(sch))
      return;
    std::cerr << output_.command.front() << ": " << output_.exported
              << " is not for PyTorch, which reads schedules that flush and have each "
                 "stage on one rank: "
              << sch.name
              << (sch.asynchronous() ? " does not flush" : " has several directions")
              << "; --schedule file:" << output_.exported << " reads it\n";
  }

  /// Evaluates the weights of a finished run; Ctrl-C ends the evaluation.
  void evaluate(evaluator& judge, run_account& account) {
    const auto& result = account.result;
    if (judge.samples() == 0 || result.parameters.empty()
        || result.how != ending::finished)
      return;
    account.evaluated = judge.evaluate(readable(result.parameters), &interruption());
    account.evaluated_to_end = account.evaluated.has_value();
    const auto& plan = account.request->plan;
    const auto steps = last_step(plan);
    if (account.evaluated && plan.evaluate_every > 0
        && steps.count % plan.evaluate_every == 0)
      account.evaluations.emplace_back(steps, *account.evaluated);
    if (!account.evaluated_to_end)
      exit_code_ = ended_by_user;
  }

  const options& options_;
  const output_options& output_;
  const setup& shared_;
  node_runs& performs_;
  output_files files_;
  std::unique_ptr<live_page> live_; // null: there is no live page
  folder_lock checkpoints_lock_;
  std::list<run_request> begun_again_;
  std::vector<run_account> accounts_;
  bool has_begun_ = false; // of any run
  int exit_code_ = 0;
};

/// Ends a command whose training is complete already. Returns the exit code. A chain of
/// jobs that repeats the command has succeeded, unless results that the command names
/// are missing.
int end_complete(const options& o, const std::string& completed) {
  std::error_code unknown;
  const auto misses = [&](const std::string& path) {
    return !path.empty() && (path == "-" || !std::filesystem::exists(path, unknown));
  };
  const auto& out = o.output;
  const auto missing = misses(out.save)     ? "--save " + out.save
                       : misses(out.json)   ? "--json " + out.json
                       : misses(out.report) ? "--report " + out.report
                                            : "";
  if (!missing.empty())
    std::cerr << o.output.command.front() << ": " << completed << ", but " << missing
              << " is not there: remove the newest checkpoint, and the same command "
                 "trains its steps again and writes all results\n";
  else if (!o.output.quiet)
    std::cerr << o.output.command.front() << ": " << completed << '\n';
  return missing.empty() ? 0 : 1;
}

} // namespace

int run_session(const options& o, const setup& shared) {
  auto performs = node_runs::from(o);
  std::string wrong = performs ? "" : performs.error();
  for (const auto& request : shared.runs) {
    if (wrong.empty())
      wrong = performs->first_refusal(request.plan);
    if (wrong.empty() && o.evaluation.verify > 0)
      if (const auto why = refusal_of_proofs(request.plan); !why.empty())
        wrong = "--verify: " + why;
  }
  if (wrong.empty())
    return session{o, shared, *performs}.run_all();
  std::cerr << o.output.command.front() << ": " << wrong << '\n';
  return 2;
}

int run_session(const options& o) {
  const auto& name = o.output.command.front();
  const auto shared = [&] {
    const patience asked{o.output.quiet ? "" : name + ": setting up"};
    return set_up_part(o, ranks_here(o));
  }();
  if (shared && !shared->completed.empty())
    return end_complete(o, shared->completed);
  if (shared)
    return run_session(o, *shared);
  std::cerr << name << ": " << shared.error() << '\n';
  return 2;
}

} // namespace troupe
