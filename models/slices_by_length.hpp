// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/batching.hpp"
#include "models/slice.hpp"

#include <map>

namespace troupe {

/// A slice of a network for each length of sequences that microbatches have. The
/// parameters are the same at every length.
template <class Scalar>
class slices_by_length {
public:
  /// \param make called with a network for each length; returns a slice of the network
  template <class Make>
  slices_by_length(const network<Scalar>& whole, const batching& batches,
                   const Make& make)
    : whole_(make(whole)) {
    for (const auto& [samples, length] : batches.shapes())
      if (length > 0 && length != whole.rows && !shorter_.contains(length))
        shorter_.emplace(length, make(of_length(whole, length)));
  }

  /// The slice at the network's full length.
  const slice<Scalar>& whole() const { return whole_; }

  /// The slice for sequences of `length` tokens, valid as long as this object. A length
  /// that no microbatch has gives the slice at full length.
  /// \param length of the batches' microbatches; 0: the full length
  const slice<Scalar>& at_length(std::int64_t length) const {
    const auto entry = shorter_.find(length);
    return entry == shorter_.end() ? whole_ : entry->second;
  }

  /// The sizes of buffers that suffice for every microbatch.
  slice_sizes sizes(const batching& batches) const {
    slice_sizes most;
    for (const auto& [samples, length] : batches.shapes())
      most = largest(most, at_length(length).sizes(samples));
    return most;
  }

private:
  slice<Scalar> whole_;
  std::map<std::int64_t, slice<Scalar>> shorter_;
};

} // namespace troupe
