// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_work.hpp"
#include "actors/inference/stage_weights.hpp"
#include "models/forward_layers.hpp"

#include <map>
#include <set>
#include <vector>

namespace troupe {

/// A stage that generates text. Runs some layers on the next tokens of a sequence and
/// caches keys and values of all tokens of that sequence. The last stage computes
/// logits for the token after the last token of the pass.
class cached_stage : public inference_work {
public:
  /// \param sequences number of sequences, which have one cache each
  /// \param lengths the numbers of tokens that one pass may read; not empty
  /// \param compute_stream,account outlive this object
  cached_stage(const inference_plan& plan, int stage, int sequences,
               const std::set<std::int64_t>& lengths, stream& compute_stream,
               memory_account& account);

  /// Bytes of tensor memory that a stage takes, with parameters.
  static std::int64_t bytes(const inference_plan& plan, int stage, int sequences,
                            const std::set<std::int64_t>& lengths);

  buffer output_buffer() override { return above_.acquire(); }
  void forward(const portion& in, portion& out) override;
  double operations(const portion& in) const override;

private:
  stream& stream_;
  std::int64_t width_; // C
  stage_weights weights_;
  std::map<std::int64_t, layer_list<float>> layers_; // by length, without the head
  layer_list<float> head_; // for one token; empty except in the last stage
  forward_buffers workspace_;
  tensor_memory before_head_; // (length, C)
  tensor_memory caches_;
  std::vector<std::int64_t> cache_of_; // offset of each layer in a sequence's cache
  std::int64_t cache_;                 // values in a sequence's cache
  pool above_;
};

} // namespace troupe
