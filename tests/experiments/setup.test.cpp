#include "experiments/options/setup.hpp"

#include "experiments/options/mesh_options.hpp"
#include "experiments/options/schedule_options.hpp"
#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <filesystem>
#include <functional>
#include <limits>

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string mnist = TROUPE_SHARED_DATA "/mnist";

options tiny_options() {
  return tiny::training("1f1b");
}

std::string training_refusal(const std::function<void(options&)>& change) {
  auto o = tiny_options();
  change(o);
  const auto result = set_up_training(o);
  return result ? "" : result.error();
}

std::string cost_refusal(const std::string& text) {
  const auto result = parse_costs(text, 4);
  return result ? "" : result.error();
}

} // namespace

TEST_CASE("a comma begins a new schedule unless a parameter follows it", "[setup]") {
  using list = std::vector<std::string>;
  CHECK(split_schedules("gpipe,1f1b") == list{"gpipe", "1f1b"});
  CHECK(split_schedules("ampnet:max_active_keys=8,lr=0.01,2bw")
        == list{"ampnet:max_active_keys=8,lr=0.01", "2bw"});
  CHECK(split_schedules("ampnet:lr=1,pipedream:lr=2,clip=stage")
        == list{"ampnet:lr=1", "pipedream:lr=2,clip=stage"});
  CHECK(split_schedules("gpipe,") == list{"gpipe", ""});
}

TEST_CASE("costs are milliseconds; what is not given follows from what is", "[setup]") {
  const auto of = [](const std::string& text, op what) {
    return parse_costs(text, 4)->actions.of[static_cast<std::size_t>(what)];
  };
  using times = std::vector<nanoseconds>;
  CHECK(of("F=1.5,B=2", op::forward) == times{1'500'000});
  CHECK(of("F=1,B=3", op::input_gradient) == times{1'500'000});
  CHECK(of("F=1,B=3,W=1", op::weight_gradient) == times{1'000'000});
  CHECK(of("F=1/2/1/1", op::forward)
        == times{1'000'000, 2'000'000, 1'000'000, 1'000'000});
  CHECK(of("F=1/2/1/1", op::backward)
        == times{2'000'000, 4'000'000, 2'000'000, 2'000'000});
  CHECK(of("I=1,W=0.25", op::backward) == times{1'250'000});
  CHECK(of("F=1", op::update) == times{0});
  const auto messages = *parse_costs("latency=0.5,bandwidth=1e9,bytes=1e6", 4);
  CHECK(messages.link.latency == 500'000);
  CHECK(messages.link.occupied(messages.sizes.message) == 1'000'000);
}

TEST_CASE("a mesh is data replicas and stages", "[setup]") {
  CHECK(parse_mesh("", 4)->data == 1);
  CHECK(parse_mesh("", 4)->stages == 4);
  CHECK(parse_mesh("data=2", 4)->stages == 4);
  CHECK(parse_mesh("pipe=3,data=2", 4)->stages == 3);
  CHECK(parse_mesh("pipe=3,data=2", 4)->data == 2);
  options o;
  o.schedules = {"1f1b"};
  o.mesh = "data=2,pipe=3";
  o.exchange = "tree";
  const auto plan = set_up_simulation(o)->runs.front().plan;
  CHECK(plan.ranks() == 6);
  CHECK(plan.dims.microbatches == 4); // of 8, in each data replica
  CHECK(plan.exchange->name == "tree");
  o.exchange = "server:staleness=3";
  o.cost = "F=1,replica=1/2.5";
  const auto uneven = set_up_simulation(o)->runs.front().plan;
  CHECK(uneven.exchange->staleness == 3);
  CHECK(uneven.slowdowns == std::vector<double>{1, 2.5});
}

TEST_CASE("costs that make no sense are refused with what does", "[setup]") {
  for (const char* text : {"F", "F=", "F=x", "F=-1", "F=nan", "G=1", "F=1,F=2", "F=1/"})
    CHECK_THAT(cost_refusal(text), ContainsSubstring("write F=1,B=2 in milliseconds"));
  for (const char* text :
       {"buckets=0", "buckets=1.5", "buckets=1e9", "sums=0", "buckets=1000,sums=1000"})
    CHECK_THAT(cost_refusal(text), ContainsSubstring("from 1 to 10,000"));
  CHECK_THAT(cost_refusal("F=1/2"), ContainsSubstring("one for each of the 4 stages"));
  CHECK_THAT(cost_refusal("latency=1/2/1/1"), ContainsSubstring("one value"));
}

TEST_CASE("every option that makes no sense is refused with what does", "[setup]") {
  const std::vector<std::pair<std::function<void(options&)>, std::string>> mistakes{
    {[](options& o) { o.schedules = {"zigzag"}; }, "there are naive, gpipe, 1f1b"},
    {[](options& o) { o.schedules = {""}; }, "there are naive, gpipe, 1f1b"},
    {[](options& o) { o.schedules = {"ampnet:keys"}; }, "NAME:parameter=value"},
    {[](options& o) { o.schedules = {"ampnet:keys=3"}; }, "max_active_keys"},
    {[](options& o) { o.schedules = {"ampnet:max_active_keys=0"}; }, "at least 1"},
    {[](options& o) { o.schedules = {"pipedream:lr=fast"}; }, "lr is a number"},
    {[](options& o) { o.schedules = {"pipedream:clip=stage"}; }, "say --clip too"},
    {[](options& o) { o.schedules = {"pipedream"}, o.clip = "1"; }, "clip=stage"},
    {[](options& o) { o.schedules = {"chimera"}, o.stages = 3; }, "even number"},
    {[](options& o) { o.schedules = {"2bw"}, o.microbatches = 3; }, "at least as many"},
    {[](options& o) { o.model = "vgg"; }, "there are gpt, lenet, mlp"},
    {[](options& o) { o.layers = 0; }, "from 1 to"},
    {[](options& o) { o.model = "mlp", o.layers = 1'000'000; }, "from 1 to 10,000"},
    {[](options& o) { o.width = -1; }, "from 1 to"},
    {[](options& o) { o.heads = 3; }, "must divide d-model"},
    {[](options& o) { o.data = "cifar"; }, "mnist:FOLDER"},
    {[](options& o) { o.data = "text:/nowhere/at/all"; }, "cannot read"},
    {[](options& o) { o.batch = 7; }, "at least one sample in each"},
    {[](options& o) { o.stages = 0; }, "at least 1"},
    {[](options& o) { o.stages = 5; }, "at most 4 stages"},
    {[](options& o) { o.microbatches = 0; }, "at least 1"},
    {[](options& o) { o.mesh = "data"; }, "write data=2,pipe=4,tensor=2"},
    {[](options& o) { o.mesh = "data=0"; }, "write data=2,pipe=4,tensor=2"},
    {[](options& o) { o.mesh = "data=2,data=2"; }, "each axis once"},
    {[](options& o) { o.mesh = "rows=2"; }, "write data=2,pipe=4,tensor=2"},
    {[](options& o) { o.mesh = "data=1.5"; }, "write data=2,pipe=4,tensor=2"},
    {[](options& o) { o.mesh = "pipe=5"; }, "at most 4 stages"},
    {[](options& o) { o.mesh = "data=3"; }, "a multiple of them"},
    {[](options& o) { o.mesh = "data=60000,pipe=60000", o.microbatches = 60000; },
     "1,048,576 ranks"},
    {[](options& o) { o.mesh = "data=2", o.schedules = {"ampnet"}; },
     "name other schedules"},
    {[](options& o) { o.mesh = "data=8,pipe=1", o.steps = 500'000'000; },
     "over all data replicas"},
    {[](options& o) {
       o.mesh = "data=4", o.clock = "virtual", o.cost = "bandwidth=1e-6";
     },
     "292 years"},
    {[](options& o) {
       o.mesh = "tensor=4", o.heads = 4, o.length = 6, o.sequence_parallel = true;
     },
     "sequences of 6 tokens cannot be shared by tensor=4"},
    {[](options& o) {
       o.mesh = "tensor=2", o.model = "lenet", o.sequence_parallel = true;
     },
     "only the layers of gpt"},
    {[](options& o) { o.exchange = "star"; },
     "naive, tree, ring, halving, server, zero1, zero2, zero3"},
    {[](options& o) { o.exchange = "server:staleness=-1"; }, "from 0 to"},
    {[](options& o) {
       o.mesh = "data=2", o.exchange = "server:async";
       o.clock = "virtual", o.cost = "F=1,replica=1/2/3";
     },
     "one value for each of several data replicas"},
    {[](options& o) { o.steps = 0; }, "at least 1"},
    {[](options& o) { o.epochs = 1; }, "synthetic data has no end"},
    {[](options& o) { o.split = "2,2"; }, "each of the 4 stages"},
    {[](options& o) { o.split = "1,1,1,x"; }, "whole numbers"},
    {[](options& o) { o.optimizer = "lion"; }, "there are sgd and adamw"},
    {[](options& o) { o.rate = -1; }, "lr is a number"},
    {[](options& o) { o.momentum = 1; }, "below 1"},
    {[](options& o) { o.epsilon = 0; }, "a gradient of 0 is divided by 0"},
    {[](options& o) { o.schedules = {"1f1b:eps=1e-46"}; }, "at least 1e-45"},
    {[](options& o) { o.betas = "0.9"; }, "two numbers"},
    {[](options& o) { o.betas = "0.9,1"; }, "below 1"},
    {[](options& o) { o.decay = "none"; }, "all or of matrices"},
    {[](options& o) { o.clip = "stage"; }, "a norm"},
    {[](options& o) { o.rate_schedule = "linear"; }, "constant or cosine"},
    {[](options& o) { o.clock = "atomic"; }, "real or virtual"},
    {[](options& o) { o.cost = "F=1"; }, "--clock virtual"},
    {[](options& o) { o.threads = -1; }, "--threads is from 0"},
    {[](options& o) { o.threads = 1 << 20; }, "--threads is from 0"},
    {[](options& o) { o.stall_timeout = std::numeric_limits<double>::infinity(); },
     "from 0.001 to"},
    {[](options& o) { o.batch = std::int64_t{1} << 62; }, "at most 2,147,483,647"},
    {[](options& o) { o.batch = std::int64_t{1} << 30; }, "MiB free"},
    {[](options& o) { o.schedules = {"1f1b:beta1=1.5"}; }, "from 0 to below 1"},
    {[](options& o) { o.schedules = {"1f1b:momentum=5"}; }, "momentum is below 1"},
    {[](options& o) { o.schedules = {"gpipe,gpipe"}; }, "named twice"},
    {[](options& o) { o.schedules = {"all,all"}; }, "named twice"},
    {[](options& o) { o.schedules = {"1f1b:lr=1,lr=2"}; }, "give it one value"},
    {[](options& o) { o.schedules = {"ampnet:max_active_keys=1,max-active-keys=1"}; },
     "give it one value"},
    {[](options& o) { o.schedules = {"1f1b:"}; }, "NAME:parameter=value"},
    {[](options& o) { o.mesh = "data=02"; }, "from 1 to 65,536"},
    {[](options& o) { o.split = "1,1,1,01"; }, "whole numbers"},
    {[](options& o) { o.schedules = {"all"}, o.batch = 7; },
     "at least one sample in each"},
    {[](options& o) { o.model = "lenet", o.data = "mnist:" + mnist, o.epochs = 1e12; },
     std::filesystem::exists(mnist) ? "an epoch of this data" : "mnist"},
    {[](options& o) { o.clock = "virtual", o.cost = "F=1e12", o.steps = 1 << 20; },
     "the virtual clock's 292 years"},
    {[](options& o) { o.init = "/nowhere/w.safetensors"; }, "cannot read"},
    {[](options& o) { o.width = 1 << 16, o.layers = 64; }, "MiB free"},
  };
  CHECK(training_refusal([](options&) {}).empty());
  for (const auto& [change, allowed] : mistakes)
    CHECK_THAT(training_refusal(change), ContainsSubstring(allowed));
}

TEST_CASE("the gates' presets are those of their papers", "[setup]") {
  const auto experts = [](const std::string& gate) {
    auto o = tiny_options();
    o.model = "moe";
    o.gate = gate;
    return set_up_training(o)->model.experts;
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

TEST_CASE("options of a schedule's own hold for it alone", "[setup]") {
  auto o = tiny_options();
  o.schedules = {"gpipe,ampnet:max_active_keys=2,lr=0.5,momentum=0.25,1f1b"};
  o.optimizer = "sgd";
  const auto result = set_up_training(o);
  REQUIRE(result.has_value());
  REQUIRE(result->runs.size() == 3);
  CHECK(result->runs[0].plan.work->optimizer.rate == 0.1);
  CHECK(result->runs[1].plan.work->optimizer.rate == 0.5);
  CHECK(result->runs[1].plan.work->optimizer.momentum == 0.25);
  CHECK(result->runs[1].text == "ampnet:max_active_keys=2,lr=0.5,momentum=0.25");
  CHECK(result->runs[2].plan.work->optimizer.rate == 0.1);
}

TEST_CASE("defaults are PyTorch's where it has them", "[setup]") {
  auto o = tiny_options();
  const auto adamw = set_up_training(o)->runs[0].plan.work->optimizer;
  CHECK(adamw.beta1 == 0.9);
  CHECK(adamw.beta2 == 0.999);
  CHECK(adamw.epsilon == 1e-8);
  CHECK(adamw.weight_decay == 0.01);
  CHECK_FALSE(adamw.decay_only_matrices);
  CHECK(adamw.clip == 0);
  o.optimizer = "sgd";
  const auto sgd = set_up_training(o)->runs[0].plan.work->optimizer;
  CHECK(sgd.momentum == 0);
  CHECK(sgd.weight_decay == 0);
}

TEST_CASE("epochs are batches, the last filled in part", "[setup]") {
  options o;
  o.model = "lenet";
  o.data = "mnist:" TROUPE_GOLDEN "/runs/lenet"; // 18 images
  o.schedules = {"gpipe"};
  o.stages = 2;
  o.microbatches = 2;
  const auto steps = [&](double epochs, int batch) {
    o.epochs = epochs;
    o.batch = batch;
    return set_up_training(o)->runs[0].plan.dims.steps;
  };
  CHECK(steps(1, 9) == 2);
  CHECK(steps(1, 8) == 3);
  CHECK(steps(2.5, 18) == 3);
}

TEST_CASE("all is every schedule that fits and is not named by itself", "[setup]") {
  options o;
  const auto names = [&] {
    std::vector<std::string> result;
    const auto shared = set_up_simulation(o);
    for (const auto& run : shared->runs)
      result.push_back(run.text);
    return result;
  };
  using list = std::vector<std::string>;
  o.schedules = {"1f1b,all"};
  CHECK(names()
        == list{"1f1b", "naive", "gpipe", "chimera", "pipedream", "2bw", "ampnet"});
  o.schedules = {"all,ampnet:max_active_keys=2"};
  CHECK(names()
        == list{"naive", "gpipe", "1f1b", "chimera", "pipedream", "2bw", "ampnet",
                "ampnet:max_active_keys=2"});
  o.schedules = {"all"};
  o.stages = 3;
  o.mesh = "data=2";
  CHECK(names() == list{"naive", "gpipe", "1f1b", "pipedream", "2bw"});
  const auto shared = *set_up_simulation(o);
  const auto& left_out = shared.left_out;
  REQUIRE(left_out.size() == 2);
  CHECK(left_out[0].text == "chimera");
  CHECK_THAT(left_out[0].why, ContainsSubstring("an even number of stages"));
  CHECK(left_out[1].text == "ampnet");
  CHECK_THAT(left_out[1].why, ContainsSubstring("no common updates"));
  CHECK_THAT(left_out_line(shared), ContainsSubstring("left out: chimera runs half")
                                      && !ContainsSubstring("\n"));
  o.schedules = {"all,chimera"}; // named by itself: it must fit
  CHECK_THAT(set_up_simulation(o).error(), ContainsSubstring("an even number"));
}
