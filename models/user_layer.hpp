// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The interface for layers and networks that users bring.

#include "models/beginning.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

template <class Scalar>
class layer;

/// A layer of a network that a user puts together: a user's own layer (`user_layer`),
/// or a builtin layer.
class network_layer {
public:
  virtual ~network_layer() = default;

  /// Returns the layer in the framework's form.
  /// \param self this layer; the result shares ownership
  virtual std::shared_ptr<const layer<float>>
  as_layer(const std::shared_ptr<const network_layer>& self) const = 0;
};

/// A tensor of parameters. The members `begins` and `scale` give the distribution of
/// the initial values. The random numbers depend only on the run's seed, the name and
/// the dims.
struct layer_tensor {
  std::string name; ///< Unique in the network; also the name in weight files.
  std::vector<std::int64_t> dims;
  beginning begins = beginning::zeros;
  double scale = 0; ///< Standard deviation, or half the width of the range.
};

/// One microbatch on the way through a user's layer. All values are fp32, and arrays
/// have one row per sample. The run owns all arrays. A pass may use arrays until the
/// pass returns, and writes only to arrays that are not const.
struct user_pass {
  std::int64_t samples; ///< Samples: rows of the arrays.
  int threads;          ///< Threads of the layer's rank; one thread calls the pass.

  /// (samples, inputs): the same array and values in all passes of a microbatch; null
  /// in a first layer that reads tokens.
  const float* x;
  /// (samples, inputs): as x; only in a first layer that reads tokens. Other layers
  /// must not read `tokens`.
  const std::int32_t* tokens;
  float* y;        ///< (samples, outputs); in a forward.
  const float* dy; ///< (samples, outputs): d loss / d y; in both gradients.
  float* dx; ///< (samples, inputs); in an input gradient; null in the first layer.

  float* saved;   ///< Kept from the forward to the end of the backward.
  float* kept;    ///< Kept from the input gradient to the weight gradient.
  float* scratch; ///< Only during this pass.

  /// One array for each tensor, in the order of user_layer::parameters().
  std::vector<const float*> parameters;
  /// Gradients in the order of `parameters`; only in a weight gradient.
  std::vector<float*> gradients;
  /// True: a weight gradient adds to `gradients`; false: overwrites `gradients`.
  bool adds;
};

/// A user's layer: inputs, outputs, parameters, and three passes.
///
/// One object serves all stages, data replicas and threads of a run at the same time,
/// so passes must not change the object. A pass runs on a thread of a device. A
/// microbatch has its forward, input gradient and weight gradient in this order, in
/// every schedule. A schedule that recomputes runs the forward again before the input
/// gradient. An evaluation runs forwards alone. Passes of other microbatches may run in
/// between; schedules that split backwards run the weight gradient much later. An
/// exception of a pass fails the run; the error has the exception's text and the stage.
/// An exception of another function is train()'s error. The same input must give the
/// same bits, or runs are not reproducible.
class user_layer : public network_layer {
public:
  /// Values (fp32) that the layer needs for a microbatch, besides input and output.
  struct buffer_sizes {
    std::int64_t saved = 0, kept = 0, scratch = 0;
  };

  /// \param parameters descriptions, in the order of the arrays in
  /// `user_pass::parameters`
  /// \param inputs number of values of each sample, at least 1
  /// \param outputs number of values of each sample, at least 1
  /// \throws std::invalid_argument if `inputs`, `outputs` or a dim is below 1, if a
  /// tensor has more than 2^40 values, or if two tensors have one name
  /// \throws std::invalid_argument if inputs times outputs is more than 2^40
  user_layer(std::vector<layer_tensor> parameters, std::int64_t inputs,
             std::int64_t outputs);

  // The arguments of the constructor.
  const std::vector<layer_tensor>& parameters() const { return parameters_; }
  std::int64_t inputs() const { return inputs_; }
  std::int64_t outputs() const { return outputs_; }

  /// Buffer sizes for `samples` samples, from 0 to 2^40 values each. Fewer samples must
  /// not need larger buffers.
  virtual buffer_sizes buffers_for(std::int64_t /*samples*/) const { return {}; }

  /// Floating-point operations of a forward, per sample: at least 0, below 1e18. Each
  /// of the two gradients takes about as many operations as the forward. The split into
  /// stages and virtual time use this number.
  virtual double operations() const = 0;

  /// Writes y.
  virtual void forward(const user_pass& pass) const = 0;

  /// Writes dx, unless null, and stores in `kept` the data that the weight gradient
  /// needs besides dy. Both gradients receive dy.
  virtual void input_gradient(const user_pass& pass) const = 0;

  /// Writes gradients, summed over the samples, or adds the sums to `gradients`
  /// (`user_pass::adds`). Called also for layers without parameters.
  virtual void weight_gradient(const user_pass& pass) const = 0;

  std::shared_ptr<const layer<float>>
  as_layer(const std::shared_ptr<const network_layer>& self) const final;

private:
  std::vector<layer_tensor> parameters_;
  std::int64_t inputs_, outputs_;
};

/// PyTorch's nn.Linear, followed by a ReLU if `rectified`: y = x w^T + b. Parameters
/// `name`.weight (out, in) and `name`.bias (out) begin uniform within 1/sqrt(in).
/// \throws std::invalid_argument if a size is below 1, or in times out is more than
/// 2^40
std::shared_ptr<const network_layer> linear(const std::string& name, std::int64_t in,
                                            std::int64_t out, bool rectified = false);

/// A user's network: layers in a line, and a softmax cross-entropy after the last
/// layer.
struct user_network {
  std::vector<std::shared_ptr<const network_layer>> layers;
  /// Predictions of a sample; divides the outputs of the last layer. Each prediction
  /// has outputs / predictions classes.
  std::int64_t predictions = 1;
  /// Samples are tokens, not pixels. The first layer must then be a user_layer.
  bool reads_tokens = false;
};

} // namespace troupe
