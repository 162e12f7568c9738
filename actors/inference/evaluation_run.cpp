// SPDX-License-Identifier: BSD-3-Clause
#include "actors/inference/evaluation_run.hpp"

#include "actors/inference/stage_weights.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// Upper bound on label buffers in flight: labels of portions between neighbours, from
/// the client up to the last stage.
int labels_under_way(const inference_plan& plan) {
  return portions_between * plan.stages();
}

/// Runs some layers on a microbatch; the last stage computes the loss.
class scored_stage : public inference_work {
public:
  scored_stage(const inference_plan& plan, int stage, std::int64_t samples,
               stream& compute_stream, memory_account& account)
    : stream_(compute_stream),
      weights_(plan, stage, account),
      layers_(plan.whole, plan.first_layer(stage), plan.end_layer(stage), samples,
              compute_stream.threads(), account) {
    if (!layers_.is_last())
      above_ = std::make_unique<pool>(
        "activations above stage " + std::to_string(stage), portions_between,
        layers_.layers().back()->output_size(samples), account);
  }

  buffer output_buffer() override { return above_ ? above_->acquire() : buffer{}; }

  void forward(const portion& in, portion& out) override {
    layers_.forward({.samples = in.samples,
                     .tokens = in.values.integers(),
                     .x = in.values.data(),
                     .y = out.values.data(),
                     .compute_stream = &stream_},
                    in.labels.integers(), weights_.buckets(), out.loss);
    if (layers_.is_last())
      out.labels = {};
  }

  double operations(const portion& in) const override {
    double sample = 0;
    for (const auto& l : layers_.layers())
      sample += l->operations();
    return sample * static_cast<double>(in.samples);
  }

private:
  stream& stream_;
  stage_weights weights_;
  scored_layers layers_;
  std::unique_ptr<pool> above_; // null: this stage sends no activations
};

/// Reads held-out samples, and adds up the losses of the last stage.
class evaluation_client : public inference_client {
public:
  explicit evaluation_client(const evaluation_job& job)
    : job_(job),
      account_(job.plan.memory_at(0)),
      inputs_("samples", portions_between, input_room(job), account_,
              job.plan.whole.element_of_input()),
      labels_("labels", labels_under_way(job.plan), label_room(job), account_,
              element::int32) {
    // nop
  }

  static std::int64_t bytes(const evaluation_job& job) {
    return (portions_between * input_room(job)
            + labels_under_way(job.plan) * label_room(job))
           * std::int64_t{sizeof(float)};
  }

  std::optional<portion> next() override {
    const auto first = sent_ * job_.microbatch;
    if (first >= job_.samples)
      return {};
    portion result{.number = sent_++,
                   .samples = std::min(job_.microbatch, job_.samples - first),
                   .values = inputs_.acquire(),
                   .labels = labels_.acquire()};
    const auto& whole = job_.plan.whole;
    const sample_view batch_view{result.values.integers(), result.values.data(),
                                 result.labels.integers()};
    for (std::int64_t i = 0; i < result.samples; ++i)
      job_.data->evaluation(
        first + i, batch_view.offset_by(i, whole.layers.front()->input(), whole.rows));
    return result;
  }

  void receive(const portion& result) override {
    sum_.loss += result.loss.loss;
    sum_.correct += result.loss.correct;
    done_ += result.samples;
  }

  bool is_done() const override { return done_ >= job_.samples; }

  score final_score() const { return score_of(job_.plan.whole, sum_, job_.samples); }

private:
  static std::int64_t input_room(const evaluation_job& job) {
    return job.plan.whole.layers.front()->input_size(job.microbatch);
  }
  static std::int64_t label_room(const evaluation_job& job) {
    return job.microbatch * job.plan.whole.rows;
  }

  const evaluation_job& job_;
  memory_account account_;
  pool inputs_, labels_;
  std::int64_t sent_ = 0; // microbatches
  std::int64_t done_ = 0; // samples
  loss_sum sum_;
};

} // namespace

std::vector<std::int64_t> bytes_needed(const evaluation_job& job) {
  const auto& plan = job.plan;
  std::vector<std::int64_t> result;
  for (int s = 0; s < plan.stages(); ++s) {
    const auto last = static_cast<std::size_t>(plan.end_layer(s)) - 1;
    const auto above =
      s + 1 == plan.stages() ? 0 : plan.whole.layers[last]->output_size(job.microbatch);
    result.push_back(stage_weights::bytes(plan, s)
                     + scored_layers::bytes(plan.whole, plan.first_layer(s),
                                            plan.end_layer(s), job.microbatch,
                                            plan.team_of(s))
                     + portions_between * above * std::int64_t{sizeof(float)});
  }
  result.front() += evaluation_client::bytes(job);
  return result;
}

evaluation_result evaluate(const evaluation_job& job,
                           const std::atomic<bool>* interrupted) {
  evaluation_client client{job};
  const auto make = [&](const inference_plan& plan, int stage, stream& compute_stream,
                        memory_account& account) {
    return std::make_unique<scored_stage>(plan, stage, job.microbatch, compute_stream,
                                          account);
  };
  evaluation_result result;
  result.run = perform(job.plan, client, make, interrupted);
  if (result.run.outcome == ending::finished)
    result.final_score = client.final_score();
  return result;
}

} // namespace troupe
