// SPDX-License-Identifier: BSD-3-Clause
// Tests --watch from a browser's side.

#include "experiments/report/page.hpp"
#include "experiments/session/live_page.hpp"
#include "tests/experiments/http_client.hpp"
#include "tests/experiments/started.hpp"
#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace troupe::watch_test {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using json = nlohmann::ordered_json;

namespace {

const std::string tiny_model = " --d-model 8 --heads 2 --seq 4 --vocab 7 --layers 4 ";

/// Returns the port at which a program serves a page, from the program's output.
int port_of(const started& program) {
  for (int looks = 0; looks < 8000; ++looks) {
    const auto said = program.said();
    if (said.find("/\n") != std::string::npos && port_in(said) > 0)
      return port_in(said);
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return 0;
}

/// Polls a program's progress until `wanted` accepts the progress. Returns the accepted
/// progress, or null if none is accepted.
template <class Wanted>
json progress_of(int port, const Wanted& wanted) {
  for (int looks = 0; looks < 20'000; ++looks) {
    const auto text = body_of(get(port, "/progress.json"));
    if (!text.empty())
      if (auto all = json::parse(text); wanted(all))
        return all;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return nullptr;
}

/// Steps of a simulation that is still running when the first request arrives.
#ifdef TROUPE_SANITIZED
constexpr int many_steps = 50;
#else
constexpr int many_steps = 500;
#endif

} // namespace

TEST_CASE("what is no port is refused", "[watch]") {
  const temporary_folder folder;
  const auto* const port = GENERATE("65536", "-1", "http", "080", "1.5");
  const auto ran =
    run_program_in(folder, std::string{"train --watch="} + port + " --steps 1");
  CHECK(ran.exit_code == 2);
  CHECK(ran.err
        == std::string{"train: --watch "} + port
             + ": give a port from 1 to 65535, or 0 for any free port\n");
}

TEST_CASE("a training is watched while it goes on, and ends when it is told to",
          "[watch]") {
  const temporary_folder folder;
  started program{
    folder, "watched",
    words_of("train --watch --stages 2 --steps 1000000 --save w --evaluate-every 5"
             + tiny_model)};
  const int port = port_of(program);
  REQUIRE(port > 0);
  CHECK_THAT(body_of(get(port, "/")), ContainsSubstring("<title>troupe</title>"));
  const auto all = progress_of(port, [](const json& one) {
    return !one["now"].is_null() && one["now"]["losses"].size() > 2
           && !one["now"]["evaluations"].empty()
           && std::ranges::all_of(one["recent"]["ranks"], [](const json& numbers) {
                return numbers.size() == 9 * 250; // the largest number shown
              });
  });
  REQUIRE_FALSE(all.is_null());
  CHECK(all["runs"] == json{"1f1b"});
  CHECK(all["over"].empty());
  CHECK(all["version"] == 0);
  CHECK(all["ended"] == false);
  CHECK_THAT(all["command"].get<std::string>(), StartsWith("train --watch"));
  const auto& now = all["now"];
  CHECK(now["text"] == "1f1b");
  CHECK(now["unit"] == "samples");
  CHECK(now["all"] == 16'000'000);
  CHECK(now["done"] > 0);
  for (std::size_t i = 0; i < now["losses"].size(); ++i) {
    CHECK(now["losses"][i][1] > 0);
    CHECK((i == 0 || now["losses"][i][0] > now["losses"][i - 1][0]));
  }
  REQUIRE(all["recent"]["ranks"].size() == 2);
  CHECK_THAT(get(port, "/report.html"), StartsWith("HTTP/1.1 404")); // no run has ended
  const client in_between{port};
  in_between.say("GET / HTTP/1.1\r\n");
  program.send(SIGINT);
  CHECK(program.wait(std::chrono::minutes{1}) == 130);
  CHECK(std::filesystem::exists(folder.path() / "w"));
  CHECK_FALSE(client{port}.connected());
}

TEST_CASE("a page has what ranks ran last, as report.html has it, and from when on",
          "[watch]") {
  auto o = tiny::options_of("1f1b");
  o.mesh.stages = 2;
  o.run.clock = "virtual";
  const auto shared = tiny::set_up_training(o);
  REQUIRE(shared);
  const auto& request = shared->runs.front();
  const auto page = live_page::open(0, shared->runs, "train", "");
  REQUIRE(page);
  const int port = port_in((*page)->address());
  const auto recent = [&] {
    // The page shows new actions within this time.
    std::this_thread::sleep_for(std::chrono::milliseconds{600});
    (*page)->add_simulated(1);
    return json::parse(body_of(get(port, "/progress.json")))["recent"];
  };
  (*page)->begin(request, timing_kind::virtual_time);
  CHECK(recent()["ranks"] == json{json::array(), json::array()});
  const auto ran = [](int rank, int microbatch, nanoseconds start) {
    return ranked_action{rank,
                         {.action = {op::backward, 0, rank, microbatch},
                          .start = start,
                          .end = start + 7,
                          .version = 3,
                          .versions_alive = 2}};
  };
  (*page)->add({.ran = {ran(0, 4, 10), ran(1, 4, 30), ran(0, 5, 40)}, .dropped_to = 9});
  auto found = recent();
  run_account account{.request = &request, .result = {}};
  account.result.actions = {{ran(0, 4, 10).measured, ran(0, 5, 40).measured},
                            {ran(1, 4, 30).measured}};
  CHECK(found["ranks"] == json::parse(timeline_json(account))["ranks"]);
  CHECK(found["ranks"][0]
        == json{1, 0, 4, 0, 3, 10, 7, 0, 2, 1, 0, 5, 0, 3, 23, 7, 0, 2});
  CHECK(found["from"] == json{9, 9});
  CHECK(found["timing"] == "virtual");
  CHECK(found["letters"] == "FBIWUR");
  CHECK(found["microbatches"] == request.plan.dims.microbatches);
  recent_actions many;
  constexpr int most = 250; // actions of one of two ranks
  for (int i = 0; i < most + 50; ++i) {
    many.ran.push_back(ran(0, i, 1000 + 10 * i));
    many.ran.push_back(ran(1, i, 100 + i));
  }
  (*page)->add(many);
  found = recent();
  CHECK(found["ranks"][0].size() == 9 * most);
  // Two actions of rank 0 and one of rank 1 were recorded before.
  CHECK(found["from"] == json{1000 + 10 * 49 + 7, 100 + 49 + 7});
  (*page)->begin(request, timing_kind::measured); // anew
  found = recent();
  CHECK(found["from"] == json{0, 0});
  CHECK(found["timing"] == "measured");
  CHECK(found["ranks"] == json{json::array(), json::array()});
}

TEST_CASE("a page of a resumed run counts samples of the run", "[watch]") {
  using clock = std::chrono::steady_clock;
  auto shared = *tiny::set_up_training(tiny::options_of("1f1b"));
  auto& plan = shared.runs.front().plan;
  plan.dims.batches_before = 3;
  const auto batch = plan.work->batch;
  const auto page = live_page::open(0, shared.runs, "train", "");
  REQUIRE(page);
  (*page)->begin(shared.runs.front(), timing_kind::virtual_time);
  progress before{.samples = batch};
  before.losses = {{batch, 9}};
  (*page)->add(before);
  (*page)->add_evaluation({4}, {.loss = 9, .accuracy = {}});
  (*page)->begin(shared.runs.front(), timing_kind::virtual_time); // anew
  const auto begun = clock::now();
  (*page)->add({.samples = 0});
  const auto after_first = clock::now();
  (*page)->add_evaluation({5}, {.loss = 2.5, .accuracy = {}});
  progress told{.samples = 4 * batch, .loss = 1.5};
  told.losses = {{2 * batch, 1.75}, {4 * batch, 1.5}};
  auto asked = clock::now();
  for (; asked - after_first < 600ms; asked = clock::now()) // a rate needs 500
    std::this_thread::sleep_for(10ms);
  (*page)->add(told);
  const auto answered = clock::now();
  const auto now =
    json::parse(body_of(get(port_in((*page)->address()), "/progress.json")))["now"];
  CHECK(now["done"] == 4 * batch);
  CHECK(now["all"] == plan.dims.steps * batch);
  CHECK(now["loss"] == 1.5);
  CHECK(now["losses"] == json{{2 * batch, 1.75}, {4 * batch, 1.5}});
  CHECK(now["evaluations"] == json{{2 * batch, 2.5}});
  REQUIRE(now["rate"] != "");
  const double rate = std::stod(now["rate"].get<std::string>()); // of three digits
  using seconds = std::chrono::duration<double>;
  const auto done = static_cast<double>(4 * batch);
  CHECK(rate > 0.99 * done / seconds{answered - begun}.count());
  CHECK(rate < 1.01 * done / seconds{asked - after_first}.count());
}

#ifndef TROUPE_SANITIZED // sanitizers take minutes for so many actions
TEST_CASE("who watches sees what ranks on other nodes run", "[watch]") {
  const temporary_folder folder;
  started_nodes nodes{folder, 2};
  started program{
    folder, "watched",
    words_of(
      "train --model moe --experts 2 --mesh data=2,pipe=1,expert=2 " // no cost model
      "--steps 1000000 --watch --nodes "
      + nodes.addresses() + tiny_model)};
  const int port = port_of(program);
  REQUIRE(port > 0);
  const auto all = progress_of(port, [](const json& one) {
    if (one["now"].is_null() || one["recent"]["ranks"][1].empty())
      return false;
    constexpr int behind_a_trace = 5'000; // a trace has at least two actions of each
    const auto& numbers = one["recent"]["ranks"][1];
    return numbers[numbers.size() - 9 + 2] > behind_a_trace;
  });
  CHECK_FALSE(all.is_null());
}
#endif

TEST_CASE("a proof that is interrupted is no run: nothing that was there is lost",
          "[watch]") {
  const temporary_folder folder;
  (void)folder.write("w", "precious");
  (void)folder.write("r.json", "precious");
  started program{folder, "proving",
                  words_of("train --stages 2 --steps 1000000 --verify 1000000 --save w"
                           " --json r.json --watch"
                           + tiny_model)};
  const int port = port_of(program);
  REQUIRE(port > 0);
  REQUIRE_FALSE(progress_of(port, [](const json& one) {
                  return one["proves"] == "1f1b";
                }).is_null());
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  program.send(SIGINT);
  CHECK(program.wait(std::chrono::minutes{1}) == 130);
  CHECK(content_of(folder.path() / "w") == "precious");
  CHECK(content_of(folder.path() / "r.json") == "precious");
}

TEST_CASE("who watches is shown each schedule that is over, and the end", "[watch]") {
  const temporary_folder folder;
  const std::string typed = GENERATE(
    "compare --schedules gpipe,1f1b --stages 2 --steps 100 --report r" + tiny_model,
    "simulate --schedules gpipe,1f1b --report r --steps " + std::to_string(many_steps));
  started program{folder, "watched", words_of(typed + " --watch 0")};
  const int port = port_of(program);
  REQUIRE(port > 0);
  const auto all =
    progress_of(port, [](const json& one) { return one["ended"] == true; });
  REQUIRE_FALSE(all.is_null());
  CHECK(all["now"].is_null());
  CHECK(all["over"] == json{"finished", "finished"});
  CHECK(all["version"] == 2);
  const auto file = folder.path() / "r" / "report.html";
  CHECK(std::filesystem::equivalent(all["report"].get<std::string>(), file));
  CHECK(body_of(get(port, "/report.html")) == content_of(file));
  CHECK(program.wait(std::chrono::minutes{1}) == 0);
  CHECK_FALSE(client{port}.connected());
}

TEST_CASE("who watches changes no bit, and leaves no file", "[watch]") {
  const temporary_folder folder;
  const auto typed = "train --stages 2 --steps 100" + tiny_model;
  REQUIRE(run_program_in(folder, typed + "--save alone").exit_code == 0);
  started program{folder, "watched",
                  words_of(typed + "--save watched --watch --quiet")};
  const int port = port_of(program);
  REQUIRE(port > 0);
  const auto all =
    progress_of(port, [](const json& one) { return one["ended"] == true; });
  REQUIRE_FALSE(all.is_null());
  CHECK(all["report"] == "");
  CHECK_THAT(body_of(get(port, "/report.html")), ContainsSubstring("1f1b"));
  CHECK(program.wait(std::chrono::minutes{1}) == 0);
  CHECK(content_of(folder.path() / "alone") == content_of(folder.path() / "watched"));
  CHECK_THAT(program.said(), StartsWith("train: watch the run at http://127.0.0.1:"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "runs"));
}

TEST_CASE("a program that is killed while it answers serves no more", "[watch]") {
  const temporary_folder folder;
  started program{folder, "watched",
                  words_of("simulate --watch --steps 1000000 --microbatches 64")};
  const int port = port_of(program);
  REQUIRE(port > 0);
  const auto all = progress_of(port, [](const json& one) {
    return !one["now"].is_null() && one["now"]["done"] > 0;
  });
  REQUIRE_FALSE(all.is_null());
  CHECK(all["now"]["unit"] == "microbatches");
  CHECK(all["now"]["all"] == 64'000'000);
  const client one{port};
  one.say("GET / HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n");
  program.send(SIGKILL);
  CHECK(program.wait(std::chrono::minutes{1}) == 128 + SIGKILL);
  CHECK(one.hear().empty());
  CHECK_FALSE(client{port}.connected());
}

} // namespace troupe::watch_test
