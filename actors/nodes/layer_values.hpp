// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/mail/nodes.hpp"

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

namespace troupe {

/// Which values of a layer: parameters, an older version of them, a moment.
struct layer_key {
  enum class kind : std::uint8_t { parameters, older, moment };

  kind what = kind::parameters;
  std::uint32_t number = 0; ///< Of the version, or the moment.
  std::uint32_t layer = 0;  ///< Of the network.

  auto operator<=>(const layer_key&) const = default;
};

/// 12 bytes that say which.
std::vector<unsigned char> to_text(const layer_key& key);
tl::expected<layer_key, std::string>
layer_key_from(std::span<const unsigned char> text);

/// All that a run needs which goes on where another was, or begins with a file's
/// values: the layers that a node asks for. The lead makes it from its plan.
std::vector<layer_key> keys_of(const run_plan& plan, const std::vector<int>& layers);
std::vector<float> values_of(const run_plan& plan, const layer_key& key);

/// Values of layers that a lead has sent, where a run begins with them. Filled by one
/// thread, waited for by another.
class layer_values {
public:
  explicit layer_values(const mail::prepare& facts);

  /// Makes a plan begin with those values, and count what came before. Whatever the
  /// plan asks for must have come by then. \pre outlives what asks the plan for values
  void give_to(run_plan& plan);

  /// Where values belong that come. On error says why nobody waits for them.
  tl::expected<std::span<float>, std::string>
  place_of(std::span<const unsigned char> text, std::size_t values);

  /// The last ones are there.
  void told();

  /// Gives the memory back. Nobody reads any of it from now on.
  void forget();

  /// Waits until all have come, or for so long.
  bool complete(std::chrono::milliseconds patience);

private:
  using values = std::vector<float>;
  void read(layer_key key, float* to) const;

  mail::prepare facts_;
  std::vector<std::int64_t> sizes_; // of the network's layers
  std::mutex lock_;
  std::condition_variable news_;
  std::map<layer_key, values> all_;
  std::set<layer_key> missing_;
  layer_key coming_;
};

} // namespace troupe
