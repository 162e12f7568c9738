// SPDX-License-Identifier: BSD-3-Clause
#include "models/parameter.hpp"

#include "kernels/array_layout.hpp"
#include "kernels/arrays.hpp"
#include "models/random.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace troupe {

std::int64_t parameter::values() const {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies{});
}

parameter only_part_of(parameter whole) {
  const auto columns = whole.dims.back();
  whole.cut = {columns, {0, whole.values() / columns}, {{0, columns}}, whole.values()};
  return whole;
}

parameter part_of(parameter whole, const divided_dimension& along, tensor_shard shard) {
  whole.divided = along;
  if (shard.count == 1)
    return whole;
  auto part = only_part_of(std::move(whole));
  auto& size = part.dims[along.index];
  const auto block = size / along.blocks, units = block / along.unit;
  const auto first = shard.first(units) * along.unit,
             last = shard.last(units) * along.unit,
             most = (units + shard.count - 1) / shard.count * along.unit;
  part.cut->reserved_values = part.values() / size * along.blocks * most;
  if (along.index + 1 == part.dims.size()) {
    part.cut->columns.clear();
    for (std::int64_t k = 0; k < along.blocks; ++k)
      part.cut->columns.push_back({k * block + first, k * block + last});
  } else {
    part.cut->rows = {first, last};
  }
  size = along.blocks * (last - first);
  return part;
}

void for_each_run(
  const parameter& part,
  const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& run) {
  if (!part.cut)
    return run(0, 0, part.values());
  std::int64_t part_offset = 0;
  for (auto row = part.cut->rows.begin; row < part.cut->rows.end; ++row)
    for (const auto& range : part.cut->columns) {
      const auto count = range.end - range.begin;
      run(row * part.cut->whole_columns + range.begin, part_offset, count);
      part_offset += count;
    }
}

void extract_part(const parameter& part, const float* whole, float* to) {
  for_each_run(
    part, [&](std::int64_t whole_offset, std::int64_t part_offset, std::int64_t count) {
      std::copy_n(whole + whole_offset, count, to + part_offset);
    });
}

void insert_part(const parameter& part, const float* from, float* whole) {
  for_each_run(
    part, [&](std::int64_t whole_offset, std::int64_t part_offset, std::int64_t count) {
      std::copy_n(from + part_offset, count, whole + whole_offset);
    });
}

std::vector<parameter> multiplied(std::vector<parameter> parameters,
                                  std::initializer_list<std::size_t> which) {
  for (const auto i : which)
    parameters[i].multiplied = true;
  return parameters;
}

bucket_sizes place_in_bucket(std::vector<parameter>& parameters) {
  bucket_sizes end;
  for (auto& p : parameters) {
    const auto reserved = p.cut ? p.cut->reserved_values : p.values();
    p.offset = end.fp32;
    p.rounded_offset = end.bf16;
    end.fp32 += padded(reserved);
    end.bf16 +=
      padded(p.multiplied ? stored_size<float>(reserved, precision::bf16) : reserved);
  }
  return end;
}

void round_bucket(const std::vector<parameter>& parameters, const float* from,
                  float* to, stream& compute_stream) {
  for (const auto& p : parameters) {
    const auto rows = p.dims.front(), columns = rows == 0 ? 0 : p.values() / rows;
    arrays<float>::copy(
      stored_at<const float>(from + p.offset, rows, columns, precision::fp32),
      stored_at<float>(to + p.rounded_offset, rows, columns,
                       p.multiplied ? precision::bf16 : precision::fp32),
      compute_stream);
  }
}

float* copy_values(const parameter& p, const weight_bucket<float>& bucket,
                   std::int64_t begin, std::int64_t end, float* to) {
  const auto* const values = bucket.data + p.offset_in(bucket.matrices);
  if (p.multiplied && bucket.matrices == precision::bf16)
    widen_row(reinterpret_cast<const bf16*>(values) + begin, end - begin, to);
  else
    std::copy_n(values + begin, end - begin, to);
  return to + (end - begin);
}

template <class Scalar>
void initialise(const parameter& p, std::uint64_t seed, Scalar* values) {
  auto stream = p.stored_name();
  for (const auto dim : p.dims)
    stream += "," + std::to_string(dim);
  const random_stream random{seed, stream};
  const auto n = static_cast<std::uint64_t>(p.values());
  switch (p.begins) {
  case beginning::zeros:
    std::fill_n(values, n, Scalar{0});
    break;
  case beginning::ones:
    std::fill_n(values, n, Scalar{1});
    break;
  case beginning::normal:
    for (std::uint64_t i = 0; i < n; ++i)
      values[i] = static_cast<Scalar>(p.scale * random.normal(i));
    break;
  case beginning::uniform:
    for (std::uint64_t i = 0; i < n; ++i)
      values[i] = static_cast<Scalar>(p.scale * (2 * random.uniform(i) - 1));
    break;
  }
}

template void initialise<float>(const parameter&, std::uint64_t, float*);
template void initialise<double>(const parameter&, std::uint64_t, double*);

} // namespace troupe
