// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/setup.hpp"

#include "schedules/program.hpp"
#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace troupe::setup_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

namespace {

const std::string mnist = TROUPE_DATA "/mnist";

typed_options tiny_options() {
  return tiny::options_of("1f1b");
}

std::string training_refusal(const std::function<void(typed_options&)>& change) {
  auto o = tiny_options();
  change(o);
  const auto result = tiny::set_up_training(o);
  return result ? "" : result.error();
}

} // namespace

TEST_CASE("every option that makes no sense is refused with what does", "[setup]") {
  const std::vector<std::pair<std::function<void(typed_options&)>, std::string>>
    mistakes{
      {[](typed_options& o) { o.schedules.names = {"zigzag"}; },
       "there are naive, gpipe, 1f1b"},
      {[](typed_options& o) { o.schedules.names = {""}; },
       "there are naive, gpipe, 1f1b"},
      {[](typed_options& o) { o.schedules.names = {"ampnet:keys"}; },
       "NAME:parameter=value"},
      {[](typed_options& o) { o.schedules.names = {"ampnet:keys=3"}; },
       "max_active_keys"},
      {[](typed_options& o) { o.schedules.names = {"ampnet:max_active_keys=0"}; },
       "at least 1"},
      {[](typed_options& o) { o.schedules.names = {"pipedream:lr=fast"}; },
       "write a number of at least 0"},
      {[](typed_options& o) { o.schedules.names = {"pipedream:clip=stage"}; },
       "say --clip 1"},
      {[](typed_options& o) {
         o.schedules.names = {"pipedream"}, o.optimizer.clip = "1";
       },
       "clip=stage"},
      {[](typed_options& o) { o.schedules.names = {"chimera"}, o.mesh.stages = 3; },
       "needs even --stages"},
      {[](typed_options& o) {
         o.schedules.names = {"2bw"}, o.schedules.microbatches = 3;
       },
       "as many microbatches as stages"},
      {[](typed_options& o) { o.model.name = "vgg"; },
       "there are gpt, lenet, lenet5, mlp"},
      {[](typed_options& o) { o.model.layers = 0; }, "1 to 10,000 layers"},
      {[](typed_options& o) { o.model.name = "mlp", o.model.layers = 1'000'000; },
       "1 to 10,000 layers"},
      {[](typed_options& o) { o.model.width = -1; }, "from 1 to"},
      {[](typed_options& o) { o.model.heads = 3; }, "that divides --d-model"},
      {[](typed_options& o) { o.data.text = "cifar"; }, "mnist:FOLDER"},
      {[](typed_options& o) { o.data.text = "text:/nowhere/at/all"; }, "cannot read"},
      {[](typed_options& o) { o.data.batch = 7; }, "of at least one sample"},
      {[](typed_options& o) { o.mesh.stages = 0; }, "at least 1"},
      {[](typed_options& o) { o.mesh.stages = 5; }, "at most 4 stages"},
      {[](typed_options& o) { o.schedules.microbatches = 0; }, "at least 1"},
      {[](typed_options& o) { o.mesh.axes = "data"; }, "for example data=2,pipe=4"},
      {[](typed_options& o) { o.mesh.axes = "data=0"; }, "for example data=2,pipe=4"},
      {[](typed_options& o) { o.mesh.axes = "data=2,data=2"; }, "each axis once"},
      {[](typed_options& o) { o.mesh.axes = "rows=2"; }, "for example data=2,pipe=4"},
      {[](typed_options& o) { o.mesh.axes = "data=1.5"; }, "for example data=2,pipe=4"},
      {[](typed_options& o) { o.mesh.axes = "pipe=5"; }, "at most 4 stages"},
      {[](typed_options& o) { o.mesh.axes = "data=3"; }, "a multiple of data="},
      {[](typed_options& o) {
         o.mesh.axes = "data=60000,pipe=60000", o.schedules.microbatches = 60000;
       },
       "a run has at most 1,048,576"},
      {[](typed_options& o) { o.mesh.axes = "data=2", o.schedules.names = {"ampnet"}; },
       "another --schedule"},
      {[](typed_options& o) {
         o.mesh.axes = "data=8,pipe=1", o.schedules.steps = 500'000'000;
       },
       "over all data replicas"},
      {[](typed_options& o) {
         o.mesh.axes = "data=4", o.run.clock = "virtual", o.cost = "bandwidth=1e-6";
       },
       "292 years"},
      {[](typed_options& o) {
         o.mesh.axes = "tensor=4", o.model.heads = 4, o.model.length = 6,
         o.mesh.sequence_parallel = true;
       },
       "--seq 6 is no multiple of tensor=4"},
      {[](typed_options& o) {
         o.mesh.axes = "tensor=2", o.model.name = "lenet",
         o.mesh.sequence_parallel = true;
       },
       "only the layers of gpt"},
      {[](typed_options& o) { o.mesh.exchange = "star"; },
       "naive, tree, ring, halving, server, zero1, zero2, zero3"},
      {[](typed_options& o) { o.mesh.exchange = "server:staleness=-1"; }, "from 0 to"},
      {[](typed_options& o) {
         o.mesh.axes = "data=2", o.mesh.exchange = "server:async";
         o.run.clock = "virtual", o.cost = "F=1,replica=1/2/3";
       },
       "3 values for 2 data replicas"},
      {[](typed_options& o) { o.schedules.steps = 0; }, "at least 1"},
      {[](typed_options& o) { o.schedules.epochs = 1; },
       "no effect on synthetic data, which has no end"},
      {[](typed_options& o) { o.mesh.split = "2,2"; },
       "--split needs a number of at least 1 for each of 4 stages"},
      {[](typed_options& o) { o.mesh.split = "1,1,1,x"; },
       "write measured, or numbers"},
      {[](typed_options& o) { o.optimizer.name = "none"; },
       "there are adamw, nadam, sgd"},
      {[](typed_options& o) { o.optimizer.rate = -1; }, "--lr -1 is not allowed"},
      {[](typed_options& o) { o.optimizer.momentum = 1; }, "below 1"},
      {[](typed_options& o) { o.optimizer.epsilon = 0; },
       "divide a gradient of 0 by 0"},
      {[](typed_options& o) { o.schedules.names = {"1f1b:eps=1e-46"}; }, "below 1e-45"},
      {[](typed_options& o) { o.optimizer.betas = "0.9"; }, "two numbers"},
      {[](typed_options& o) { o.optimizer.betas = "0.9,1"; }, "below 1"},
      {[](typed_options& o) { o.optimizer.decay = "none"; }, "write all or matrices"},
      {[](typed_options& o) { o.optimizer.clip = "stage"; }, "a norm"},
      {[](typed_options& o) { o.optimizer.rate_schedule = "linear"; },
       "constant or cosine"},
      {[](typed_options& o) { o.run.clock = "atomic"; }, "real or virtual"},
      {[](typed_options& o) { o.cost = "F=1"; }, "--clock virtual"},
      {[](typed_options& o) { o.run.threads = -1; }, "give 1 to 1,024 threads"},
      {[](typed_options& o) { o.run.threads = 1 << 20; }, "give 1 to 1,024 threads"},
      {[](typed_options& o) {
         o.run.stall_timeout = std::numeric_limits<double>::infinity();
       },
       "from 0.001 to"},
      {[](typed_options& o) { o.data.batch = std::int64_t{1} << 62; },
       "at most 2,147,483,647"},
      {[](typed_options& o) { o.data.batch = std::int64_t{1} << 30; }, "MiB free"},
      {[](typed_options& o) { o.schedules.names = {"1f1b:beta1=1.5"}; },
       "from 0 to below 1"},
      {[](typed_options& o) { o.schedules.names = {"1f1b:momentum=5"}; },
       "momentum 5 is not allowed"},
      {[](typed_options& o) { o.schedules.names = {"gpipe,gpipe"}; }, "named twice"},
      {[](typed_options& o) { o.schedules.names = {"all,all"}; }, "named twice"},
      {[](typed_options& o) { o.schedules.names = {"1f1b:lr=1,lr=2"}; },
       "give lr= once"},
      {[](typed_options& o) {
         o.schedules.names = {"ampnet:max_active_keys=1,max-active-keys=1"};
       },
       "give max_active_keys= once"},
      {[](typed_options& o) { o.schedules.names = {"1f1b:"}; }, "NAME:parameter=value"},
      {[](typed_options& o) { o.mesh.axes = "data=02"; }, "1 to 65,536"},
      {[](typed_options& o) { o.mesh.split = "1,1,1,01"; },
       "write measured, or numbers"},
      {[](typed_options& o) { o.schedules.names = {"all"}, o.data.batch = 7; },
       "of at least one sample"},
      {[](typed_options& o) {
         o.model.name = "lenet", o.data.text = "mnist:" + mnist + ",split=t10k",
         o.schedules.epochs = 1e12;
       },
       "gives too few or too many batches"},
      {[](typed_options& o) {
         o.run.clock = "virtual", o.cost = "F=1e12", o.schedules.steps = 1 << 20;
       },
       "292 years, the most of the virtual clock"},
      {[](typed_options& o) { o.data.init = "/nowhere/w.safetensors"; }, "cannot read"},
      {[](typed_options& o) { o.model.width = 1 << 16, o.model.layers = 64; },
       "MiB free"},
    };
  CHECK(training_refusal([](typed_options&) {}).empty());
  for (const auto& [change, allowed] : mistakes)
    CHECK_THAT(training_refusal(change), ContainsSubstring(allowed));
}

TEST_CASE("the gates' presets are those of their papers", "[setup]") {
  const auto experts = [](const std::string& gate) {
    auto o = tiny_options();
    o.model.name = "moe";
    o.model.gate = gate;
    return tiny::set_up_training(o)->model.experts;
  };
  // S tokens, E = 8. Lepikhin et al., section 2.2: 2S/E for two choices a token; Fedus
  // et al., table 1: S/E times a capacity factor of 1.25.
  for (const std::int64_t s : {64, 1024}) {
    CHECK(experts("gshard").capacity_of(s) == 2 * s / 8);
    CHECK(experts("switch").capacity_of(s) == 5 * s / 4 / 8);
  }
  CHECK(experts("gshard").chosen == 2);
  CHECK(experts("switch").chosen == 1);
}

TEST_CASE("a plan has the mesh, costs and optimizer that options say", "[setup]") {
  typed_options o;
  o.mesh = {.axes = "data=2,pipe=3", .exchange = "server:staleness=3"};
  o.schedules.names = {"1f1b"};
  o.cost = "F=1,bytes=7,replica=1/2.5";
  o.machines = "ranks=3";
  const auto plan = tiny::set_up_simulation(o)->runs.front().plan;
  CHECK(plan.ranks() == 6);
  CHECK(plan.dims.microbatches == 4); // of 8, in each data replica
  CHECK(plan.exchange->staleness == 3);
  CHECK(plan.machine.slowdowns == std::vector<double>{1, 2.5});
  CHECK(plan.work.simulated().message == 7);
  CHECK(plan.machine.links.ranks_each == 3);
  CHECK(plan.machine.clock == clock_kind::virtual_time);
  o = tiny_options();
  o.schedules.names = {"gpipe,1f1b:lr=0.5"};
  o.run = {.threads = 3, .stall_timeout = 0.5};
  const auto training = tiny::set_up_training(o).value();
  REQUIRE(training.runs.size() == 2);
  CHECK(training.runs[0].plan.work->optimizer.rate == 0.001);
  CHECK(training.runs[1].plan.work->optimizer.rate == 0.5);
  CHECK(training.runs[1].parameters.at("lr") == "0.5");
  CHECK(training.runs[1].plan.machine.threads == 3);
  CHECK(training.runs[1].plan.machine.stall_timeout.count() == 500);
  CHECK(training.runs[1].plan.machine.clock == clock_kind::real);
}

TEST_CASE("a wrong file is drawn and refused, also where it would train", "[setup]") {
  const auto path = std::filesystem::temp_directory_path()
                    / ("troupe-wrong-" + std::to_string(::getpid()) + ".csv");
  const auto told = [&](const std::string& text, bool trains) {
    std::ofstream{path} << text;
    auto o = tiny::options_of("file:" + path.string());
    o.data.batch = 16;
    const auto result = trains ? tiny::set_up_training(o) : tiny::set_up_simulation(o);
    REQUIRE_FALSE(result);
    return result.error();
  };
  const std::string first = "0F0,0F1,0B0,0B1\n", latest = "# troupe: weights=latest\n";
  const std::vector<std::pair<std::string, std::string>> wrong{
    {first + "1F0,1F1,1F1,1B0,1B1\n", "comes twice"},
    {first + "1F0,1B0,1B1,1F1\n", "comes before its forward"},
    {first + "1F0,1B0,1F1,1B1,1B1\n", "comes twice"},
    {first + "1F0,1B0,1F1\n", "B1 of stage 1 does not come before the update"},
    {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "deadlock"},
    {"0F1,0F0,0B0,0B1\n1F0,1B0,1F1,1B1\n", "samples enter stage 0"},
    {"# troupe: directions=2\n0F0,1F0,1B0,0B0\n1F1,0F1,0B1,1B1\n", "belongs on rank 1"},
    {"# troupe: weights=double_buffered,update_every=1,microbatches=2\n"
     "0F0,0B0,0F1,0B1,0F2,0B2,0F4,0F3,0B3,0B4,0F5,0B5\n",
     "comes after F4"},
    {"# troupe: weights=vertical_sync,update_every=1,microbatches=1\n"
     "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F2,1F1,1B1,1B2\n",
     "comes after F2"},
    {latest + "0F0,0B0,0F1,0B1,0U0\n1F0,1B0,1F1,1B1,1U1\n",
     "covers gradients up to microbatch 1"},
  };
  for (const auto& [text, what] : wrong)
    for (const bool trains : {true, false}) {
      INFO(text);
      const auto is = told(text, trains);
      CHECK_THAT(is, ContainsSubstring(what));
      CHECK_THAT(is, ContainsSubstring("\n> rank "));
    }
  std::filesystem::remove(path);
}

TEST_CASE("zb-auto goes by --cost, unless it says what actions take", "[setup]") {
  const auto program = [](const std::string& name, const std::string& cost) {
    typed_options typed;
    typed.schedules.names = {name};
    typed.cost = cost;
    typed.mesh.stages = 4;
    const auto plan = set_up(parse(typed, false).value())->runs.front().plan;
    std::vector<std::vector<action>> result;
    for (int rank = 0; rank < 4; ++rank)
      result.push_back(generate(plan.sch, plan.dims, rank));
    return result;
  };
  const auto by_cost = program("zb-auto", "F=4,I=5,W=3");
  CHECK(by_cost == program("zb-auto:f=4,i=5,w=3", ""));
  CHECK(program("zb-auto:most_held=on", "F=4,I=5,W=3")
        == program("zb-auto:f=4,i=5,w=3,most_held=1", ""));
  CHECK(by_cost != program("zb-auto", ""));
  CHECK(program("zb-auto:f=1", "F=4,I=5,W=3") == program("zb-auto", ""));
  CHECK(program("zb-auto:most_held=6", "F=4,I=5,W=3")
        == program("zb-auto:f=4,i=5,w=3,most_held=6", ""));
  CHECK(program("zb-auto", "F=1/1/1/2,I=1/1/1/2,W=1/1/1/2")
        != program("zb-auto", "F=1,I=1,W=1"));
}

TEST_CASE("defaults are PyTorch's where it has them", "[setup]") {
  auto o = tiny_options();
  const auto adamw = tiny::set_up_training(o)->runs[0].plan.work->optimizer;
  CHECK(adamw.beta1 == 0.9);
  CHECK(adamw.beta2 == 0.999);
  CHECK(adamw.epsilon == 1e-8);
  CHECK(adamw.weight_decay == 0.01);
  CHECK_FALSE(adamw.decay_only_matrices);
  CHECK(adamw.clip == 0);
  o.optimizer.name = "sgd";
  const auto sgd = tiny::set_up_training(o)->runs[0].plan.work->optimizer;
  CHECK(sgd.momentum == 0);
  CHECK(sgd.weight_decay == 0);
}

TEST_CASE("data that a file of weights names is told to be from there", "[setup]") {
  const auto refusal = [](const std::string& data, std::optional<data_origin> origin) {
    return training_refusal([&](typed_options& o) {
      o.data.text = data;
      o.data.origin = std::move(origin);
    });
  };
  const auto usual = refusal("text:none.txt", {});
  CHECK(usual == "cannot read the text none.txt: No such file or directory");
  CHECK(
    refusal("text:none.txt", data_origin{"c/batch-2"})
    == usual
         + "; c/batch-2 says --data text:none.txt, relative to the folder in which the "
           "training ran: name the data with --data");
  CHECK_THAT(refusal("text:/none.txt", data_origin{"w.safetensors"}),
             EndsWith("; w.safetensors says --data text:/none.txt: name the data with "
                      "--data"));
}

TEST_CASE("epochs are batches, the last filled in part", "[setup]") {
  typed_options o;
  o.model.name = "lenet";
  o.data.text = "mnist:" TROUPE_RUNS "/lenet"; // 18 images
  o.schedules.names = {"gpipe"};
  o.mesh.stages = 2;
  o.schedules.microbatches = 2;
  const auto steps = [&](double epochs, int batch) {
    o.schedules.epochs = epochs;
    o.data.batch = batch;
    return tiny::set_up_training(o)->runs[0].plan.dims.steps;
  };
  CHECK(steps(1, 9) == 2);
  CHECK(steps(1, 8) == 3);
  CHECK(steps(2.5, 18) == 3);
}

TEST_CASE("all is every schedule that fits and is not named by itself", "[setup]") {
  typed_options o;
  const auto names = [&] {
    std::vector<std::string> result;
    const auto shared = tiny::set_up_simulation(o);
    for (const auto& run : shared->runs)
      result.push_back(run.text);
    return result;
  };
  using list = std::vector<std::string>;
  list rest{"naive",    "gpipe",     "interleaved", "looped_bfs", "zb-h1",  "zb-h2",
            "zb-v",     "zb-auto",   "v-half",      "v-min",      "hanayo", "chimera",
            "dualpipe", "dualpipev", "pipedream",   "2bw",        "ampnet"};
  o.schedules.names = {"1f1b,all"};
  rest.insert(rest.begin(), "1f1b");
  CHECK(names() == rest);
  o.schedules.names = {"all,ampnet:max_active_keys=2"};
  std::rotate(rest.begin(), rest.begin() + 1, rest.begin() + 3);
  rest.emplace_back("ampnet:max_active_keys=2");
  CHECK(names() == rest);
  o.schedules.names = {"all"};
  o.mesh.stages = 3;
  o.mesh.axes = "data=2";
  CHECK(names()
        == list{"naive", "gpipe", "1f1b", "interleaved", "looped_bfs", "zb-h1", "zb-h2",
                "zb-v", "zb-auto", "v-half", "v-min", "hanayo", "pipedream", "2bw"});
  const auto shared = *tiny::set_up_simulation(o);
  const std::map<std::string, std::string> why{
    {"chimera", "chimera needs even --stages"},
    {"dualpipe", "an even number of ranks"},
    {"dualpipev", "at least 2 * ranks"},
    {"ampnet", "no common updates"}};
  CHECK(shared.left_out.size() == why.size());
  for (const auto& one : shared.left_out)
    CHECK_THAT(one.why, ContainsSubstring(why.at(one.text)));
  CHECK_THAT(left_out_line(shared), ContainsSubstring("left out: chimera needs even")
                                      && !ContainsSubstring("\n"));
  o.schedules.names = {"all,chimera"}; // named explicitly: must fit
  CHECK_THAT(tiny::set_up_simulation(o).error(),
             ContainsSubstring("chimera needs even --stages"));
}

} // namespace troupe::setup_test
