#include "models/layers/conv_pool.hpp"

#include "kernels/convolution.hpp"
#include "kernels/relu_pool.hpp"

#include <cmath>

namespace troupe {

namespace {

// saved: which pixel each maximum was; kept: the gradient before ReLU and pooling.
template <class Scalar>
class conv_pool : public layer<Scalar> {
public:
  conv_pool(const std::string& name, const convolution_shape& image)
    : layer<Scalar>(parameters_of(name, image), image.in_values(),
                    image.out_values() / 4),
      image_(image) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int threads) const override {
    const auto convolved = padded(samples * image_.out_values());
    return {.saved = samples * this->output() / std::int64_t{sizeof(Scalar)} + 1,
            .kept = convolved,
            .scratch = convolved + convolution<Scalar>::scratch(image_, threads)};
  }

  double operations() const override {
    return 2.0 * static_cast<double>(image_.out_values() * image_.patch());
  }

  void forward(const frame<Scalar>& f, int) const override {
    auto* const convolved = f.scratch;
    convolution<Scalar>::forward(images(f), f.x, this->weight(f, 0), this->weight(f, 1),
                                 convolved, space(f), *f.on);
    relu_pool<Scalar>::forward(planes(f), convolved, f.y, choice(f), *f.on);
  }

  void input_gradient(const frame<Scalar>& f, int) const override {
    relu_pool<Scalar>::backward(planes(f), f.dy, choice(f), f.kept, *f.on);
    if (f.dx != nullptr)
      convolution<Scalar>::input_gradient(images(f), this->weight(f, 0), f.kept, f.dx,
                                          space(f), *f.on);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    convolution<Scalar>::weight_gradient(images(f), f.x, f.kept, f.beta,
                                         this->gradient(f, 0), this->gradient(f, 1),
                                         space(f), *f.on);
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

  typename relu_pool<Scalar>::shape planes(const frame<Scalar>& f) const {
    return {f.samples * image_.filters, image_.out_height(), image_.out_width()};
  }

  Scalar* space(const frame<Scalar>& f) const {
    return f.scratch + padded(f.samples * image_.out_values());
  }

  static std::uint8_t* choice(const frame<Scalar>& f) {
    return reinterpret_cast<std::uint8_t*>(f.saved);
  }

  convolution_shape image_; // of one sample
};

} // namespace

template <class Scalar>
std::shared_ptr<const layer<Scalar>>
conv_pool_layer(const std::string& name, std::int64_t channels, std::int64_t side,
                std::int64_t filters, std::int64_t size) {
  const convolution_shape image{1, channels, side, side, filters, size};
  return std::make_shared<conv_pool<Scalar>>(name, image);
}

template std::shared_ptr<const layer<float>>
conv_pool_layer<float>(const std::string&, std::int64_t, std::int64_t, std::int64_t,
                       std::int64_t);
template std::shared_ptr<const layer<double>>
conv_pool_layer<double>(const std::string&, std::int64_t, std::int64_t, std::int64_t,
                        std::int64_t);

} // namespace troupe
