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
                      {dims.length, dims.width},
                      beginning::normal,
                      dims.deviation}},
                    dims.length, dims.positions() * dims.width),
      dims_(dims) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    if (!dims_.shard.by_sequence)
      return {};
    const auto all = padded(dims_.rows(samples) * dims_.width);
    return {.saved = 0, .kept = all, .scratch = all};
  }

  double operations() const override {
    return static_cast<double>(dims_.length * dims_.width);
  }

  int pieces() const override { return dims_.shard.by_sequence ? 2 : 1; }

  shard_collective<Scalar> after(layer_pass pass, int piece,
                                 const frame<Scalar>& f) const override {
    using kind = typename shard_collective<Scalar>::kind;
    const auto values = dims_.rows(f.samples) * dims_.width;
    const bool ends = piece > 0 || pass == layer_pass::weight_gradient;
    if (dims_.shard.count == 1 || ends)
      return {};
    if (!dims_.shard.by_sequence)
      return pass == layer_pass::forward
               ? shard_collective<Scalar>{kind::sum, f.y, values}
               : shard_collective<Scalar>{};
    return pass == layer_pass::forward
             ? shard_collective<Scalar>{kind::scatter, f.scratch, values}
             : shard_collective<Scalar>{kind::gather, f.kept, values};
  }

  void forward(const frame<Scalar>& f, int piece) const override {
    const auto* places = dims_.shard.index == 0 ? this->weight(f, 1) : nullptr;
    if (piece > 0)
      arrays<Scalar>::copy(dims_.own(all(f, f.scratch)), own(f, f.y), *f.on);
    else
      embedding<Scalar>::forward(shape_of(f), f.tokens, this->weight(f, 0), places,
                                 dims_.shard.by_sequence ? f.scratch : f.y, *f.on);
  }

  /// Tokens have none; by sequence the weights' takes everyone's dy.
  void input_gradient(const frame<Scalar>& f, int piece) const override {
    if (dims_.shard.by_sequence && piece == 0)
      arrays<Scalar>::copy(own(f, f.dy), dims_.own(all(f, f.kept)), *f.on);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    embedding<Scalar>::gradient(shape_of(f), f.tokens,
                                dims_.shard.by_sequence ? f.kept : f.dy, f.beta,
                                this->gradient(f, 0), this->gradient(f, 1), *f.on);
  }

private:
  typename embedding<Scalar>::shape shape_of(const frame<Scalar>& f) const {
    return {f.samples,
            dims_.length,
            dims_.width,
            dims_.shard.part(dims_.words),
            dims_.shard.first(dims_.words),
            dims_.shard.by_sequence};
  }

  matrix<Scalar> all(const frame<Scalar>& f, Scalar* array) const {
    return dense(array, dims_.rows(f.samples), dims_.width);
  }

  template <class Value>
  matrix<Value> own(const frame<Scalar>& f, Value* array) const {
    return dense(array, dims_.own_rows(f.samples), dims_.width);
  }

  static parameter words_of(const gpt_shape& dims) {
    const parameter whole{"transformer.wte.weight",
                          {dims.words, dims.width},
                          beginning::normal,
                          dims.deviation};
    return dims.shard.count == 1 ? whole : rows_of(whole, dims.shard);
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
