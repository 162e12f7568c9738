// SPDX-License-Identifier: BSD-3-Clause
// The passes of a slice in pieces. Run one after another, the pieces are the passes of
// slice.cpp; between pieces other shards and receivers get data.

#include "models/slice.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

template <class Scalar>
pass_pieces<Scalar> slice<Scalar>::one_piece(std::function<void()> run) {
  pass_pieces<Scalar> result(1);
  result.front().run = std::move(run);
  return result;
}

/// Adds an empty piece behind a last collective, as a collective is always followed by
/// a piece.
template <class Scalar>
void slice<Scalar>::close(pass_pieces<Scalar>& pieces) {
  if (pieces.back().collective.operation == shard_collective<Scalar>::kind::none)
    return;
  const int layer = pieces.back().layer;
  auto& last = pieces.emplace_back();
  last.layer = layer;
  last.share = 0;
  last.run = [] {};
}

template <class Scalar>
double slice<Scalar>::share_of(std::size_t layer) const {
  return layers_[layer]->operations() / operations();
}

/// A frame that was planned earlier, completed with the parameters when the piece runs.
template <class Scalar>
frame<Scalar> slice<Scalar>::now(frame<Scalar> f, const shared_pass& p,
                                 std::size_t layer) {
  f.parameters = p->parameters[layer].now();
  return f;
}

template <class Scalar>
void slice<Scalar>::add_pieces(pass_pieces<Scalar>& to, layer_pass pass_kind,
                               std::size_t layer, const shared_pass& p,
                               const frame<Scalar>& f) const {
  const auto* const l = layers_[layer].get();
  for (int piece = 0; piece < l->pieces(); ++piece) {
    auto& next = to.emplace_back();
    next.layer = static_cast<int>(layer);
    next.share = piece == l->middle() ? share_of(layer) : 0;
    next.run = [l, pass_kind, piece, p, layer, f] {
      const auto ready = now(f, p, layer);
      pass_kind == layer_pass::forward ? l->forward(ready, piece)
                                       : l->input_gradient(ready, piece);
    };
    next.collective = l->collective_after(pass_kind, piece, f);
  }
}

/// Ends a layer's pieces behind the layer's weight gradient.
template <class Scalar>
void slice<Scalar>::complete(pass_pieces<Scalar>& to, std::size_t layer,
                             const pass<Scalar>& p, const frame<Scalar>& f) const {
  if (p.completes
      && to.back().collective.operation == shard_collective<Scalar>::kind::none)
    to.back().collective =
      layers_[layer]->collective_after(layer_pass::weight_gradient, 0, f);
  close(to);
  to.back().completes = {static_cast<int>(layer)};
}

template <class Scalar>
void slice<Scalar>::add_loss(pass_pieces<Scalar>& to, const shared_pass& p,
                             loss_sum& loss) const {
  slice_sizes ends;
  const auto offsets = layout(p->samples, ends);
  if (shard_.count == 1) {
    auto& last = to.back();
    last.run = [this, p, offsets, &loss, before = std::move(last.run)] {
      before();
      end_in_loss(*p, offsets, loss);
    };
    return;
  }
  const int top = static_cast<int>(layers_.size()) - 1;
  const auto predictions = p->samples * rows_;
  const auto a = loss_arrays_of(*p, offsets);
  auto* const facts = a.row_losses + padded(predictions);
  const auto count = cross_entropy<Scalar>::facts(predictions);
  const auto first = shard_.first(classes_);
  auto& facts_piece = to.emplace_back();
  facts_piece.layer = top;
  facts_piece.share = 0;
  facts_piece.run = [p, a, first, local_facts = facts + shard_.index * count] {
    cross_entropy<Scalar>::prepare(a.logits, first, p->labels, local_facts,
                                   *p->compute_stream);
  };
  facts_piece.collective = {shard_collective<Scalar>::kind::gather, facts,
                            shard_.count * count};
  auto& finish = to.emplace_back();
  finish.layer = top;
  finish.share = 0;
  finish.run = [p, a, first, facts, &loss, this] {
    cross_entropy<Scalar>::finish(a.logits, first, p->labels, facts, shard_.count,
                                  shard_.index, Scalar{1} / static_cast<Scalar>(rows_),
                                  a.gradient, a.row_losses, loss, *p->compute_stream);
  };
}

/// Adds the pieces of a segment's forward, if a backward that reaches the layer has to
/// run the forward again.
template <class Scalar>
void slice<Scalar>::add_again(pass_pieces<Scalar>& to, std::size_t layer,
                              const shared_pass& p) const {
  if (!feeds_segment(layer))
    return;
  slice_sizes ends;
  const auto offsets = layout(p->samples, ends);
  pass_pieces<Scalar> again;
  for (auto i = segment_begin(layer); i <= layer; ++i)
    add_pieces(again, layer_pass::forward, i, p, frame_of(*p, i, offsets));
  close(again);
  for (auto& piece : again) {
    piece.recomputes = true;
    to.push_back(std::move(piece));
  }
}

/// Sets the pieces' shares of an action, some of whose pieces recompute segments. All
/// other pieces together take as long as `forwards` forwards.
template <class Scalar>
void slice<Scalar>::share_out(pass_pieces<Scalar>& pieces, double forwards) const {
  const double total = forwards + 1 - recomputed_share();
  for (auto& piece : pieces)
    piece.share *= (piece.recomputes ? 1 : forwards) / total;
}

template <class Scalar>
pass_pieces<Scalar> slice<Scalar>::recompute_pieces(shared_pass p, loss_sum& loss,
                                                    bool by_layer) const {
  if (!in_pieces(by_layer))
    return one_piece([this, p, &loss] { recompute(*p, loss); });
  slice_sizes ends;
  const auto offsets = layout(p->samples, ends);
  pass_pieces<Scalar> result;
  for (auto i = static_cast<std::size_t>(segments_.begins.back()); i < layers_.size();
       ++i)
    add_pieces(result, layer_pass::forward, i, p, frame_of(*p, i, offsets));
  for (auto& piece : result)
    piece.share /= recomputed_share();
  if (last_)
    add_loss(result, p, loss);
  close(result);
  return result;
}

template <class Scalar>
pass_pieces<Scalar> slice<Scalar>::forward_pieces(shared_pass p, loss_sum& loss,
                                                  bool by_layer) const {
  if (!in_pieces(by_layer))
    return one_piece([this, p, &loss] { forward(*p, loss); });
  slice_sizes ends;
  const auto offsets = layout(p->samples, ends);
  pass_pieces<Scalar> result;
  for (std::size_t i = 0; i < layers_.size(); ++i)
    add_pieces(result, layer_pass::forward, i, p, frame_of(*p, i, offsets));
  if (last_)
    add_loss(result, p, loss);
  close(result);
  return result;
}

template <class Scalar>
pass_pieces<Scalar> slice<Scalar>::backward_pieces(shared_pass p, bool by_layer) const {
  if (!in_pieces(by_layer))
    return one_piece([this, p] { backward(*p); });
  pass_pieces<Scalar> result;
  for (auto i = layers_.size(); i-- > 0;) {
    add_again(result, i, p);
    const auto f = backward_frame(*p, i);
    add_pieces(result, layer_pass::input_gradient, i, p, f);
    auto& last = result.back();
    last.run = [l = layers_[i].get(), p, i, f, before = std::move(last.run)] {
      before();
      l->weight_gradient(now(f, p, i));
    };
    complete(result, i, *p, f);
  }
  share_out(result, 2);
  return result;
}

template <class Scalar>
pass_pieces<Scalar> slice<Scalar>::input_gradient_pieces(shared_pass p,
                                                         bool by_layer) const {
  if (!in_pieces(by_layer))
    return one_piece([this, p] { input_gradient(*p); });
  slice_sizes ends;
  const auto offsets = layout(p->samples, ends);
  pass_pieces<Scalar> result;
  for (auto i = layers_.size(); i-- > 0;) {
    add_again(result, i, p);
    add_pieces(result, layer_pass::input_gradient, i, p, frame_of(*p, i, offsets));
  }
  close(result);
  share_out(result, 1);
  return result;
}

template <class Scalar>
pass_pieces<Scalar> slice<Scalar>::weight_gradient_pieces(shared_pass p,
                                                          bool by_layer) const {
  const bool asks_experts =
    std::ranges::any_of(layers_, [](const auto& l) { return l->has_remote_experts(); });
  if (!by_layer && !(shard_.by_sequence && p->completes) && !asks_experts) {
    auto result = one_piece([this, p] { weight_gradient(*p); });
    for (auto i = layers_.size(); i-- > 0;)
      result.back().completes.push_back(static_cast<int>(i));
    return result;
  }
  slice_sizes ends;
  const auto offsets = layout(p->samples, ends);
  pass_pieces<Scalar> result;
  for (auto i = layers_.size(); i-- > 0;) {
    auto& piece = result.emplace_back();
    piece.layer = static_cast<int>(i);
    piece.share = share_of(i);
    const auto f = frame_of(*p, i, offsets);
    piece.run = [l = layers_[i].get(), p, i, f] { l->weight_gradient(now(f, p, i)); };
    if (layers_[i]->has_remote_experts())
      piece.collective = layers_[i]->weight_gradient_of_experts(f);
    complete(result, i, *p, f);
  }
  return result;
}

template pass_pieces<float>
slice<float>::forward_pieces(std::shared_ptr<const pass<float>>, loss_sum&, bool) const;
template pass_pieces<double>
slice<double>::forward_pieces(std::shared_ptr<const pass<double>>, loss_sum&,
                              bool) const;
template pass_pieces<float>
slice<float>::recompute_pieces(std::shared_ptr<const pass<float>>, loss_sum&,
                               bool) const;
template pass_pieces<double>
slice<double>::recompute_pieces(std::shared_ptr<const pass<double>>, loss_sum&,
                                bool) const;
template pass_pieces<float>
slice<float>::backward_pieces(std::shared_ptr<const pass<float>>, bool) const;
template pass_pieces<double>
slice<double>::backward_pieces(std::shared_ptr<const pass<double>>, bool) const;
template pass_pieces<float>
slice<float>::input_gradient_pieces(std::shared_ptr<const pass<float>>, bool) const;
template pass_pieces<double>
slice<double>::input_gradient_pieces(std::shared_ptr<const pass<double>>, bool) const;
template pass_pieces<float>
slice<float>::weight_gradient_pieces(std::shared_ptr<const pass<float>>, bool) const;
template pass_pieces<double>
slice<double>::weight_gradient_pieces(std::shared_ptr<const pass<double>>, bool) const;

} // namespace troupe
