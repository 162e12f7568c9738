// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/nodes.hpp"
#include "plan/run_plan.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

// Values of layers that a leader sends to nodes before a run that resumes or starts
// from a file.

namespace troupe {

/// Identifies an array of a layer: parameters, an older version of the parameters, or a
/// state array of the optimizer.
struct layer_key {
  enum class kind : std::uint8_t { parameters, older, state };

  kind type = kind::parameters;
  /// For an older version its index: 0 is the version before the newest. For a state
  /// array the array's index; 0 for parameters.
  std::uint32_t number = 0;
  std::uint32_t layer = 0; ///< Index in the network.

  auto operator<=>(const layer_key&) const = default;
};

/// Encodes a key as 12 bytes, the text of a frame on a tensor link.
std::vector<unsigned char> to_text(const layer_key& key);

/// Decodes a key. The error is a sentence, for a text that is not 12 bytes long.
/// Whether an array with the key exists is not checked.
tl::expected<layer_key, std::string>
layer_key_from(std::span<const unsigned char> text);

/// Returns the keys of the arrays of `layers` that the leader sends to a node:
/// parameters, older versions, state. The node needs the arrays before a resumed or
/// file-initialised run starts.
/// \param plan the leader's plan
/// \param layers indexes in the network
/// \pre plan.work
std::vector<layer_key> keys_of(const run_plan& plan, const std::vector<int>& layers);

/// Reads the values of an array from the leader's plan.
/// \pre the plan has the array
std::vector<float> values_of(const run_plan& plan, const layer_key& key);

/// The values of layers that a node receives from the leader, for a run that starts
/// with these values. The thread of the tensor links calls buffer_for() and
/// mark_received(); another thread waits.
class layer_values {
public:
  /// Awaits the arrays of `facts.layers`, or no array if `facts` has no layers.
  explicit layer_values(const mail::prepare& facts);

  /// Makes a plan start with these values, as the continuation of the batches that
  /// earlier runs have trained: the plan's steps decrease by these batches. If no array
  /// is awaited, the plan keeps its initial parameters. The plan's weight sources read
  /// the values later. All values must have arrived before the first read. Called once,
  /// before the first buffer_for().
  /// \pre plan.work
  /// \pre this object outlives every reader of the plan's weights
  void apply_to(run_plan& plan);

  /// Returns the memory for arriving values, valid until forget(). The error is a
  /// sentence, if the text is no key, or if no array of this key and size is awaited.
  /// \param text the key, by to_text()
  /// \param values number of values
  tl::expected<std::span<float>, std::string>
  buffer_for(std::span<const unsigned char> text, std::size_t values);

  /// Notes that the values of the last `buffer_for` have arrived completely.
  void mark_received();

  /// Releases the memory. The plan's weight sources must not be called afterwards.
  void forget();

  /// Waits until all values have arrived, at most `timeout`. Returns true if all
  /// awaited arrays have arrived, or none is awaited.
  bool complete(std::chrono::milliseconds timeout);

private:
  using values = std::vector<float>;
  void read(layer_key key, float* to) const;

  mail::prepare facts_;
  std::vector<std::int64_t> sizes_; // of the network's layers
  std::mutex lock_;
  std::condition_variable news_;
  std::map<layer_key, values> arrays_;
  std::set<layer_key> missing_;
  layer_key coming_;
};

} // namespace troupe
