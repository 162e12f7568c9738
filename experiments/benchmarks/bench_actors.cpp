// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/benchmarks/benchmarks.hpp"
#include "models/data/open_data.hpp"
#include "schedules/catalog/catalog.hpp"

#include <thread>

namespace troupe {

namespace {

struct price {
  double action, message; ///< Seconds of each, all threads together.
};

/// The time of a run without arithmetic, for each action and for each message.
price price_of(const schedule& sch, const shape& dims, clock_kind clock, int threads) {
  std::vector<double> actions, messages;
  for (int turn = 0; turn < 5; ++turn) {
    run_plan plan{
      .sch = sch,
      .dims = dims,
      .work = {},
      .machine = {
        .clock = clock,
        .threads = threads,
        .cost = costs_from(parse_costs("F=1,B=2", {.stages = dims.stages})->actions)}};
    run_result result;
    const double elapsed = seconds_of([&] { result = perform(plan); });
    if (result.outcome == ending::failed)
      throw std::runtime_error(sch.name + ": " + result.failure);
    const auto count = 2.0 * dims.stages * static_cast<double>(dims.total());
    actions.push_back(elapsed / count);
    messages.push_back(elapsed / static_cast<double>(result.envelopes));
  }
  return {median(std::move(actions)), median(std::move(messages))};
}

/// A layer that computes nothing for a given time.
class pause : public layer<float> {
public:
  pause(std::chrono::milliseconds length, std::int64_t input, std::int64_t output)
    : layer({{"pause", {1}, beginning::zeros}}, {input}, {output}), length_(length) {
    // nop
  }

  layer_sizes sizes(std::int64_t, int) const override { return {}; }
  double operations() const override { return 1; }

  void forward(const frame<float>& f, int) const override {
    compute_for(length_);
    std::fill_n(y(f, 1).plain().data, f.samples * output(), 0.0F);
  }

  void input_gradient(const frame<float>& f, int) const override {
    if (f.dx != nullptr)
      std::fill_n(dx(f, 1).plain().data, f.samples * input(), 0.0F);
  }

  void weight_gradient(const frame<float>& f) const override { *gradient(f, 0) = 0; }

private:
  std::chrono::milliseconds length_;
};

/// Seconds from the end of a forward on rank 0 to the start of the next one on rank 1.
/// Rank 1 idles for `idle` during the forward of rank 0.
double start_seconds(std::chrono::milliseconds idle, int repeats) {
  constexpr std::int64_t pixels = 28 * 28, classes = 10;
  network<float> whole{
    .layers = {std::make_shared<pause>(idle, pixels, 4),
               std::make_shared<pause>(std::chrono::milliseconds{0}, 4, classes)},
    .unit_of_layer = {0, 1},
    .classes = classes};
  auto weights = initial_weights(whole, 1);
  run_plan plan{.sch = naive(),
                .dims = {2, 1, repeats},
                .work = training{.whole = std::move(whole),
                                 .first_layers = {0, 1, 2},
                                 .data = *open_data("synthetic", {.model = "lenet"}, 1),
                                 .batch = 1,
                                 .optimizer = {},
                                 .weights = std::move(weights)},
                .machine = {.threads = 2},
                .keep = {.record = true}};
  const auto result = perform(plan);
  if (result.outcome == ending::failed)
    throw std::runtime_error(result.failure);
  std::vector<double> delays;
  std::vector<nanoseconds> ended;
  for (const auto& s : result.actions[0])
    if (s.action.op == op::forward)
      ended.push_back(s.end);
  std::size_t i = 0;
  for (const auto& s : result.actions[1])
    if (s.action.op == op::forward)
      delays.push_back(static_cast<double>(s.start - ended[i++]) / 1e9);
  return median(std::move(delays));
}

} // namespace

void measure_actors(const benchmark& b) {
  using namespace std::chrono_literals;
  constexpr double micro = 1e6;
  const int threads = b.plan.machine.threads;
  const auto report_value = [&](const std::string& name, double value,
                                const std::string& unit) {
    b.report({"actors", name, value, unit, {}, ""});
  };
  const auto alone = price_of(one_f_one_b(), {1, 64, 200}, clock_kind::real, 1);
  report_value("an action without arithmetic, one rank", alone.action * micro, "us");
  const auto four = price_of(one_f_one_b(), {4, 64, 100}, clock_kind::real, threads);
  report_value("an action without arithmetic, four ranks", four.action * micro, "us");
  report_value("a message between actors of four ranks", four.message * micro, "us");
  const auto simulated =
    price_of(one_f_one_b(), {64, 256, 1}, clock_kind::virtual_time, 1);
  report_value("actions in virtual time", 1 / simulated.action, "/s");
  report_value("messages in virtual time", 1 / simulated.message, "/s");
  if (threads < 2)
    return;
  const auto wake = measure_wake_times();
  const auto start = [&](const std::string& name, double seconds, double woken) {
    b.report(
      {"actors", name, seconds * micro, "us", seconds / woken, "waking a thread"});
  };
  report_value("waking a thread", wake.soon * micro, "us");
  report_value("waking a thread after a second", wake.after_a_second * micro, "us");
  start("a ready action starts on an idle core", start_seconds(1ms, 300), wake.soon);
  start("the same after a second", start_seconds(1000ms, 5), wake.after_a_second);
}

} // namespace troupe
