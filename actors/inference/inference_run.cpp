// SPDX-License-Identifier: BSD-3-Clause
#include "actors/inference/inference_run.hpp"

#include "actors/inference/inference_actors.hpp"
#include "actors/run/actor_house.hpp"
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
std::string text_of(const work& what) {
  return "portion " + std::to_string(what.microbatch) + " in stage "
         + std::to_string(what.stage);
}

/// A stage's memory account, stream, work and device.
struct stage_resources {
  stage_resources(const inference_plan& plan, int stage, const wall_clock& clock,
                  const inference_work_maker& make)
    : account(plan.memory_at(stage)),
      on(stream_on(plan.processor_of(stage), plan.team_of(stage),
                   plan.whole.options.stored)),
      seen(clock),
      work(make(plan, stage, on, account)) {
    // nop
  }

  memory_account account;
  stream on;
  occupation seen;
  std::shared_ptr<inference_work> work;
  std::unique_ptr<device> computer;
};

/// An inference, from the allocation of resources to the end of all actors.
class inference_company {
public:
  inference_company(const inference_plan& plan, inference_client& client,
                    const inference_work_maker& make)
    : plan_(plan),
      client_(client),
      threads_(std::make_shared<compute_threads>(
        std::clamp(plan.threads, 1, plan.stages()), std::max(plan.threads, 1))),
      house_(clock_kind::real, [this] { board_->post_failure("out of memory"); }) {
    threads_->broken = [this] { board_->post_failure("out of memory"); };
    threads_->visit = [this](const auto& speak, const auto& works) {
      house_.visit(speak, works);
    };
    for (int s = 0; s < plan.stages(); ++s) {
      auto& one = stages_.emplace_back(plan, s, clock_, make);
      one.computer = std::make_unique<cpu_device>(one.seen, threads_, one.on.threads(),
                                                  &one.on, text_of);
    }
    at_start_ = allocations();
  }

  ~inference_company() {
    come_home();
    for (auto& one : stages_)
      one.computer.reset();
    threads_.reset();
  }
  inference_company(const inference_company&) = delete;
  inference_company& operator=(const inference_company&) = delete;

  inference_result run(const std::atomic<bool>* interrupted) {
    spawn();
    house_.start_threads(std::clamp(plan_.threads, 1, plan_.stages()));
    clock_.restart();
    wire();
    {
      const watcher watch{plan_.stall_timeout, *board_, controls()};
      while (!board_->finished() && !board_->failure()
             && !(interrupted != nullptr && *interrupted))
        board_->wait(20ms);
    }
    inference_result result{.seconds = static_cast<double>(clock_.now()) * 1e-9};
    come_home();
    if (const auto failure = board_->failure()) {
      result.how = ending::failed;
      result.failure = *failure;
    } else if (!board_->finished()) {
      result.how = ending::interrupted;
    }
    for (const auto& one : stages_)
      result.bytes.push_back(one.account.reserved());
    result.late_allocations = allocations() - at_start_;
    return result;
  }

private:
  void spawn() {
    auto& system = house_.system();
    const inference_props shared{&meter_, board_};
    actors_.push_back(system.spawn(inference_client_actor, shared, &client_,
                                   &client_seen_, plan_.stages()));
    for (int s = 0; s < plan_.stages(); ++s) {
      auto& one = stages_[static_cast<std::size_t>(s)];
      actors_.push_back(system.spawn(inference_stage, shared, one.computer.get(), s,
                                     plan_.stages(), one.work));
    }
  }

  /// Wires the actors as a ring that includes the client. The client is last, as the
  /// message starts the client.
  void wire() {
    const auto count = actors_.size();
    for (auto i = count; i-- > 0;)
      post(meter_, actors_[i],
           inference_neighbours{actors_[(i + count - 1) % count],
                                actors_[(i + 1) % count]});
  }

  watcher::controls controls() {
    std::vector<std::string> names{name_of_inference(-1, plan_.stages())};
    std::vector<watched> all{
      {names.back(), &client_seen_,
       [](const task&) { return std::string{"reading or writing"}; },
       patience_with_client}};
    for (int s = 0; s < plan_.stages(); ++s) {
      names.push_back(name_of_inference(s, plan_.stages()));
      all.push_back({names.back(), &stages_[static_cast<std::size_t>(s)].seen,
                     [](const task& what) {
                       return "at portion " + std::to_string(what.microbatch);
                     }});
    }
    const auto rule = std::make_shared<stall_rule>(std::move(all), plan_.stall_timeout);
    return {.look = [this, rule] { return rule->look(clock_.now(), clock_.now()); },
            .at_work = [this, rule] { return rule->at_work(clock_.now()); },
            .ask =
              [this] {
                for (const auto& one : actors_)
                  post(meter_, one, mail::explain{});
              },
            .help = [this] { house_.start_threads(1); },
            .asked = std::move(names)};
  }

  void come_home() {
    for (auto& one : stages_)
      one.computer->stop();
    for (const auto& one : actors_)
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
    const auto idle = [](const auto& one) { return one.computer->idle(); };
    while (house_.actors() > 0 || !std::ranges::all_of(stages_, idle)
           || !threads_->quiet()) {
      house_.settle();
      std::this_thread::sleep_for(50us);
    }
    actors_.clear();
    house_.close();
  }

  std::int64_t allocations() const {
    std::int64_t result = 0;
    for (const auto& one : stages_)
      result += one.account.allocations();
    return result;
  }

  const inference_plan& plan_;
  inference_client& client_;
  mail_meter meter_;
  wall_clock clock_;
  occupation client_seen_{clock_};
  std::shared_ptr<notice_board> board_ = std::make_shared<notice_board>();
  std::shared_ptr<compute_threads> threads_;
  std::deque<stage_resources> stages_;
  std::int64_t at_start_ = 0;           // allocations
  actor_house house_;                   // actors hold buffers of the members above
  std::vector<inference_actor> actors_; // the client, then the stages
};

} // namespace

inference_result perform(const inference_plan& plan, inference_client& client,
                         const inference_work_maker& make,
                         const std::atomic<bool>* interrupted) {
  if (interrupted != nullptr && *interrupted)
    return {.how = ending::interrupted};
  return inference_company{plan, client, make}.run(interrupted);
}

} // namespace troupe
