// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/embedding.hpp"

#include "kernels/arrays.hpp"
#include "models/layers/gpt.hpp"

namespace troupe {

namespace {

template <class Scalar>
class token_embedding : public layer<Scalar> {
public:
  explicit token_embedding(const gpt_shape& dims)
    : layer<Scalar>({words_of(dims),
                     {"transformer.wpe.weight",
                      {dims.known_positions(), dims.width},
                      beginning::normal,
                      dims.deviation}},
                    {dims.length}, {dims.positions() * dims.width, dims.stored}),
      dims_(dims) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    return arrays_of({.samples = samples}).sizes;
  }

  double operations() const override {
    return static_cast<double>(dims_.length * dims_.width);
  }

  /// Two pieces by sequence, or where the sum over shards is rounded after the
  /// collective.
  int pieces() const override {
    return by_sequence() || (dims_.shard.count > 1 && dims_.stored != precision::fp32)
             ? 2
             : 1;
  }

  shard_collective<Scalar> collective_after(layer_pass pass, int piece,
                                            const frame<Scalar>& f) const override {
    using kind = typename shard_collective<Scalar>::kind;
    const auto values = dims_.rows(f.samples) * dims_.width;
    if (dims_.shard.count == 1 || piece > 0 || pass == layer_pass::weight_gradient)
      return {};
    const auto a = arrays_of(f);
    if (pass == layer_pass::forward)
      return {by_sequence() ? kind::scatter : kind::sum, a.sum.plain().data, values};
    if (!by_sequence())
      return {};
    return {kind::gather, static_cast<Scalar*>(a.gathered.data),
            stored_size<Scalar>(values, dims_.stored)};
  }

  void forward(const frame<Scalar>& f, int piece) const override {
    const auto a = arrays_of(f);
    if (piece > 0)
      return arrays<Scalar>::copy(dims_.local_part(a.sum), a.y, *f.compute_stream);
    stored_matrix<const Scalar> positions;
    if (dims_.shard.index == 0)
      positions =
        dense(this->weight(f, 1) + f.past * dims_.width, dims_.length, dims_.width);
    embedding<Scalar>::forward(
      shape_of(f), f.tokens,
      dense(this->weight(f, 0), dims_.shard.part(dims_.words), dims_.width), positions,
      a.sum, *f.compute_stream);
  }

  /// Tokens have no gradient. By sequence, the weight gradient takes dy of all shards,
  /// gathered here.
  void input_gradient(const frame<Scalar>& f, int piece) const override {
    if (by_sequence() && piece == 0)
      arrays<Scalar>::copy(this->dy(f, dims_.local_rows(f.samples)),
                           dims_.local_part(arrays_of(f).gathered), *f.compute_stream);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    const auto a = arrays_of(f);
    const auto read = dims_.length * dims_.width;
    if (f.beta == 0)
      arrays<Scalar>::clear(dims_.known_positions() * dims_.width - read,
                            this->gradient(f, 1) + read, *f.compute_stream);
    embedding<Scalar>::gradient(
      shape_of(f), f.tokens,
      by_sequence() ? stored_matrix<const Scalar>{a.gathered} : this->dy(f, a.y.rows),
      f.beta, this->gradient(f, 0), this->gradient(f, 1), *f.compute_stream);
  }

private:
  struct frame_arrays {
    stored_matrix<Scalar> y;   // of local rows
    stored_matrix<Scalar> sum; // over shards, of all rows; y if there is no collective
    stored_matrix<Scalar> gathered; // dy of all rows
    layer_sizes sizes;
  };

  frame_arrays arrays_of(const frame<Scalar>& f) const {
    const auto rows = dims_.rows(f.samples);
    array_layout<Scalar> kept{f.kept}, scratch{f.scratch};
    frame_arrays a{.y = this->y(f, dims_.local_rows(f.samples))};
    a.sum = a.y;
    if (pieces() > 1)
      a.sum = dense(scratch.allocate(rows * dims_.width), rows, dims_.width);
    if (by_sequence())
      a.gathered = kept.allocate(rows, dims_.width, dims_.stored);
    a.sizes = {.saved = 0, .kept = kept.end(), .scratch = scratch.end()};
    return a;
  }

  bool by_sequence() const { return dims_.shard.by_sequence; }

  typename embedding<Scalar>::shape shape_of(const frame<Scalar>& f) const {
    return {f.samples,
            dims_.length,
            dims_.width,
            dims_.shard.part(dims_.words),
            dims_.shard.first(dims_.words),
            by_sequence()};
  }

  static parameter words_of(const gpt_shape& dims) {
    parameter whole{"transformer.wte.weight",
                    {dims.words, dims.width},
                    beginning::normal,
                    dims.deviation};
    return part_of(std::move(whole), {"words", 0}, dims.shard);
  }

  gpt_shape dims_;
};

} // namespace

template <class Scalar>
std::shared_ptr<const layer<Scalar>> embedding_layer(const gpt_shape& dims) {
  return std::make_shared<token_embedding<Scalar>>(dims);
}

template std::shared_ptr<const layer<float>> embedding_layer<float>(const gpt_shape&);
template std::shared_ptr<const layer<double>> embedding_layer<double>(const gpt_shape&);

} // namespace troupe
