// SPDX-License-Identifier: BSD-3-Clause
#include "actors/inference/inference_run.hpp"

#include "actors/inference/inference_actors.hpp"
#include "actors/run/actor_runtime.hpp"
#include "actors/run/stall.hpp"
#include "kernels/cpu_device.hpp"

#include <caf/exit_reason.hpp>

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

namespace troupe {

using namespace std::chrono_literals;

namespace {

/// Factor on the stall timeout for the client: a terminal may be suspended overnight
/// before the client can write the next token.
constexpr int patience_with_client = 1 << 20;

/// "portion 3 in stage 1"
std::string text_of(const work& device_work) {
  return "portion " + std::to_string(device_work.microbatch) + " in stage "
         + std::to_string(device_work.stage);
}

/// A stage's memory account, stream, work and device.
struct stage_resources {
  stage_resources(const inference_plan& plan, int stage, const wall_clock& clock,
                  const inference_work_maker& make)
    : account(plan.memory_at(stage)),
      compute_stream(stream_on(plan.processor_of(stage), plan.team_of(stage),
                               plan.whole.options.stored)),
      seen(clock),
      work(make(plan, stage, compute_stream, account)) {
    // nop
  }

  memory_account account;
  stream compute_stream;
  occupation seen;
  std::shared_ptr<inference_work> work;
  std::unique_ptr<device> computer;
};

/// An inference, from the allocation of resources to the end of all actors.
class inference_session {
public:
  inference_session(const inference_plan& plan, inference_client& client,
                    const inference_work_maker& make)
    : plan_(plan),
      client_(client),
      threads_(std::make_shared<compute_threads>(
        std::clamp(plan.threads, 1, plan.stages()), std::max(plan.threads, 1))),
      runtime_(clock_kind::real, [this] { status_->post_failure("out of memory"); }) {
    threads_->broken = [this] { status_->post_failure("out of memory"); };
    threads_->visit = [this](const auto& speak, const auto& works) {
      runtime_.visit(speak, works);
    };
    for (int s = 0; s < plan.stages(); ++s) {
      auto& resources = stages_.emplace_back(plan, s, clock_, make);
      resources.computer = std::make_unique<cpu_device>(
        resources.seen, threads_, resources.compute_stream.threads(),
        &resources.compute_stream, text_of);
    }
    at_start_ = allocations();
  }

  ~inference_session() {
    shut_down();
    for (auto& resources : stages_)
      resources.computer.reset();
    threads_.reset();
  }
  inference_session(const inference_session&) = delete;
  inference_session& operator=(const inference_session&) = delete;

  inference_result run(const std::atomic<bool>* interrupted) {
    spawn();
    runtime_.start_threads(std::clamp(plan_.threads, 1, plan_.stages()));
    clock_.restart();
    wire();
    {
      const stall_watchdog watch{plan_.stall_timeout, *status_, controls()};
      while (!status_->finished() && !status_->failure()
             && !(interrupted != nullptr && *interrupted))
        status_->wait(20ms);
    }
    inference_result result{.seconds = static_cast<double>(clock_.now()) * 1e-9};
    shut_down();
    if (const auto failure = status_->failure()) {
      result.outcome = ending::failed;
      result.failure = *failure;
    } else if (!status_->finished()) {
      result.outcome = ending::interrupted;
    }
    for (const auto& resources : stages_)
      result.bytes.push_back(resources.account.reserved());
    result.late_allocations = allocations() - at_start_;
    return result;
  }

private:
  void spawn() {
    auto& system = runtime_.system();
    const inference_context shared{&meter_, status_};
    actors_.push_back(system.spawn(inference_client_actor, shared, &client_,
                                   &client_seen_, plan_.stages()));
    for (int s = 0; s < plan_.stages(); ++s) {
      auto& resources = stages_[static_cast<std::size_t>(s)];
      actors_.push_back(system.spawn(inference_stage, shared, resources.computer.get(),
                                     s, plan_.stages(), resources.work));
    }
  }

  /// Wires the actors as a ring that includes the client. The client is last, as the
  /// message starts the client.
  void wire() {
    const auto count = actors_.size();
    for (auto i = count; i-- > 0;)
      send_external(meter_, actors_[i],
                    inference_neighbours{actors_[(i + count - 1) % count],
                                         actors_[(i + 1) % count]});
  }

  stall_watchdog::controls controls() {
    std::vector<std::string> names{name_of_inference(-1, plan_.stages())};
    std::vector<watched> observed{
      {names.back(), &client_seen_,
       [](const task&) { return std::string{"reading or writing"}; },
       patience_with_client}};
    for (int s = 0; s < plan_.stages(); ++s) {
      names.push_back(name_of_inference(s, plan_.stages()));
      observed.push_back({names.back(), &stages_[static_cast<std::size_t>(s)].seen,
                          [](const task& current) {
                            return "computing portion "
                                   + std::to_string(current.microbatch);
                          }});
    }
    const auto rule =
      std::make_shared<stall_rule>(std::move(observed), plan_.stall_timeout);
    return {.look = [this, rule] { return rule->look(clock_.now(), clock_.now()); },
            .at_work = [this, rule] { return rule->at_work(clock_.now()); },
            .request_explanations =
              [this] {
                for (const auto& actor : actors_)
                  send_external(meter_, actor, mail::explain{});
              },
            .help = [this] { runtime_.start_threads(1); },
            .asked = std::move(names)};
  }

  void shut_down() {
    for (auto& resources : stages_)
      resources.computer->stop();
    for (const auto& actor : actors_)
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    const auto idle = [](const auto& resources) { return resources.computer->idle(); };
    while (runtime_.actors() > 0 || !std::ranges::all_of(stages_, idle)
           || !threads_->quiet()) {
      runtime_.settle();
      std::this_thread::sleep_for(50us);
    }
    actors_.clear();
    runtime_.close();
  }

  std::int64_t allocations() const {
    std::int64_t result = 0;
    for (const auto& resources : stages_)
      result += resources.account.allocations();
    return result;
  }

  const inference_plan& plan_;
  inference_client& client_;
  message_meter meter_;
  wall_clock clock_;
  occupation client_seen_{clock_};
  std::shared_ptr<run_status> status_ = std::make_shared<run_status>();
  std::shared_ptr<compute_threads> threads_;
  std::deque<stage_resources> stages_;
  std::int64_t at_start_ = 0;           // allocations
  actor_runtime runtime_;               // actors hold buffers of the members above
  std::vector<inference_actor> actors_; // the client, then the stages
};

} // namespace

inference_result perform(const inference_plan& plan, inference_client& client,
                         const inference_work_maker& make,
                         const std::atomic<bool>* interrupted) {
  if (interrupted != nullptr && *interrupted)
    return {.outcome = ending::interrupted};
  return inference_session{plan, client, make}.run(interrupted);
}

} // namespace troupe
