// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/array_shelf.hpp"
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

/// Values (Scalar) that a layer needs for a microbatch. Inputs and outputs are not in
/// it.
struct layer_sizes {
  std::int64_t saved = 0;   ///< Kept from the forward to the end of the backward.
  std::int64_t kept = 0;    ///< Kept from the input gradient to the weight gradient.
  std::int64_t scratch = 0; ///< During any one pass.
};

/// One microbatch on its way through one layer. A pass uses the fields it needs. What
/// goes from layer to layer is of Scalar or bf16, as the layers say.
template <class Scalar>
struct frame {
  std::int64_t samples = 0;
  std::int64_t first = -1; ///< Of the samples, counted over the run; -1: not of it.
  const std::int32_t* tokens =
    nullptr;               ///< Input of the first layer of a language model.
  const void* x = nullptr; ///< Input of any other layer.
  void* y = nullptr;       ///< Output of the forward.
  Scalar* saved = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr; ///< Null in the first layer: nobody needs it.
  Scalar* kept = nullptr;
  weight_bucket<Scalar> parameters; ///< The layer's.
  Scalar* gradients = nullptr;      ///< Laid out like the bucket.
  Scalar beta = 0;                  ///< 0 sets the gradients, 1 adds to what they hold.
  Scalar* scratch = nullptr;
  stream* on = nullptr;
  /// Of a forward that goes on with one sequence: its tokens before these, and what the
  /// layer keeps of them, cached_values(). It puts these tokens behind them. Null:
  /// sequences are whole.
  std::int64_t past = 0;
  Scalar* cache = nullptr;
};

/// What a layer needs from others before it can go on: what all its tensor shards do
/// together, or what experts make of its rows.
template <class Scalar>
struct shard_collective {
  enum class kind : std::uint8_t {
    none,
    sum,     ///< The array becomes the sum of all shards' arrays.
    gather,  ///< Shard t's chunk of the array, of as many equal ones, goes to all.
    scatter, ///< Shard t's chunk becomes that of the sum, and the others anything.
    /// The array's rows go to experts, and what these make of them takes their place.
    /// No array: the experts have what they need of these rows, and give nothing back.
    experts,
  };

  kind what = kind::none;
  Scalar* array = nullptr;
  /// With experts the most that there may be. Of bf16 two count as one, as nobody looks
  /// into those on their way: what is summed is of Scalar.
  std::int64_t values = 0;
  // With experts, known when they are needed:
  const std::int32_t* counts = nullptr; ///< Rows for each.
  std::int64_t choices = 0; ///< Rows that the gate chose, those dropped among them.
};

enum class layer_pass : std::uint8_t { forward, input_gradient, weight_gradient };

/// A piece of a network that stages never cut: its parameters, and its three passes.
/// Has no state, so stages and replicas share it. A backward is input_gradient, then
/// weight_gradient on the same frame.
///
/// A tensor shard of a layer is a layer too. Its forward and its input gradient have
/// pieces(), and `after` each the shards may have something to do together; a layer
/// that is whole has one piece. After the weight gradient that completes an update's
/// they may have to sum what each has of its rows alone.
template <class Scalar>
class layer {
public:
  /// What goes into a layer or comes out of it.
  struct edge {
    std::int64_t values; ///< A sample.
    precision stored = precision::fp32;
  };

  layer(std::vector<parameter> parameters, edge input, edge output)
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

  /// \pre there is one
  const parameter& parameter_called(const std::string& name) const {
    return *std::ranges::find(parameters_, name, &parameter::name);
  }

  /// Values of the bucket that holds the parameters.
  std::int64_t bucket(precision matrices = precision::fp32) const {
    return matrices == precision::bf16 ? bucket_.bf16 : bucket_.fp32;
  }

  std::int64_t input() const { return input_.values; }
  std::int64_t output() const { return output_.values; }

  /// Values (Scalar) of the memory that they take.
  std::int64_t input_room(std::int64_t samples) const {
    return room_of<Scalar>(samples * input_.values, input_.stored);
  }
  std::int64_t output_room(std::int64_t samples) const {
    return room_of<Scalar>(samples * output_.values, output_.stored);
  }

  /// Values of the room in which its matrices of products stay packed, and how many
  /// such copies there are: two of each, for it is also read transposed.
  std::int64_t packed_values() const {
    return packed_before(parameters_.size()).values;
  }
  std::size_t packed_copies() const { return packed_before(parameters_.size()).copies; }

  virtual layer_sizes sizes(std::int64_t samples, int threads) const = 0;

  /// Values that a sequence's cache takes in this layer. \pre fp32 is stored
  virtual std::int64_t cached_values() const { return 0; }

  /// Floating-point operations of a forward a sample. Each of the two gradients takes
  /// about as many.
  virtual double operations() const = 0;

  virtual int pieces() const { return 1; }

  /// The piece that takes the time: those before it and behind it do little.
  int middle() const { return (pieces() - 1) / 2; }

  virtual shard_collective<Scalar> after(layer_pass, int, const frame<Scalar>&) const {
    return {};
  }

  /// Whether actors of their own are its experts. With the rows of a backward they make
  /// both gradients, with those of an input gradient that alone; then a weight gradient
  /// asks them for theirs.
  virtual bool has_experts_elsewhere() const { return false; }
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

  /// A matrix as right side of products, as it is and transposed.
  struct factor {
    kept_right_side<Scalar> as_is, transposed;

    operator kept_right_side<Scalar>() const { return as_is; }
    kept_right_side<Scalar> t() const { return transposed; }
  };

  /// \pre the parameter is multiplied
  factor factor_of(const frame<Scalar>& f, std::size_t i) const {
    const auto& all = f.parameters;
    const auto& dims = parameters_[i].dims;
    factor result;
    result.as_is.b =
      stored_at<const Scalar>(weight(f, i), dims[0], dims[1], all.matrices);
    const auto to = packed_of(all.packed, i);
    const auto transposed_to = to.behind(kept_room(dims[0], dims[1]), 1);
    result.as_is = {result.as_is.b, all.version, to.room, to.holds};
    result.transposed = {result.as_is.b.t(), all.version, transposed_to.room,
                         transposed_to.holds};
    return result;
  }

  /// The parameters from the i-th on, as the bucket of a layer within this one.
  weight_bucket<Scalar> bucket_from(const frame<Scalar>& f, std::size_t i) const {
    return {weight(f, i), f.parameters.matrices, f.parameters.version,
            packed_of(f.parameters.packed, i)};
  }

  Scalar* gradient(const frame<Scalar>& f, std::size_t i) const {
    return f.gradients + parameters_[i].offset;
  }

  // The ends of a frame, in so many rows.
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
  static std::int64_t row(const edge& which, const frame<Scalar>& f,
                          std::int64_t rows) {
    return rows == 0 ? 0 : which.values * f.samples / rows;
  }

  packed_weights<Scalar> packed_of(const packed_weights<Scalar>& all,
                                   std::size_t i) const {
    const auto before = packed_before(i);
    return all.behind(before.values, before.copies);
  }

  struct packed_sizes {
    std::int64_t values = 0;
    std::size_t copies = 0;
  };

  /// Of the parameters before the i-th.
  packed_sizes packed_before(std::size_t i) const {
    packed_sizes result;
    for (const auto& p : std::span{parameters_}.first(i))
      if (p.multiplied) {
        result.values +=
          kept_room(p.dims[0], p.dims[1]) + kept_room(p.dims[1], p.dims[0]);
        result.copies += 2;
      }
    return result;
  }

  std::vector<parameter> parameters_;
  bucket_sizes bucket_;
  edge input_;
  edge output_;
};

/// Where a layer stands among others: what goes into the first and comes out of the
/// last is fp32.
struct place_in_line {
  precision stored = precision::fp32; ///< What layers hand each other and keep.
  bool first = false;
  bool last = false;

  precision reads() const { return first ? precision::fp32 : stored; }
  precision writes() const { return last ? precision::fp32 : stored; }
};

template <class Scalar>
using layer_list = std::vector<std::shared_ptr<const layer<Scalar>>>;

/// Copies what a tensor shard or an expert has of a layer's bucket out of the whole
/// bucket, or back.
inline void take_shard(const layer<float>& whole, const layer<float>& shard,
                       const float* from, float* to) {
  for (const auto& part : shard.parameters())
    take_part(part, from + whole.parameter_called(part.name).offset, to + part.offset);
}

inline void put_shard(const layer<float>& whole, const layer<float>& shard,
                      const float* from, float* to) {
  for (const auto& part : shard.parameters())
    put_part(part, from + part.offset, to + whole.parameter_called(part.name).offset);
}

} // namespace troupe
