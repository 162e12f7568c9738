// SPDX-License-Identifier: BSD-3-Clause
// How programs end when something else fails: a user interrupts, a reader closes, a
// disk is full.

#include "experiments/session/interruption.hpp"
#include "experiments/session/session.hpp"
#include "kernels/folder_lock.hpp"
#include "tests/experiments/run_program.hpp"
#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <thread>

namespace troupe::endings_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using nlohmann::json;

namespace {

using namespace std::chrono_literals;

const std::string tiny_model = " --d-model 8 --heads 2 --seq 4 --vocab 7 ";

json results_in(const std::filesystem::path& file) {
  return json::parse(content_of(file));
}

typed_options tiny_options(const temporary_folder& folder) {
  auto o = tiny::options_of("gpipe,1f1b");
  o.schedules.steps = 3;
  o.output.report = (folder.path() / "r").string();
  o.output.save = (folder.path() / "w").string();
  o.output.quiet = true;
  o.output.command = {"train"};
  return o;
}

/// Data that calls a function before each evaluated sample.
class watched_data : public data_set {
public:
  watched_data(std::shared_ptr<const data_set> data, std::function<void()> watcher)
    : data_(std::move(data)), watcher_(std::move(watcher)) {}

  void training(std::int64_t index, const sample_view& to) const override {
    data_->training(index, to);
  }
  std::int64_t evaluation_size() const override { return 1'000'000; }
  void evaluation(std::int64_t, const sample_view& to) const override {
    watcher_();
    data_->evaluation(0, to);
  }
  std::string description() const override { return data_->description(); }

private:
  std::shared_ptr<const data_set> data_;
  std::function<void()> watcher_;
};

/// Returns the exit code of a session in a child process, which gets signals of its
/// own.
int exit_code_of_session(const options& o, const setup& shared) {
  std::fflush(nullptr); // the child must not write this process's buffered output
  const pid_t child = fork();
  if (child == 0)
    _exit(run_session(o, shared));
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST_CASE("what standard output does not take is an error", "[endings]") {
  temporary_folder folder;
  const std::string typed = GENERATE(
    "train --steps 1 --d-model 8 --heads 2",
    "train --steps 1 --d-model 8 --quiet --json -",
    "compare --schedules gpipe --steps 1 --d-model 8", "simulate --steps 1",
    "simulate --quiet --json -", "verify --schedule gpipe --steps 1 --d-model 8",
    "collectives --ranks 2", "collectives --ranks 2 --quiet --json -",
    "memory --mesh data=2 --d-model 8",
    "memory --mesh data=2 --d-model 8 --quiet --json -", "bench --help", "train --help",
    "simulate --version");
  const auto full = run_shell_in(folder, typed + " >/dev/full");
  INFO(typed);
  CHECK(full.exit_code == 1);
  CHECK_THAT(full.err, ContainsSubstring(typed.substr(0, typed.find(' '))
                                         + ": cannot write standard output\n"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "runs/compare"));
}

TEST_CASE("a list of checkpoints that standard output does not take is an error",
          "[endings]") {
  temporary_folder folder;
  REQUIRE(run_program_in(folder, "train --steps 1 --checkpoint c --checkpoint-every 1"
                                   + tiny_model)
            .exit_code
          == 0);
  CHECK(run_shell_in(folder, "checkpoint c >out").exit_code == 0);
  const auto full = run_shell_in(folder, "checkpoint c >/dev/full");
  CHECK(full.exit_code == 1);
  CHECK(full.err == "checkpoint: cannot write standard output\n");
}

// Batch systems repeat announcements: the kernel sends SIGXCPU each second.
TEST_CASE("announcements of an end may come again, and do not kill", "[endings]") {
  const std::vector<std::pair<int, bool>> signals{
    {SIGUSR1, false}, {SIGUSR2, false}, {SIGXCPU, false}, {SIGTERM, true}};
  std::vector<pid_t> children;
  std::fflush(nullptr);
  for (const auto& [number, kills] : signals) {
    const pid_t child = fork();
    if (child == 0) {
      (void)interruption();
      std::raise(number);
      std::this_thread::sleep_for(1100ms); // two within a second count as one request
      std::raise(number);
      _exit(interruption() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (std::size_t i = 0; i < signals.size(); ++i) {
    int status = 0;
    waitpid(children[i], &status, 0);
    INFO(signals[i].first);
    if (signals[i].second)
      CHECK((WIFSIGNALED(status) && WTERMSIG(status) == signals[i].first));
    else
      CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
}

TEST_CASE("a file does not take the place of a closed stream", "[endings]") {
  temporary_folder folder;
  const auto train = "train --steps 2 --save w" + tiny_model;
  CHECK(run_shell_in(folder, train + ">&-").exit_code == 1);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "w")); // the program ends at once
  CHECK_THAT(run_shell_in(folder, "train --config /proc/self/fd/1 >&-").err,
             ContainsSubstring("is not a file")); // a placeholder has the descriptor
  CHECK(run_shell_in(folder, train + "--quiet <&- >&- 2>&-").exit_code == 0);
  CHECK(run_shell_in(folder, "train --steps 1 --init w" + tiny_model).exit_code == 0);
}

TEST_CASE("the end of a reader ends a run as Ctrl-C does", "[endings]") {
  temporary_folder folder;
  const auto ran =
    run_shell_in(folder, "{ train --steps 1000000 --save w --report r" + tiny_model
                           + "2>&1; echo $? >code; } | head -1");
  CHECK_THAT(ran.out, StartsWith("gpt of "));
  CHECK(content_of(folder.path() / "code") == "130\n");
  CHECK(results_in(folder.path() / "r/results.json")["runs"][0]["ending"]
        == "interrupted");
  CHECK(run_shell_in(folder, "train --steps 1 --init w" + tiny_model).exit_code == 0);
  const auto help = run_shell_in(folder, "{ train --help; echo $? >&2; } | true");
  CHECK((help.err == "130\n" || help.err == "0\n")); // the text may be read in time
}

TEST_CASE("a signal that nohup ignores ends nothing", "[endings]") {
  temporary_folder folder;
  const auto in = [&](const char* name) { return (folder.path() / name).string(); };
  CHECK(exit_code_after(SIGHUP,
                        {"train", "--steps", "300", "--json", in("r.json"), "--d-model",
                         "8", "--heads", "2", "--seq", "4", "--vocab", "7"},
                        true)
        == 0);
  CHECK(results_in(in("r.json"))["runs"][0]["ending"] == "finished");
}

TEST_CASE("weights and results are there before the last evaluation, which Ctrl-C ends",
          "[endings]") {
  const temporary_folder folder;
  auto o = tiny_options(folder);
  o.evaluation.samples = 1'000'000;
  o.evaluation.every = GENERATE(0, 3); // also with the last step
  auto shared = *tiny::set_up_training(o);
  for (auto& run : shared.runs)
    run.plan.work->data = std::make_shared<watched_data>(
      run.plan.work->data, [&folder, calls = std::make_shared<int>(0)] {
        const auto results = content_of(folder.path() / "r/results.json");
        if (++*calls == 1)
          std::raise(std::filesystem::exists(folder.path() / "w-gpipe")
                         && json::parse(results)["runs"][0]["ending"] == "finished"
                       ? SIGINT
                       : SIGKILL);
        if (*calls > 64) // the current batch has ended
          _exit(99);
      });
  CHECK(exit_code_of_session(*parse(o, true), shared) == 130);
  const auto results = results_in(folder.path() / "r/results.json");
  REQUIRE(results["runs"].size() == 1);
  CHECK(results["runs"][0]["ending"] == "interrupted");
  CHECK(results["runs"][0]["samples"] == 3 * 16);
  CHECK(results["runs"][0]["evaluation"]["loss"].is_null());
  CHECK(results["left_out"][0]["schedule"] == "1f1b");
}

TEST_CASE("Ctrl-C ends an evaluation on the way, and with it the run", "[endings]") {
  const temporary_folder folder;
  auto o = tiny_options(folder);
  o.schedules.names = {"gpipe"};
  o.schedules.steps = 1000;
  o.evaluation.every = 2;
  o.evaluation.samples = 1'000'000;
  auto shared = *tiny::set_up_training(o);
  auto& data = shared.runs[0].plan.work->data;
  data = std::make_shared<watched_data>(data, [calls = std::make_shared<int>(0)] {
    if (++*calls == 1)
      std::raise(SIGINT);
    if (*calls > 64)
      _exit(99);
  });
  CHECK(exit_code_of_session(*parse(o, true), shared) == 130);
  const auto run = results_in(folder.path() / "r/results.json")["runs"][0];
  CHECK(run["ending"] == "interrupted");
  CHECK(run["samples"] < 1000 * 16);
  CHECK(run["evaluations"].empty());
}

TEST_CASE("Ctrl-C ends a simulation, and its results are kept", "[endings]") {
  const temporary_folder folder;
  typed_options o;
  o.schedules.names = {"1f1b,gpipe"};
  o.schedules.steps = 1'000'000;
  o.cost = "F=1,B=2";
  o.output.quiet = true;
  o.output.json = (folder.path() / "r.json").string();
  o.output.command = {"simulate"};
  auto shared = *tiny::set_up_simulation(o);
  auto& cost = shared.runs[0].plan.machine.cost;
  cost = [cost, actions = std::make_shared<int>(0)](const work& what) {
    if (++*actions == 1000)
      std::raise(SIGINT);
    if (*actions > 10'000)
      _exit(99);
    return cost(what);
  };
  CHECK(exit_code_of_session(*parse(o, false), shared) == 130);
  const auto results = results_in(o.output.json);
  CHECK(results["runs"][0]["ending"] == "interrupted");
  CHECK(results["runs"][0]["makespan"] > 0.3); // a thousand actions on four ranks
  CHECK(results["left_out"][0]["schedule"] == "gpipe");
}

TEST_CASE("a second Ctrl-C kills, but not one that comes with the first", "[endings]") {
  const temporary_folder folder;
  auto o = tiny_options(folder);
  o.evaluation.samples = 1;
  auto shared = *tiny::set_up_training(o);
  auto& data = shared.runs[0].plan.work->data;
  data = std::make_shared<watched_data>(data, [] {
    std::raise(SIGINT);
    (void)interruption(); // a second call installs no second handler
    std::raise(SIGINT);
    std::raise(SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds{1050});
    std::raise(SIGINT);
    _exit(99);
  });
  CHECK(exit_code_of_session(*parse(o, true), shared) == -1);
  CHECK(std::filesystem::exists(folder.path() / "w-gpipe"));
}

TEST_CASE("comparisons at one time leave a folder each", "[endings]") {
  temporary_folder folder;
  const auto one = "compare --schedules gpipe --steps 1 --quiet" + tiny_model + "& ";
  CHECK(run_shell_in(folder, one + one + one + "wait").exit_code == 0);
  int reports = 0;
  for (const auto& report :
       std::filesystem::directory_iterator{folder.path() / "runs"}) {
    ++reports;
    CHECK(results_in(report.path() / "results.json")["runs"].size() == 1);
  }
  CHECK(reports == 3);
}

TEST_CASE("two programs do not write into one report", "[endings]") {
  temporary_folder folder;
  std::filesystem::create_directory(folder.path() / "r");
  {
    folder_lock other;
    REQUIRE(other.try_lock(folder.path() / "r"));
    const auto second = run_program_in(folder, "simulate --report r");
    CHECK(second.exit_code == 2);
    CHECK_THAT(second.err,
               ContainsSubstring("another program is writing into --report r"));
  }
  CHECK(run_program_in(folder, "simulate --report r").exit_code == 0);
}

} // namespace troupe::endings_test
