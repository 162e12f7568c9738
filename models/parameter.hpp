// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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
  /// Whether it also has its part of the positions of every sequence, where it would
  /// else compute what all others do. Then rows stand position by position, (T, B).
  bool by_sequence = false;

  /// The shard's part of `n` things, equal up to one.
  std::int64_t first(std::int64_t n) const { return n * index / count; }
  std::int64_t last(std::int64_t n) const { return n * (index + 1) / count; }
  std::int64_t part(std::int64_t n) const { return last(n) - first(n); }
};

/// Which rows and columns of a parameter a tensor shard holds; a vector is one row.
struct parameter_cut {
  struct range {
    std::int64_t begin;
    std::int64_t end;
  };

  std::int64_t whole_columns;
  range rows;
  std::vector<range> columns; ///< One behind another.
  /// Values of the largest shard's part. All shards leave as much room, so that
  /// parameters which all shards hold whole stand at the same places of their buckets.
  std::int64_t room;
};

/// A tensor of parameters: its name and orientation are those of the weight file.
struct parameter {
  std::string name;
  std::vector<std::int64_t> dims;
  beginning begins;
  double scale = 0;        ///< Standard deviation, or half the width of the range.
  std::int64_t offset = 0; ///< Of its first value in its layer's bucket.
  /// Of a tensor shard's part of the parameter, whose sizes `dims` are; absent if the
  /// shard has all of it.
  std::optional<parameter_cut> cut = {};
  /// Name of the parameter of another layer that this one is a second copy of; empty:
  /// it is no copy. Both copies always have the same values.
  std::string tied_to = {};
  /// Whether nothing but products reads it.
  bool multiplied = false;
  /// Of its first value in a bucket that has such parameters as bf16.
  std::int64_t rounded_offset = 0;

  std::int64_t values() const;

  std::int64_t offset_in(precision matrices) const {
    return matrices == precision::bf16 ? rounded_offset : offset;
  }

  /// Name under which a file stores its values, and that the first ones depend on.
  const std::string& stored_name() const { return tied_to.empty() ? name : tied_to; }

  /// Whether it is a matrix, not a bias or the gain of a norm.
  bool is_matrix() const { return dims.size() > 1; }
};

/// A tensor shard's part of a parameter: columns that stand one behind another in it,
/// as many for each shard; or its share of the rows. \pre it is whole
parameter columns_of(parameter whole, std::vector<parameter_cut::range> columns);
parameter rows_of(parameter whole, tensor_shard shard);

/// Calls run(in the whole, in the part, count) for values that stand side by side.
void for_each_run(const parameter& part,
                  const std::function<void(std::int64_t there, std::int64_t here,
                                           std::int64_t count)>& run);

/// Copies a shard's part out of the whole parameter, or back into it.
void take_part(const parameter& part, const float* whole, float* to);
void put_part(const parameter& part, const float* from, float* whole);

/// The same parameters, of which nothing but products reads these.
std::vector<parameter> multiplied(std::vector<parameter> all,
                                  std::initializer_list<std::size_t> which);

/// Values of buckets, by how they store the matrices of products.
struct bucket_sizes {
  std::int64_t fp32 = 0;
  std::int64_t bf16 = 0;
};

/// Places parameters one after another in a bucket, each on a cache line of its own.
bucket_sizes place_in_bucket(std::vector<parameter>& parameters);

/// Writes a bucket again with the matrices of products as bf16.
void round_bucket(const std::vector<parameter>& parameters, const float* from,
                  float* to, stream& on);

/// Copies values [begin, end) of a parameter out of its bucket. Returns what is behind
/// them in `to`.
float* copy_values(const parameter& p, const weight_bucket<float>& bucket,
                   std::int64_t begin, std::int64_t end, float* to);

/// Writes the parameter's first values. They depend on seed, stored name and dims
/// alone, so not on how the network is cut.
template <class Scalar>
void initialise(const parameter& p, std::uint64_t seed, Scalar* values);

/// Where buckets lie, for those who read them.
template <class Buckets>
std::vector<const float*> readable(const Buckets& buckets) {
  std::vector<const float*> result;
  for (const auto& b : buckets)
    result.push_back(b.data());
  return result;
}

/// Where buckets lie, for those who write them.
template <class Buckets>
std::vector<float*> writable(Buckets& buckets) {
  std::vector<float*> result;
  for (auto& b : buckets)
    result.push_back(b.data());
  return result;
}

} // namespace troupe
