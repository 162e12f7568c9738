// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Layers: the parts of a network that stages never cut, with the passes and buffers of
// one microbatch.

#include "kernels/array_layout.hpp"
#include "kernels/matmul.hpp"
#include "kernels/stream.hpp"
#include "models/parameter.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Values (Scalar) that a layer needs for a microbatch, without inputs and outputs.
struct layer_sizes {
  std::int64_t saved = 0;   ///< Kept from the forward to the end of the backward.
  std::int64_t kept = 0;    ///< Kept from the input gradient to the weight gradient.
  std::int64_t scratch = 0; ///< During any one pass.
};

/// One microbatch on the way through one layer. Each pass uses some of the fields; the
/// caller owns all arrays. Activations between layers are of Scalar or bf16, as the
/// layers say.
template <class Scalar>
struct frame {
  std::int64_t samples = 0;
  std::int64_t first = -1; ///< Index of the first sample in the run; -1: of no run.
  const std::int32_t* tokens =
    nullptr;               ///< Input of the first layer of a language model.
  const void* x = nullptr; ///< Input of a layer that reads no tokens.
  void* y = nullptr;       ///< Output of the forward.
  Scalar* saved = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr; ///< Null in the first layer, which needs no input gradient.
  Scalar* kept = nullptr;
  weight_bucket<Scalar> parameters; ///< Parameters of the layer.
  Scalar* gradients = nullptr;      ///< Laid out like a bucket of fp32.
  Scalar beta = 0; ///< 0 sets the gradients, 1 adds to the values there.
  Scalar* scratch = nullptr;
  stream* compute_stream = nullptr;
  /// For a forward that continues one sequence: the number of earlier tokens, and the
  /// layer's cache of cached_values() values for earlier tokens. The forward appends
  /// this frame's tokens to the cache. A null cache: sequences are whole.
  std::int64_t past = 0;
  Scalar* cache = nullptr;
};

/// The communication that a layer needs before the next piece: a collective of all
/// tensor shards, or the experts' computation on the layer's rows.
template <class Scalar>
struct shard_collective {
  enum class kind : std::uint8_t {
    none,
    sum, ///< The array becomes the sum of all shards' arrays.
    /// The array has one chunk per shard, all of equal size. Shard t's t-th chunk goes
    /// to all shards.
    gather,
    /// Shard t's chunk becomes the sum of all shards' t-th chunks; the other chunks are
    /// undefined.
    scatter,
    /// The experts compute with the array's rows, and their results replace the rows. A
    /// null array requests the weight gradient of experts, which already have the rows
    /// and return none.
    experts,
  };

  kind operation = kind::none;
  Scalar* array = nullptr;
  /// Values of the array; with experts the largest possible number. Two values of bf16
  /// count as one: such values are only copied, and sums are always of Scalar.
  std::int64_t values = 0;
  // Only with experts. The array `counts` is filled when the rows are ready to be sent:
  const std::int32_t* counts = nullptr; ///< Rows for each expert.
  std::int64_t choices = 0; ///< Rows that the gate chose, dropped rows included.
};

enum class layer_pass : std::uint8_t { forward, input_gradient, weight_gradient };

/// A part of a network that stages never cut: parameters and three passes. A layer has
/// no state, so stages and replicas share one object. A backward is input_gradient,
/// then weight_gradient on the same frame.
///
/// A tensor shard of a layer is a layer too. The forward and the input gradient of a
/// shard have pieces(). After each piece all shards may have a collective; a layer that
/// is whole, with its experts inside, has one piece. With sequence parallelism, each
/// shard has the gradients of a norm from the shard's own rows alone. The shards sum
/// these gradients once per update, after the last weight gradient.
template <class Scalar>
class layer {
public:
  /// The format of a layer's input or output.
  struct array_format {
    std::int64_t values; ///< Number of values of each sample.
    precision stored = precision::fp32;
  };

  layer(std::vector<parameter> parameters, array_format input, array_format output)
    : parameters_(std::move(parameters)),
      bucket_(place_in_bucket(parameters_)),
      input_(input),
      output_(output) {
    // nop
  }

  virtual ~layer() = default;
  layer(const layer&) = delete;
  layer& operator=(const layer&) = delete;

  const std::vector<parameter>& parameters() const { return parameters_; }

  /// \pre the layer has a parameter of this name
  const parameter& parameter_called(const std::string& name) const {
    return *std::ranges::find(parameters_, name, &parameter::name);
  }

  /// Values (Scalar) of memory of the bucket that holds the parameters. Two values of
  /// bf16 count as one.
  /// \param matrices how the bucket stores matrices of products
  std::int64_t bucket(precision matrices = precision::fp32) const {
    return matrices == precision::bf16 ? bucket_.bf16 : bucket_.fp32;
  }

  std::int64_t input() const { return input_.values; }
  std::int64_t output() const { return output_.values; }

  /// The precision in which the last layer of a network reads the gradient of its
  /// output from the loss. The output itself is in the type Scalar.
  virtual precision loss_gradient() const { return precision::fp32; }

  /// Values (Scalar) of memory that the inputs and outputs of `samples` samples take.
  std::int64_t input_size(std::int64_t samples) const {
    return stored_size<Scalar>(samples * input_.values, input_.stored);
  }
  std::int64_t output_size(std::int64_t samples) const {
    return stored_size<Scalar>(samples * output_.values, output_.stored);
  }

  /// packed_values(): values of the memory in which matrices of products stay packed.
  /// packed_copies(): number of packed copies. Each matrix has two copies, as products
  /// also read the transposed matrix.
  std::int64_t packed_values() const {
    return packed_before(parameters_.size()).values;
  }
  std::size_t packed_copies() const { return packed_before(parameters_.size()).copies; }

  /// Sizes of the buffers for a microbatch of `samples` samples.
  /// \param threads of the stream that computes the passes
  virtual layer_sizes sizes(std::int64_t samples, int threads) const = 0;

  /// Values (Scalar) that one sequence's cache of earlier tokens takes in this layer; 0
  /// if the layer needs no cache.
  /// \pre the layer stores activations as fp32
  virtual std::int64_t cached_values() const { return 0; }

  /// Floating-point operations of a forward, per sample, without those of remote
  /// experts. Each of the two gradients takes about as many operations as the forward.
  virtual double operations() const = 0;

  /// Number of pieces of the forward, and of the input gradient; at least 1.
  virtual int pieces() const { return 1; }

  /// Index, from 0, of the piece that takes most of the time. The pieces before and
  /// after compute little.
  int middle() const { return (pieces() - 1) / 2; }

  virtual shard_collective<Scalar> collective_after(layer_pass, int,
                                                    const frame<Scalar>&) const {
    return {};
  }

  /// True if the layer's experts are actors of their own. From the rows of a backward
  /// the experts compute the gradients of inputs and of parameters. From the rows of an
  /// input gradient the experts compute only the gradients of inputs. A later weight
  /// gradient requests the gradients of parameters.
  virtual bool has_remote_experts() const { return false; }

  /// Returns the request for the weight gradient of experts that are actors. Only for a
  /// weight gradient whose input gradient was a separate action.
  virtual shard_collective<Scalar>
  weight_gradient_of_experts(const frame<Scalar>&) const {
    return {};
  }

  virtual void forward(const frame<Scalar>& f, int piece = 0) const = 0;
  virtual void input_gradient(const frame<Scalar>& f, int piece = 0) const = 0;
  virtual void weight_gradient(const frame<Scalar>& f) const = 0;

protected:
  const Scalar* weight(const frame<Scalar>& f, std::size_t i) const {
    return f.parameters.data + parameters_[i].offset_in(f.parameters.matrices);
  }

  /// A matrix as the right side of products: as stored, and transposed.
  struct factor {
    kept_right_side<Scalar> as_is, transposed;

    operator kept_right_side<Scalar>() const { return as_is; }
    kept_right_side<Scalar> t() const { return transposed; }
  };

  /// \pre the parameter is multiplied
  factor factor_of(const frame<Scalar>& f, std::size_t i) const {
    const auto& weights = f.parameters;
    const auto& dims = parameters_[i].dims;
    factor result;
    result.as_is.b =
      stored_at<const Scalar>(weight(f, i), dims[0], dims[1], weights.matrices);
    const auto to = packed_of(weights.packed, i);
    const auto transposed_to = to.offset_by(kept_size(dims[0], dims[1]), 1);
    result.as_is = {result.as_is.b, weights.version, to.data, to.holds};
    result.transposed = {result.as_is.b.t(), weights.version, transposed_to.data,
                         transposed_to.holds};
    return result;
  }

  /// The parameters from the i-th on, as the bucket of a layer inside this one.
  weight_bucket<Scalar> bucket_from(const frame<Scalar>& f, std::size_t i) const {
    return {weight(f, i), f.parameters.matrices, f.parameters.version,
            packed_of(f.parameters.packed, i)};
  }

  Scalar* gradient(const frame<Scalar>& f, std::size_t i) const {
    return f.gradients + parameters_[i].offset;
  }

  // Inputs, outputs and gradients of a frame, as matrices of `rows` rows.
  stored_matrix<const Scalar> x(const frame<Scalar>& f, std::int64_t rows) const {
    return stored_at<const Scalar>(f.x, rows, row(input_, f, rows), input_.stored);
  }
  stored_matrix<Scalar> dx(const frame<Scalar>& f, std::int64_t rows) const {
    return stored_at<Scalar>(f.dx, rows, row(input_, f, rows), input_.stored);
  }
  stored_matrix<Scalar> y(const frame<Scalar>& f, std::int64_t rows) const {
    return stored_at<Scalar>(f.y, rows, row(output_, f, rows), output_.stored);
  }
  stored_matrix<const Scalar> dy(const frame<Scalar>& f, std::int64_t rows) const {
    return stored_at<const Scalar>(f.dy, rows, row(output_, f, rows), output_.stored);
  }

private:
  static std::int64_t row(const array_format& which, const frame<Scalar>& f,
                          std::int64_t rows) {
    return rows == 0 ? 0 : which.values * f.samples / rows;
  }

  packed_weights<Scalar> packed_of(const packed_weights<Scalar>& packed,
                                   std::size_t i) const {
    const auto preceding = packed_before(i);
    return packed.offset_by(preceding.values, preceding.copies);
  }

  struct packed_sizes {
    std::int64_t values = 0;
    std::size_t copies = 0;
  };

  /// Packed values and copies of the parameters before the i-th.
  packed_sizes packed_before(std::size_t i) const {
    packed_sizes result;
    for (const auto& p : std::span{parameters_}.first(i))
      if (p.multiplied) {
        result.values +=
          kept_size(p.dims[0], p.dims[1]) + kept_size(p.dims[1], p.dims[0]);
        result.copies += 2;
      }
    return result;
  }

  std::vector<parameter> parameters_;
  bucket_sizes bucket_;
  array_format input_;
  array_format output_;
};

/// The position of a layer in a network of images. The first layer's input and the last
/// layer's output are fp32.
struct layer_position {
  precision stored = precision::fp32; ///< Precision of activations and kept values.
  bool first = false;
  bool last = false;

  precision reads() const { return first ? precision::fp32 : stored; }
  precision writes() const { return last ? precision::fp32 : stored; }
};

template <class Scalar>
using layer_list = std::vector<std::shared_ptr<const layer<Scalar>>>;

/// Copies a tensor shard's or an expert's part of a layer's bucket out of the whole
/// bucket.
inline void extract_shard(const layer<float>& whole, const layer<float>& shard,
                          const float* from, float* to) {
  for (const auto& part : shard.parameters())
    extract_part(part, from + whole.parameter_called(part.name).offset,
                 to + part.offset);
}

/// Copies a tensor shard's or an expert's part of a layer's bucket into the whole
/// bucket.
inline void insert_shard(const layer<float>& whole, const layer<float>& shard,
                         const float* from, float* to) {
  for (const auto& part : shard.parameters())
    insert_part(part, from + part.offset,
                to + whole.parameter_called(part.name).offset);
}

} // namespace troupe
