// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory.hpp"
#include "kernels/stream.hpp"
#include "models/bucket_share.hpp"
#include "models/optimizer_options.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// What multiplies a gradient of this norm so that it is at most `clip` long: PyTorch's
/// clip_grad_norm_.
double clip_factor(double clip, double norm);

/// The state of an optimizer for shares of some layers' parameters, and its update.
class optimizer {
public:
  /// \param total_samples of the run, for the rate schedule
  optimizer(const optimizer_options& options, const layer_list<float>& layers,
            std::int64_t total_samples, memory_account& account,
            const bucket_shares& shares = {},
            bucket_extent gradients = bucket_extent::whole,
            bucket_extent parameters = bucket_extent::whole);

  /// Goes on where another has ended, whose moments are still to be set.
  /// \param samples,updates that it has covered and made
  void go_on(std::int64_t samples, std::int64_t updates) {
    samples_ = samples;
    updates_ = updates;
  }

  /// A moment of the shares of a bucket, from an array of all of that bucket.
  void set_moment(int moment, std::size_t bucket, const float* from);

  /// Copies a moment of values `begin` to `end` of a bucket.
  /// \throws std::logic_error if it does not have them, or not of one parameter
  void copy_moment(int moment, std::size_t bucket, std::int64_t begin, std::int64_t end,
                   float* to) const;

  /// Moments that it has: as state_size().
  int moments() const { return state_size(options_); }

  /// One update: in the shares, `to` becomes what `from` and the gradient, summed over
  /// `samples` samples, make of it. `to` may be `from`. All have the extents
  /// that the optimizer was made for.
  /// \param factor of clipping
  void update(std::int64_t samples, double factor,
              const std::vector<const float*>& gradients,
              const std::vector<const float*>& from, const std::vector<float*>& to,
              stream& on);

  /// The same of parameters that others update meanwhile, without locks: they are read
  /// and written by relaxed atomics, a few values at a time.
  /// \param first samples that all their updates have covered before this one
  void update_shared(std::int64_t first, std::int64_t samples, double factor,
                     const std::vector<const float*>& gradients,
                     const std::vector<float*>& parameters, stream& on);

  /// Samples that all updates have covered up to its own last one.
  std::int64_t samples() const { return samples_; }

  /// Its own updates, with those it went on from.
  std::int64_t updates() const { return updates_; }

  /// Values of state for each parameter value: 0 to 2.
  static int state_size(const optimizer_options& options);

  /// Values of state for shares of some layers.
  static std::int64_t state_values(const optimizer_options& options,
                                   const layer_list<float>& layers,
                                   const bucket_shares& shares = {});

private:
  /// The same for all parts of an update.
  struct step {
    double rate;
    float scale;
  };
  step next_step(std::int64_t samples, double factor);
  void apply(const step& how, const parameter_part& part, std::int64_t state,
             const float* gradient, const float* from, float* to, std::int64_t n,
             stream& on);

  optimizer_options options_;
  std::vector<parameter_part> parts_;
  bucket_extent gradients_, parameters_;
  std::int64_t total_samples_;
  std::int64_t samples_ = 0;
  std::int64_t updates_ = 0;
  tensor_memory moments_[2]; // part behind part
};

} // namespace troupe
