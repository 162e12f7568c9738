// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Parameters: named tensors, their positions in buckets, and the parts that tensor
// shards hold.

#include "kernels/stream.hpp"
#include "kernels/weight_place.hpp"
#include "models/beginning.hpp"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// One of `count` tensor-parallel shards of a network.
struct tensor_shard {
  int index = 0;
  int count = 1;
  /// True if shards also divide the positions of every sequence, in the parts of layers
  /// in which all shards would otherwise compute equal values. Rows are then ordered by
  /// position, (T, B).
  bool by_sequence = false;

  /// First item, end and size of the shard's part of `n` items. Sizes of parts differ
  /// by at most one item.
  std::int64_t first(std::int64_t n) const { return n * index / count; }
  std::int64_t last(std::int64_t n) const { return n * (index + 1) / count; }
  std::int64_t part(std::int64_t n) const { return last(n) - first(n); }
};

/// A dimension of a parameter that tensor shards divide. All dimensions of one name are
/// divided in the same places.
struct divided_dimension {
  std::string_view name; ///< "heads", "hidden" or "words".
  std::size_t index;     ///< Index in parameter::dims: of the first or the last size.
  /// Values of one unit, for example of a head. Shards divide whole units.
  std::int64_t unit = 1;
  /// Number of equal blocks of the dimension, each of which is divided alone: 3 for
  /// queries, keys and values.
  std::int64_t blocks = 1;
};

/// The rows and columns of a parameter that a tensor shard holds; a vector is one row.
struct parameter_cut {
  struct range {
    std::int64_t begin;
    std::int64_t end;
  };

  std::int64_t whole_columns;
  range rows;
  std::vector<range> columns; ///< In the order of the part's columns.
  /// Values of the largest shard's part. Each shard reserves this number of values.
  /// Parameters that all shards hold whole then have the same offsets in every shard's
  /// bucket.
  std::int64_t reserved_values;
};

/// A tensor of parameters; name and orientation are as in the weight file.
struct parameter {
  std::string name;
  std::vector<std::int64_t> dims;
  beginning begins;
  double scale = 0;        ///< Standard deviation, or half the width of the range.
  std::int64_t offset = 0; ///< Offset of the first value in the layer's bucket.
  /// The tensor shard's part of the parameter; `dims` are the sizes of the part. Absent
  /// if the shard has the whole parameter.
  std::optional<parameter_cut> cut = {};
  /// Absent if every tensor shard has the whole parameter. A whole network has the
  /// dimensions that its shards would divide.
  std::optional<divided_dimension> divided = {};
  /// Name of another layer's parameter of which this one is a second copy; empty: no
  /// copy. Both copies begin with the same values, and each update keeps the copies
  /// equal.
  std::string tied_to = {};
  /// True if only products read the parameter.
  bool multiplied = false;
  /// Offset of the first value, in 4-byte values, in a bucket that stores `multiplied`
  /// parameters as bf16.
  std::int64_t rounded_offset = 0;

  std::int64_t values() const;

  std::int64_t offset_in(precision matrices) const {
    return matrices == precision::bf16 ? rounded_offset : offset;
  }

  /// The name under which a file stores the values. The initial values depend on this
  /// name.
  const std::string& stored_name() const { return tied_to.empty() ? name : tied_to; }

  /// True if the parameter has two or more dims: a matrix or the filters of a
  /// convolution, and not a bias or the gain of a norm.
  bool is_matrix() const { return dims.size() > 1; }
};

/// Returns a tensor shard's part of a parameter: the shard's share of each block of one
/// dimension. Blocks follow one another in the part. The parameter stays whole if there
/// is one shard.
/// \pre the parameter is whole, and a divided last dimension has as many units as
/// equal shares need
parameter part_of(parameter whole, const divided_dimension& along, tensor_shard shard);

/// Returns a whole parameter as the only part of a division, so that the parameter
/// counts as held by one shard, and not by all.
parameter only_part_of(parameter whole);

/// Calls run(offset in the whole, offset in the part, count) for each run of adjacent
/// values.
void for_each_run(
  const parameter& part,
  const std::function<void(std::int64_t whole_offset, std::int64_t part_offset,
                           std::int64_t count)>& run);

/// Copies a shard's part out of the whole parameter.
void extract_part(const parameter& part, const float* whole, float* to);

/// Copies a shard's part into the whole parameter.
void insert_part(const parameter& part, const float* from, float* whole);

/// Returns the parameters, with `multiplied` set for the parameters with the given
/// indices.
std::vector<parameter> multiplied(std::vector<parameter> parameters,
                                  std::initializer_list<std::size_t> which);

/// Sizes of a bucket, in values of 4 bytes, with matrices of products stored as fp32 or
/// as bf16.
struct bucket_sizes {
  std::int64_t fp32 = 0;
  std::int64_t bf16 = 0;
};

/// Lays parameters out one after another in a bucket, each on a new cache line. Sets
/// the parameters' offsets; returns the bucket's sizes.
bucket_sizes place_in_bucket(std::vector<parameter>& parameters);

/// Copies a bucket of fp32 on the stream, with the matrices of products rounded to
/// bf16. `to` has the layout of `rounded_offset`.
void round_bucket(const std::vector<parameter>& parameters, const float* from,
                  float* to, stream& compute_stream);

/// Copies values [begin, end) of a parameter out of the parameter's bucket, as fp32.
/// Returns the address after the last value in `to`.
float* copy_values(const parameter& p, const weight_bucket<float>& bucket,
                   std::int64_t begin, std::int64_t end, float* to);

/// Writes the parameter's initial values. The values depend on the seed and the
/// parameter's stored name, dims and distribution, and not on the cut into stages.
/// \pre the parameter is whole
template <class Scalar>
void initialise(const parameter& p, std::uint64_t seed, Scalar* values);

/// Addresses of buckets, for readers; valid as long as the buckets.
template <class Buckets>
std::vector<const float*> readable(const Buckets& buckets) {
  std::vector<const float*> result;
  for (const auto& b : buckets)
    result.push_back(b.data());
  return result;
}

/// Addresses of buckets, for writers; valid as long as the buckets.
template <class Buckets>
std::vector<float*> writable(Buckets& buckets) {
  std::vector<float*> result;
  for (auto& b : buckets)
    result.push_back(b.data());
  return result;
}

} // namespace troupe
