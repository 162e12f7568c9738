// SPDX-License-Identifier: BSD-3-Clause
// Options as text: another process that parses the text gets the same run.

#include "experiments/options/options_text.hpp"

#include "experiments/options/command_line.hpp"
#include "experiments/options/option_list.hpp"
#include "experiments/report/results.hpp"
#include "schedules/catalog/catalog.hpp"
#include "tests/experiments/tiny_options.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace troupe::options_text_test {

using Catch::Matchers::StartsWith;

namespace {

using words = std::vector<std::string>;

const program_info everything{.name = "train", .description = ""};
const program_info collectives{
  .name = "collectives", .description = "", .trains = false, .exchanges = true};
const program_info simulation{.name = "simulate", .description = "", .trains = false};

options read(const program_info& about, const words& said) {
  std::vector<const char*> arguments{about.name.c_str()};
  for (const auto& word : said)
    arguments.push_back(word.c_str());
  return read_command_line(about, static_cast<int>(arguments.size()), arguments.data())
    .value();
}

/// Returns the options of another process, which knows the text alone.
options sent(const options& o) {
  return options_from(to_text(o)).value();
}

/// By option: words that set the option to one value each, and other words that the
/// option needs to have an effect.
std::multimap<std::string, std::pair<words, words>> sayings(const std::string& links) {
  const words moe{"--model", "moe"}, sgd{"--optimizer", "sgd"},
    in_virtual_time{"--clock", "virtual"};
  return {
    {"--tied", {{}, {}}},
    {"--model", {{"mlp"}, {}}},
    {"--layers", {{"3"}, {}}},
    {"--d-model", {{"64"}, {}}},
    {"--heads", {{"2"}, {}}},
    {"--seq", {{"32"}, {}}},
    {"--vocab", {{"300"}, {}}},
    {"--data", {{"text:some,folder,order=sequential"}, {}}},
    {"--batch", {{"32"}, {}}},
    {"--init", {{"w.safetensors"}, {}}},
    {"--seed", {{"18446744073709551615"}, {}}},
    {"--data-seed", {{"18446744073709551615"}, {}}},
    {"--init-seed", {{"0"}, {}}},
    {"--experts", {{"4"}, moe}},
    {"--gate", {{"gshard"}, moe}},
    {"--top-k", {{"3"}, moe}},
    {"--capacity", {{"0.1"}, moe}},
    {"--balance", {{"0.3"}, moe}},
    {"--gate-noise", {{"0.7"}, moe}},
    {"--shared-expert", {{}, moe}},
    {"--microbatches", {{"16"}, {}}},
    {"--microbatch-sizes", {{"2,3,1,2,2,2,2,2"}, {}}},
    {"--sequence-lengths", {{"4,3"}, {}}},
    {"--schedules", {{"1f1b", "ampnet:max_active_keys=2,lr=0.1"}, {}}},
    {"--steps", {{"7"}, {}}},
    {"--epochs", {{"0.3"}, {}}},
    {"--stages", {{"2"}, {}}},
    {"--mesh", {{"data=2"}, {}}},
    {"--mesh", {{"pipe=2"}, {}}},
    {"--mesh", {{"tensor=2"}, {}}},
    {"--mesh", {{"expert=2"}, {}}},
    {"--sequence-parallel", {{}, {"--mesh", "tensor=2"}}},
    {"--exchange", {{"server:staleness=7"}, {"--mesh", "data=2"}}},
    {"--split", {{"1,2,3,4"}, {}}},
    {"--split", {{"costs=1/2/3/4"}, {}}},
    {"--compress", {{"bf16"}, {"--mesh", "data=2"}}},
    {"--recompute", {{"stage"}, {}}},
    {"--recompute", {{"stage,ahead"}, {}}},
    {"--recompute", {{"blocks=3"}, {}}},
    {"--optimizer", {{"sgd"}, {}}},
    {"--optimizer", {{"nadam:momentum_decay=0.5"}, {}}},
    {"--lr", {{"0.3"}, {}}},
    {"--lr-schedule", {{"cosine"}, {}}},
    {"--lr-schedule", {{"warmup=17"}, {}}},
    {"--lr-schedule", {{"cosine,floor=0.1"}, {}}},
    {"--momentum", {{"0.9"}, sgd}},
    {"--betas", {{"0.7,0.999"}, {}}},
    {"--betas", {{"0.9,0.8"}, {}}},
    {"--eps", {{"1e-7"}, {}}},
    {"--weight-decay", {{"0.07"}, {}}},
    {"--decay", {{"matrices"}, {}}},
    {"--clip", {{"0.1"}, {}}},
    {"--threads", {{"3"}, {}}},
    {"--precision", {{"bf16"}, {}}},
    {"--clock", {{"virtual"}, {}}},
    {"--stall-timeout", {{"0.25"}, {}}},
    {"--cost",
     {{"F=1/2/1/1,B=0.3,U=3,latency=0.1,bandwidth=3e9,sum=2e9"}, in_virtual_time}},
    {"--machines",
     {{"ranks=2,latency=0.5,bandwidth=1e9,links=" + links}, in_virtual_time}},
    {"--evaluate-data", {{"text:other"}, {}}},
    {"--evaluate-every", {{"3"}, {}}},
    {"--evaluate-samples", {{"17"}, {}}},
    {"--verify", {{"2"}, {}}},
    {"--target-loss", {{"2.5"}, {}}},
    {"--ranks", {{"4,6"}, {}}},
    {"--values", {{"12"}, {}}},
    {"--bytes", {{"48"}, {}}},
    {"--operation", {{"all_reduce,broadcast"}, {}}},
    {"--algorithm", {{"ring,tree"}, {}}},
    {"--latency", {{"0.3"}, {}}},
    {"--bandwidth", {{"3e9"}, {}}},
    {"--sum", {{"2e9"}, {}}},
  };
}

/// Whether an option does not change a run, but only the files that the program writes.
/// Also true for --device, which needs GPUs here, or nodes.
bool stays_here(const std::string& name) {
  const words all{"--help",   "--version",     "--config", "--save",
                  "--report", "--json",        "--quiet",  "--save-precision",
                  "--device", "--tensorboard", "--watch"};
  return std::ranges::find(all, name) != all.end();
}

words names_of_options(const program_info& about) {
  auto typed = about.defaults;
  CLI::App app;
  option_list list{app};
  add_options(list, typed, about);
  words result;
  for (const auto* const option : app.get_options())
    if (const auto name = option->get_name(); !stays_here(name))
      result.push_back(name);
  return result;
}

words said(const std::string& name, const std::pair<words, words>& how) {
  auto result = how.second;
  result.push_back(name);
  result.insert(result.end(), how.first.begin(), how.first.end());
  return result;
}

} // namespace

TEST_CASE("the text has every option of a run, and is read as it was written",
          "[options_text]") {
  const temporary_folder folder;
  const auto links = folder.write("links", "0,1,40,2.5e7\n").string();
  const auto known = sayings(links);
  for (const auto& about : {everything, collectives})
    for (const auto& name : names_of_options(about)) {
      INFO(name);
      REQUIRE(known.contains(name));
      std::set<std::string> texts;
      for (auto [each, end] = known.equal_range(name); each != end; ++each) {
        auto how = each->second;
        if (about.exchanges) // always in virtual time
          how.second.clear();
        const auto with = to_text(read(about, said(name, how)));
        CHECK(with != to_text(read(about, how.second)));
        CHECK(to_text(options_from(with).value()) == with);
        CHECK(texts.insert(with).second);
      }
    }
}

TEST_CASE("costs and machines travel key by key", "[options_text]") {
  const temporary_folder folder;
  const auto links = folder.write("links", "0,1,40,2.5e7\n").string();
  const auto here =
    read(simulation,
         {"--mesh", "data=2,tensor=2,expert=2", "--cost",
          "F=1/2/1/1,I=3,W=4,U=5,latency=6,bandwidth=7,bytes=8,gradient=9,buckets=10,"
          "tensor=11,sums=12,experts=13,replica=1/14,sum=15",
          "--machines", "ranks=2,latency=0.5,bandwidth=1e9,links=" + links});
  const auto there = sent(here);
  const auto &of = here.cost, &cost = there.cost;
  CHECK(cost.text == of.text);
  CHECK(cost.actions.by_op == of.actions.by_op);
  CHECK(cost.link == link_cost{6'000'000, 7});
  CHECK(cost.sum_rate == 15);
  CHECK(cost.sizes.message == 8);
  CHECK(cost.sizes.gradient == 9);
  CHECK(cost.sizes.buckets == 10);
  CHECK(cost.sizes.sum == 11);
  CHECK(cost.sizes.sums == 12);
  CHECK(cost.sizes.experts == 13);
  CHECK(cost.slowdowns == std::vector<double>{1, 14});
  const auto& machines = there.machines.model;
  CHECK(machines.ranks_each == 2);
  CHECK(machines.inside == link_cost{6'000'000, 7});
  CHECK(machines.between == link_cost{500'000, 1e9});
  CHECK(machines.between_machines(1, 0) == link_cost{40'000'000, 2.5e7});
  CHECK(there.machines.links == links);
}

TEST_CASE("processors of nodes' ranks travel", "[options_text]") {
  typed_options typed;
  typed.nodes.nodes = "127.0.0.1:1";
  typed.mesh.stages = 2;
  typed.run.precision = "tf32";
  for (const auto* const text : {"cuda", "cuda:3,cpu"}) {
    typed.run.device = text;
    const auto here = parse(typed, true).value();
    const auto there = sent(here);
    CHECK(there.run.processors == here.run.processors);
    CHECK(there.run.lists_processors == here.run.lists_processors);
  }
}

TEST_CASE("a simulation is sent as one, with what may be left out", "[options_text]") {
  const auto o =
    sent(read(simulation, {"--schedules", "all,pipedream:update_every=2"}));
  CHECK_FALSE(o.trains);
  CHECK(o.run.clock == clock_kind::virtual_time);
  REQUIRE(o.schedules.chosen.size() == catalog().size() + 1);
  CHECK(o.schedules.chosen.front().of_all);
  CHECK_FALSE(o.schedules.chosen.back().of_all);
  CHECK(o.schedules.chosen.back().sch.update_every == 2);
}

TEST_CASE("the same runs come out of sent options", "[options_text]") {
  const words tiny{"--layers", "4",  "--d-model", "8",       "--heads",   "2",
                   "--seq",    "4",  "--vocab",   "7",       "--steps",   "3",
                   "--batch",  "17", "--clock",   "virtual", "--threads", "2"};
  for (words more : std::vector<words>{
         {"--schedules", "all", "--seed", "7"},
         {"--schedules", "chimera,2bw:lr=0.1,ampnet:max_active_keys=2,clip=stage",
          "--clip", "0.1", "--optimizer", "sgd", "--momentum", "0.5"},
         {"--schedule", "1f1b", "--mesh", "data=2,pipe=2,tensor=2", "--exchange",
          "zero2", "--sequence-parallel", "--cost",
          "F=1,B=3,U=0.5,latency=0.1,bandwidth=1e6,sum=1e6"},
         {"--schedule", "gpipe", "--mesh", "data=2,pipe=2", "--exchange",
          "server:staleness=1", "--cost", "F=1,replica=1/2.5", "--machines",
          "ranks=2,latency=1"},
         {"--schedule", "1f1b", "--model", "moe", "--experts", "4", "--gate-noise",
          "0.5", "--mesh", "data=2,pipe=2,expert=2", "--lr-schedule",
          "cosine,warmup=9,floor=0.2"}}) {
    more.insert(more.begin(), tiny.begin(), tiny.end());
    const auto here = read(everything, more);
    auto there = sent(here);
    there.output = here.output;
    const auto result = [](const options& o) {
      const auto shared = set_up(o).value();
      std::vector<run_account> accounts;
      for (const auto& request : shared.runs)
        accounts.push_back({.request = &request, .result = perform(request.plan)});
      return results_json(o, shared, accounts);
    };
    CHECK(result(here) == result(there));
  }
}

TEST_CASE("a text that is no options is refused", "[options_text]") {
  auto without_mesh = to_text(read(everything, {}));
  without_mesh.replace(without_mesh.find("\"mesh\""), 6, "\"mash\"");
  auto other_exchange = to_text(read(everything, {}));
  other_exchange.replace(other_exchange.find("\"ring\""), 6, "\"star\"");
  const auto with = [](const std::string& key, const std::string& value) {
    auto text = to_text(read(everything, {}));
    const auto begin = text.find('"' + key + "\":") + key.size() + 3;
    return text.replace(begin, text.find_first_of(",}", begin) - begin, value);
  };
  const auto deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const auto& text :
       {std::string{}, std::string{"{}"}, without_mesh, other_exchange,
        with("count", "1e90"), with("layers", "3e9"), with("layers", "-3e9"),
        with("seed", "-1.5"), with("orders", deep), with("mesh", deep)})
    CHECK_THAT(options_from(text).error(),
               StartsWith("the leader's options are wrong: "));
}

} // namespace troupe::options_text_test
