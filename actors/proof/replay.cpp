// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/replay.hpp"

#include "actors/proof/replayed_updates.hpp"
#include "actors/run/recorder.hpp"
#include "kernels/device.hpp"
#include "models/data/read_samples.hpp"
#include "plan/replica_rules.hpp"

#include <map>
#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

using values = vector_in<float>;

/// The arrays that one stage keeps for one microbatch, in memory that kernels can
/// access.
struct kept {
  explicit kept(memory_space& where)
    : allocator(where),
      input(allocator),
      stash(allocator),
      kept_gradients(allocator),
      from_above(allocator),
      tokens(space_allocator<std::int32_t>{where}) {
    // nop
  }

  space_allocator<float> allocator;
  values input, stash, kept_gradients, from_above;
  vector_in<std::int32_t> tokens;
  bool forwarded = false;
};

class replaying {
public:
  replaying(const run_plan& plan, const record& ran, const shared_history& accesses,
            update_witness* witness)
    : plan_(plan),
      work_(*plan.work),
      log_(plan),
      where_(memory_of(plan.machine.processor_of(0))),
      stream_(stream_on(plan.machine.processor_of(0), 1, work_.whole.options.stored)),
      stages_(stages_of(plan, ran)),
      updates_(plan, stages_, accesses, stream_, witness) {
    // nop
  }

  trained run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& stage : stages_)
        while (!stage.finished() && step(stage))
          moved = true;
    }
    for (const auto& stage : stages_)
      refuse(stage.error());
    refuse(updates_.error());
    if (!kept_.empty())
      refuse("stage " + std::to_string(kept_.begin()->first.first)
             + " is left with microbatch " + std::to_string(kept_.begin()->first.second)
             + ", whose backward is missing");
    trained result;
    result.loss = log_.losses();
    for (int s = 0; s < plan_.dims.stages; ++s) {
      for (const auto& bucket : updates_.last(s))
        result.parameters.emplace_back(bucket.begin(), bucket.end());
      for (const auto& bucket : stages_[static_cast<std::size_t>(s)].sum)
        result.gradients.emplace_back(bucket.begin(), bucket.end());
    }
    return result;
  }

private:
  static std::vector<replayed_stage> stages_of(const run_plan& plan,
                                               const record& ran) {
    const int directions = plan.directions();
    std::vector<replayed_stage> result;
    for (int replica = 0; replica < plan.replicas(); ++replica)
      for (int s = 0; s < plan.dims.stages; ++s)
        result.emplace_back(
          plan, position{replica / directions, replica % directions, s}, ran);
    return result;
  }

  static void refuse(const std::string& error) {
    if (!error.empty())
      throw std::logic_error(error);
  }

  /// The arrays of a stage for a microbatch.
  /// \param microbatch counted over all data replicas
  kept& kept_arrays(int stage, int microbatch) {
    return kept_.try_emplace({stage, microbatch}, where_).first->second;
  }

  /// Computes the next action of a stage. Returns false if the action's input does not
  /// exist yet. \throws std::logic_error if the order of actions is impossible
  bool step(replayed_stage& stage) {
    const auto& a = stage.now().action;
    if (a.op == op::update)
      return updates_.make(stage);
    const int n = plan_.microbatch_of_all(stage.where.data, a.microbatch);
    if (a.op == op::forward && stage.layers().is_first())
      read(n);
    const auto entry = kept_.find({a.stage, n});
    if (entry == kept_.end())
      return false;
    const auto& k = entry->second;
    if (a.op == op::forward && k.input.empty() && k.tokens.empty())
      return false;
    if (a.op == op::forward && k.forwarded)
      refuse(to_string(a, true) + " ran twice");
    if (a.op != op::forward && !k.forwarded)
      refuse(to_string(a, true) + " ran before its forward");
    if (a.op != op::forward && !stage.layers().is_last() && k.from_above.empty())
      return false;
    compute(stage, n);
    stage.advance();
    return true;
  }

  void read(int microbatch) {
    auto& first = kept_arrays(0, microbatch);
    auto& last = labels_.try_emplace(microbatch, space_allocator<std::int32_t>{where_})
                   .first->second;
    const auto [samples, length] = plan_.batches().shape_of(microbatch);
    const auto rows = length > 0 ? length : work_.whole.rows;
    const auto input = length > 0 ? length : work_.whole.layers.front()->input();
    const auto values = static_cast<std::size_t>(samples * input);
    if (work_.whole.reads_tokens)
      first.tokens.resize(values);
    else
      first.input.resize(values);
    last.resize(static_cast<std::size_t>(samples * rows));
    read_samples(*work_.data, work_.whole, plan_.batches().range_of(microbatch), length,
                 {first.tokens.empty() ? nullptr : first.tokens.data(),
                  first.input.empty() ? nullptr : first.input.data(), last.data()});
  }

  void compute(replayed_stage& stage, int microbatch) {
    const auto& a = stage.now().action;
    auto& k = kept_arrays(a.stage, microbatch);
    const auto [samples, length] = plan_.batches().shape_of(microbatch);
    const auto& layers = stage.layers(length);
    const auto sizes = layers.sizes(samples);
    values output(static_cast<std::size_t>(sizes.output), k.allocator),
      down(static_cast<std::size_t>(stage.layers().is_first() ? 0 : sizes.input),
           k.allocator),
      scratch(static_cast<std::size_t>(sizes.scratch), k.allocator);
    k.stash.resize(static_cast<std::size_t>(sizes.stash));
    k.kept_gradients.resize(static_cast<std::size_t>(sizes.kept));
    pass<float> p;
    p.samples = samples;
    p.first = plan_.batches().first_of(microbatch);
    p.tokens = k.tokens.empty() ? nullptr : k.tokens.data();
    p.input = k.input.empty() ? nullptr : k.input.data();
    p.labels = labels_.at(microbatch).data();
    p.output = output.data();
    p.stash = k.stash.data();
    p.output_gradient = k.from_above.data();
    p.input_gradient = down.empty() ? nullptr : down.data();
    p.kept = k.kept_gradients.data();
    for (const auto& bucket : stage.parameters())
      p.parameters.emplace_back(bucket.data());
    const bool apart = shares_out(plan_, shared_out::gradients);
    const bool sums = adds_gradient(a.op);
    if (apart && sums)
      stage.by_microbatch.push_back(stage.sum);
    p.gradients = writable(apart && sums ? stage.by_microbatch.back() : stage.sum);
    p.beta = stage.summed == 0 || apart ? 0.0F : 1.0F;
    p.scratch = scratch.data();
    p.compute_stream = &stream_;
    if (a.op == op::recompute)
      return; // the version exists; the forward's arrays are still kept
    if (a.op == op::forward) {
      loss_sum loss;
      run_to_end([&] { layers.forward(p, loss); }, &stream_);
      k.forwarded = true;
      if (stage.layers().is_last())
        log_.add(
          {microbatch, samples, of_whole_samples(loss, work_.whole.rows, length)});
      else
        kept_arrays(a.stage + 1, microbatch).input = std::move(output);
      return;
    }
    run_to_end(
      [&] {
        if (a.op == op::backward)
          layers.backward(p);
        else if (a.op == op::input_gradient)
          layers.input_gradient(p);
        else
          layers.weight_gradient(p);
      },
      &stream_);
    if (a.op != op::weight_gradient && a.stage > 0)
      kept_arrays(a.stage - 1, microbatch).from_above = std::move(down);
    if (a.op != op::input_gradient) {
      ++stage.summed;
      stage.samples += samples;
      kept_.erase({a.stage, microbatch});
    }
  }

  const run_plan& plan_;
  const training& work_;
  loss_log log_;
  memory_space& where_;
  stream stream_;
  std::vector<replayed_stage> stages_; // first of pipeline 0, then of 1
  replayed_updates updates_;
  std::map<std::pair<int, int>, kept> kept_; // by stage and microbatch, of all replicas
  std::map<int, vector_in<std::int32_t>> labels_;
};

} // namespace

trained replay(const run_plan& plan, const record& ran, const shared_history& accesses,
               update_witness* witness) {
  return replaying{plan, ran, accesses, witness}.run();
}

} // namespace troupe
