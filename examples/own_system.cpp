// SPDX-License-Identifier: BSD-3-Clause
// A run in a user's actor system: an actor of the user prints the loss of each report.
#include <caf/all.hpp>
#include <troupe/troupe.hpp>

#include <iostream>

int main() {
  caf::actor_system_config config;
  caf::actor_system system{config};
  const auto listener = system.spawn([]() -> caf::behavior {
    return {[](double loss) { std::cout << "loss " << loss << std::endl; }};
  });
  const troupe::model_options gpt{.layers = 2, .width = 32, .length = 32};
  const auto data = troupe::open_data("synthetic", gpt, 1).value();
  troupe::training_job job{
    .model = gpt, .data = data, .pipeline_schedule = troupe::one_f_one_b()};
  job.stages = 2;
  job.system = &system;
  const auto told = [&](const auto& p) {
    caf::anon_send(listener, p.loss.value_or(0));
  };
  const auto result = troupe::train(job, {.report = told});
  caf::anon_send_exit(listener, caf::exit_reason::user_shutdown);
  const auto failure = result ? result->failure : result.error();
  std::cout << (failure.empty() ? "trained" : failure) << std::endl;
  return failure.empty() && result->loss.back() < result->loss.front() ? 0 : 1;
}
