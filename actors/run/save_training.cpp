#include "actors/run/save_training.hpp"

#include "actors/run/whole_weights.hpp"
#include "kernels/arrays.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace troupe {

namespace {

/// The parameters of all stages, or versions of theirs.
whole_buckets whole_of(const run_plan& plan, std::vector<mail::collected> parts,
                       const all_shared_parameters& shared) {
  run_result kept;
  keep_weights(plan, std::move(parts), shared, kept);
  return std::move(kept.parameters);
}

/// Versions that stages still know, with what is newest where one does not: it does not
/// read that version any more.
std::vector<whole_buckets> older_of(const run_plan& plan,
                                    const std::vector<mail::collected>& parts) {
  std::size_t most = 0;
  for (const auto& part : parts)
    most = std::max(most, part.older.size());
  std::vector<whole_buckets> result;
  for (std::size_t i = 0; i < most; ++i) {
    auto of_version = parts;
    for (auto& part : of_version)
      if (i < part.older.size() && !part.older[i].empty())
        part.parameters = part.older[i];
    result.push_back(whole_of(plan, std::move(of_version), {}));
  }
  return result;
}

/// What an optimizer shard knows: of its updates, and of a moment in a bucket.
struct known_state {
  std::int64_t updates;
  std::function<void(std::size_t moment, std::size_t bucket, float* all)> put;
};

/// It is here, or came with what its stage has.
known_state state_of(const run_plan& plan, position where,
                     const std::vector<mail::collected>& parts,
                     const equipment& equipped) {
  if (const auto& here = equipped.optimizer_of(where).state)
    return {here->updates(), [&here](std::size_t m, std::size_t b, float* all) {
              here->put_moment(static_cast<int>(m), b, all);
            }};
  const auto& part = *std::ranges::find(parts, where, &mail::collected::where);
  return {part.state_updates, [&part, shares = plan.state_shares_of(where),
                               buckets = plan.layer_buckets(where)](
                                std::size_t m, std::size_t b, float* all) {
            const auto values = buckets[b].what->bucket();
            arrays<float>::copy(part.moments[m][b].data(), shares[b].held(values),
                                all + shares[b].begin(values));
          }};
}

/// Puts what an optimizer shard knows of its buckets to its place.
void put(const run_plan& plan, position where, const known_state& state,
         saved_training& to) {
  const auto buckets = plan.layer_buckets(where);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const auto layer = buckets[b].of_layer;
    const auto &whole = *plan.work->whole.layers[layer], &shard = *buckets[b].what;
    to.updates[layer] = state.updates;
    for (std::size_t m = 0; m < to.moments.size(); ++m) {
      auto& all = to.moments[m][layer];
      std::vector<float> part(static_cast<std::size_t>(shard.bucket()));
      take_shard(whole, shard, all.data(), part.data());
      state.put(m, b, part.data());
      put_shard(whole, shard, part.data(), all.data());
    }
  }
}

} // namespace

saved_training save_training(const run_plan& plan, int batches,
                             const std::vector<mail::collected>& parts,
                             const equipment& equipped) {
  saved_training result{.batches = plan.dims.before + batches,
                        .parameters = whole_of(plan, parts, equipped.shared()),
                        .older = older_of(plan, parts)};
  const auto& layers = plan.work->whole.layers;
  result.updates.resize(layers.size());
  whole_buckets zeros;
  for (const auto& l : layers)
    zeros.emplace_back(static_cast<std::size_t>(l->bucket()));
  result.moments.resize(
    static_cast<std::size_t>(optimizer::state_size(plan.work->optimizer)), zeros);
  const int holders = plan.state_shares() > 1 ? plan.data : plan.expert;
  for (int d = 0; d < holders; ++d)
    for (int s = 0; s < plan.dims.stages; ++s)
      for (int t = 0; t < plan.tensor; ++t) {
        const position where{d, 0, s, t};
        put(plan, where, state_of(plan, where, parts, equipped), result);
      }
  return result;
}

} // namespace troupe
