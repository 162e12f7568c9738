// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Slices: the computation of one stage, as whole passes or in pieces.

#include "kernels/cross_entropy.hpp"
#include "models/network.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace troupe {

/// Values (Scalar) of the buffers that a slice needs for a microbatch; two activations
/// of bf16 count as one value.
struct slice_sizes {
  std::int64_t input = 0;  ///< Incoming activations or pixels; or tokens (integers).
  std::int64_t output = 0; ///< Outgoing activations; 0 for the last slice.
  std::int64_t labels = 0; ///< Labels (integers); 0 for all but the last slice.
  std::int64_t stash = 0;  ///< Kept from the forward to the end of the backward.
  /// Inputs of all segments but the first; kept as long as the stash.
  std::int64_t inputs = 0;
  std::int64_t kept = 0;    ///< Kept from I to W, where a schedule splits backwards.
  std::int64_t scratch = 0; ///< During any one pass.
};

/// Returns the loss of samples of `length` predictions, scaled as if each sample had
/// `rows` predictions of equal mean. Short and long samples therefore have equal
/// weight.
/// \param length 0: `rows` predictions
loss_sum of_whole_samples(loss_sum sum, std::int64_t rows, std::int64_t length);

/// Returns for each buffer the larger one of both sizes.
slice_sizes largest(const slice_sizes& a, const slice_sizes& b);

/// One microbatch on the way through a slice. Each pass uses some of the fields; the
/// caller owns all buffers.
template <class Scalar>
struct pass {
  std::int64_t samples = 0;
  std::int64_t first = -1; ///< Index of the first sample in the run; -1: of no run.
  const std::int32_t* tokens =
    nullptr;                   ///< Input of the first slice of a language model.
  const void* input = nullptr; ///< Input of a slice that reads no tokens.
  const std::int32_t* labels = nullptr; ///< Labels; only for the last slice.
  /// Outgoing activations; not for the last slice.
  void* output = nullptr;
  Scalar* stash = nullptr;
  /// Inputs of segments; only for a slice in several segments.
  Scalar* inputs = nullptr;
  /// Gradient of `output`; not for the last slice.
  const void* output_gradient = nullptr;
  /// Gradient of `input`; not for the first slice.
  void* input_gradient = nullptr;
  /// Values that input_gradient keeps for weight_gradient.
  Scalar* kept = nullptr;
  std::vector<weight_place<Scalar>> parameters; ///< One bucket for each layer.
  std::vector<Scalar*> gradients;               ///< One bucket for each layer.
  Scalar beta = 0;        ///< 0 sets the gradients, 1 adds to the values there.
  bool completes = false; ///< This pass adds the last gradients of a sum.
  Scalar* scratch = nullptr;
  stream* compute_stream = nullptr;
};

/// A part of a pass. After a piece, other tensor shards or the receivers of a layer's
/// gradients need data.
template <class Scalar>
struct pass_piece {
  int layer = -1; ///< Index in the slice, if the piece is of one layer alone; else -1.
  double share = 1; ///< Fraction of the pass's operations.
  std::function<void()> run = {};
  shard_collective<Scalar> collective = {};
  bool recomputes = false; ///< The piece runs a segment's forward again, in a backward.
  std::vector<int> completes =
    {}; ///< Layers of the slice whose gradients are complete after the piece.
};

template <class Scalar>
using pass_pieces = std::vector<pass_piece<Scalar>>;

/// Segments of a slice whose forwards run again one at a time (Chen et al., "Training
/// Deep Nets with Sublinear Memory Cost", 2016). The forward keeps only the input of
/// each segment. A recomputation runs the last segment's forward again. The following
/// backward runs the forward of each other segment again, just before the segment's
/// backward.
struct recomputed_segments {
  std::vector<int> begins = {0}; ///< First layers of segments, from 0 on, increasing.
  /// True: the stash has memory for all segments together, as weight gradients run
  /// later than input gradients. False: the stash has memory for the largest segment
  /// alone.
  bool keeps_all = false;
};

/// Contiguous layers of a network and the layers' part of a pass: the computation of a
/// stage. The last slice ends in the loss. Gradients are of a sum over samples, in
/// which a sample's loss is the mean over the sample's predictions.
template <class Scalar>
class slice {
public:
  /// Layers [first, last) of `whole`.
  /// \param threads number of threads of the streams on which passes run
  /// \param segments more than one only where forwards run again
  slice(const network<Scalar>& whole, int first, int last, int threads,
        recomputed_segments segments = {});

  /// The slices of `whole`, stage by stage.
  /// \param first_layers the result of cut(): first layer of each stage, then the
  /// number of layers
  static std::vector<slice> cut_at(const network<Scalar>& whole,
                                   const std::vector<int>& first_layers, int threads);

  const layer_list<Scalar>& layers() const { return layers_; }
  bool is_first() const { return first_; }
  bool is_last() const { return last_; }

  /// Sizes of the buffers for a microbatch of `samples` samples.
  slice_sizes sizes(std::int64_t samples) const;

  /// Floating-point operations of a forward of one sample, without those of remote
  /// experts.
  double operations() const;

  /// The last segment's fraction of operations(): the part that a recomputation runs. 1
  /// if there is one segment.
  double recomputed_share() const;

  /// The largest array of each kind of collective between tensor shards, without
  /// addresses. Empty if the network is not a shard.
  std::vector<shard_collective<Scalar>> largest_collectives(std::int64_t samples) const;

  /// Runs the forwards of all layers; the last slice also computes the loss.
  /// \param loss summed over predictions; other slices than the last leave `loss`
  /// unchanged. Overwritten, and complete when the work launched on the pass's stream
  /// has ended
  void forward(const pass<Scalar>& p, loss_sum& loss) const;

  /// Runs the forward of the last segment again, for a pass whose segment inputs were
  /// kept. The last slice also computes the loss again.
  void recompute(const pass<Scalar>& p, loss_sum& loss) const;

  /// Runs both gradients layer by layer: the bits of input_gradient() and then
  /// weight_gradient(), with less memory.
  /// \pre the pass's forward has run, and with recomputation also recompute()
  void backward(const pass<Scalar>& p) const;

  /// Runs one layer's part of backward(), to be called from the last layer to the
  /// first. After the call the pass has added all gradients of the layer. Runs no
  /// forward again.
  /// \pre the forward of the layer's segment has run again
  void backward(const pass<Scalar>& p, std::size_t layer) const;

  void input_gradient(const pass<Scalar>& p) const;
  void weight_gradient(const pass<Scalar>& p) const;

  // The passes above in pieces, to be run one after another. A pass is one piece,
  // unless tensor shards or experts need data between pieces, or `by_layer` is set.
  // Each layer then has one piece or more. A weight gradient is one piece also with
  // tensor shards, unless the shards divide positions and the pass completes a sum. The
  // pieces share ownership of `p`. This slice and `loss` outlive the pieces.
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
  /// Offsets of a layer's parts in the buffers.
  struct layer_offsets {
    std::int64_t saved;       // in the stash
    std::int64_t output;      // in the stash; the output before a segment in the inputs
    std::int64_t kept, upper; // in `kept`: the layer's own, and the gradient from above
  };

  std::vector<layer_offsets> layout(std::int64_t samples, slice_sizes& ends) const;
  frame<Scalar> frame_of(const pass<Scalar>& p, std::size_t i,
                         const std::vector<layer_offsets>& offsets) const;
  frame<Scalar> backward_frame(const pass<Scalar>& p, std::size_t layer) const;
  bool begins_segment(std::size_t layer) const;
  bool feeds_segment(std::size_t layer) const; // the next layer begins a segment
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
  void add_pieces(pass_pieces<Scalar>& to, layer_pass pass_kind, std::size_t layer,
                  const shared_pass& p, const frame<Scalar>& f) const;
  void complete(pass_pieces<Scalar>& to, std::size_t layer, const pass<Scalar>& p,
                const frame<Scalar>& f) const;
  /// The last layer's output with its gradient, and the memory behind it: losses of all
  /// predictions.
  struct loss_arrays {
    matrix<Scalar> logits; // of the shard
    stored_matrix<Scalar> gradient;
    Scalar* row_losses;
  };
  loss_arrays loss_arrays_of(const pass<Scalar>& p,
                             const std::vector<layer_offsets>& offsets) const;
  void end_in_loss(const pass<Scalar>& p, const std::vector<layer_offsets>& offsets,
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
  bool waits_; // for other shards or experts, between the pieces of a layer
  recomputed_segments segments_;
};

} // namespace troupe
