// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/bf16.hpp"
#include "kernels/stored_matrix.hpp"

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// Arrays for kernels of a GPU: of a real one, or of the fibres that simulate one,
/// where each access is watched. Tests are written once for both.
namespace gpu {

enum class use : std::uint8_t { read, written, updated };

/// Memory that kernels reach. Memory that is only written holds nothing at first.
class memory {
public:
  /// \param value bytes of one value
  memory(std::string name, const void* initial, std::int64_t bytes, std::int64_t value,
         use what);
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory();

  void* data() const { return data_; }
  std::vector<unsigned char> bytes() const;

private:
  void* data_ = nullptr;
  std::int64_t bytes_;
};

template <class Value>
class array {
public:
  array(const std::string& name, const std::vector<Value>& values, use what = use::read)
    : memory_(name, values.data(), bytes_of(std::ssize(values)), sizeof(Value), what),
      size_(values.size()) {
    // nop
  }

  array(const std::string& name, std::int64_t values)
    : memory_(name, nullptr, bytes_of(values), sizeof(Value), use::written),
      size_(static_cast<std::size_t>(values)) {
    // nop
  }

  Value* data() const { return static_cast<Value*>(memory_.data()); }

  std::vector<Value> values() const {
    const auto all = memory_.bytes();
    std::vector<Value> result(size_);
    if (size_ > 0)
      std::memcpy(result.data(), all.data(), size_ * sizeof(Value));
    return result;
  }

private:
  static std::int64_t bytes_of(std::int64_t values) {
    return values * static_cast<std::int64_t>(sizeof(Value));
  }

  memory memory_;
  std::size_t size_;
};

/// A matrix of fp32 or of bf16, with a gap of NaNs behind each row.
class stored_array {
public:
  struct size {
    std::int64_t rows, columns;
    std::int64_t gap = 0;
  };

  stored_array(const std::string& name, const std::vector<float>& values, size dims,
               troupe::precision stored, use what = use::read);
  stored_array(const std::string& name, size dims, troupe::precision stored);

  troupe::stored_matrix<const float> in() const { return out(); }
  troupe::stored_matrix<float> out() const;

  /// Values without gaps, as fp32. \throws std::logic_error if a value was written to a
  /// gap
  std::vector<float> values() const;

private:
  std::int64_t stride() const { return dims_.columns + dims_.gap; }

  size dims_;
  bool is_bf16_;
  std::vector<unsigned char> before_; // with gaps
  std::unique_ptr<memory> memory_;
};

/// The values that are read after storing.
std::vector<float> rounded(std::vector<float> values, troupe::precision stored);

/// Equality bit by bit, also of NaNs.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

/// Waits for all launched kernels. \throws the error of a kernel
void wait();

/// The reason why kernels cannot run here; empty: kernels can.
std::string absent();

/// Runs a kernel's test several times, in each order of threads that can be chosen, or
/// twice where none can. \param run returns all results of the kernels \return the
/// first run's results \throws std::logic_error if bits differ
std::vector<std::vector<float>>
in_every_order(const std::function<std::vector<std::vector<float>>()>& run);

} // namespace gpu
