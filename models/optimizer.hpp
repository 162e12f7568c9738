// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The update of parameters by an optimizer of the catalog, with the state of shares of
// buckets.

#include "kernels/memory.hpp"
#include "kernels/stream.hpp"
#include "models/bucket_share.hpp"
#include "models/optimizer_options.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// The factor that scales a gradient of this norm to a norm of at most `clip`:
/// PyTorch's clip_grad_norm_. A `clip` of 0: no clipping, factor 1. Never above 1.
double clip_factor(double clip, double norm);

/// The state of an optimizer for shares of some layers' parameters, and the update of
/// the parameters. One thread at a time may use an optimizer.
class optimizer {
public:
  /// Allocates the state arrays, with zeros.
  /// \param total_samples of the training, for the rate schedule
  /// \param account outlives this object
  /// \param gradients extent of the arrays of gradients
  /// \param parameters extent of the arrays of parameters
  optimizer(const optimizer_options& options, const layer_list<float>& layers,
            std::int64_t total_samples, memory_account& account,
            const bucket_shares& shares = {},
            bucket_extent gradients = bucket_extent::whole,
            bucket_extent parameters = bucket_extent::whole);

  /// Continues the updates of an earlier optimizer; set_state() sets the state.
  /// \param samples total that earlier updates have covered
  /// \param updates number of earlier updates
  void resume(std::int64_t samples, std::int64_t updates) {
    samples_ = samples;
    updates_ = updates;
  }

  /// Sets state array `array` (index from 0) of this optimizer's share of a bucket.
  /// \param from an array of the whole bucket
  void set_state(int array, std::size_t bucket, const float* from);

  /// Copies state array `array` of values [begin, end) of a bucket.
  /// \throws std::logic_error if this optimizer does not hold the values, or the values
  /// are not of one parameter
  void copy_state(int array, std::size_t bucket, std::int64_t begin, std::int64_t end,
                  float* to) const;

  /// Number of state arrays: state_size().
  int state_arrays() const { return state_size(options_); }

  /// Makes one update: writes the updated values of `from` to `to`, in the shares of
  /// this optimizer. The gradients are sums over `samples` samples. `to` may be `from`.
  /// On a GPU the update is launched on the stream, and the arrays stay valid until the
  /// work has ended. All arrays have the extents that were given to the constructor.
  /// \param factor of clipping, as from clip_factor()
  void update(std::int64_t samples, double factor,
              const std::vector<const float*>& gradients,
              const std::vector<const float*>& from, const std::vector<float*>& to,
              stream& compute_stream);

  /// Makes one update of parameters that other threads update at the same time, without
  /// locks. Parameters are read and written by relaxed atomics, a few values at a time.
  /// A write may overwrite an update that another thread made since the read. The CPU
  /// computes, even if the stream is a GPU's.
  /// \param first samples that all updates of the parameters have covered before this
  /// update
  void update_shared(std::int64_t first, std::int64_t samples, double factor,
                     const std::vector<const float*>& gradients,
                     const std::vector<float*>& parameters, stream& compute_stream);

  /// The learning rate of the next update, if that update covers `samples` samples.
  double next_rate(std::int64_t samples) const;

  /// Number of samples that all updates have covered up to this optimizer's last
  /// update, including resume() and updates by other optimizers (update_shared).
  std::int64_t samples() const { return samples_; }

  /// Number of updates of this optimizer, including the updates of the optimizer that
  /// was continued.
  std::int64_t updates() const { return updates_; }

  /// Values of state for each parameter value, which is the number of state arrays.
  static int state_size(const optimizer_options& options);

  /// Values of state for shares of some layers, with each part of a parameter padded to
  /// cache lines.
  static std::int64_t state_values(const optimizer_options& options,
                                   const layer_list<float>& layers,
                                   const bucket_shares& shares = {});

private:
  struct step;
  step next_step(std::int64_t samples, double factor);
  void apply(const step& update_step, const parameter_part& part, std::int64_t state,
             const float* gradient, const float* from, float* to, std::int64_t n,
             stream& compute_stream);

  optimizer_options options_;
  std::vector<parameter_part> parts_;
  bucket_extent gradients_, parameters_;
  std::int64_t total_samples_;
  std::int64_t samples_ = 0;
  std::int64_t updates_ = 0;
  std::vector<tensor_memory> state_; // each: one part after another
};

} // namespace troupe
