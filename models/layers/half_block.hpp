// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layers/gpt.hpp"

#include <string_view>
#include <vector>

namespace troupe {

/// Half a block: y = x + down(inner(up(norm(x)))). `up` and `down` are linear layers; a
/// derived class defines `inner`. B samples, T tokens each, R = B T rows, width C. U
/// columns come out of `up`, and N go into `down`; a shard has some of the columns.
///
///   whole            norm          up  inner  down           + bias + x
///   tensor shard     norm          up  inner  down  sum      + bias + x
///   by sequence      norm  gather  up  inner  down  scatter  + bias + x
///                    local rows    all rows                  local rows
///
/// The backward is the mirror image. By sequence only a shard's local rows of the
/// norm's output are kept; the backward gathers all rows again, together with dy.
template <class Scalar>
class half_block : public layer<Scalar> {
public:
  layer_sizes sizes(std::int64_t samples, int threads) const override;
  int pieces() const override;
  shard_collective<Scalar> collective_after(layer_pass pass, int piece,
                                            const frame<Scalar>& f) const override;
  void forward(const frame<Scalar>& f, int piece) const override;
  void input_gradient(const frame<Scalar>& f, int piece) const override;
  void weight_gradient(const frame<Scalar>& f) const override;

protected:
  /// The order of the parameters.
  enum : std::size_t { ln_gain, ln_bias, up, up_bias, down, down_bias };

  /// The saved arrays between the two linear layers.
  struct inner_arrays {
    stored_matrix<Scalar> wide;   ///< Saved form of up's output (R, U).
    stored_matrix<Scalar> narrow; ///< Input of down (R, N).
    Scalar* extra;                ///< extra() more values that the half keeps.
    Scalar* space;                ///< space() values; only during a pass.
  };

  half_block(const gpt_shape& dims, std::vector<parameter> parameters);

  /// The tensor shard's parts of a half's parameters: of the columns of `up`, and of
  /// the rows of `down`.
  /// \param inner name of the divided dimension between `up` and `down`
  /// \param unit values of one unit of the dimension
  /// \param blocks number of blocks of columns of `up`, each divided alone
  static std::vector<parameter> divided(std::vector<parameter> whole,
                                        std::string_view inner, std::int64_t unit,
                                        std::int64_t blocks, tensor_shard shard);

  const gpt_shape& dims() const { return dims_; }

  typename layer<Scalar>::factor up_weight(const frame<Scalar>& f) const {
    return this->factor_of(f, up);
  }

  typename layer<Scalar>::factor down_weight(const frame<Scalar>& f) const {
    return this->factor_of(f, down);
  }

private:
  virtual std::int64_t extra(std::int64_t) const { return 0; }
  virtual std::int64_t space(std::int64_t, int) const { return 0; }

  /// Computes `wide` from all rows of the norm's output, and `narrow` from `wide`.
  virtual void inner_forward(const frame<Scalar>& f, stored_matrix<const Scalar> normed,
                             const inner_arrays& to) const = 0;

  /// Computes the gradient of `wide` from dy.
  virtual void inner_backward(const frame<Scalar>& f, stored_matrix<const Scalar> dy,
                              const inner_arrays& inner,
                              stored_matrix<Scalar> dwide) const = 0;

  struct frame_arrays;
  frame_arrays arrays_of(const frame<Scalar>& f, int threads) const;
  void up_and_down(const frame<Scalar>& f, const frame_arrays& a) const;
  bool by_sequence() const { return dims_.shard.by_sequence; }

  gpt_shape dims_;
  std::int64_t up_;   // U
  std::int64_t down_; // N
};

} // namespace troupe
