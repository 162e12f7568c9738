// SPDX-License-Identifier: BSD-3-Clause
// Random trainings resume from checkpoints, are evaluated on the way, and lose nodes.
// Each ends with the bits of an undisturbed training. With TROUPE_RANDOM=500,7 a tenth
// of the 500 runs here.

#include "actors/nodes/node_links.hpp"
#include "actors/nodes/node_server.hpp"
#include "experiments/session/node_part.hpp"
#include "experiments/session/session.hpp"
#include "kernels/version.hpp"
#include "tests/random/configuration.hpp"
#include "tests/random/performed.hpp"
#include "tests/random/wish.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::trainings_test {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

#ifdef TROUPE_SANITIZED
constexpr std::uint64_t usual_trainings = 9;
#else
constexpr std::uint64_t usual_trainings = 16;
#endif

using words = std::vector<std::string>;

outcome outcome_of(const words& typed) {
  const program_info about{.name = "train",
                           .description = "",
                           .resumes = true,
                           .distributes = true,
                           .defaults = {.model = {.width = 32, .length = 16},
                                        .schedules = {.names = {"1f1b"}},
                                        .evaluation = {.samples = 5}}};
  return performed(about, typed, [](const options& o) { return run_session(o); });
}

words operator+(words all, const words& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string content_of(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

json run_in(const fs::path& results) {
  return json::parse(content_of(results))["runs"][0];
}

/// One configuration with files, and the steps between checkpoints and evaluations.
struct random_training {
  random_training(std::uint64_t seed, std::uint64_t number)
    : configuration(seed, number),
      save_every(1 + static_cast<int>(number % 2)),
      evaluate_every(1 + static_cast<int>(number / 2 % 3)) {
    typed = configuration.words();
    auto& typed_steps = *std::next(std::ranges::find(typed, "--steps"));
    typed_steps = std::to_string(steps());
  }

  int steps() const { return configuration.steps() + save_every; }
  std::string at(const std::string& name) const {
    return (folder.path() / name).string();
  }
  words saving(const std::string& file) const { return {"--save", at(file)}; }
  words watched() const {
    return {"--checkpoint",
            at("c"),
            "--checkpoint-every",
            std::to_string(save_every),
            "--keep",
            "99",
            "--evaluate-every",
            std::to_string(evaluate_every),
            "--evaluate-samples",
            "5",
            "--json",
            at("r.json")};
  }

  /// AMPNet finishes the microbatches in flight before each checkpoint.
  bool pauses() const { return configuration.schedule() == "ampnet"; }
  bool is_real() const { return std::ranges::count(typed, "real") > 0; }

  /// Whether data replicas update the parameters singly, one after another, in the
  /// order of arrival.
  bool updates_in_turns() const {
    return std::ranges::any_of(typed, [](const std::string& word) {
      return word.starts_with("server:") || word == "hogwild";
    });
  }

  /// Whether two runs have the same bits. In real time local rules follow the clock,
  /// and so does the order of single updates.
  bool repeats() const { return !is_real() || (!pauses() && !updates_in_turns()); }

  /// Removes the last checkpoints. Returns the number of batches of the newest
  /// remaining checkpoint; 0 if none remains.
  int forget_some() const {
    std::vector<int> batches;
    for (const auto& entry : fs::directory_iterator{at("c")})
      if (const auto name = entry.path().filename().string();
          name.starts_with("batch-"))
        batches.push_back(std::stoi(name.substr(6)));
    std::ranges::sort(batches);
    while (!batches.empty() && batches.back() > (steps() + 1) / 2) {
      fs::remove_all(at("c/batch-" + std::to_string(batches.back())));
      batches.pop_back();
    }
    return batches.empty() ? 0 : batches.back();
  }

  temporary_folder folder;
  random_configuration configuration;
  int save_every, evaluate_every;
  words typed;
};

/// Losses after so many samples, each with its number of samples.
std::vector<std::pair<json, json>> losses_behind(const json& run,
                                                 std::int64_t samples) {
  std::vector<std::pair<json, json>> result;
  for (std::size_t i = 0; i < run["loss"].size(); ++i)
    if (run["loss_samples"][i].get<std::int64_t>() > samples)
      result.emplace_back(run["loss_samples"][i], run["loss"][i]);
  return result;
}

/// Evaluations after so many steps.
std::vector<json> evaluations_behind(const json& run, int steps) {
  std::vector<json> result;
  for (const auto& one : run["evaluations"])
    if (one["steps"].get<int>() > steps)
      result.push_back(one);
  return result;
}

/// Nodes in threads of this process; each runs a part of `train --nodes`.
class random_nodes {
public:
  explicit random_nodes(int count)
    : links_(std::move(*node_links::from(std::nullopt))) {
    means_ = {
      .plan = [](const mail::prepare& facts) { return plan_of_part(facts, {}); },
      .connections = links_.get()};
    for (int i = 0; i < count; ++i) {
      auto& one = *all_.emplace_back(std::make_unique<node>());
      one.server = std::make_unique<node_server>(
        *listen_at({"127.0.0.1", 0}),
        [this](socket_descriptor s) { return links_->from(std::move(s)); }, means_,
        node_server::settings{.version = version()});
      one.thread =
        std::thread{[&one] { one.server->serve(one.stop, [](const std::string&) {}); }};
    }
  }
  ~random_nodes() {
    for (std::size_t i = 0; i < all_.size(); ++i)
      lose(i);
  }
  random_nodes(const random_nodes&) = delete;
  random_nodes& operator=(const random_nodes&) = delete;

  std::string addresses() const {
    std::string result;
    for (const auto& one : all_)
      result += (result.empty() ? "127.0.0.1:" : ",127.0.0.1:")
                + std::to_string(one->server->port());
    return result;
  }

  /// Ends a node, whatever the node does.
  void lose(std::size_t index) {
    auto& one = *all_[index];
    one.stop = true;
    if (one.thread.joinable())
      one.thread.join();
    one.server.reset(); // the port refuses connections now
  }

private:
  struct node {
    std::atomic<bool> stop{false};
    std::unique_ptr<node_server> server;
    std::thread thread;
  };

  std::unique_ptr<node_links> links_;
  worker_services means_;
  std::vector<std::unique_ptr<node>> all_;
};

/// Trains on two nodes, and loses one node after the first checkpoint.
outcome trained_with_a_loss(const random_training& one) {
  random_nodes nodes{2};
  std::atomic<bool> over{false};
  std::thread enemy{[&] {
    const auto is_saved = [&] {
      std::error_code none;
      for (const auto& entry : fs::directory_iterator{one.at("n"), none})
        if (entry.path().filename().string().starts_with("batch-"))
          return true;
      return false;
    };
    while (!over && !is_saved())
      std::this_thread::yield();
    nodes.lose(1);
  }};
  auto result = outcome_of(one.typed + one.saving("nodes")
                           + words{"--nodes", nodes.addresses(), "--restart",
                                   "--checkpoint", one.at("n"), "--checkpoint-every",
                                   std::to_string(one.save_every), "--keep", "99"});
  over = true;
  enemy.join();
  return result;
}

} // namespace

TEST_CASE("trainings at random go on to the bits of one that nothing befell",
          "[random]") {
  const auto [wish, seed] = wished(10 * usual_trainings);
  const auto number = std::max<std::uint64_t>(wish / 10, 1);
  int resumed = 0, restarted = 0;
  for (std::uint64_t i = 0; i < number; ++i) {
    const random_training one{seed + 1'000'000, i};
    const auto undisturbed = outcome_of(one.typed + one.saving("whole"));
    const auto watched = outcome_of(one.typed + one.saving("watched") + one.watched());
    INFO(command_of("train", one.typed + one.watched())
         << "\n"
         << undisturbed.said << watched.said);
    if (undisturbed.exit_code == 2 || watched.exit_code == 2) {
      CHECK(is_one_sentence("train",
                            (undisturbed.exit_code == 2 ? undisturbed : watched).said));
      continue;
    }
    REQUIRE(undisturbed.exit_code == 0);
    REQUIRE(watched.exit_code == 0);
    if (!one.repeats())
      continue;
    if (!one.pauses())
      CHECK((content_of(one.at("watched")) == content_of(one.at("whole"))));
    const auto before = run_in(one.at("r.json"));
    if (const int batches = one.forget_some(); batches > 0) {
      const auto rest = outcome_of(one.typed + one.saving("rest") + one.watched()
                                   + words{"--resume", one.at("c")});
      INFO("resumed behind " << batches << "\n" << rest.said);
      REQUIRE(rest.exit_code == 0);
      CHECK((content_of(one.at("rest")) == content_of(one.at("watched"))));
      const auto after = run_in(one.at("r.json"));
      const auto samples = before["samples"].get<std::int64_t>()
                           / before["steps"].get<std::int64_t>() * batches;
      CHECK(after["loss"].size() == losses_behind(after, samples).size());
      CHECK(losses_behind(after, samples) == losses_behind(before, samples));
      CHECK(evaluations_behind(after, batches) == evaluations_behind(before, batches));
      ++resumed;
    }
    if (i % 4 != 0 || !one.is_real() || one.pauses())
      continue;
    const auto lost = trained_with_a_loss(one);
    INFO(lost.said);
    if (lost.exit_code != 2) {
      CHECK(lost.exit_code == 0);
      CHECK((content_of(one.at("nodes")) == content_of(one.at("whole"))));
      ++restarted;
    }
  }
  CHECK((number < usual_trainings || resumed > static_cast<int>(number / 4)));
  CHECK((number < usual_trainings || restarted > static_cast<int>(number / 40)));
}

} // namespace troupe::trainings_test
