// SPDX-License-Identifier: BSD-3-Clause
// Jobs of a user's program with checkpoints, and on nodes of the same program.

#include "actors/embedding/training_node.hpp"

#include "actors/embedding/job_plan.hpp"
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
    {[](training_job& j) { j.stages = 2; }, "has stages 2, and the node's job has 3"},
    {[](training_job& j) { j.microbatches = 8; }, "has microbatches 8, and the"},
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
  const auto schedule_error = [&](const std::function<void(schedule&)>& change,
                                  const schedule& how) {
    auto own = job, other = job;
    own.pipeline_schedule = other.pipeline_schedule = how;
    change(other.pipeline_schedule);
    return refusal_by(own, other);
  };
  CHECK_THAT(
    schedule_error([](schedule& s) { s.order = gpipe().order; }, one_f_one_b()),
    ContainsSubstring("has schedule 1f1b, XXH3"));
  CHECK_THAT(
    schedule_error([](schedule& s) { s.recomputes = recomputation::late; }, gpipe()),
    ContainsSubstring("has schedule gpipe, XXH3"));
  CHECK_THAT(schedule_error(
               [](schedule& s) {
                 s.weights.reads = [of = s.weights.reads](const shape& dims, int stage,
                                                          int k, int every) {
                   return of(dims, stage, k, every) - (k == dims.total() - 1 ? 1 : 0);
                 };
               },
               pipedream(1)),
             ContainsSubstring("has schedule pipedream, XXH3"));
}

TEST_CASE("initial weights come from the leader alone", "[training]") {
  const temporary_folder folder;
  auto job = small_job();
  auto other_seed = job;
  other_seed.seed = 77;
  const auto file = folder.path() / "weights.safetensors";
  REQUIRE(save(finished(other_seed), other_seed, file) == "");
  auto from_file = job;
  from_file.begin = file;
  const auto node = node_of(job);
  from_file.nodes.addresses = {node->address()};
  auto here = from_file;
  here.nodes = {};
  CHECK(finished(from_file).parameters == finished(here).parameters);
  auto of_node = job; // the node's own file counts for nothing
  of_node.begin = file;
  const auto second = node_of(of_node);
  auto by_seed = job;
  by_seed.nodes.addresses = {second->address()};
  CHECK(finished(by_seed).parameters == finished(job).parameters);
}

TEST_CASE("a job that is interrupted while it waits for nodes has no results",
          "[training]") {
  auto job = small_job();
  const auto node = node_of(job);
  job.nodes.addresses = {node->address()};
  job.held_out = 4;
  const std::atomic<bool> stop = true;
  const auto result = train(job, {.interrupted = &stop});
  REQUIRE(result);
  CHECK(result->outcome == ending::interrupted);
  CHECK(result->loss.empty());
  CHECK(result->parameters.empty());
}

namespace {

/// Data of another data set.
class other_data : public data_set {
public:
  explicit other_data(std::shared_ptr<const data_set> data) : data_(std::move(data)) {}
  void training(std::int64_t index, const sample_view& to) const override {
    data_->training(index, to);
  }
  std::int64_t evaluation_size() const override { return 0; }
  void evaluation(std::int64_t, const sample_view&) const override {}
  std::optional<data_identity> identity() const override { return data_->identity(); }
  std::string description() const override { return data_->description(); }

private:
  std::shared_ptr<const data_set> data_;
};

/// Data whose identity throws no std::exception.
struct unidentified_data : other_data {
  using other_data::other_data;
  std::optional<data_identity> identity() const override { throw 42; }
};

/// Data that set a flag when sample 100 is read.
struct stopping_data : other_data {
  stopping_data(std::shared_ptr<const data_set> data, std::atomic<bool>& flag)
    : other_data(std::move(data)), stop(flag) {}
  void training(std::int64_t index, const sample_view& to) const override {
    if (index == 100)
      stop = true;
    other_data::training(index, to);
  }
  std::atomic<bool>& stop;
};

} // namespace

TEST_CASE("a node compares the rules of a local schedule, and predictions of a network",
          "[training]") {
  auto job = small_job(ampnet(8, 2));
  auto other = job;
  other.pipeline_schedule = ampnet(8, 4);
  CHECK_THAT(refusal_by(job, other), ContainsSubstring("has schedule ampnet, XXH3"));
  const model_options sizes{.model = "mlp", .layers = 1, .width = 8};
  job = small_job();
  job.stages = 1;
  job.data = std::make_shared<other_data>(*open_data("synthetic", sizes, 5));
  job.model = user_network{{linear("first", 784, 10)}, 1};
  other = job;
  std::get<user_network>(other.model).predictions = 2;
  CHECK_THAT(refusal_by(job, other), ContainsSubstring("predictions 2 of 5 classes"));
  job.exchange = "hogwild";
  job.replicas = 2;
  CHECK_THAT(training_node::start(job, {.listen = "127.0.0.1:0"}).error(),
             ContainsSubstring("needs memory that all data replicas share"));
}

TEST_CASE("objects of a user that throw end neither a node nor its program",
          "[training]") {
  auto job = small_job();
  const auto node = training_node::start(
    job, {.listen = "127.0.0.1:0", .report = [](const std::string&) { throw 42; }});
  REQUIRE(node);
  job.nodes.addresses = {(*node)->address()};
  const auto result = finished(job);
  CHECK(result.parameters == finished(small_job()).parameters);
  job.nodes = {};
  job.data = std::make_shared<unidentified_data>(job.data);
  CHECK_THAT(refusal_of(job), ContainsSubstring("an exception of unknown type"));
  CHECK_THAT(training_node::start(job, {.listen = "127.0.0.1:0"}).error(),
             ContainsSubstring("an exception of unknown type"));
  job.data = nullptr;
  CHECK_THAT(training_node::start(job, {.listen = "127.0.0.1:0"}).error(),
             ContainsSubstring("a training needs data"));
}

TEST_CASE("a node answers requests that describe no job with a sentence",
          "[training]") {
  const auto job = plan_on_node(small_job());
  REQUIRE(job);
  const auto refusal = [&](const mail::prepare& facts) {
    const auto plan = plan_of_part(*job, facts);
    return plan ? "" : plan.error();
  };
  for (const auto& text :
       {std::string{}, std::string{"[[[["}, std::string(100'000, '['),
        std::string{"null"}, std::string{"[1]"}, std::string{"\xff"}}) {
    INFO(text.substr(0, 10));
    CHECK_THAT(refusal({.node = 1, .nodes = {"a:1"}, .options = text}),
               ContainsSubstring("describes no training_job"));
  }
  CHECK_THAT(refusal({.options = R"({"--lr": 5})"}),
             ContainsSubstring("describes no training_job")); // a program's options
  CHECK_THAT(refusal({.options = R"({"training_job": "yes", "--lr": 5})"}),
             ContainsSubstring("has --batch no value, and the node's job has 8"));
  CHECK_THAT(
    refusal({.node = 1, .nodes = {"a:1"}, .node_map = {1}, .options = job->text}),
    ContainsSubstring("another number of ranks"));
  CHECK_FALSE(
    refusal({.node = 1, .nodes = {"a:1"}, .node_map = {1, 2, 9}, .options = job->text})
      .empty());
  CHECK(
    refusal(
      {.node = 1, .nodes = {"a:1", "b:1"}, .node_map = {1, 1, 2}, .options = job->text})
    == "");
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
  const auto cosine = [](training_job& j) { j.optimizer.schedule.cosine = true; };
  CHECK_THAT(refusal(cosine), ContainsSubstring("--lr-schedule constant"));
  CHECK_THAT(refusal([](training_job& j) { j.optimizer.schedule.course = 5; }),
             ContainsSubstring("course of the rate 0, and the job has 5"));
  CHECK_THAT(refusal([](training_job& j) {
               j.uneven.lengths = {2, 4};
             }),
             ContainsSubstring("--sequence-lengths , and the job has 2,4"));
  CHECK_THAT(refusal([](training_job& j) { j.checkpoints.change = "lr,rate"; }),
             ContainsSubstring("has the name 'rate'")
               && ContainsSubstring("weight-decay") && !ContainsSubstring("batch,"));
  CHECK_THAT(refusal([](training_job& j) { j.checkpoints.change = "heads"; }),
             ContainsSubstring("has the name 'heads'"));
  CHECK_THAT(
    refusal([](training_job& j) { j.model = model_options{"gpt", 4, 8, 4, 4, 11}; }),
    ContainsSubstring("--heads 2, and the job has 4")
      && ContainsSubstring("keeps its network"));
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

TEST_CASE("a cosine ends where the checkpoint's training ends it", "[training]") {
  const temporary_folder folder;
  auto job = small_job();
  job.optimizer.schedule.cosine = true;
  job.checkpoints = {
    .folder = (folder.path() / "c").string(), .every = 3, .resume = "auto"};
  (void)finished(job);
  job.steps = 6;
  CHECK_THAT(refusal_of(job), ContainsSubstring("--steps 3, and the job has 6")
                                && ContainsSubstring("name steps"));
  job.checkpoints.change = "steps";
  CHECK(finished(job).steps_before == 3);
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
  job.steps = 200;
  const auto whole = finished(job);
  job.checkpoints = {
    .folder = (folder.path() / "c").string(), .every = 1000, .resume = "auto"};
  std::atomic<bool> stop = false;
  const auto data = job.data;
  job.data = std::make_shared<stopping_data>(data, stop);
  const auto cut = train(job, {.interrupted = &stop});
  REQUIRE(cut);
  CHECK(cut->outcome == ending::interrupted);
  job.data = data;
  const auto rest = finished(job);
  CHECK(rest.steps_before > 0);
  CHECK(rest.steps_before < 200);
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
