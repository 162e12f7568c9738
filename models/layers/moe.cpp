// SPDX-License-Identifier: BSD-3-Clause
#include "models/layers/moe.hpp"

#include "kernels/arrays.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"
#include "kernels/top_k_gate.hpp"
#include "models/layers/expert.hpp"
#include "models/layers/local_experts.hpp"
#include "models/random.hpp"

#include <cmath>
#include <string>

namespace troupe {

namespace {

// B samples, T tokens each, R = B T rows, width C, n experts, k experts a row. At most
// M rows travel to experts.
template <class Scalar>
class moe_half : public layer<Scalar> {
public:
  moe_half(const gpt_shape& dims, int number, const expert_options& experts,
           expert_location where)
    : layer<Scalar>(parameters_of(dims, number, experts, where),
                    {dims.length * dims.width, dims.stored},
                    {dims.length * dims.width, dims.stored}),
      length_(dims.length),
      known_(dims.known_positions()),
      width_(dims.width),
      stored_(dims.stored),
      options_(experts),
      has_local_experts_(where == expert_location::local),
      noise_(experts.seed, block_name(number) + "mlp.router.noise") {
    if (experts.shared)
      shared_ = expert_layer<Scalar>(dims, shared_name(number));
    if (has_local_experts_)
      experts_ = {dims, number, experts.count};
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    return arrays_of({.samples = samples}).sizes;
  }

  double operations() const override {
    const double expert = 8 * static_cast<double>(width_ * width_) * 2;
    const int expert_count =
      (has_local_experts_ ? options_.chosen : 0) + (shared_ ? 1 : 0);
    return static_cast<double>(length_)
           * (2 * static_cast<double>(width_ * options_.count) + expert_count * expert);
  }

  int pieces() const override { return has_local_experts_ ? 1 : 2; }

  shard_collective<Scalar> collective_after(layer_pass pass, int piece,
                                            const frame<Scalar>& f) const override {
    if (has_local_experts_ || piece > 0 || pass == layer_pass::weight_gradient)
      return {};
    const auto a = arrays_of(f);
    return {shard_collective<Scalar>::kind::experts,
            pass == layer_pass::forward ? a.rows : a.drows, most(rows(f)) * width_,
            table(f, a).counts, rows(f) * options_.chosen};
  }

  bool has_remote_experts() const override { return !has_local_experts_; }

  shard_collective<Scalar>
  weight_gradient_of_experts(const frame<Scalar>& f) const override {
    return {shard_collective<Scalar>::kind::experts, nullptr, most(rows(f)) * width_,
            table(f, arrays_of(f)).counts, rows(f) * options_.chosen};
  }

  void forward(const frame<Scalar>& f, int piece) const override {
    const auto a = arrays_of(f);
    if (piece == 0)
      route(f, a);
    if (has_local_experts_)
      experts_.forward(local_frame(f, a), table(f, a).counts);
    if (piece + 1 == pieces())
      combine(f, a);
  }

  void input_gradient(const frame<Scalar>& f, int piece) const override {
    const auto a = arrays_of(f);
    if (piece == 0)
      dispatch<Scalar>::combine_gradient(table(f, a), a.rows, widened_dy(f, a), a.drows,
                                         a.dweights, *f.compute_stream);
    if (has_local_experts_)
      experts_.input_gradient(local_frame(f, a), table(f, a).counts);
    if (piece + 1 == pieces())
      gather_gradients(f, a);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    const auto a = arrays_of(f);
    if (has_local_experts_)
      experts_.weight_gradient(local_frame(f, a), table(f, a).counts);
    if (shared_)
      shared_->weight_gradient(shared_backward(f, a));
    exact_matmul<Scalar>(
      a.normed.t(), a.dlogits, f.beta,
      dense(this->gradient(f, router), width_, std::int64_t{options_.count}),
      *f.compute_stream);
    layer_norm<Scalar>::weight_gradient(a.x, a.mean, a.rstd, a.dnormed, f.beta,
                                        this->gradient(f, ln_gain),
                                        this->gradient(f, ln_bias), *f.compute_stream);
  }

private:
  enum : std::size_t { ln_gain, ln_bias, router, expert_parameters };

  static std::string block_name(int number) {
    return "transformer.h." + std::to_string(number) + ".";
  }

  static std::string shared_name(int number) {
    return block_name(number) + "mlp.shared.";
  }

  static std::vector<parameter> parameters_of(const gpt_shape& dims, int number,
                                              const expert_options& experts,
                                              expert_location where) {
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
    for (int e = 0; e < experts.count && where == expert_location::local; ++e)
      add(expert_name(number, e));
    return result;
  }

  std::int64_t rows(const frame<Scalar>& f) const { return f.samples * length_; }

  gate_rule rule(const frame<Scalar>& f) const {
    return {options_.count, options_.chosen,
            f.first < 0 ? rows(f) : options_.capacity_of(rows(f))};
  }

  /// M, at any capacity.
  std::int64_t most(std::int64_t rows) const { return rows * options_.chosen; }

  /// The arrays of a frame. All arrays except inputs, outputs and their gradients are
  /// fp32, at any stored precision.
  struct frame_arrays {
    stored_matrix<const Scalar> x, dy; // (R, C)
    stored_matrix<Scalar> y, dx;       // (R, C)
    // saved
    matrix<Scalar> normed;    // ln_2's output (R, C)
    Scalar *mean, *rstd;      // (R)
    Scalar* table;            // the gate's table
    Scalar* rows;             // rows to experts, then the experts' outputs (M, C)
    Scalar* inputs;           // of local experts (M, C)
    Scalar *experts, *shared; // saved by the experts
    // kept
    matrix<Scalar> dnormed; // (R, C)
    Scalar* drows;          // of experts' outputs; if remote, then of inputs (M, C)
    Scalar* dinputs;        // of local experts (M, C)
    Scalar* dweights;       // (R, k)
    matrix<Scalar> dlogits; // (R, n)
    Scalar *experts_kept, *shared_kept;
    // scratch
    matrix<Scalar> of_shared; // output of a shared expert (R, C)
    matrix<Scalar> widened;   // y before rounding, or dy as Scalar (R, C)
    layer_sizes sizes;
  };

  frame_arrays arrays_of(const frame<Scalar>& f) const {
    const auto count = rows(f), values = count * width_, moved = most(count) * width_;
    const auto of_shared = shared_ ? shared_->sizes(count, 1) : layer_sizes{};
    const std::int64_t n = options_.count;
    array_layout<Scalar> saved{f.saved}, kept{f.kept}, scratch{f.scratch};
    frame_arrays a{
      .x = this->x(f, count),
      .dy = this->dy(f, count),
      .y = this->y(f, count),
      .dx = this->dx(f, count),
      .normed = dense(saved.allocate(values), count, width_),
      .mean = saved.allocate(count),
      .rstd = saved.allocate(count),
      .table = saved.allocate(
        gate_table<Scalar>::values(count, options_.count, options_.chosen)),
      .rows = saved.allocate(moved),
      .inputs = saved.allocate(has_local_experts_ ? moved : 0),
      .experts = saved.allocate(experts_.values(&layer_sizes::saved, most(count))),
      .shared = saved.allocate(of_shared.saved),
      .dnormed = dense(kept.allocate(values), count, width_),
      .drows = kept.allocate(moved),
      .dinputs = kept.allocate(has_local_experts_ ? moved : 0),
      .dweights = kept.allocate(most(count)),
      .dlogits = dense(kept.allocate(count * n), count, n),
      .experts_kept = kept.allocate(experts_.values(&layer_sizes::kept, most(count))),
      .shared_kept = kept.allocate(of_shared.kept),
      .of_shared = dense(scratch.allocate(shared_ ? values : 0), count, width_),
      .widened = dense(scratch.allocate(stored_ == precision::fp32 ? 0 : values), count,
                       width_)};
    a.sizes = {.saved = saved.end(), .kept = kept.end(), .scratch = scratch.end()};
    return a;
  }

  gate_table<Scalar> table(const frame<Scalar>& f, const frame_arrays& a) const {
    return {a.table, rows(f), rule(f)};
  }

  matrix<const Scalar> widened_dy(const frame<Scalar>& f, const frame_arrays& a) const {
    if (!a.dy.is_bf16)
      return a.dy.plain();
    arrays<Scalar>::copy(a.dy, a.widened, *f.compute_stream);
    return a.widened;
  }

  /// The frame of all local experts, at their rows.
  frame<Scalar> local_frame(const frame<Scalar>& f, const frame_arrays& a) const {
    auto result = part_frame(f, expert_parameters + (shared_ ? 4 : 0));
    result.x = a.inputs;
    result.y = a.rows;
    result.saved = a.experts;
    result.dy = a.drows;
    result.dx = a.dinputs;
    result.kept = a.experts_kept;
    return result;
  }

  /// The frame of the shared expert, at all rows; the expert's output is scratch.
  frame<Scalar> shared_frame(const frame<Scalar>& f, const frame_arrays& a) const {
    auto result = part_frame(f, expert_parameters);
    result.samples = rows(f);
    result.x = a.normed.data;
    result.y = result.dx = a.of_shared.data;
    result.saved = a.shared;
    result.kept = a.shared_kept;
    return result;
  }

  frame<Scalar> shared_backward(const frame<Scalar>& f, const frame_arrays& a) const {
    auto result = shared_frame(f, a);
    result.dy = widened_dy(f, a).data;
    return result;
  }

  /// The frame of a layer inside this one, whose parameters begin with this layer's
  /// i-th.
  frame<Scalar> part_frame(const frame<Scalar>& f, std::size_t i) const {
    frame<Scalar> result;
    result.parameters = this->bucket_from(f, i);
    result.gradients = f.gradients == nullptr ? nullptr : this->gradient(f, i);
    result.beta = f.beta;
    result.compute_stream = f.compute_stream;
    return result;
  }

  void route(const frame<Scalar>& f, const frame_arrays& a) const {
    const auto gate = table(f, a);
    layer_norm<Scalar>::forward(a.x, this->weight(f, ln_gain), this->weight(f, ln_bias),
                                a.normed, a.mean, a.rstd, *f.compute_stream);
    exact_matmul<Scalar>(
      a.normed, router_weight(f), 0,
      dense(gate.probabilities, rows(f), std::int64_t{options_.count}),
      *f.compute_stream);
    if (options_.noise > 0 && f.first >= 0) {
      f.compute_stream->wait(); // the host adds the noise
      add_noise(f, gate.probabilities);
    }
    top_k_gate<Scalar>::forward(gate, *f.compute_stream);
    dispatch<Scalar>::send(gate, a.normed, has_local_experts_ ? a.inputs : a.rows,
                           *f.compute_stream);
  }

  /// Adds the noise of the gate. A position of a sample has the same noise as at full
  /// length, at any length of the microbatch and among any other samples. \param logits
  /// (R, n)
  void add_noise(const frame<Scalar>& f, Scalar* logits) const {
    const std::int64_t of_sample = length_ * options_.count;
    for (std::int64_t s = 0; s < f.samples; ++s) {
      const auto begin =
        static_cast<std::uint64_t>((f.first + s) * known_ * options_.count);
      for (std::int64_t i = 0; i < of_sample; ++i)
        logits[s * of_sample + i] += static_cast<Scalar>(
          options_.noise * noise_.normal(begin + static_cast<std::uint64_t>(i)));
    }
  }

  void combine(const frame<Scalar>& f, const frame_arrays& a) const {
    const auto sum = a.y.is_bf16 ? a.widened : a.y.plain();
    arrays<Scalar>::copy(a.x, sum, *f.compute_stream);
    dispatch<Scalar>::combine(table(f, a), a.rows, sum, *f.compute_stream);
    if (shared_) {
      shared_->forward(shared_frame(f, a));
      arrays<Scalar>::add(a.of_shared.data, rows(f) * width_, sum.data,
                          *f.compute_stream);
    }
    if (a.y.is_bf16)
      arrays<Scalar>::copy(sum, a.y, *f.compute_stream);
  }

  void gather_gradients(const frame<Scalar>& f, const frame_arrays& a) const {
    const auto gate = table(f, a);
    top_k_gate<Scalar>::backward(gate, a.dweights,
                                 static_cast<Scalar>(options_.balance)
                                   * static_cast<Scalar>(f.samples),
                                 a.dlogits.data, *f.compute_stream);
    exact_matmul<Scalar>(a.dlogits, router_weight(f).t(), 0, a.dnormed,
                         *f.compute_stream);
    dispatch<Scalar>::send_gradient(gate, has_local_experts_ ? a.dinputs : a.drows,
                                    a.dnormed, *f.compute_stream);
    if (shared_) {
      shared_->input_gradient(shared_backward(f, a));
      arrays<Scalar>::add(a.of_shared.data, rows(f) * width_, a.dnormed.data,
                          *f.compute_stream);
    }
    layer_norm<Scalar>::input_gradient(a.x, this->weight(f, ln_gain), a.mean, a.rstd,
                                       a.dnormed, a.dy, a.dx, *f.compute_stream);
  }

  matrix<const Scalar> router_weight(const frame<Scalar>& f) const {
    return dense(this->weight(f, router), width_, std::int64_t{options_.count});
  }

  std::int64_t length_;
  std::int64_t known_; // positions of a sample of full length
  std::int64_t width_;
  precision stored_;
  expert_options options_;
  bool has_local_experts_;
  random_stream noise_;
  std::shared_ptr<const layer<Scalar>> shared_; // null without a shared expert
  local_experts<Scalar> experts_;               // none if experts are remote
};

} // namespace

std::int64_t expert_options::capacity_of(std::int64_t rows) const {
  const double expert_rows =
    capacity * static_cast<double>(rows) * chosen / static_cast<double>(count);
  if (expert_rows >= static_cast<double>(rows))
    return rows;
  // an excess by rounding adds no row
  return static_cast<std::int64_t>(std::ceil(expert_rows * (1 - 1e-12)));
}

template <class Scalar>
std::shared_ptr<const layer<Scalar>> moe_layer(const gpt_shape& dims, int number,
                                               const expert_options& experts,
                                               expert_location where) {
  return std::make_shared<moe_half<Scalar>>(dims, number, experts, where);
}

template std::shared_ptr<const layer<float>>
moe_layer<float>(const gpt_shape&, int, const expert_options&, expert_location);
template std::shared_ptr<const layer<double>>
moe_layer<double>(const gpt_shape&, int, const expert_options&, expert_location);

} // namespace troupe
