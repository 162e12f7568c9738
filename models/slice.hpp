// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cross_entropy.hpp"
#include "models/network.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace troupe {

/// Values (Scalar) of the buffers that a slice needs for a microbatch: of bf16 two
/// activations make one.
struct slice_sizes {
  std::int64_t input =
    0; ///< Activations or pixels that come in; tokens: as many integers.
  std::int64_t output = 0;  ///< Activations that go out; none from the last slice.
  std::int64_t labels = 0;  ///< Integers that the last slice is given.
  std::int64_t stash = 0;   ///< Kept from the forward to the end of the backward.
  std::int64_t inputs = 0;  ///< Of segments but the first: kept as long.
  std::int64_t kept = 0;    ///< Kept from I to W, where a schedule splits backwards.
  std::int64_t scratch = 0; ///< During any one pass.
};

/// The loss of samples of `length` predictions, as large as if each had `rows` of the
/// same mean: a sample counts alike, however long it is. \param length 0: rows
loss_sum of_whole_samples(loss_sum sum, std::int64_t rows, std::int64_t length);

/// The larger of each.
slice_sizes largest(const slice_sizes& a, const slice_sizes& b);

/// One microbatch on its way through a slice. A pass uses the fields it needs.
template <class Scalar>
struct pass {
  std::int64_t samples = 0;
  std::int64_t first = -1; ///< Of the samples, counted over the run; -1: not of it.
  const std::int32_t* tokens =
    nullptr;                   ///< Input of the first slice of a language model.
  const void* input = nullptr; ///< Input of any other slice.
  const std::int32_t* labels = nullptr; ///< For the last slice.
  void* output = nullptr;               ///< Not for the last slice.
  Scalar* stash = nullptr;
  Scalar* inputs = nullptr;              ///< For a slice in several segments.
  const void* output_gradient = nullptr; ///< Not for the last slice.
  void* input_gradient = nullptr;        ///< Not for the first slice.
  Scalar* kept = nullptr;                ///< For input_gradient and weight_gradient.
  std::vector<weight_place<Scalar>> parameters; ///< A bucket a layer.
  std::vector<Scalar*> gradients;               ///< A bucket a layer.
  Scalar beta = 0;        ///< 0 sets the gradients, 1 adds to them.
  bool completes = false; ///< Whether it makes the last gradients that are added.
  Scalar* scratch = nullptr;
  stream* on = nullptr;
};

/// A part of a pass after which others have to hear something: the other tensor shards,
/// or whoever waits for the gradients of a layer.
template <class Scalar>
struct pass_piece {
  int layer = -1;   ///< Of the slice, if it is of one alone.
  double share = 1; ///< Of the pass's operations.
  std::function<void()> run = {};
  shard_collective<Scalar> then = {};
  bool recomputes = false; ///< Of a segment's forward that runs again in a backward.
  std::vector<int> completes =
    {}; ///< Layers of the slice whose gradients are complete.
};

template <class Scalar>
using pass_pieces = std::vector<pass_piece<Scalar>>;

/// Segments of a slice whose forwards run again one at a time (Chen et al., "Training
/// Deep Nets with Sublinear Memory Cost", 2016). The forward keeps each segment's input
/// alone. A recomputation runs the last segment's forward again; the backward behind it
/// does so for each of the others, when it comes to it.
struct recomputed_segments {
  std::vector<int> begins = {0}; ///< Layers of the slice, from 0 on, increasing.
  /// The stash has room for all segments at once, as weight gradients come later than
  /// input gradients; else for the largest one.
  bool keeps_all = false;
};

/// Contiguous layers of a network, with their part of a pass: what a stage computes.
/// The last slice ends in the loss, summed over samples; a sample's loss is the mean
/// over its predictions. Gradients are those of that sum.
template <class Scalar>
class slice {
public:
  /// Layers [first, last) of `whole`.
  /// \param threads of the streams that it will be given
  /// \param segments several only where forwards run again
  slice(const network<Scalar>& whole, int first, int last, int threads,
        recomputed_segments segments = {});

  /// Layers of `whole` as `cut` has cut it, stage by stage.
  static std::vector<slice> cut_at(const network<Scalar>& whole,
                                   const std::vector<int>& first_layers, int threads);

  const layer_list<Scalar>& layers() const { return layers_; }
  bool is_first() const { return first_; }
  bool is_last() const { return last_; }

  slice_sizes sizes(std::int64_t samples) const;

  /// Floating-point operations of a forward of one sample.
  double operations() const;

  /// The part of these that is the last segment's: of a recomputation.
  double recomputed_share() const;

  /// The largest arrays of what tensor shards do together, by kind.
  std::vector<shard_collective<Scalar>> largest_collectives(std::int64_t samples) const;

  /// \param loss summed over predictions, from the last slice alone; there when what is
  /// launched on the pass's stream has ended
  void forward(const pass<Scalar>& p, loss_sum& loss) const;

  /// The forward of the last segment again, of a pass whose inputs were kept.
  void recompute(const pass<Scalar>& p, loss_sum& loss) const;

  /// input_gradient and weight_gradient layer by layer: the same bits, less memory.
  void backward(const pass<Scalar>& p) const;

  /// One layer's part of that, to be called from the last layer to the first: after it
  /// the layer's gradients are complete.
  void backward(const pass<Scalar>& p, std::size_t layer) const;

  void input_gradient(const pass<Scalar>& p) const;
  void weight_gradient(const pass<Scalar>& p) const;

  // The same passes in pieces, to be run one after another: as few as tensor shards
  // allow, or if it is asked for one a layer. What they are made of outlives them.
  pass_pieces<Scalar> forward_pieces(std::shared_ptr<const pass<Scalar>> p,
                                     loss_sum& loss, bool by_layer) const;
  pass_pieces<Scalar> recompute_pieces(std::shared_ptr<const pass<Scalar>> p,
                                       loss_sum& loss, bool by_layer) const;
  pass_pieces<Scalar> backward_pieces(std::shared_ptr<const pass<Scalar>> p,
                                      bool by_layer) const;
  pass_pieces<Scalar> input_gradient_pieces(std::shared_ptr<const pass<Scalar>> p,
                                            bool by_layer) const;
  pass_pieces<Scalar> weight_gradient_pieces(std::shared_ptr<const pass<Scalar>> p,
                                             bool by_layer) const;

private:
  using shared_pass = std::shared_ptr<const pass<Scalar>>;
  /// Where a layer's part of a buffer begins.
  struct places {
    std::int64_t saved;       // in the stash
    std::int64_t output;      // in the stash, or of a segment's last in the inputs
    std::int64_t kept, upper; // in `kept`: the layer's own, and the gradient from above
  };

  std::vector<places> place(std::int64_t samples, slice_sizes& ends) const;
  frame<Scalar> frame_of(const pass<Scalar>& p, std::size_t i,
                         const std::vector<places>& at) const;
  frame<Scalar> backward_frame(const pass<Scalar>& p, std::size_t layer) const;
  bool begins_segment(std::size_t layer) const;
  bool feeds_segment(std::size_t layer) const; // the next layer begins one
  std::size_t segment_begin(std::size_t layer) const;
  void forward_layers(const pass<Scalar>& p, std::size_t first, std::size_t last) const;
  void forward_again(const pass<Scalar>& p, std::size_t layer) const;
  static frame<Scalar> now(frame<Scalar> f, const shared_pass& p, std::size_t layer);
  static pass_pieces<Scalar> one_piece(std::function<void()> run);
  static void close(pass_pieces<Scalar>& pieces);
  bool in_pieces(bool by_layer) const { return waits_ || by_layer; }
  double share_of(std::size_t layer) const;
  void add_again(pass_pieces<Scalar>& to, std::size_t layer,
                 const shared_pass& p) const;
  void share_out(pass_pieces<Scalar>& pieces, double forwards) const;
  void add_pieces(pass_pieces<Scalar>& to, layer_pass what, std::size_t layer,
                  const shared_pass& p, const frame<Scalar>& f) const;
  void complete(pass_pieces<Scalar>& to, std::size_t layer, const pass<Scalar>& p,
                const frame<Scalar>& f) const;
  void end_in_loss(const pass<Scalar>& p, const std::vector<places>& at,
                   loss_sum& loss) const;
  void add_loss(pass_pieces<Scalar>& to, const shared_pass& p, loss_sum& loss) const;
  std::int64_t largest_scratch(std::int64_t samples) const;
  std::int64_t largest_kept(std::int64_t samples) const;
  std::int64_t largest_inner(std::int64_t samples) const;

  layer_list<Scalar> layers_;
  bool first_;
  bool last_;
  std::int64_t rows_;
  std::int64_t classes_; // of the whole network
  tensor_shard shard_;
  int threads_;
  bool waits_; // for others between the pieces of its layers
  recomputed_segments segments_;
};

} // namespace troupe
