// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_work.hpp"
#include "actors/inference/stage_weights.hpp"
#include "models/forward_layers.hpp"

#include <map>
#include <set>
#include <vector>

namespace troupe {

/// Some layers on the next tokens of a sequence, of which they keep the keys and
/// values. The last ones make logits of what follows the last token.
class cached_stage : public inference_work {
public:
  /// \param sequences that have a cache each \param lengths of what is read at once
  cached_stage(const inference_plan& plan, int stage, int sequences,
               const std::set<std::int64_t>& lengths, stream& on,
               memory_account& account);

  /// Bytes that one takes.
  static std::int64_t bytes(const inference_plan& plan, int stage, int sequences,
                            const std::set<std::int64_t>& lengths);

  buffer room() override { return above_.acquire(); }
  void forward(const portion& in, portion& out) override;
  double operations(const portion& in) const override;

private:
  stream& on_;
  std::int64_t width_; // C
  stage_weights weights_;
  std::map<std::int64_t, layer_list<float>> layers_; // by length, but the head
  layer_list<float> head_; // of one token; empty but in the last stage
  forward_room room_;
  tensor_memory before_head_; // (length, C)
  tensor_memory caches_;
  std::vector<std::int64_t> cache_of_; // the offset of each layer in a sequence's
  std::int64_t cache_;                 // values of a sequence's
  pool above_;
};

} // namespace troupe
