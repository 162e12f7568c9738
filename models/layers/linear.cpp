// SPDX-License-Identifier: BSD-3-Clause
#include "models/layers/linear.hpp"

#include "kernels/bias.hpp"
#include "kernels/matmul.hpp"
#include "kernels/relu.hpp"

#include <cmath>

namespace troupe {

namespace {

// R rows, one a sample. saved: the ReLU's mask; kept: the gradient before the ReLU.
template <class Scalar>
class linear : public layer<Scalar> {
public:
  linear(const std::string& name, std::int64_t in, std::int64_t out, bool rectified,
         const layer_position& position)
    : layer<Scalar>(multiplied(parameters_of(name, in, out), {0}),
                    {in, position.reads()}, {out, position.writes()}),
      rectified_(rectified),
      position_(position) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    const auto values = rectified_ ? samples * this->output() : 0;
    return {.saved = values / std::int64_t{sizeof(Scalar)} + 1,
            .kept = stored_size<Scalar>(values, position_.writes())};
  }

  double operations() const override {
    return 2.0 * static_cast<double>(this->input() * this->output());
  }

  void forward(const frame<Scalar>& f, int) const override {
    epilogue<Scalar> end{.kind = epilogue_kind::bias, .bias = this->weight(f, 1)};
    if (rectified_) {
      end.kind = epilogue_kind::bias_relu;
      end.mask = mask(f);
    }
    matmul<Scalar>(this->x(f, f.samples), weights(f).t(), 0, this->y(f, f.samples),
                   *f.compute_stream, end);
  }

  void input_gradient(const frame<Scalar>& f, int) const override {
    if (rectified_)
      relu<Scalar>::backward(this->dy(f, f.samples), mask(f), kept(f),
                             *f.compute_stream);
    if (f.dx != nullptr)
      matmul<Scalar>(upper(f), weights(f), 0, this->dx(f, f.samples),
                     *f.compute_stream);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    matmul<Scalar>(upper(f).t(), this->x(f, f.samples), f.beta,
                   dense(this->gradient(f, 0), this->output(), this->input()),
                   *f.compute_stream);
    bias<Scalar>::gradient(upper(f), f.beta, this->gradient(f, 1), *f.compute_stream);
  }

private:
  static std::vector<parameter> parameters_of(const std::string& name, std::int64_t in,
                                              std::int64_t out) {
    const double range = 1 / std::sqrt(static_cast<double>(in));
    return {{name + ".weight", {out, in}, beginning::uniform, range},
            {name + ".bias", {out}, beginning::uniform, range}};
  }

  typename layer<Scalar>::factor weights(const frame<Scalar>& f) const {
    return this->factor_of(f, 0);
  }

  stored_matrix<Scalar> kept(const frame<Scalar>& f) const {
    return stored_at<Scalar>(f.kept, f.samples, this->output(), position_.writes());
  }

  stored_matrix<const Scalar> upper(const frame<Scalar>& f) const {
    return rectified_ ? kept(f) : this->dy(f, f.samples);
  }

  matrix<std::uint8_t> mask(const frame<Scalar>& f) const {
    return dense(reinterpret_cast<std::uint8_t*>(f.saved), f.samples, this->output());
  }

  bool rectified_;
  layer_position position_;
};

} // namespace

template <class Scalar>
std::shared_ptr<const layer<Scalar>>
linear_layer(const std::string& name, std::int64_t in, std::int64_t out, bool rectified,
             const layer_position& position) {
  return std::make_shared<linear<Scalar>>(name, in, out, rectified, position);
}

template std::shared_ptr<const layer<float>> linear_layer<float>(const std::string&,
                                                                 std::int64_t,
                                                                 std::int64_t, bool,
                                                                 const layer_position&);
template std::shared_ptr<const layer<double>>
linear_layer<double>(const std::string&, std::int64_t, std::int64_t, bool,
                     const layer_position&);

} // namespace troupe
