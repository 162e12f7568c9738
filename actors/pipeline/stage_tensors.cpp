// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage_tensors.hpp"

#include "kernels/arrays.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_layers.hpp"
#include "plan/stage_rules.hpp"

#include <memory>
#include <string>
#include <utility>

namespace troupe {

std::shared_ptr<pool> boundary_pool(const run_plan& plan, position where,
                                    rank_memory& memory) {
  const auto sizes = pools_of(plan, where);
  return std::make_shared<pool>("messages above " + plan.name_of(where),
                                sizes.boundary_slots, sizes.boundary,
                                memory.account(memory_use::activations));
}

stage_tensors::stage_tensors(const run_plan& plan, position where, rank_memory& memory,
                             stream& compute_stream, boundary below, boundary above)
  : stage_tensors(plan, where, pools_of(plan, where), memory, compute_stream,
                  std::move(below), std::move(above)) {
  // nop
}

stage_tensors::stage_tensors(const run_plan& plan, position where,
                             const stage_pools& sizes, rank_memory& memory,
                             stream& compute_stream, boundary below, boundary above)
  : layers_(slices_of(plan, where, compute_stream.threads())),
    held_buckets_(layer_buckets(plan, where)),
    stream_(compute_stream),
    below_(std::move(below)),
    above_(std::move(above)),
    stashes_("stashes of " + plan.name_of(where), sizes.stashes, sizes.stash,
             memory.account(memory_use::activations)),
    inputs_("inputs of segments of " + plan.name_of(where), sizes.inputs_slots,
            sizes.inputs, memory.account(memory_use::activations)),
    kept_("split backwards of " + plan.name_of(where), sizes.kept_slots, sizes.kept,
          memory.account(memory_use::activations)),
    to_shards_("messages to shards of " + plan.name_of(where), sizes.to_shards.buffers,
               sizes.to_shards.values, memory.account(memory_use::passing)),
    sums_under_way_("gradients under way of " + plan.name_of(where), sizes.sums.buffers,
                    sizes.sums.values, memory.account(memory_use::passing)),
    gathers_under_way_("parameters under way of " + plan.name_of(where),
                       sizes.gathers.buffers, sizes.gathers.values,
                       memory.account(memory_use::passing)),
    scratch_(sizes.scratch, memory.account(memory_use::passing)),
    recomputes_(plan.recomputes()),
    recomputed_output_(sizes.recomputed_output, memory.account(memory_use::passing)),
    shares_(shares_of(plan, where)),
    has_parameters_(extent_of(plan, shared_out::parameters)),
    has_gradients_(extent_of(plan, shared_out::gradients)),
    versions_(plan, where, sizes, memory, compute_stream),
    sums_(pools_by_bucket("gradients of " + plan.name_of(where), 1, sizes.gradients,
                          memory.account(memory_use::gradients))),
    gradients_{acquire(sums_)} {
  for (std::size_t b = 0; b < held_buckets_.size(); ++b) {
    if (held_buckets_[b].expert < 0) {
      layer_buckets_.push_back(b);
      gradients_.completed_by.emplace_back();
    }
    gradients_.completed_by.back().push_back(static_cast<int>(b));
  }
  auto& passing = memory.account(memory_use::passing);
  passing.use(scratch_.bytes() + recomputed_output_.bytes());
  for (int i = 0; i < 2; ++i) {
    gathered_[i] = {sizes.gathered, passing};
    whole_gradients_[i] = {sizes.whole_gradients, passing};
    passing.use(gathered_[i].bytes() + whole_gradients_[i].bytes());
  }
}

void stage_tensors::put_input(int microbatch, buffer input) {
  held_[microbatch].input = std::move(input);
}

void stage_tensors::put_labels(int microbatch, buffer labels) {
  held_[microbatch].labels = std::move(labels);
}

void stage_tensors::put_gradient(int microbatch, buffer from_above) {
  held_[microbatch].from_above = std::move(from_above);
}

bool stage_tensors::has_inputs(int microbatch) const {
  const auto& h = held_.at(microbatch);
  return h.input && (h.labels || !is_last());
}

pass<float> stage_tensors::make_pass(const held& h, const pass_request& request) {
  pass<float> p;
  p.samples = request.samples.count;
  p.first = request.samples.first;
  p.tokens = h.input.integers();
  p.input = h.input.data();
  p.labels = h.labels.integers();
  p.output = h.output.data();
  p.stash = h.stash.data();
  p.inputs = h.inputs.data();
  p.output_gradient = h.from_above.data();
  if (request.pass_action.op != op::weight_gradient)
    p.input_gradient = h.input_gradient.data();
  p.kept = h.kept.data();
  const bool whole_parameters = has_parameters_ == bucket_extent::whole,
             whole_gradients = has_gradients_ == bucket_extent::whole;
  for (std::size_t i = 0; i < layer_buckets_.size(); ++i) {
    p.parameters.push_back(whole_parameters
                             ? versions_.address(request.version, layer_buckets_[i])
                             : gathered_[i % 2].data());
    p.gradients.push_back(whole_gradients ? gradients_.buckets[layer_buckets_[i]].data()
                                          : whole_gradients_[i % 2].data());
  }
  p.scratch = scratch_.data();
  p.compute_stream = &stream_;
  return p;
}

pass_pieces<float> stage_tensors::forward(const pass_request& request) {
  auto& h = held_.at(request.pass_action.microbatch);
  h.stash = stashes_.acquire();
  if (inputs_.size() > 0)
    h.inputs = inputs_.acquire();
  if (!is_last())
    h.output = output_buffer(*above_.messages, &held::from_above);
  const auto p = std::make_shared<const pass<float>>(make_pass(h, request));
  if (recomputes_)
    h.stash = {}; // the next pass in the device's order may use the buffer
  return layers_.at_length(request.length).forward_pieces(p, h.loss, request.by_layer);
}

/// Runs the last segment's forward again, for the backward that follows. The
/// recomputation has its own loss, as the stage may not have read the first forward's
/// loss before.
pass_pieces<float> stage_tensors::recompute(const pass_request& request) {
  auto& h = held_.at(request.pass_action.microbatch);
  h.stash = stashes_.acquire();
  const auto p = std::make_shared<pass<float>>(make_pass(h, request));
  p->output = recomputed_output_.data();
  return layers_.at_length(request.length)
    .recompute_pieces(p, h.recomputed_loss, request.by_layer);
}

meeting_memory stage_tensors::memory_of_meetings() {
  const layer_memory layers{
    .to_gather = [this](int layer,
                        int version) { return gather_address(layer, version); },
    .gradients = [this](int layer) { return whole_gradients_[layer % 2].data(); },
    .add_share = [this](int layer, bool first) { add_share(layer, first); },
    .gathers = &gathers_under_way_,
    .sums = &sums_under_way_};
  const auto lend = [this](std::size_t bucket, int version, bool gradients) {
    return std::pair{versions_.address(version, bucket),
                     gradients ? gradients_.buckets[bucket] : buffer{}};
  };
  return {layers, lend, &to_shards_};
}

stage_work stage_work_of(const std::shared_ptr<stage_tensors>& tensors) {
  return {.inputs = tensors,
          .passes = tensors,
          .versions = {tensors, &tensors->versions()},
          .gradients = tensors->gradients(),
          .memory = tensors->memory_of_meetings()};
}

/// Returns the address where a layer's parameters are gathered, and copies this stage's
/// share of the version there.
float* stage_tensors::gather_address(int layer, int version) {
  const auto i = static_cast<std::size_t>(layer);
  auto* const target = gathered_[i % 2].data();
  arrays<float>::copy(versions_.whole(version)[i].data(), versions_.values_of(i),
                      target + shares_[i].begin(layers_.whole().layers()[i]->bucket()));
  return target;
}

/// Adds this stage's share of a microbatch's gradients to the sum of the update.
/// \param first whether the gradients are the first of the update, so that the sum is
/// set
void stage_tensors::add_share(int layer, bool first) {
  const auto i = static_cast<std::size_t>(layer);
  const auto bucket = layers_.whole().layers()[i]->bucket();
  const auto count = shares_[i].held(bucket);
  const auto* const from =
    whole_gradients_[layer % 2].data() + shares_[i].begin(bucket);
  auto* const to = gradients_.buckets[i].data();
  if (first)
    arrays<float>::copy(from, count, to);
  else
    arrays<float>::add(from, count, to);
}

bool stage_tensors::leaves_at_launch(op operation) const {
  if (operation == op::forward)
    return above_.left_at_launch;
  return goes_back(operation) && below_.left_at_launch;
}

buffer stage_tensors::take_message(op operation, int microbatch) {
  return std::exchange(message_of(held_.at(microbatch), operation), {});
}

std::shared_ptr<gpu_completion> stage_tensors::reader_before(op operation,
                                                             int microbatch) {
  return message_of(held_.at(microbatch), operation).take_reader();
}

std::optional<loss_sum> stage_tensors::end_forward(int microbatch) {
  auto& h = held_.at(microbatch);
  if (!recomputes_)
    h.labels = {}; // the stash holds the loss's gradient
  return is_last() ? std::optional{h.loss} : std::nullopt;
}

/// Returns a buffer of a pool between stages for a pass's output. If an earlier
/// backward is still under way and will free a buffer of this pool, that buffer is
/// reused. The device has finished with the buffer when the new pass starts. So no more
/// buffers are held than if the earlier pass had ended.
/// \param given_back the buffer that the earlier backward frees
buffer stage_tensors::output_buffer(pool& messages, buffer held::*given_back) {
  return ending_microbatch_ ? held_.at(*ending_microbatch_).*given_back
                            : messages.acquire();
}

pass_pieces<float> stage_tensors::pieces(const pass_request& request) {
  switch (request.pass_action.op) {
  case op::forward:
    return forward(request);
  case op::recompute:
    return recompute(request);
  default:
    return backward(request);
  }
}

// A buffer that only this device's passes use is freed when the last such pass is
// enqueued. A later pass in the device's order may reuse the buffer.
pass_pieces<float> stage_tensors::backward(const pass_request& request) {
  const op operation = request.pass_action.op;
  const int microbatch = request.pass_action.microbatch;
  auto& h = held_.at(microbatch);
  if (operation != op::weight_gradient && !is_first())
    h.input_gradient = output_buffer(*below_.messages, &held::input);
  if (operation == op::input_gradient)
    h.kept = kept_.acquire();
  const auto p = std::make_shared<pass<float>>(make_pass(h, request));
  if (operation != op::input_gradient) {
    h.stash = {};
    h.inputs = {};
    h.kept = {};
    ending_microbatch_ = microbatch;
  }
  // A share is summed by add_share(), when the microbatch's whole gradient is complete;
  // so the pass itself overwrites.
  const bool by_itself = has_gradients_ == bucket_extent::share;
  p->beta = request.begins_sum || by_itself ? 0.0F : 1.0F;
  p->completes = request.ends_sum || by_itself;
  const auto& layers = layers_.at_length(request.length);
  switch (operation) {
  case op::input_gradient:
    return layers.input_gradient_pieces(p, request.by_layer);
  case op::weight_gradient:
    return layers.weight_gradient_pieces(p, request.by_layer);
  default:
    return layers.backward_pieces(p, request.by_layer);
  }
}

void stage_tensors::end_backward(op operation, int microbatch) {
  held_.at(microbatch).labels = {};
  if (operation == op::input_gradient)
    return;
  held_.erase(microbatch);
  if (ending_microbatch_ == microbatch)
    ending_microbatch_.reset();
}

} // namespace troupe
