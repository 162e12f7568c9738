// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/session.hpp"

#include "actors/checkpoints/checkpoint_folder.hpp"
#include "actors/checkpoints/checkpoint_saver.hpp"
#include "actors/proof/proof.hpp"
#include "actors/run/timing.hpp"
#include "experiments/options/saved_options.hpp"
#include "experiments/options/training_options.hpp"
#include "experiments/report/files.hpp"
#include "experiments/report/loss_history.hpp"
#include "experiments/report/page.hpp"
#include "experiments/report/results.hpp"
#include "experiments/report/results_legend.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/node_runs.hpp"
#include "experiments/session/progress_notice.hpp"
#include "experiments/session/restart_point.hpp"
#include "experiments/session/run_observer.hpp"
#include "experiments/session/verification.hpp"
#include "experiments/session/verified_catalog.hpp"
#include "kernels/folder_lock.hpp"
#include "messaging/bounded_list.hpp"
#include "plan/evaluated_parts.hpp"
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
  const std::int64_t steps =
    std::int64_t{plan.copies.checkpoint_every} * (o.keep + 2) + 2;
  return static_cast<std::size_t>(std::min(most, steps * plan.batches().microbatches));
}

class session {
public:
  session(const options& o, const setup& shared, node_runs& performs,
          const program_listener& listener, bool keeps_everything)
    : options_(o),
      output_(o.output),
      shared_(shared),
      performs_(performs),
      listener_(listener),
      keeps_everything_(keeps_everything),
      files_(o) {}

  tl::expected<ended_session, std::string> run_all() {
    if (auto error = prepare(); !error.empty())
      return tl::unexpected{error};
    for (const auto& note : shared_.notes)
      listener_.note(note);
    for (const auto& why : shared_.passed_over)
      listener_.note("checkpoint skipped: " + why);
    if (!shared_.checkpoint.empty() && !shared_.resumed_training)
      listener_.note(without_facts(shared_.checkpoint));
    if (const auto slow = warning_of(options_.run); options_.trains && !slow.empty())
      listener_.note(slow);
    announce();
    if (!std::cout.flush()) { // before hours of training are lost
      ended_.exit_code = 1;
      return std::move(ended_);
    }
    for (const auto& request : shared_.runs) {
      if (interruption())
        break;
      run(request);
    }
    if (accounts().size() < shared_.runs.size())
      ended_.exit_code = ended_by_user;
    if (!has_begun_) // results of an earlier command stay as they are
      return std::move(ended_);
    auto& table = ended_.table;
    table = results_table(shared_, accounts(), options_.evaluation.target);
    if (!output_.quiet)
      out() << '\n' << table << std::flush;
    ended_.results = results_json(options_, shared_, accounts());
    complain(files_.end_results(ended_.results));
    const auto page_failed = files_.write_page(ended_.results, table);
    complain(page_failed);
    if (!output_.quiet)
      out() << files_.summary() << std::flush;
    if (live_)
      live_->end(page_failed.empty());
    return std::move(ended_);
  }

private:
  std::vector<run_account>& accounts() { return ended_.accounts; }
  const std::vector<run_account>& accounts() const { return ended_.accounts; }

  /// Prepares files, folders and the live page. Returns one sentence about a failure,
  /// else an empty text.
  std::string prepare() {
    if (auto error = files_.prepare(shared_.runs); !error.empty())
      return error;
    if (const auto& to = options_.checkpoint; !to.folder.empty())
      if (auto error =
            checkpoint_folder_error(to, shared_.runs.front().plan, checkpoints_lock_);
          !error.empty())
        return error;
    if (auto error = try_texts(); !error.empty())
      return error;
    return begin_watching();
  }

  std::ostream& out() const {
    return output_.results_on_stdout() ? std::cerr : std::cout;
  }

  void complain(const std::string& why) {
    if (why.empty())
      return;
    listener_.error(why);
    ended_.exit_code = std::max(ended_.exit_code, 1);
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
    } catch (const std::exception& error) {
      return std::string{"results cannot be written: "} + error.what();
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
    auto page = live_page::open(
      *port, shared_.runs, output_.typed(),
      file.empty() ? "" : std::filesystem::absolute(file, failed).string());
    if (!page)
      return page.error();
    live_ = std::move(*page);
    listener_.note("watch the run at " + live_->address());
    return {};
  }

  void announce() const {
    std::string text;
    if (shared_.runs.front().plan.work)
      text = description_of(shared_) + '\n';
    if (!shared_.start_description.empty())
      text += shared_.start_description + '\n';
    if (!shared_.left_out.empty())
      text += left_out_line(shared_) + '\n';
    if (!output_.quiet && !text.empty())
      out() << text << '\n';
  }

  void run(const run_request& request) {
    auto& account =
      accounts().emplace_back(run_account{.request = &request, .result = {}});
    if (options_.evaluation.verify > 0)
      prove(account);
    if (interruption()) { // the run has not begun
      accounts().pop_back();
      return;
    }
    auto plan = request.plan;
    run_callbacks callbacks{.interrupted = &interruption()};
    plan.keep.record = output_.print || !output_.exported.empty();
    plan.keep.first_actions =
      keeps_everything_ ? actions_in_trace : files_.actions_shown(plan);
    plan.observed.model_times = account.modelled =
      needs_modelled_times(plan, performs_.uses_nodes());
    plan.observed.watched = live_ != nullptr;
    run_observer observer{account, output_, files_.events_of(request), live_.get(),
                          [this](const std::string& error) { complain(error); }};
    std::optional<evaluator> judge;
    std::optional<checkpoint_saver> saver;
    evaluations_kept evaluations{most_entries};
    std::optional<loss_history> losses; // of a run that may start again
    if (options_.nodes.restart && plan.work)
      losses.emplace(plan.batches().preceding_samples,
                     losses_apart(plan, options_.checkpoint));
    bool refused = false; // by nodes, before the run began
    try {
      if (plan.work)
        watch_training(plan, callbacks, evaluations, losses, judge, observer);
      else
        watch_simulation(plan, callbacks, observer);
      if (live_)
        callbacks.watch = [&](const recent_actions& recent) {
          observer.report_actions(recent);
        };
      if (plan.copies.checkpoint_every > 0) {
        saver.emplace(options_.checkpoint, request.plan, [&](const std::string& error) {
          observer.end_line();
          complain(error);
        });
        callbacks.save = [&](training_copies copies) {
          saver->save(std::move(copies));
        };
        callbacks.await_saved = [&] { saver->wait(); };
      }
      restarts::new_start again;
      std::shared_ptr<const training_state> kept; // by the nodes that remain
      if (options_.nodes.restart)
        again = [&](const run_result& lost) {
          if (saver)
            saver->wait();
          observer.end_line();
          if (lost.recovered)
            kept = lost.recovered;
          auto next = restarted_plan(lost, plan, kept, account);
          evaluations_kept earlier{most_entries}; // repeated evaluations are kept once
          for (const auto& evaluation : evaluations.entries())
            if (evaluation.first.count <= next.dims.batches_before)
              earlier.add(evaluation,
                          [](auto& first, const auto& second) { first = second; });
          evaluations = std::move(earlier);
          if (losses)
            losses->restart(next.batches().preceding_samples);
          observer.restart(*account.request);
          return next;
        };
      account.result = performs_.perform(request.text, plan, callbacks, again);
    } catch (const node_failure& error) {
      account.result.outcome = ending::failed;
      account.result.failure = error.what();
      refused = true;
    } catch (const std::bad_alloc&) {
      account.result.outcome = ending::failed;
      account.result.failure = "out of memory";
    } catch (const std::exception& error) {
      account.result.outcome = ending::failed;
      account.result.failure = error.what();
    }
    saver.reset(); // after all checkpoints are written
    account.evaluations = evaluations.entries();
    if (losses && account.request != &request)
      account.losses_of_all_starts = losses->summary();
    const auto& result = account.result;
    observer.report_end(result);
    if (result.outcome == ending::failed)
      complain(plan.sch.name + ": " + result.failure
               + last_checkpoint(options_.checkpoint));
    if (result.outcome == ending::interrupted)
      ended_.exit_code = ended_by_user;
    if (const auto missing = missing_losses(account); !missing.empty())
      listener_.note(plan.sch.name + ": "
                     + missing); // the weights contain the updates: no failure
    if (!result.ungrouped_reason.empty() && !output_.quiet)
      listener_.note(
        plan.sch.name
        + ": the CPU sums tensors, as GPUs do not exchange tensors directly: "
        + result.ungrouped_reason); // the results are right: no failure
    has_begun_ = has_begun_ || !refused;
    if (has_begun_)
      keep(account);
    if (judge)
      evaluate(*judge, account);
    observer.end(account);
    if (!keeps_everything_)
      account.result.parameters.clear();
    if (live_)
      show_end(account.outcome());
  }

  /// Proves the first steps of a run before the run begins.
  void prove(run_account& account) {
    const auto& request = *account.request;
    if (live_)
      live_->prove(request);
    const progress_notice asked{output_.quiet ? "" : request.text + ": proving"};
    const auto& v =
      account.proved.emplace(verify_first(request, options_.evaluation.verify));
    if (interruption())
      return;
    if (!v.holds())
      complain(request.text + ": " + v.sentence()
               + (always_holds(options_)
                    ? ""
                    : "; the run may still be right, as bf16 rounds sums differently "
                      "in the other order of tensor shards"));
    else if (!output_.quiet)
      out() << request.text << ": " << v.sentence() << std::endl;
  }

  /// Shows browsers that a run has ended, and the page of all ended runs.
  void show_end(ending outcome) {
    std::string page;
    try {
      page =
        files_.page(results_json(options_, shared_, accounts()),
                    results_table(shared_, accounts(), options_.evaluation.target));
    } catch (const std::bad_alloc&) { // browsers keep the previous page
    }
    live_->end_run(outcome, std::move(page));
  }

  /// The plan of a new start after the loss of nodes, from the last step that other
  /// nodes have kept, or from the last checkpoint.
  run_plan restarted_plan(const run_result& lost, const run_plan& first,
                          std::shared_ptr<const training_state> kept,
                          run_account& account) {
    auto next = first;
    auto begins =
      find_restart_point(lost, first, std::move(kept), options_.checkpoint.folder);
    if (begins.from) {
      next.dims.steps =
        first.dims.batches_before + first.dims.steps - begins.from->batches;
      resume_from(std::move(begins.from), next);
    }
    for (const auto& why : begins.passed_over)
      listener_.note("checkpoint skipped: " + why);
    const auto nodes = performs_.nodes();
    listener_.note(lost.failure
                   + (lost.recovery_error.empty()
                        ? ""
                        : "; kept steps cannot be used: " + lost.recovery_error)
                   + "; restarts "
                   + (begins.description.empty() ? "from the first step"
                                                 : "after " + begins.description)
                   + " on " + std::to_string(nodes)
                   + (nodes == 1 ? " node" : " nodes"));
    auto& restarted = ended_.restarted;
    if (restarted.empty() || account.request != &restarted.back())
      restarted.push_back(*account.request);
    restarted.back().plan = next; // each older plan holds a whole network
    account.request = &restarted.back();
    return next;
  }

  using evaluations_kept = bounded_list<std::pair<total_steps, score>>;

  /// Makes a run report losses, and evaluate at intervals.
  void watch_training(run_plan& plan, run_callbacks& callbacks,
                      evaluations_kept& evaluations,
                      std::optional<loss_history>& losses,
                      std::optional<evaluator>& judge, run_observer& observer) const {
    judge.emplace(plan.work->whole, *plan.work->data, options_.evaluation.samples,
                  evaluation_batch(plan.work->batch), plan.machine.threads,
                  evaluated_parts(plan, !performs_.uses_nodes()));
    callbacks.report = [this, &observer, &losses](const progress& p) {
      if (losses)
        losses->add(p.losses);
      observer.report_progress(p);
      if (listener_.advance)
        listener_.advance(p);
    };
    plan.keep.weights = true;
    callbacks.evaluate = [&](int batches, const std::vector<const float*>& parameters) {
      const total_steps steps{batches};
      if (steps == last_step(plan))
        return; // the weights are saved before the last evaluation
      const auto evaluated = judge->evaluate(parameters, &interruption());
      if (!evaluated)
        return;
      evaluations.add({steps, *evaluated},
                      [](auto& first, const auto& next) { first = next; });
      observer.report_evaluation(steps, *evaluated);
    };
  }

  /// Makes a run without arithmetic report the number of microbatches that are done.
  static void watch_simulation(run_plan& plan, run_callbacks& callbacks,
                               run_observer& observer) {
    callbacks.report = [done = count_microbatches(plan), &observer](const progress&) {
      observer.report_simulation(*done);
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
    if (result.outcome == ending::finished)
      report_export(request.plan.sch);
    if (keeps_everything_)
      ended_.timelines.push_back(timeline_json(account));
    else
      result.actions.clear();
    // The last write reports a failure.
    (void)files_.write_results(results_json(options_, shared_, accounts()));
  }

  /// Says so if the exported schedule has a form that only troupe reads.
  void report_export(const schedule& sch) const {
    if (output_.exported.empty() || output_.quiet || is_pytorch_form(sch))
      return;
    listener_.note(
      output_.exported
      + " is not for PyTorch, which reads schedules that flush and have "
        "each stage on one rank: "
      + sch.name + (sch.asynchronous() ? " does not flush" : " has several directions")
      + "; only troupe reads the file, by --schedule file:" + output_.exported);
  }

  /// Evaluates the weights of a finished run; Ctrl-C ends the evaluation.
  void evaluate(evaluator& judge, run_account& account) {
    const auto& result = account.result;
    if (judge.samples() == 0 || result.parameters.empty()
        || result.outcome != ending::finished)
      return;
    account.evaluated = judge.evaluate(readable(result.parameters), &interruption());
    account.evaluated_to_end = account.evaluated.has_value();
    const auto& plan = account.request->plan;
    const auto steps = last_step(plan);
    if (account.evaluated && plan.copies.evaluate_every > 0
        && steps.count % plan.copies.evaluate_every == 0)
      account.evaluations.emplace_back(steps, *account.evaluated);
    if (!account.evaluated_to_end)
      ended_.exit_code = ended_by_user;
  }

  const options& options_;
  const output_options& output_;
  const setup& shared_;
  node_runs& performs_;
  const program_listener& listener_;
  bool keeps_everything_;
  output_files files_;
  std::unique_ptr<live_page> live_; // null: there is no live page
  folder_lock checkpoints_lock_;
  ended_session ended_;
  bool has_begun_ = false; // of any run
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
              << " is missing: remove the newest checkpoint and repeat the command, "
                 "which trains the last steps again and writes all results\n";
  else if (!o.output.quiet)
    std::cerr << o.output.command.front() << ": " << completed << '\n';
  return missing.empty() ? 0 : 1;
}

} // namespace

tl::expected<ended_session, std::string>
perform_session(const options& o, const setup& shared, const program_listener& listener,
                bool keeps_everything) {
  auto performs = node_runs::from(o);
  std::string error = performs ? "" : performs.error();
  for (const auto& request : shared.runs) {
    if (error.empty())
      error = performs->first_placement_error(request.plan);
    if (error.empty() && o.evaluation.verify > 0)
      if (const auto why = proof_error(request.plan); !why.empty())
        error = "--verify: " + why;
  }
  if (!error.empty())
    return tl::unexpected{error};
  return session{o, shared, *performs, listener, keeps_everything}.run_all();
}

int run_session(const options& o, const setup& shared) {
  const auto tell = [&](const std::string& sentence) {
    std::cerr << o.output.command.front() << ": " << sentence << '\n';
  };
  const auto ended = perform_session(o, shared, {.error = tell, .note = tell}, false);
  if (ended)
    return ended->exit_code;
  tell(ended.error());
  return 2;
}

int run_session(const options& o) {
  const auto& name = o.output.command.front();
  const auto shared = [&] {
    const progress_notice asked{o.output.quiet ? "" : name + ": setting up"};
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
