// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/training_state.hpp"
#include "messaging/mail/control.hpp"
#include "plan/saved_piece.hpp"

#include <tl/expected.hpp>

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Assembles the state of a whole training from the pieces that stages have saved.

namespace troupe {

/// Copies of all stages' states, taken between two batches of a run.
struct training_copies {
  /// Batches completed, including batches before the run.
  int batches = 0;
  /// Copies from each stage that saves anything. The order does not matter.
  std::vector<mail::saved> stages;
};

/// Number of updates of each layer, from the copies of the stages. A layer without
/// copies gets the largest number of all stages.
/// \pre the plan has a training (`plan.work`)
std::vector<std::int64_t> updates_in(const run_plan& plan,
                                     const training_copies& copies);

/// Assembles the arrays of a whole network from pieces, which may come in any order.
class gathered_state {
public:
  /// \param whole outlives this object
  /// \param older number of versions, besides the newest
  /// \param state names of the optimizer's state arrays
  gathered_state(const network<float>& whole, int older,
                 std::vector<std::string> state);

  /// Returns the parameter with this name, or null if the network has none. Null also
  /// for the second copy of a tied matrix, which has no pieces. The network owns the
  /// parameter.
  const parameter* find(const std::string& name) const;

  /// True if put() has stored all values of a piece in `array`.
  /// \pre the network has the parameter, and the piece lies within the parameter
  bool has(const saved_array& array, const saved_piece& piece) const;

  /// Stores the values of a piece. Returns an error text, or an empty string. Errors:
  /// an unknown parameter, a piece outside the parameter, a wrong number of values,
  /// values that were put before. After an error a part of the values may be stored.
  /// \param piece the members `layer` and `bucket` are ignored
  /// \param values all values of the piece, in order
  std::string put(const saved_array& array, const saved_piece& piece,
                  std::span<const float> values);

  /// Returns the assembled arrays; the caller sets `batches` and `updates`. If an older
  /// version has no value of a parameter, the version gets the parameter's newest
  /// values. No stage reads such values of the version. A tied parameter gets the
  /// values of the parameter to which it is tied. The error says which values are
  /// missing. Called once, as the result takes the arrays.
  tl::expected<training_state, std::string> finish();

private:
  struct partial_array {
    whole_buckets values;
    std::vector<std::vector<bool>> known;
  };
  partial_array& entry_of(const saved_array& array);
  std::string complete(const saved_array& array);

  const network<float>& whole_;
  int older_;
  std::vector<std::string> state_;
  std::map<std::string, std::pair<std::size_t, const parameter*>> parameters_;
  std::map<saved_array, partial_array> arrays_;
};

/// Assembles the state to continue from, directly from copies of stages and without
/// files. If several stages have the same values, the first copy counts. The error says
/// which values are missing.
/// \param saver the rule by which the stages made the copies
/// \pre the plan has a training (`plan.work`)
tl::expected<training_state, std::string>
whole_of(const run_plan& plan, const training_copies& copies, savers saver);

} // namespace troupe
