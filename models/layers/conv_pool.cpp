// SPDX-License-Identifier: BSD-3-Clause
#include "models/layers/conv_pool.hpp"

#include "kernels/relu_pool.hpp"

#include <cmath>

namespace troupe {

namespace {

// saved: the index of each maximum's pixel; kept: the gradient before ReLU and pooling.
template <class Scalar>
class conv_pool : public layer<Scalar> {
public:
  conv_pool(const std::string& name, const convolution_shape& image, precision writes)
    : layer<Scalar>(parameters_of(name, image), {image.in_values()},
                    {image.out_values() / 4, writes}),
      image_(image) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int threads) const override {
    return {.saved = samples * this->output() / std::int64_t{sizeof(Scalar)} + 1,
            .kept = padded(samples * image_.out_values()),
            .scratch = scratch_of({.samples = samples}, threads).end};
  }

  double operations() const override {
    return 2.0 * static_cast<double>(image_.out_values() * image_.patch());
  }

  void forward(const frame<Scalar>& f, int) const override {
    const auto s = scratch_of(f, f.compute_stream->threads());
    convolution<Scalar>::forward(images(f), pixels(f), this->weight(f, 0),
                                 this->weight(f, 1), s.convolved, s.space,
                                 *f.compute_stream);
    relu_pool<Scalar>::forward(planes(f), s.convolved, this->y(f, pooled_rows(f)),
                               choice(f), *f.compute_stream);
  }

  void input_gradient(const frame<Scalar>& f, int) const override {
    const auto s = scratch_of(f, f.compute_stream->threads());
    relu_pool<Scalar>::backward(planes(f), this->dy(f, pooled_rows(f)), choice(f),
                                f.kept, *f.compute_stream);
    if (f.dx != nullptr)
      convolution<Scalar>::input_gradient(images(f), this->weight(f, 0), f.kept,
                                          this->dx(f, 1).plain().data, s.space,
                                          *f.compute_stream);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    convolution<Scalar>::weight_gradient(
      images(f), pixels(f), f.kept, f.beta, this->gradient(f, 0), this->gradient(f, 1),
      scratch_of(f, f.compute_stream->threads()).space, *f.compute_stream);
  }

private:
  static std::vector<parameter> parameters_of(const std::string& name,
                                              const convolution_shape& image) {
    const double range = 1 / std::sqrt(static_cast<double>(image.patch()));
    return {{name + ".weight",
             {image.filters, image.channels, image.size, image.size},
             beginning::uniform,
             range},
            {name + ".bias", {image.filters}, beginning::uniform, range}};
  }

  convolution_shape images(const frame<Scalar>& f) const {
    auto result = image_;
    result.images = f.samples;
    return result;
  }

  const Scalar* pixels(const frame<Scalar>& f) const {
    return this->x(f, 1).plain().data;
  }

  typename relu_pool<Scalar>::shape planes(const frame<Scalar>& f) const {
    return {f.samples * image_.filters, image_.out_height(), image_.out_width()};
  }

  std::int64_t pooled_rows(const frame<Scalar>& f) const {
    return planes(f).planes * planes(f).height / 2;
  }

  struct scratch_arrays {
    Scalar *convolved, *space;
    std::int64_t end;
  };

  scratch_arrays scratch_of(const frame<Scalar>& f, int threads) const {
    array_layout<Scalar> scratch{f.scratch};
    scratch_arrays s{.convolved = scratch.allocate(f.samples * image_.out_values()),
                     .space =
                       scratch.allocate(convolution<Scalar>::scratch(image_, threads))};
    s.end = scratch.end();
    return s;
  }

  static std::uint8_t* choice(const frame<Scalar>& f) {
    return reinterpret_cast<std::uint8_t*>(f.saved);
  }

  convolution_shape image_; // of one sample
};

} // namespace

template <class Scalar>
std::shared_ptr<const layer<Scalar>> conv_pool_layer(const std::string& name,
                                                     const convolution_shape& image,
                                                     precision writes) {
  return std::make_shared<conv_pool<Scalar>>(name, image, writes);
}

template std::shared_ptr<const layer<float>>
conv_pool_layer<float>(const std::string&, const convolution_shape&, precision);
template std::shared_ptr<const layer<double>>
conv_pool_layer<double>(const std::string&, const convolution_shape&, precision);

} // namespace troupe
