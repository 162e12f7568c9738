#include "models/layers/moe.hpp"

#include "kernels/arrays.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"
#include "kernels/top_k_gate.hpp"
#include "models/layers/expert.hpp"
#include "models/layers/home_experts.hpp"
#include "models/random.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe {

namespace {

// B samples, T tokens each, R = B T rows, width C, n experts, k a row, M rows on their
// way to experts at most.
template <class Scalar>
class moe_half : public layer<Scalar> {
public:
  moe_half(const gpt_shape& dims, int number, const expert_options& experts,
           experts_at where)
    : layer<Scalar>(parameters_of(dims, number, experts, where),
                    {dims.length * dims.width, dims.stored},
                    {dims.length * dims.width, dims.stored}),
      length_(dims.length),
      width_(dims.width),
      stored_(dims.stored),
      options_(experts),
      at_home_(where == experts_at::home),
      noise_(experts.seed, block_name(number) + "mlp.router.noise") {
    if (experts.shared)
      shared_ = expert_layer<Scalar>(dims, shared_name(number));
    if (at_home_)
      experts_ = {dims, number, experts.count};
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    return {.saved = saved_parts{*this, samples}.end,
            .kept = kept_parts{*this, samples}.end,
            .scratch = scratch_of({.samples = samples}).end};
  }

  double operations() const override {
    const double expert = 8 * static_cast<double>(width_ * width_) * 2;
    const int all = (at_home_ ? options_.chosen : 0) + (shared_ ? 1 : 0);
    return static_cast<double>(length_)
           * (2 * static_cast<double>(width_ * options_.count) + all * expert);
  }

  int pieces() const override { return at_home_ ? 1 : 2; }

  shard_collective<Scalar> after(layer_pass pass, int piece,
                                 const frame<Scalar>& f) const override {
    if (at_home_ || piece > 0 || pass == layer_pass::weight_gradient)
      return {};
    const saved_parts s{*this, f.samples};
    const kept_parts k{*this, f.samples};
    return {shard_collective<Scalar>::kind::experts,
            pass == layer_pass::forward ? f.saved + s.rows : f.kept + k.drows,
            s.most * width_, table(f).counts, rows(f) * options_.chosen};
  }

  void forward(const frame<Scalar>& f, int piece) const override {
    if (piece == 0)
      route(f);
    if (at_home_)
      experts_.forward(home_frame(f), table(f).counts);
    if (piece + 1 == pieces())
      combine(f);
  }

  void input_gradient(const frame<Scalar>& f, int piece) const override {
    const saved_parts s{*this, f.samples};
    const kept_parts k{*this, f.samples};
    if (piece == 0)
      dispatch<Scalar>::combine_gradient(table(f), f.saved + s.rows, widened_dy(f),
                                         f.kept + k.drows, f.kept + k.dweights, *f.on);
    if (at_home_)
      experts_.input_gradient(home_frame(f), table(f).counts);
    if (piece + 1 == pieces())
      gather_gradients(f);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    const saved_parts s{*this, f.samples};
    const kept_parts k{*this, f.samples};
    if (at_home_)
      experts_.weight_gradient(home_frame(f), table(f).counts);
    if (shared_)
      shared_->weight_gradient(shared_backward(f));
    exact_matmul<Scalar>(
      dense(f.saved + s.normed, rows(f), width_).t(),
      dense<const Scalar>(f.kept + k.dlogits, rows(f), options_.count), f.beta,
      dense(this->gradient(f, router), width_, options_.count), *f.on);
    layer_norm<Scalar>::weight_gradient(
      this->x(f, rows(f)), f.saved + s.mean, f.saved + s.rstd,
      dense<const Scalar>(f.kept + k.dnormed, rows(f), width_), f.beta,
      this->gradient(f, ln_gain), this->gradient(f, ln_bias), *f.on);
  }

private:
  enum : std::size_t { ln_gain, ln_bias, router, others };

  static std::string block_name(int number) {
    return "transformer.h." + std::to_string(number) + ".";
  }

  static std::string shared_name(int number) {
    return block_name(number) + "mlp.shared.";
  }

  static std::vector<parameter> parameters_of(const gpt_shape& dims, int number,
                                              const expert_options& experts,
                                              experts_at where) {
    const auto block = block_name(number);
    std::vector<parameter> result{
      {block + "ln_2.weight", {dims.width}, beginning::ones},
      {block + "ln_2.bias", {dims.width}, beginning::zeros},
      {block + "mlp.router.weight",
       {dims.width, experts.count},
       beginning::normal,
       dims.deviation}};
    const auto add = [&](const std::string& name) {
      const auto expert = expert_layer<Scalar>(dims, name);
      for (auto p : expert->parameters()) {
        p.cut.reset();
        result.push_back(std::move(p));
      }
    };
    if (experts.shared)
      add(shared_name(number));
    for (int e = 0; e < experts.count && where == experts_at::home; ++e)
      add(expert_name(number, e));
    return result;
  }

  std::int64_t rows(const frame<Scalar>& f) const { return f.samples * length_; }

  gate_rule rule(const frame<Scalar>& f) const {
    return {options_.count, options_.chosen,
            f.first < 0 ? rows(f) : options_.capacity_of(rows(f))};
  }

  std::int64_t table_values(std::int64_t rows) const {
    return gate_table<Scalar>::values(rows, options_.count, options_.chosen);
  }

  /// M, whatever the capacity.
  std::int64_t most(std::int64_t rows) const { return rows * options_.chosen; }

  /// Where what the backward needs lies in `saved`.
  struct saved_parts {
    saved_parts(const moe_half& half, std::int64_t samples) {
      const auto count = samples * half.length_;
      most = half.most(count);
      mean = normed + padded(count * half.width_);
      rstd = mean + padded(count);
      table = rstd + padded(count);
      rows = table + half.table_values(count);
      inputs = rows + padded(most * half.width_);
      experts = inputs + (half.at_home_ ? padded(most * half.width_) : 0);
      shared = experts + half.experts_.values(&layer_sizes::saved, most);
      end = shared + (half.shared_ ? half.shared_->sizes(count, 1).saved : 0);
    }

    std::int64_t most;       // M
    std::int64_t normed = 0; // ln_2's output (R, C)
    std::int64_t mean, rstd; // (R)
    std::int64_t table;      // the gate's
    std::int64_t rows;       // to experts, then their outputs (M, C)
    std::int64_t inputs;     // of experts at home (M, C)
    std::int64_t experts, shared;
    std::int64_t end;
  };

  /// And in `kept`.
  struct kept_parts {
    kept_parts(const moe_half& half, std::int64_t samples) {
      const auto count = samples * half.length_;
      const auto most = half.most(count);
      drows = dnormed + padded(count * half.width_);
      dinputs = drows + padded(most * half.width_);
      dweights = dinputs + (half.at_home_ ? padded(most * half.width_) : 0);
      dlogits = dweights + padded(count * half.options_.chosen);
      experts = dlogits + padded(count * half.options_.count);
      shared = experts + half.experts_.values(&layer_sizes::kept, most);
      end = shared + (half.shared_ ? half.shared_->sizes(count, 1).kept : 0);
    }

    std::int64_t dnormed = 0; // (R, C)
    std::int64_t drows;       // of experts' outputs; elsewhere then of inputs (M, C)
    std::int64_t dinputs;     // of experts at home (M, C)
    std::int64_t dweights;    // (R, k)
    std::int64_t dlogits;     // (R, n)
    std::int64_t experts, shared;
    std::int64_t end;
  };

  gate_table<Scalar> table(const frame<Scalar>& f) const {
    return {f.saved + saved_parts{*this, f.samples}.table, rows(f), rule(f)};
  }

  /// What lies in `scratch`, fp32 whatever is stored.
  struct scratch_arrays {
    matrix<Scalar> of_shared; // what a shared expert makes (R, C)
    matrix<Scalar> widened;   // y before it is rounded, or dy (R, C)
    std::int64_t end;
  };

  scratch_arrays scratch_of(const frame<Scalar>& f) const {
    array_shelf<Scalar> scratch{f.scratch};
    const auto count = rows(f), values = count * width_;
    scratch_arrays s{
      .of_shared = dense(scratch.take(shared_ ? values : 0), count, width_),
      .widened =
        dense(scratch.take(stored_ == precision::fp32 ? 0 : values), count, width_)};
    s.end = scratch.end();
    return s;
  }

  matrix<const Scalar> widened_dy(const frame<Scalar>& f) const {
    const auto dy = this->dy(f, rows(f));
    if (!dy.is_bf16)
      return dy.plain();
    const auto to = scratch_of(f).widened;
    arrays<Scalar>::copy(dy, to, *f.on);
    return to;
  }

  /// All experts at home, at their rows.
  frame<Scalar> home_frame(const frame<Scalar>& f) const {
    const saved_parts s{*this, f.samples};
    const kept_parts k{*this, f.samples};
    auto result = part_frame(f, others + (shared_ ? 4 : 0));
    result.x = f.saved + s.inputs;
    result.y = f.saved + s.rows;
    result.saved = f.saved + s.experts;
    if (f.kept != nullptr) {
      result.dy = f.kept + k.drows;
      result.dx = f.kept + k.dinputs;
      result.kept = f.kept + k.experts;
    }
    return result;
  }

  /// The shared expert, at all rows; what it makes is scratch.
  frame<Scalar> shared_frame(const frame<Scalar>& f) const {
    auto result = part_frame(f, others);
    result.samples = rows(f);
    result.x = f.saved + saved_parts{*this, f.samples}.normed;
    result.y = result.dx = scratch_of(f).of_shared.data;
    result.saved = f.saved + saved_parts{*this, f.samples}.shared;
    if (f.kept != nullptr)
      result.kept = f.kept + kept_parts{*this, f.samples}.shared;
    return result;
  }

  frame<Scalar> shared_backward(const frame<Scalar>& f) const {
    auto result = shared_frame(f);
    result.dy = widened_dy(f).data;
    return result;
  }

  /// A layer within this one, whose parameters begin with this one's i-th.
  frame<Scalar> part_frame(const frame<Scalar>& f, std::size_t i) const {
    frame<Scalar> result;
    result.parameters = this->weight(f, i);
    result.gradients = f.gradients == nullptr ? nullptr : this->gradient(f, i);
    result.beta = f.beta;
    result.on = f.on;
    return result;
  }

  void route(const frame<Scalar>& f) const {
    const saved_parts s{*this, f.samples};
    const auto by = table(f);
    const auto normed = dense(f.saved + s.normed, rows(f), width_);
    layer_norm<Scalar>::forward(this->x(f, rows(f)), this->weight(f, ln_gain),
                                this->weight(f, ln_bias), normed, f.saved + s.mean,
                                f.saved + s.rstd, *f.on);
    exact_matmul<Scalar>(normed, router_weight(f), 0,
                         dense(by.probabilities, rows(f), options_.count), *f.on);
    if (options_.noise > 0 && f.first >= 0) {
      const auto begin = static_cast<std::uint64_t>(f.first * length_ * options_.count);
      for (std::int64_t i = 0; i < rows(f) * options_.count; ++i)
        by.probabilities[i] += static_cast<Scalar>(
          options_.noise * noise_.normal(begin + static_cast<std::uint64_t>(i)));
    }
    top_k_gate<Scalar>::forward(by, *f.on);
    dispatch<Scalar>::send(by, normed, f.saved + (at_home_ ? s.inputs : s.rows), *f.on);
  }

  void combine(const frame<Scalar>& f) const {
    const saved_parts s{*this, f.samples};
    const auto scratch = scratch_of(f);
    const auto y = this->y(f, rows(f));
    const auto sum = y.is_bf16 ? scratch.widened : y.plain();
    arrays<Scalar>::copy(this->x(f, rows(f)), sum, *f.on);
    dispatch<Scalar>::combine(table(f), f.saved + s.rows, sum, *f.on);
    if (shared_) {
      shared_->forward(shared_frame(f));
      arrays<Scalar>::add(scratch.of_shared.data, rows(f) * width_, sum.data, *f.on);
    }
    if (y.is_bf16)
      arrays<Scalar>::copy(sum, y, *f.on);
  }

  void gather_gradients(const frame<Scalar>& f) const {
    const saved_parts s{*this, f.samples};
    const kept_parts k{*this, f.samples};
    const auto by = table(f);
    const auto scratch = scratch_of(f);
    const auto dnormed = dense(f.kept + k.dnormed, rows(f), width_);
    const auto dlogits = dense(f.kept + k.dlogits, rows(f), options_.count);
    top_k_gate<Scalar>::backward(by, f.kept + k.dweights,
                                 static_cast<Scalar>(options_.balance)
                                   * static_cast<Scalar>(f.samples),
                                 dlogits.data, *f.on);
    exact_matmul<Scalar>(dlogits, router_weight(f).t(), 0, dnormed, *f.on);
    dispatch<Scalar>::send_gradient(by, f.kept + (at_home_ ? k.dinputs : k.drows),
                                    dnormed, *f.on);
    if (shared_) {
      shared_->input_gradient(shared_backward(f));
      arrays<Scalar>::add(scratch.of_shared.data, rows(f) * width_, dnormed.data,
                          *f.on);
    }
    layer_norm<Scalar>::input_gradient(
      this->x(f, rows(f)), this->weight(f, ln_gain), f.saved + s.mean, f.saved + s.rstd,
      dnormed, this->dy(f, rows(f)), this->dx(f, rows(f)), *f.on);
  }

  matrix<const Scalar> router_weight(const frame<Scalar>& f) const {
    return dense(this->weight(f, router), width_, std::int64_t{options_.count});
  }

  std::int64_t length_;
  std::int64_t width_;
  precision stored_;
  expert_options options_;
  bool at_home_;
  random_stream noise_;
  std::shared_ptr<const layer<Scalar>> shared_; // null without one
  home_experts<Scalar> experts_;                // none where they are elsewhere
};

} // namespace

std::int64_t expert_options::capacity_of(std::int64_t rows) const {
  const double room =
    capacity * static_cast<double>(rows) * chosen / static_cast<double>(count);
  if (room >= static_cast<double>(rows))
    return rows;
  return static_cast<std::int64_t>(std::ceil(room * (1 - 1e-12))); // not for rounding
}

template <class Scalar>
std::shared_ptr<const layer<Scalar>> moe_layer(const gpt_shape& dims, int number,
                                               const expert_options& experts,
                                               experts_at where) {
  return std::make_shared<moe_half<Scalar>>(dims, number, experts, where);
}

template std::shared_ptr<const layer<float>>
moe_layer<float>(const gpt_shape&, int, const expert_options&, experts_at);
template std::shared_ptr<const layer<double>>
moe_layer<double>(const gpt_shape&, int, const expert_options&, experts_at);

} // namespace troupe
