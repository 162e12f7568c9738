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
#include <vector>

namespace troupe {

/// One of `count` tensor-parallel shards of a network.
struct tensor_shard {
  int index = 0;
  int count = 1;
  /// True if the shard also has only a part of the positions of every sequence, where
  /// all shards would otherwise compute the same. Rows are then ordered by position,
  /// (T, B).
  bool by_sequence = false;

  /// The shard's part of `n` items; parts differ by at most one item.
  std::int64_t first(std::int64_t n) const { return n * index / count; }
  std::int64_t last(std::int64_t n) const { return n * (index + 1) / count; }
  std::int64_t part(std::int64_t n) const { return last(n) - first(n); }
};

/// The rows and columns of a parameter that a tensor shard holds; a vector is one row.
struct parameter_cut {
  struct range {
    std::int64_t begin;
    std::int64_t end;
  };

  std::int64_t whole_columns;
  range rows;
  std::vector<range> columns; ///< One after another.
  /// Values of the largest shard's part. All shards reserve as many values. Parameters
  /// that all shards hold whole then have the same offsets in every shard's bucket.
  std::int64_t reserved_values;
};

/// A tensor of parameters; name and orientation are as in the weight file.
struct parameter {
  std::string name;
  std::vector<std::int64_t> dims;
  beginning begins;
  double scale = 0;        ///< Standard deviation, or half the width of the range.
  std::int64_t offset = 0; ///< Offset of the first value in the layer's bucket.
  /// The tensor shard's part of the parameter, whose sizes `dims` are; absent if the
  /// shard has the whole parameter.
  std::optional<parameter_cut> cut = {};
  /// Name of another layer's parameter of which this one is a second copy; empty: no
  /// copy. Both copies always have the same values.
  std::string tied_to = {};
  /// True if only products read the parameter.
  bool multiplied = false;
  /// Offset of the first value in a bucket that stores such parameters as bf16.
  std::int64_t rounded_offset = 0;

  std::int64_t values() const;

  std::int64_t offset_in(precision matrices) const {
    return matrices == precision::bf16 ? rounded_offset : offset;
  }

  /// The name under which a file stores the values. The initial values depend on this
  /// name.
  const std::string& stored_name() const { return tied_to.empty() ? name : tied_to; }

  /// True if the parameter is a matrix, not a bias or the gain of a norm.
  bool is_matrix() const { return dims.size() > 1; }
};

/// A tensor shard's part of a parameter: some columns, as many for each shard, or the
/// shard's share of the rows. The columns follow one another in the part. \pre the
/// parameter is whole
parameter columns_of(parameter whole, std::vector<parameter_cut::range> columns);
parameter rows_of(parameter whole, tensor_shard shard);

/// Calls run(offset in the whole, offset in the part, count) for each run of adjacent
/// values.
void for_each_run(
  const parameter& part,
  const std::function<void(std::int64_t whole_offset, std::int64_t part_offset,
                           std::int64_t count)>& run);

/// Copies a shard's part out of the whole parameter, or back into the whole parameter.
void extract_part(const parameter& part, const float* whole, float* to);
void insert_part(const parameter& part, const float* from, float* whole);

/// The same parameters, where only products read the parameters with the given indices.
std::vector<parameter> multiplied(std::vector<parameter> parameters,
                                  std::initializer_list<std::size_t> which);

/// Values of a bucket, by how the bucket stores the matrices of products.
struct bucket_sizes {
  std::int64_t fp32 = 0;
  std::int64_t bf16 = 0;
};

/// Lays parameters out one after another in a bucket, each on a new cache line. Sets
/// the parameters' offsets; returns the bucket's sizes.
bucket_sizes place_in_bucket(std::vector<parameter>& parameters);

/// Copies a bucket, with the matrices of products rounded to bf16.
void round_bucket(const std::vector<parameter>& parameters, const float* from,
                  float* to, stream& compute_stream);

/// Copies values [begin, end) of a parameter out of the parameter's bucket, as fp32.
/// Returns the address after the last value in `to`.
float* copy_values(const parameter& p, const weight_bucket<float>& bucket,
                   std::int64_t begin, std::int64_t end, float* to);

/// Writes the parameter's initial values. The values depend on seed, stored name and
/// dims alone, and so not on how the network is cut.
template <class Scalar>
void initialise(const parameter& p, std::uint64_t seed, Scalar* values);

/// Addresses of buckets, for readers.
template <class Buckets>
std::vector<const float*> readable(const Buckets& buckets) {
  std::vector<const float*> result;
  for (const auto& b : buckets)
    result.push_back(b.data());
  return result;
}

/// Addresses of buckets, for writers.
template <class Buckets>
std::vector<float*> writable(Buckets& buckets) {
  std::vector<float*> result;
  for (auto& b : buckets)
    result.push_back(b.data());
  return result;
}

} // namespace troupe
