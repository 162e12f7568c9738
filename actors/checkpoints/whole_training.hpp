// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/saved_training.hpp"
#include "actors/plan/saved_piece.hpp"
#include "messaging/mail/control.hpp"

#include <tl/expected.hpp>

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// What the stages of a run had between batches, copied.
struct training_copies {
  int batches = 0;              ///< With those before the run.
  std::vector<mail::saved> all; ///< Of each stage that saves anything, in order.
};

/// The updates of each layer that stages have saved.
std::vector<std::int64_t> updates_in(const run_plan& plan,
                                     const training_copies& copies);

/// Puts the arrays of a whole network together from pieces, which come in any order.
class whole_training {
public:
  /// \param of outlives it \param older versions, besides the newest
  whole_training(const network<float>& of, int older, int moments);

  /// The parameter of that name, which a piece can be of; null if there is none. One
  /// that is tied to another is none.
  const parameter* find(const std::string& name) const;

  /// Whether all values of a piece are there. \pre it lies within its parameter
  bool has(const saved_array& array, const saved_piece& piece) const;

  /// The values of a piece, from its first on. Returns what is wrong with it, if
  /// anything: nobody knows its parameter, it does not lie within that, or has values
  /// that others had. \param piece.layer,piece.bucket do not count
  std::string put(const saved_array& array, const saved_piece& piece,
                  std::span<const float> values);

  /// All of it. A version besides the newest that has nothing of a parameter has what
  /// is newest: nobody reads that version there. On error says what is missing.
  tl::expected<saved_training, std::string> finish();

private:
  struct array_under_way {
    whole_buckets values;
    std::vector<std::vector<bool>> known;
  };
  array_under_way& at(const saved_array& array);
  std::string complete(const saved_array& array);

  const network<float>& whole_;
  int older_, moments_;
  std::map<std::string, std::pair<std::size_t, const parameter*>> parameters_;
  std::map<saved_array, array_under_way> arrays_;
};

/// What goes on from copies of stages, without files between: of what several stages
/// have the first counts. On error says what is missing.
tl::expected<saved_training, std::string>
whole_of(const run_plan& plan, const training_copies& copies, savers who);

} // namespace troupe
