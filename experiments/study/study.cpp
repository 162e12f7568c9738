// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/study/study.hpp"

#include "experiments/options/command_line.hpp"
#include "experiments/options/parse_mistake.hpp"
#include "experiments/options/parsing.hpp"
#include "experiments/report/study_page.hpp"
#include "experiments/session/changing_line.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/programs.hpp"
#include "experiments/session/started_program.hpp"
#include "experiments/session/throughput.hpp"
#include "experiments/study/study_folder.hpp"
#include "experiments/study/study_json.hpp"
#include "experiments/study/study_plan.hpp"
#include "experiments/study/study_tables.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

namespace troupe {

namespace {

int complain(const std::string& why) {
  std::cerr << "study: " << why << '\n';
  return 2;
}

/// The sentence of a program that refused its options, without the program's name and
/// the reference to --help.
std::string sentence_of(const std::string& program, const std::string& err) {
  auto text = err.substr(0, err.find('\n'));
  if (text.empty())
    return "the program ended without a sentence";
  if (const auto prefix = program + ": "; text.starts_with(prefix))
    text.erase(0, prefix.size());
  return text.substr(0, text.rfind("; see " + program + " --help"));
}

/// The result of a program that has ended by itself; `out` has the results.
study_result result_of(const std::string& program, const ended_program& ended) {
  constexpr int refused = 2;
  if (!ended.exited())
    return {"ended",
            std::string{"the program was ended by the signal "}
              + strsignal(ended.signal()),
            ""};
  if (ended.exit_code() == refused)
    return {"refused", sentence_of(program, ended.err), ""};
  const auto results = nlohmann::json::parse(ended.out, nullptr, false);
  const nlohmann::json::json_pointer ending{"/runs/0/ending"},
    failure{"/runs/0/failure"};
  if (!results.is_object() || !results.contains(ending))
    return {"failed", sentence_of(program, ended.err), ""};
  if (results.at(ending) == "finished" && ended.exit_code() == 0)
    return {"finished", "", ended.out};
  const auto why = results.contains(failure) ? results.at(failure).get<std::string>()
                                             : sentence_of(program, ended.err);
  return {"failed", why.substr(0, why.find('\n')), ended.out};
}

class study {
public:
  study(study_folder folder, int jobs, bool quiet)
    : folder_(std::move(folder)),
      jobs_(jobs),
      quiet_(quiet),
      line_(quiet),
      runs_(folder_.plan().runs.size()) {
    // nop
  }

  int perform() {
    keep_earlier();
    {
      std::vector<std::jthread> workers;
      for (int i = 0; i < jobs_; ++i)
        workers.emplace_back([this] { work(); });
    }
    line_.end();
    return write();
  }

private:
  const study_plan& plan() const { return folder_.plan(); }

  /// Takes over the runs that ended before the study was cut short.
  void keep_earlier() {
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (auto kept = folder_.kept(i)) {
        set(i, *kept);
        ++kept_;
      }
    done_ = kept_;
    begin_ = seconds_now();
  }

  void set(std::size_t run, const study_result& result) {
    auto& to = runs_[run].emplace(measure(result.results));
    to.ending = result.ending;
    to.error = result.error;
  }

  std::optional<std::size_t> next() {
    const std::lock_guard guard{lock_};
    while (next_ < runs_.size() && runs_[next_])
      ++next_;
    return interruption() || next_ == runs_.size() || !failure_.empty()
             ? std::nullopt
             : std::optional{next_++};
  }

  void work() {
    while (const auto run = next())
      try {
        const auto ended = run_to_end(plan().runs[*run].words, interruption());
        if (interruption())
          return; // the run ended before its time
        const auto result = result_of(plan().program, ended);
        auto error = folder_.keep(*run, result);
        const std::lock_guard guard{lock_};
        if (failure_.empty())
          failure_ = std::move(error);
        set(*run, result);
        ++done_;
        show_progress();
      } catch (const std::exception& error) {
        const std::lock_guard guard{lock_};
        if (failure_.empty())
          failure_ = error.what();
      }
  }

  /// \pre lock_ is held
  void show_progress() {
    const bool last = done_ == runs_.size();
    if (!line_.is_due(last))
      return;
    const double seconds = seconds_now() - begin_;
    const auto made = static_cast<double>(done_ - kept_),
               left = static_cast<double>(runs_.size() - done_);
    std::vector<std::string> parts{"study " + std::to_string(done_) + " of "
                                   + std::to_string(runs_.size()) + " runs"};
    if (!last)
      parts.push_back(", " + time_left(seconds / made * left));
    line_.write(parts, last);
  }

  /// Writes the tables and the page, and prints the summary. Returns the exit code.
  int write() {
    std::vector<measured_run> runs;
    for (auto& run : runs_) {
      runs.push_back(run ? std::move(*run) : measured_run{});
      if (!run) {
        runs.back().ending = "not run";
        runs.back().values.resize(study_measures().size());
      }
    }
    compare_schedules(runs);
    const auto summaries = summaries_of(plan(), runs);
    for (const auto& [name, text] :
         {std::pair{"runs.csv", runs_csv(plan(), runs)},
          {"summary.csv", summary_csv(plan(), summaries)},
          {"study.html", study_page(study_json(plan(), runs, summaries))}})
      if (auto error = folder_.write(name, text); !error.empty() && failure_.empty())
        failure_ = std::move(error);
    if (!quiet_ && failure_.empty())
      print(runs, summaries);
    return exit_code(runs);
  }

  /// Compares the schedules of a combination and seed in time.
  void compare_schedules(std::vector<measured_run>& runs) const {
    std::map<std::pair<std::vector<std::string>, std::string>,
             std::vector<measured_run*>>
      together;
    for (std::size_t i = 0; i < runs.size(); ++i)
      together[{plan().runs[i].values, plan().runs[i].seed}].push_back(&runs[i]);
    for (auto& [where, compared] : together)
      compare_in_time(compared);
  }

  void print(const std::vector<measured_run>& runs,
             const std::vector<study_summary>& summaries) const {
    if (kept_ > 0)
      std::cout << "kept " << kept_ << " of " << runs.size() << " runs\n";
    std::cout << study_table(plan(), runs, summaries) << "\nwritten:";
    for (const char* name : {"study.html", "runs.csv", "summary.csv"})
      std::cout << "\n  " << (folder_.path() / name).string();
    std::cout << std::endl;
  }

  int exit_code(const std::vector<measured_run>& runs) const {
    const auto count = [&](const char* ending) {
      return std::ranges::count(runs, ending, &measured_run::ending);
    };
    if (!failure_.empty()) {
      std::cerr << "study: " << failure_ << '\n';
      return 1;
    }
    if (interruption()) {
      std::cerr << "study: cut short after " << done_ << " of " << runs.size()
                << " runs: go on by ./troupe study --continue "
                << folder_.path().string() << '\n';
      return ended_by_user;
    }
    if (const auto failed = count("failed") + count("ended"); failed > 0) {
      std::cerr << "study: " << failed << (failed == 1 ? " run" : " runs")
                << " failed: see the column error of runs.csv, or go on by ./troupe "
                   "study --continue "
                << folder_.path().string() << '\n';
      return 1;
    }
    return count("finished") == 0 ? 2 : 0;
  }

  study_folder folder_;
  int jobs_;
  bool quiet_;
  std::mutex lock_; // of the members below
  changing_line line_;
  std::vector<std::optional<measured_run>> runs_;
  std::size_t next_ = 0, kept_ = 0, done_ = 0;
  double begin_ = 0;
  std::string failure_; // of a file or a process, which ends the study
};

/// One sentence about options beside --continue, else an empty text.
std::string error_beside_continue(const typed_words& typed) {
  for (const auto& word : typed.words)
    if (const auto name = word.substr(0, word.find('='));
        name != "--continue" && name != "--jobs" && name != "--quiet")
      return "--continue takes the options from its folder, and allows only --jobs and "
             "--quiet: leave "
             + name + " out";
  return {};
}

/// One sentence if several runs at a time would disturb each other, else an empty text.
std::string error_of_jobs(const study_plan& plan, int jobs) {
  const bool is_virtual =
    plan.program == "simulate"
    || std::ranges::all_of(plan.runs, [](const study_run& run) {
         return std::ranges::count(run.words, "--clock=virtual") > 0;
       });
  return jobs == 1 || is_virtual
           ? ""
           : "--jobs " + std::to_string(jobs)
               + " needs --clock virtual in every run, as runs in real time would take "
                 "processors from each other: leave --jobs out";
}

} // namespace

int run_study(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  std::string_view program = "compare";
  if (argc > 1 && argv[1][0] != '-') {
    program = argv[1];
    if (!is_program(program))
      return complain(
        "'" + printable(argv[1])
        + "' is no program that a study repeats: say compare or simulate");
    words.erase(words.begin() + 1);
  }
  const auto repeated = session_program(program);
  const auto typed =
    read_words(study_of(repeated), static_cast<int>(words.size()), words.data());
  if (!typed)
    return typed.error();
  const auto& asked = typed->typed.study;
  if (auto error = validation_error(asked); !error.empty())
    return complain(error);
  std::vector<std::string> command{"study"};
  command.insert(command.end(), argv + 1, argv + argc);
  tl::expected<study_folder, std::string> folder = problem{""};
  if (!asked.continued.empty()) {
    if (auto error = error_beside_continue(*typed); !error.empty())
      return complain(error);
    folder = study_folder::open(asked.continued);
  } else {
    const auto plan = plan_study(repeated, *typed, std::move(command));
    if (!plan)
      return complain(plan.error());
    // Before the folder is made.
    if (auto error = error_of_jobs(*plan, asked.jobs); !error.empty())
      return complain(error);
    folder = study_folder::make(typed->typed.output.report, *plan);
  }
  if (!folder)
    return complain(folder.error());
  if (auto error = error_of_jobs(folder->plan(), asked.jobs); !error.empty())
    return complain(error); // of a study that goes on
  return study{std::move(*folder), asked.jobs, typed->typed.output.quiet}.perform();
}

} // namespace troupe
