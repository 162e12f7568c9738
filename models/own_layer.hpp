// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/beginning.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

template <class Scalar>
class layer;

/// A layer of a network that is put together by hand: one of one's own (own_layer), or
/// a builtin one.
class network_layer {
public:
  virtual ~network_layer() = default;

  /// As the framework sees it. \param self this layer
  virtual std::shared_ptr<const layer<float>>
  as_layer(const std::shared_ptr<const network_layer>& self) const = 0;
};

/// A tensor of parameters. Its values depend on the seed of a run, its name and its
/// dims alone.
struct layer_tensor {
  std::string name; ///< Unique in the network; that of the weight file.
  std::vector<std::int64_t> dims;
  beginning begins = beginning::zeros;
  double scale = 0; ///< Standard deviation, or half the width of the range.
};

/// One microbatch on its way through a layer of one's own. All values are fp32, arrays
/// have a sample a row, and all of them belong to the run: a pass may use them until it
/// returns, and writes only to those that are not const.
struct own_pass {
  std::int64_t samples; ///< Rows.
  int threads;          ///< That the rank of the layer has; the pass is called on one.

  const float* x; ///< (samples, inputs); null in a first layer that reads tokens,
  const std::int32_t* tokens; ///< (samples, inputs) then; else null.
  float* y;                   ///< (samples, outputs); in a forward.
  const float* dy;            ///< (samples, outputs): d loss / d y; in both gradients.
  float* dx; ///< (samples, inputs); in an input gradient; null in the first layer.

  float* saved;   ///< From the forward to the end of the backward.
  float* kept;    ///< From the input gradient to the weight gradient.
  float* scratch; ///< During this pass alone.

  std::vector<const float*> parameters; ///< In the layer's order.
  std::vector<float*> gradients;        ///< Likewise; in a weight gradient.
  bool adds; ///< A weight gradient adds to what is there; else it sets it.
};

/// A layer of one's own: what goes in and out of it, and three passes.
///
/// An object serves all stages, data replicas and threads of a run at once, so passes
/// change nothing of it. A pass runs on a thread of a device. Whatever order
/// microbatches go through the pipeline in, a microbatch has its forward, its input
/// gradient and its weight gradient one after another, other microbatches' passes
/// between them; schedules that split backwards run the weight gradient much later.
/// What a pass throws fails the run with its text and the stage; what the other
/// functions throw is train()'s error. The same input must give the same bits, or runs
/// do not repeat.
class own_layer : public network_layer {
public:
  /// Values (fp32) that the layer needs for a microbatch, besides its input and output.
  struct room {
    std::int64_t saved = 0, kept = 0, scratch = 0;
  };

  /// \param parameters of which own_pass has the values, in this order
  /// \param inputs,outputs values a sample, at least 1
  /// \throws std::invalid_argument for sizes below 1, or two tensors of one name
  own_layer(std::vector<layer_tensor> parameters, std::int64_t inputs,
            std::int64_t outputs);

  // As it was made.
  const std::vector<layer_tensor>& parameters() const { return parameters_; }
  std::int64_t inputs() const { return inputs_; }
  std::int64_t outputs() const { return outputs_; }

  /// What it needs for so many samples: for fewer no more. At least 0.
  virtual room room_for(std::int64_t /*samples*/) const { return {}; }

  /// Floating-point operations of a forward a sample, by which stages are cut and
  /// virtual time is counted; each gradient takes about as many.
  virtual double operations() const = 0;

  /// Writes y.
  virtual void forward(const own_pass& pass) const = 0;

  /// Writes dx, if it is not null, and keeps what the weight gradient needs of dy: that
  /// is there in both.
  virtual void input_gradient(const own_pass& pass) const = 0;

  /// Writes gradients, summed over the samples. Called also where there are none.
  virtual void weight_gradient(const own_pass& pass) const = 0;

  std::shared_ptr<const layer<float>>
  as_layer(const std::shared_ptr<const network_layer>& self) const final;

private:
  std::vector<layer_tensor> parameters_;
  std::int64_t inputs_, outputs_;
};

/// PyTorch's nn.Linear, and a ReLU behind it if `rectified`: y = x w^T + b. Parameters
/// `name`.weight (out, in) and `name`.bias (out) begin uniform within 1/sqrt(in).
std::shared_ptr<const network_layer> linear(const std::string& name, std::int64_t in,
                                            std::int64_t out, bool rectified = false);

/// A network of such layers, in a line, with a softmax cross-entropy behind the last.
struct own_network {
  std::vector<std::shared_ptr<const network_layer>> layers;
  std::int64_t predictions = 1; ///< A sample; each has outputs / predictions classes.
  bool reads_tokens = false;    ///< Samples are tokens, and not pixels.
};

} // namespace troupe
