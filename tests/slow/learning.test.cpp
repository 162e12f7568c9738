// SPDX-License-Identifier: BSD-3-Clause
// Every schedule learns from real data, in four stages. The numbers are in
// docs/learning.md.

#include "models/evaluation.hpp"
#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>

namespace troupe::learning_test {

namespace {

const std::string data_folder = TROUPE_DATA;

struct outcome {
  double loss;       ///< Mean over the last tenth of the run.
  double last_batch; ///< Mean over the last batch.
  score evaluated;
};

outcome train(const typed_options& o) {
  auto shared = tiny::set_up_training(o);
  if (!shared)
    FAIL(shared.error());
  auto& request = shared->runs.at(0);
  request.plan.keep.weights = true;
  const auto result = perform(request.plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  const auto mean_of_last = [&](std::size_t count) {
    return std::accumulate(result.loss.end() - static_cast<std::ptrdiff_t>(count),
                           result.loss.end(), 0.0)
           / static_cast<double>(count);
  };
  const auto steps = static_cast<std::size_t>(request.plan.dims.steps);
  const double loss = mean_of_last(result.loss.size() / 10);
  std::vector<const float*> parameters;
  for (const auto& bucket : result.parameters)
    parameters.push_back(bucket.data());
  const auto& work = *request.plan.work;
  evaluator judge{work.whole, *work.data, 1000, 64, 2};
  const outcome out{loss, mean_of_last(result.loss.size() / steps),
                    *judge.evaluate(parameters)};
  std::printf("%-6s %-26s training loss %.3f, evaluated %.3f", o.model.name.c_str(),
              request.text.c_str(), out.loss, out.evaluated.loss);
  if (out.evaluated.accuracy)
    std::printf(", accuracy %.1f%%", 100 * *out.evaluated.accuracy);
  std::printf(", %.0f s\n", result.seconds);
  std::fflush(stdout);
  return out;
}

struct trial {
  const char* schedule; ///< With the rate that suits it.
  double most_loss;
};

} // namespace

TEST_CASE("gpt learns a novel under every schedule") {
  const auto& t =
    GENERATE(trial{"naive:lr=0.002", 1.8}, trial{"gpipe:lr=0.002", 1.8},
             trial{"1f1b:lr=0.002", 1.8}, trial{"chimera:lr=0.002", 1.8},
             trial{"2bw:lr=0.0007", 2.1}, trial{"pipedream:lr=0.0005", 1.8},
             trial{"ampnet:lr=0.001", 1.8});
  typed_options o;
  o.data.text = "text:" + data_folder + "/emma.txt";
  o.schedules.steps = 1500;
  o.optimizer.rate_schedule = "cosine,warmup=1600,floor=0.1";
  o.schedules.names = {t.schedule};
  CHECK(train(o).loss < t.most_loss);
}

TEST_CASE("compare has the losses of README's table") {
  std::ifstream page{std::filesystem::path{TROUPE_GOLDEN} / ".." / ".." / "README.md"};
  int rows = 0;
  for (std::string line; std::getline(page, line);) {
    std::istringstream words{line};
    const std::vector<std::string> cells{std::istream_iterator<std::string>{words}, {}};
    if (cells.size() != 14 || cells[3] != "modelled" || cells[0] == "ampnet")
      continue;
    ++rows;
    typed_options o;
    o.schedules.names = {cells[0]};
    const auto result = train(o);
    INFO(cells[0]);
    CHECK(std::abs(result.last_batch - std::stod(cells[12])) < 0.02);
    CHECK(std::abs(result.evaluated.loss - std::stod(cells[13])) < 0.02);
  }
  CHECK(rows == 6);
}

TEST_CASE("lenet learns MNIST under every schedule") {
  const auto* schedule =
    GENERATE("naive:lr=0.05", "gpipe:lr=0.05", "1f1b:lr=0.05", "chimera:lr=0.05",
             "2bw:lr=0.02", "pipedream:lr=0.01", "ampnet:lr=0.02");
  typed_options o;
  o.model.name = "lenet";
  o.data.text = "mnist:" + data_folder + "/mnist,split=t10k";
  o.optimizer.name = "sgd";
  o.optimizer.momentum = 0.9;
  o.schedules.epochs = 20;
  o.optimizer.rate_schedule = "cosine";
  o.schedules.names = {schedule};
  CHECK(train(o).evaluated.accuracy >= 0.97);
}

} // namespace troupe::learning_test
