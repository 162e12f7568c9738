// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/parsing.hpp"
#include "tests/experiments/tiny_options.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sys/stat.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::suggestion_test {

namespace {

using names = std::vector<std::string>;

std::string refusal_after(const std::function<void(typed_options&)>& change) {
  auto o = tiny::options_of("1f1b");
  change(o);
  const auto set = tiny::set_up_training(o);
  return set ? "" : set.error();
}

} // namespace

TEST_CASE("the nearest name is at most an edit away for three characters",
          "[suggestion]") {
  const names schedules{"naive", "gpipe", "1f1b", "2bw", "zb-h1", "zb-h2"};
  for (const auto& [typed, meant] : std::vector<std::pair<std::string, std::string>>{
         {"gpip", "gpipe"},
         {"gpiep", "gpipe"}, // a swap
         {"1fb1", "1f1b"},
         {"zb-h2x", "zb-h2"},
         {"nai", "naive"},
         {"zb-h3", "zb-h1"},
         {"2", "2bw"}, // the only name that begins so
         {"zigzag", ""},
         {"", ""},
         {"x", ""}})
    CHECK(nearest(typed, schedules) == meant);
  CHECK(nearest("micro", {"microbatches", "model"}) == "microbatches");
  CHECK(nearest("micro", {"microbatches", "microbatch-sizes"}).empty());
  CHECK(nearest(std::string(100'000, 'a'), {std::string(100'000, 'a')}).empty());
  CHECK(nearest("Q", {"F", "B"}).empty());
}

TEST_CASE("an unknown name is answered by a list with an end", "[suggestion]") {
  CHECK(
    unknown_name("gate", "gshad", {"switch", "gshard"})
    == "there is no gate 'gshad' (did you mean 'gshard'?); there are switch, gshard");
  CHECK(unknown_name("gate", "x", {"switch"})
        == "there is no gate 'x'; there are switch");
  const auto many = unknown_name("name", "x", names(1000, "y10"));
  CHECK(many.ends_with(", y10, .."));
  CHECK(many.size() < 200);
}

TEST_CASE("schedules, models, exchanges and keys are suggested", "[suggestion]") {
  const std::vector<std::pair<std::function<void(typed_options&)>, std::string>> typed{
    {[](typed_options& o) { o.schedules.names = {"1fb1"}; }, "(did you mean '1f1b'?)"},
    {[](typed_options& o) { o.schedules.names = {"interleaved:w=2"}; },
     "interleaved has no parameter 'w'; the parameters are v"},
    {[](typed_options& o) { o.schedules.names = {"pipedream:update_evry=2"}; },
     "(did you mean 'update_every'?)"},
    {[](typed_options& o) { o.schedules.names = {"orders/my.csv"}; },
     "there is no schedule and no file 'orders/my.csv': say --schedule file:PATH"},
    {[](typed_options& o) { o.model.name = "gtp"; }, "(did you mean 'gpt'?)"},
    {[](typed_options& o) { o.mesh.exchange = "halvng"; }, "(did you mean 'halving'?)"},
    {[](typed_options& o) { o.mesh.axes = "dta=2"; }, "(did you mean 'data'?)"},
    {[](typed_options& o) { o.optimizer.name = "adam"; }, "(did you mean 'adamw'?)"},
    {[](typed_options& o) { o.run.clock = "virtual", o.cost = "latncy=2"; },
     "(did you mean 'latency'?)"},
    {[](typed_options& o) { o.checkpoint.change = "sede"; }, "(did you mean 'seed'?)"},
    {[](typed_options& o) { o.data.text = "txt:book"; }, "(did you mean 'text'?)"},
    {[](typed_options& o) { o.data.text = "text:"; }, "names no file: say text:PATH"}};
  for (const auto& [change, sentence] : typed) {
    const auto refusal = refusal_after(change);
    INFO(refusal);
    CHECK(refusal.find(sentence) != std::string::npos);
  }
}

TEST_CASE("a file without its kind of data is named with it", "[suggestion]") {
  const temporary_folder folder;
  const auto refusal = [&](const std::string& path) {
    return refusal_after([&](typed_options& o) { o.data.text = path; });
  };
  const auto text = folder.write("licenses.txt", "to be or not to be").string();
  CHECK(refusal(text)
        == "'" + text + "' names no kind of data: say --data text:" + text);
  const auto packed = folder.write("x.gz", "\x1f\x8b\x08 packed").string();
  CHECK(refusal(packed).ends_with("x.gz' is a gzip file: unpack it"));
  const auto fifo = (folder.path() / "fifo").string();
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(refusal(fifo).ends_with(
    "and cannot be read (it is a FIFO, not a regular file): say --data text:PATH, "
    "tokens:PATH or mnist:FOLDER"));
  const auto tokens = folder.write("t.bin", std::string("\1\0\2\0", 4)).string();
  CHECK(refusal(tokens).ends_with("say --data tokens:" + tokens));
  CHECK(
    refusal(folder.path().string())
      .ends_with("names no kind of data: say --data text:" + folder.path().string()));
  folder.write("t10k-images-idx3-ubyte", "");
  CHECK(refusal(folder.path().string())
          .ends_with("say --data mnist:" + folder.path().string()));
}

TEST_CASE("the options that a model with too few layers needs were tried",
          "[suggestion]") {
  const auto refusal = [](const std::string& model, const std::string& schedule,
                          int stages, const std::string& axes = "",
                          const std::string& split = "") {
    return refusal_after([&](typed_options& o) {
      o.model.name = model;
      o.model.layers = 4;
      o.schedules.names = {schedule};
      o.mesh.stages = stages;
      o.mesh.axes = axes;
      o.mesh.split = split;
      o.data.text = "synthetic";
      o.data.batch.reset();
    });
  };
  const std::string most = "the model can be cut into at most 4 stages, not into 8";
  CHECK(refusal("gpt", "1f1b", 8) == most + ": say --layers 8 or --stages 4");
  CHECK(refusal("gpt", "interleaved", 4) == most + ": say --layers 8 or --stages 2");
  CHECK(refusal("gpt", "1f1b", 4, "pipe=8")
        == most + ": say --layers 8 or pipe=4 in --mesh");
  CHECK(refusal("mlp", "1f1b", 8) == most + ": say --layers 8 or --stages 4");
  CHECK(refusal("lenet5", "1f1b", 8)
        == "the model can be cut into at most 5 stages, not into 8: say --stages 5");
  CHECK(
    refusal("lenet5", "chimera", 8).ends_with(": say --stages 4")); // an even number
  // A measured split has costs of the current layers, as typed costs.
  CHECK(refusal("gpt", "1f1b", 8, "", "costs=1/1/1/2") == most + ": say --stages 4");
}

} // namespace troupe::suggestion_test
