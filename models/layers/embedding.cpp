#include "kernels/embedding.hpp"

#include "models/layers/gpt.hpp"

namespace troupe {

namespace {

template <class Scalar>
class token_embedding : public layer<Scalar> {
public:
  explicit token_embedding(const gpt_shape& dims)
    : layer<Scalar>(
      {words_of(dims),
       {"transformer.wpe.weight", {dims.length, dims.width}, beginning::normal, 0.02}},
      dims.length, dims.length * dims.width),
      dims_(dims) {
    // nop
  }

  layer_sizes sizes(std::int64_t, int) const override { return {}; }

  double operations() const override {
    return static_cast<double>(dims_.length * dims_.width);
  }

  shard_collective<Scalar> after(layer_pass pass, int,
                                 const frame<Scalar>& f) const override {
    if (dims_.shard.count == 1 || pass == layer_pass::input_gradient)
      return {};
    return {shard_collective<Scalar>::kind::sum, f.y,
            f.samples * dims_.length * dims_.width};
  }

  void forward(const frame<Scalar>& f, int) const override {
    const auto* places = dims_.shard.index == 0 ? this->weight(f, 1) : nullptr;
    embedding<Scalar>::forward(shape_of(f), f.tokens, this->weight(f, 0), places, f.y,
                               *f.threads);
  }

  void input_gradient(const frame<Scalar>&, int) const override {
    // tokens have none
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    embedding<Scalar>::gradient(shape_of(f), f.tokens, f.dy, f.beta,
                                this->gradient(f, 0), this->gradient(f, 1), *f.threads);
  }

private:
  typename embedding<Scalar>::shape shape_of(const frame<Scalar>& f) const {
    return {f.samples, dims_.length, dims_.width, dims_.shard.part(dims_.words),
            dims_.shard.first(dims_.words)};
  }

  static parameter words_of(const gpt_shape& dims) {
    const parameter whole{
      "transformer.wte.weight", {dims.words, dims.width}, beginning::normal, 0.02};
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
