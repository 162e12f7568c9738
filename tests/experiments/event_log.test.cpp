// SPDX-License-Identifier: BSD-3-Clause
// Tests the files of --tensorboard, read by the format's definition.

#include "experiments/session/event_log.hpp"

#include "experiments/report/event_file.hpp"
#include "experiments/report/files.hpp"
#include "tests/experiments/events_read.hpp"
#include "tests/experiments/started.hpp"
#include "tests/experiments/tiny_options.hpp"
#include "tests/unprivileged.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <set>

namespace troupe::event_log_test {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using tensorboard::events_in;
using tensorboard::events_of;
using tensorboard::point;
using points = std::vector<point>;

namespace {

const std::string tiny_model = " --d-model 8 --heads 2 --seq 4 --vocab 7 --layers 4 ";

} // namespace

TEST_CASE("the reader of event files sums as RFC 3720 says", "[events]") {
  CHECK(tensorboard::crc32c("123456789") == 0xe3069283U);
  CHECK(tensorboard::crc32c(std::string(32, '\0')) == 0x8a9136aaU);
}

TEST_CASE("an event file says what was added to it, piece by piece", "[events]") {
  const temporary_folder folder;
  auto file = event_file::in(folder.path());
  REQUIRE(file);
  CHECK(content_of(file->path()).empty());
  file->add_start(0);
  file->add_scalar(16, "loss", 1.25);
  CHECK(file->write().empty());
  const auto before = content_of(file->path());
  CHECK(file->write().empty());
  CHECK(content_of(file->path()) == before);
  const auto far = std::int64_t{1} << 40;
  file->add_text(0, "command", std::string(300, 'x') + "ü");
  file->add_scalar(far, "loss", std::numeric_limits<double>::infinity());
  file->add_scalar(far, "", -0.5);
  CHECK(file->write().empty());
  const auto content = content_of(file->path());
  CHECK(content.starts_with(before));
  const auto all = events_of(content);
  CHECK(all.version == "brain.Event:2");
  CHECK(all.starts == std::vector<std::int64_t>{0});
  CHECK(all.scalars.at("loss")
        == points{{16, 1.25F}, {far, std::numeric_limits<float>::infinity()}});
  CHECK(all.scalars.at("") == points{{far, -0.5F}});
  CHECK(all.texts.at("command") == std::string(300, 'x') + "ü");
  CHECK(all.wall_times.size() == 6);
  CHECK(std::ranges::is_sorted(all.wall_times));
  CHECK(all.wall_times.front() > 1.7e9); // a present time
}

TEST_CASE("files of one second have names of their own, in order", "[events]") {
  const temporary_folder folder;
  std::set<std::string> names;
  for (int i = 0; i < 3; ++i) {
    const auto file = event_file::in(folder.path());
    REQUIRE(file);
    names.insert(file->path().filename().string());
    CHECK(file->path().filename().string().starts_with("events.out.tfevents."));
  }
  CHECK(names.size() == 3);
  const auto nowhere = event_file::in(folder.path() / "none");
  REQUIRE_FALSE(nowhere);
  CHECK_THAT(nowhere.error(), ContainsSubstring("No such file"));
}

TEST_CASE("event files say what results.json says, a folder a schedule", "[events]") {
  const temporary_folder folder;
  const auto ran = run_program_in(
    folder, "compare --schedules gpipe,pipedream,ampnet:lr=0.0005 --stages 2 --steps 6 "
            "--batch 8 --microbatches 4 --evaluate-every 2 --clock virtual "
            "--tensorboard tb --json r.json --report r"
              + tiny_model);
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("tensorboard --logdir tb"));
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  const std::string names[] = {"gpipe", "pipedream", "ampnet:lr=0.0005"};
  for (std::size_t i = 0; i < 3; ++i) {
    INFO(names[i]);
    const auto& run = results["runs"][i];
    const auto all = events_in(folder.path() / "tb" / names[i]);
    CHECK(all.starts == std::vector<std::int64_t>{0});
    CHECK_THAT(all.texts.at("command"), ContainsSubstring("--evaluate-every 2"));
    points losses, evaluated;
    for (std::size_t j = 0; j < run["loss"].size(); ++j)
      losses.push_back({run["loss_samples"][j], run["loss"][j]});
    CHECK(all.scalars.at("loss") == losses);
    for (const auto& one : run["evaluations"])
      evaluated.push_back({one["steps"].get<std::int64_t>() * 8, one["loss"]});
    CHECK(evaluated.size() == 3);
    CHECK(all.scalars.at("evaluation/loss") == evaluated);
    const auto most = [&](const json& of) {
      return static_cast<float>(*std::max_element(of.begin(), of.end()));
    };
    CHECK(all.scalars.at("schedule/bubble") == points{{48, run["bubble"]}});
    CHECK(all.scalars.at("schedule/activations")
          == points{{48, most(run["peak_activations"])}});
    CHECK(all.scalars.at("schedule/weight_versions")
          == points{{48, most(run["weight_versions"])}});
    CHECK(all.scalars.at("schedule/staleness")
          == points{{48, most(run["staleness"]["max"])}});
  }
}

TEST_CASE("TensorBoard is told the rate of the wall's clock, and the time of day",
          "[events]") {
  using clock = std::chrono::steady_clock;
  using seconds = std::chrono::duration<double>;
  const auto time_of_day = [] {
    return seconds{std::chrono::system_clock::now().time_since_epoch()}.count();
  };
  const temporary_folder folder;
  auto shared = *tiny::set_up_training(tiny::options_of("1f1b"));
  auto& plan = shared.runs.front().plan;
  plan.dims.batches_before = 2;
  const auto before = time_of_day();
  event_log log{folder.path() / "tb", "train",
                [](const std::string& why) { FAIL(why); }};
  log.begin(plan);
  const auto begun = clock::now();
  log.add({.samples = 100});
  const auto after_first = clock::now();
  std::int64_t samples = 100;
  for (int i = 0; i < 5000; ++i) {
    samples += 70;
    const auto asked = clock::now();
    log.add({.samples = samples});
    const auto answered = clock::now();
    const auto all = events_in(folder.path() / "tb");
    const auto found = all.scalars.find("samples_per_second");
    if (found == all.scalars.end()) {
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
      continue;
    }
    REQUIRE(found->second.size() == 1);
    CHECK(found->second[0].step == 2 * plan.work->batch + samples);
    const auto done = static_cast<double>(samples - 100);
    CHECK(found->second[0].value > 0.9999 * done / seconds{answered - begun}.count());
    CHECK(found->second[0].value
          < 1.0001 * done / seconds{asked - after_first}.count());
    for (const double time : all.wall_times) {
      CHECK(time > before - 1);
      CHECK(time < time_of_day() + 1);
    }
    return;
  }
  FAIL("no rate is told");
}

TEST_CASE("TensorBoard is told no bubble of ranks that took turns", "[events]") {
  const temporary_folder folder;
  auto shared = *tiny::set_up_training(tiny::options_of("1f1b"));
  auto& plan = shared.runs.front().plan;
  plan.machine.threads = 1; // one thread for several ranks
  run_account run{.request = &shared.runs.front(), .result = perform(plan)};
  run.modelled = GENERATE(false, true);
  event_log log{folder.path() / "tb", "train",
                [](const std::string& why) { FAIL(why); }};
  log.begin(plan);
  log.end(run);
  const auto told = events_in(folder.path() / "tb").scalars;
  CHECK(told.contains("schedule/bubble") == run.modelled);
  CHECK(told.contains("schedule/activations"));
}

TEST_CASE("a run in the folder of another begins a file of its own", "[events]") {
  const temporary_folder folder;
  const auto typed = "train --stages 2 --batch 8 --tensorboard tb --checkpoint c "
                     "--checkpoint-every 2 --quiet --model mlp --steps ";
  REQUIRE(run_program_in(folder, typed + std::string{"4"}).exit_code == 0);
  const auto own = folder.path() / "tb" / "1f1b";
  const auto first = tensorboard::files_in(own);
  REQUIRE(first.size() == 1);
  const auto before = content_of(first[0]);
  REQUIRE(run_program_in(folder, typed + std::string{"6 --resume c"}).exit_code == 0);
  CHECK(tensorboard::files_in(own).size() == 2);
  CHECK(content_of(first[0]) == before);
  CHECK(events_of(before).scalars.at("evaluation/accuracy").size() == 1);
  for (const auto& file : tensorboard::files_in(own))
    if (file != first[0]) {
      const auto all = events_of(content_of(file));
      CHECK(all.starts == std::vector<std::int64_t>{33}); // the loss at 32 stays
      const auto& losses = all.scalars.at("loss");
      REQUIRE(losses.size() == 2);
      CHECK(losses[0].step == 40);
      CHECK(losses[1].step == 48);
    }
}

TEST_CASE("a program that is killed leaves whole records", "[events]") {
  const temporary_folder folder;
  started program{
    folder, "killed",
    words_of("train --stages 2 --steps 1000000 --tensorboard tb" + tiny_model)};
  const auto own = folder.path() / "tb" / "1f1b";
  std::string content;
  for (int looks = 0; looks < 4000 && content.find("loss") == std::string::npos;
       ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    if (std::filesystem::exists(own) && !tensorboard::files_in(own).empty())
      content = content_of(tensorboard::files_in(own).back());
  }
  program.send(SIGKILL);
  CHECK(program.wait(std::chrono::seconds{60}) == 128 + SIGKILL);
  const auto all = events_in(own);
  CHECK_FALSE(all.scalars.at("loss").empty());
}

TEST_CASE("a run goes on where its event file does not", "[events]") {
  const temporary_folder folder;
  const auto ran = run_shell_in(
    folder, "ulimit -f 4; exec train --stages 2 --steps 400 --batch 8 --quiet "
            "--tensorboard tb"
              + tiny_model);
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, ContainsSubstring("train: --tensorboard: cannot write tb/1f1b/"));
  CHECK_THAT(ran.err, ContainsSubstring("File too large"));
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
  CHECK(events_in(folder.path() / "tb" / "1f1b").version == "brain.Event:2");
}

TEST_CASE("a place that takes no event files is refused before the run", "[events]") {
  const temporary_folder folder;
  folder.write("file", "");
  std::filesystem::create_directory(folder.path() / "tb");
  folder.write("tb/1f1b", "");
  const auto [typed, said] = GENERATE(table<std::string, std::string>(
    {{"train --tensorboard file", "train: --tensorboard cannot make the folder file "
                                  "(Not a directory): name another "
                                  "folder\n"},
     {"train --tensorboard tb",
      "train: --tensorboard tb/1f1b is not a folder: name another folder\n"},
     {"train --tensorboard d --data text:d",
      "train: --tensorboard d/1f1b is in the folder that --data reads: name a place "
      "outside that folder\n"}}));
  std::filesystem::create_directory(folder.path() / "d");
  folder.write("d/text", std::string(10'000, 'a') + std::string(10'000, 'b'));
  const auto ran = run_program_in(folder, typed);
  CHECK(ran.exit_code == 2);
  CHECK(ran.err == said);
  CHECK(ran.out.empty());
}

TEST_CASE("a folder that nobody may write into takes no event files", "[events]") {
  const temporary_folder folder;
  const auto where = folder.path() / "tb";
  std::filesystem::create_directory(where);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(where, std::filesystem::perms::owner_read);
  auto o = tiny::options_of("1f1b");
  o.output.tensorboard = where.string();
  const auto shared = tiny::set_up_training(o);
  const auto parsed = parse(o, true);
  const unprivileged user;
  output_files files{*parsed};
  CHECK(files.prepare(shared->runs)
        == "--tensorboard cannot write into the folder " + where.string()
             + " (Permission denied): name another folder");
}

} // namespace troupe::event_log_test
