// SPDX-License-Identifier: BSD-3-Clause
// Jobs of a user's program with checkpoints, and on nodes of the same program.

#include "actors/embedding/training_node.hpp"

#include "actors/run/perform.hpp"
#include "tests/actors/embedded.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <fstream>
#include <functional>

namespace troupe::training_node_test {

using namespace embedded;
using Catch::Matchers::ContainsSubstring;

namespace {

std::unique_ptr<training_node> node_of(const training_job& job) {
  auto node = training_node::start(job, {.listen = "127.0.0.1:0"});
  INFO((node ? "" : node.error()));
  REQUIRE(node);
  return std::move(*node);
}

/// Trains a job on `count` nodes of this process.
training_result on_nodes(const training_job& job, int count) {
  std::vector<std::unique_ptr<training_node>> nodes;
  auto distant = job;
  for (int i = 0; i < count; ++i)
    distant.nodes.addresses.push_back(nodes.emplace_back(node_of(job))->address());
  return finished(distant);
}

std::string refusal_by(const training_job& of_node, const training_job& of_leader) {
  const auto node = node_of(of_node);
  auto distant = of_leader;
  distant.nodes.addresses = {node->address()};
  return refusal_of(distant);
}

} // namespace

TEST_CASE("a job has the same bits on nodes of its program", "[training]") {
  auto job = small_job();
  SECTION("tensor shards, proved") {
    job.stages = 2;
    job.tensor = 2;
    job.verify = true;
  }
  SECTION("data replicas under a sharded optimizer, in bf16 messages") {
    job.stages = 1;
    job.replicas = 4;
    job.exchange = "zero2";
    job.compress = "bf16";
  }
  SECTION("a stash of weights") {
    job.pipeline_schedule = pipedream(2);
  }
  const auto here = finished(job), there = on_nodes(job, 2);
  CHECK(there.loss == here.loss);
  CHECK(there.parameters == here.parameters);
  CHECK(there.exchanged_bytes == here.exchanged_bytes);
  for (const auto& proof : there.proofs) {
    INFO(proof.name << ": " << proof.detail);
    CHECK(proof.holds);
  }
  CHECK(there.proofs.empty() == !job.verify);
}

TEST_CASE("layers that a user provides are computed on nodes", "[training]") {
  auto job = small_job();
  const model_options sizes{.model = "mlp", .layers = 3, .width = 8};
  job.model = user_network{{linear("first", 784, 8, true),
                            std::make_shared<plain_linear>("second", 8, 8),
                            linear("third", 8, 10)},
                           1};
  job.data = *open_data("synthetic", sizes, 5);
  CHECK(on_nodes(job, 3).parameters == finished(job).parameters);
  auto other = job;
  other.model = user_network{{linear("first", 784, 8, true),
                              std::make_shared<plain_linear>("renamed", 8, 8),
                              linear("third", 8, 10)},
                             1};
  CHECK_THAT(refusal_by(other, job), ContainsSubstring("second.weight 8 8")
                                       && ContainsSubstring("renamed.weight 8 8"));
}

TEST_CASE("one node serves job after job", "[training]") {
  auto job = small_job();
  const auto node = node_of(job);
  job.nodes.addresses = {node->address()};
  const auto first = finished(job), second = finished(job);
  CHECK(first.parameters == second.parameters);
}

TEST_CASE("a node refuses a leader with another job", "[training]") {
  const auto job = small_job();
  const std::pair<std::function<void(training_job&)>, const char*> changes[] = {
    {[](training_job& j) { j.optimizer.rate = 0.02; },
     "the leader's job has --lr 0.02, and the node's job has 0.01: give both the same"},
    {[](training_job& j) { j.optimizer.schedule = {.cosine = true, .warmup = 3}; },
     "the leader's job has --lr-schedule cosine,warmup=3"},
    {[](training_job& j) { j.seed = 4; }, "--seed 4, and the node's job has 3"},
    {[](training_job& j) { j.pipeline_schedule = gpipe(); },
     "has schedule gpipe, XXH3"},
    {[](training_job& j) {
       j.split = {1, 1, 2};
     },
     "has split "},
    {[](training_job& j) { j.stall_timeout = std::chrono::seconds{3}; },
     "has stall_timeout 3000 ms"},
    {[](training_job& j) { j.data = *open_data("synthetic", small_gpt, 6); },
     "the processes of a run must have the same data"}};
  for (const auto& [change, sentence] : changes) {
    auto other = job;
    change(other);
    INFO(sentence);
    CHECK_THAT(refusal_by(job, other), ContainsSubstring(sentence));
  }
  auto renamed = job;
  renamed.pipeline_schedule.order = gpipe().order;
  CHECK_THAT(refusal_by(job, renamed), ContainsSubstring("has schedule 1f1b, XXH3"));
}

TEST_CASE("jobs that nodes cannot perform are refused with a remedy", "[training]") {
  auto job = small_job();
  job.nodes.addresses = {"127.0.0.1:9"};
  const auto refusal = [&](const std::function<void(training_job&)>& change) {
    auto other = job;
    change(other);
    return refusal_of(other);
  };
  CHECK_THAT(refusal([](training_job& j) { j.virtual_time = true; }),
             ContainsSubstring("leave virtual_time false"));
  CHECK_THAT(refusal([](training_job& j) { j.nodes.addresses = {"127.0.0.1:0"}; }),
             ContainsSubstring("port 0"));
  CHECK_THAT(refusal([](training_job& j) { j.nodes.addresses = {"0.0.0.0:4242"}; }),
             ContainsSubstring("say --tls"));
  CHECK_THAT(refusal([](training_job& j) {
               j.nodes.node_map = {1, 1, 2};
             }),
             ContainsSubstring("--place names node 2"));
  CHECK_THAT(refusal([](training_job& j) {
               j.nodes.failure_timeout = std::chrono::milliseconds{1};
             }),
             ContainsSubstring("50 ms to 3,600 s are allowed"));
  CHECK_THAT(refusal([](training_job& j) {
               j.nodes.addresses = {};
               j.nodes.node_map = {1};
             }),
             ContainsSubstring("set nodes.addresses too"));
  CHECK_THAT(refusal([](training_job&) {}), ContainsSubstring("127.0.0.1:9"));
  CHECK_THAT(training_node::start(small_job(), {.listen = "nowhere"}).error(),
             ContainsSubstring("nowhere"));
  CHECK_THAT(training_node::start(small_job(), {.listen = "0.0.0.0:0"}).error(),
             ContainsSubstring("say --tls"));
}

TEST_CASE("a job resumes from its newest checkpoint with the same bits", "[training]") {
  const temporary_folder folder;
  auto job = small_job(GENERATE(one_f_one_b(), pipedream(2)));
  job.steps = 6;
  const auto whole = finished(job);
  job.checkpoints = {
    .folder = (folder.path() / "c").string(), .every = 2, .resume = "auto"};
  job.steps = 4;
  const auto nodes = GENERATE(0, 2);
  const auto trained = [&] { return nodes > 0 ? on_nodes(job, nodes) : finished(job); };
  const auto first = trained();
  CHECK(first.steps_before == 0);
  CHECK(first.warnings.empty());
  // The end of an asynchronous training is no point of a longer one (checkpoints.md).
  std::filesystem::remove_all(folder.path() / "c/batch-4");
  job.steps = 6;
  const auto second = trained();
  CHECK(second.steps_before == 2);
  CHECK(second.parameters == whole.parameters);
  CHECK(
    second.loss
    == std::vector(whole.loss.begin() + std::ssize(whole.loss) / 3, whole.loss.end()));
  const auto third = trained(); // no step is left
  CHECK(third.steps_before == 6);
  CHECK(third.loss.empty());
  CHECK(third.parameters == whole.parameters);
  job.steps = 5;
  CHECK_THAT(refusal_of(job), ContainsSubstring("set steps to 6 or more"));
}

TEST_CASE("a job that differs from its checkpoint's training is refused",
          "[training]") {
  const temporary_folder folder;
  auto job = small_job();
  job.checkpoints = {.folder = (folder.path() / "c").string(), .every = 3};
  (void)finished(job);
  CHECK_THAT(refusal_of(job), ContainsSubstring("has checkpoints of another training"));
  job.checkpoints.resume = job.checkpoints.folder;
  job.steps = 6;
  const auto refusal = [&](const std::function<void(training_job&)>& change) {
    auto other = job;
    change(other);
    return refusal_of(other);
  };
  const auto other_rate = [](training_job& j) { j.optimizer.rate = 0.5; };
  CHECK_THAT(refusal(other_rate),
             ContainsSubstring("was trained with --lr 0.01, and the job has 0.5")
               && ContainsSubstring("name lr in checkpoints.change"));
  job.checkpoints.folder = (folder.path() / "d").string();
  CHECK_THAT(refusal([](training_job& j) { j.batch = 12; }),
             ContainsSubstring("say --batch 8"));
  CHECK_THAT(refusal([](training_job& j) { j.optimizer.name = "sgd"; }),
             ContainsSubstring("--optimizer adamw, and the job has sgd"));
  CHECK_THAT(
    refusal([](training_job& j) {
      j.optimizer.name = "sgd";
      j.checkpoints.change = "optimizer";
    }),
    ContainsSubstring("the checkpoint's optimizer has the state mean, square"));
  CHECK_THAT(
    refusal([](training_job& j) { j.data = *open_data("synthetic", small_gpt, 6); }),
    ContainsSubstring("the data 'synthetic text of seed 5"));
  CHECK_THAT(refusal([](training_job& j) { j.verify = true; }),
             ContainsSubstring("leave verify or checkpoints.resume unset"));
  CHECK_THAT(refusal([](training_job& j) { j.begin = "weights.safetensors"; }),
             ContainsSubstring("both give initial weights"));
  CHECK_THAT(refusal([](training_job& j) { j.checkpoints.every = 0; }),
             ContainsSubstring("say --checkpoint-every"));
  CHECK(refusal([&](training_job& j) {
          other_rate(j);
          j.checkpoints.change = "data,lr";
        })
        == "");
}

TEST_CASE("a job names checkpoints that cannot be used", "[training]") {
  const temporary_folder folder;
  auto job = small_job();
  job.checkpoints = {
    .folder = (folder.path() / "c").string(), .every = 1, .resume = "auto"};
  job.steps = 2;
  const auto whole = finished(job);
  const auto newest = folder.path() / "c/batch-2/stage-0.safetensors";
  REQUIRE(std::filesystem::exists(newest));
  std::ofstream{newest, std::ios::app} << 'x';
  std::vector<std::string> told;
  const auto result = train(
    job, {.warn = [&](const std::string& sentence) { told.push_back(sentence); }});
  REQUIRE(result);
  CHECK(result->steps_before == 1);
  CHECK(result->parameters == whole.parameters);
  REQUIRE(result->warnings.size() == 1);
  CHECK_THAT(result->warnings[0], ContainsSubstring("batch-2"));
  CHECK(told == result->warnings);
}

TEST_CASE("an interrupted job leaves a checkpoint, and goes on", "[training]") {
  const temporary_folder folder;
  auto job = small_job();
  job.steps = 40;
  const auto whole = finished(job);
  job.checkpoints = {
    .folder = (folder.path() / "c").string(), .every = 1000, .resume = "auto"};
  job.steps = 40;
  std::atomic<bool> stop = false;
  const auto cut =
    train(job, {.report = [&](const progress&) { stop = true; }, .interrupted = &stop});
  REQUIRE(cut);
  const auto rest = finished(job);
  CHECK(rest.parameters == whole.parameters);
}

TEST_CASE("a job computes on processors that exist", "[training]") {
  auto job = small_job();
  job.device = "gpu";
  CHECK_THAT(refusal_of(job),
             ContainsSubstring("write only cpu, only cuda, or a list"));
  job.device = "cpu,cpu";
  CHECK(refusal_of(job) == "");
  job.device = "cuda";
  if (absence_of_gpus().empty()) {
    CHECK(finished(job).loss.size() == 3);
  } else {
    CHECK(refusal_of(job) == "--device cuda: " + absence_of_gpus());
  }
  job.model = user_network{{linear("first", 784, 10)}, 1};
  CHECK_THAT(refusal_of(job), ContainsSubstring("set device to cpu"));
}

} // namespace troupe::training_node_test
