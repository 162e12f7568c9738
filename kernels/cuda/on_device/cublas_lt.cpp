// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_device/cublas_lt.hpp"

#include "kernels/cuda/on_device/library.hpp"
#include "kernels/cuda/on_device/scratch_product.hpp"

#include <cublasLt.h>

#include <array>
#include <cmath>
#include <compare>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe::cuda {

namespace {

void check(cublasStatus_t state) {
  if (state != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error{"cuBLASLt cannot multiply: status "
                             + std::to_string(static_cast<int>(state))};
}

/// The functions of cuBLASLt. The library is half a gigabyte, and is loaded when the
/// first stream of a GPU is made.
struct cublas_lt {
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmulDescCreate) create_product;
  decltype(&cublasLtMatmulDescDestroy) destroy_product;
  decltype(&cublasLtMatmulDescSetAttribute) set_of_product;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_wish;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_wish;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_of_wish;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
  decltype(&cublasLtMatmul) multiply;

  cublas_lt() {
    const library loaded{"cuBLASLt", CUBLAS_VER_MAJOR, "libcublasLt.so"};
    loaded.find("cublasLtGetVersion", version);
    loaded.find("cublasLtCreate", create);
    loaded.find("cublasLtDestroy", destroy);
    loaded.find("cublasLtMatmulDescCreate", create_product);
    loaded.find("cublasLtMatmulDescDestroy", destroy_product);
    loaded.find("cublasLtMatmulDescSetAttribute", set_of_product);
    loaded.find("cublasLtMatrixLayoutCreate", create_layout);
    loaded.find("cublasLtMatrixLayoutDestroy", destroy_layout);
    loaded.find("cublasLtMatmulPreferenceCreate", create_wish);
    loaded.find("cublasLtMatmulPreferenceDestroy", destroy_wish);
    loaded.find("cublasLtMatmulPreferenceSetAttribute", set_of_wish);
    loaded.find("cublasLtMatmulAlgoGetHeuristic", choose);
    loaded.find("cublasLtMatmul", multiply);
  }
};

const cublas_lt& lt() {
  static const cublas_lt loaded;
  return loaded;
}

/// Everything of a product that its algorithm depends on.
struct product_shape {
  struct layout {
    std::int64_t stride = 0;
    std::uint32_t alignment = 16; ///< bytes
    bool is_bf16 = false;

    auto operator<=>(const layout&) const = default;
  };

  std::int64_t a_rows, a_columns, b_rows, b_columns;
  bool a_transposed, b_transposed, tf32, adds;
  epilogue_kind end;
  layout a, b, c, x, y;

  auto operator<=>(const product_shape&) const = default;
};

constexpr std::size_t most_planned = 1024;

/// Alignment of an array in bytes, up to the 16 that kernels move at once.
std::uint32_t alignment_of(const void* array) {
  const auto address = reinterpret_cast<std::uintptr_t>(array) | 16U;
  return static_cast<std::uint32_t>(address & -address);
}

template <class Scalar>
product_shape::layout layout_of(const stored_matrix<Scalar>& m) {
  return {m.stride, alignment_of(m.data), m.is_bf16};
}

product_shape shape_of(const library_product& p) {
  return {p.a.rows,
          p.a.columns,
          p.b.rows,
          p.b.columns,
          p.a.transposed,
          p.b.transposed,
          p.tf32 && !p.a.is_bf16,
          p.beta != 0,
          p.end,
          layout_of(p.a),
          layout_of(p.b),
          layout_of(p.c),
          layout_of(p.x),
          layout_of(p.y)};
}

cublasLtEpilogue_t epilogue_of(epilogue_kind kind) {
  switch (kind) {
  case epilogue_kind::bias:
  case epilogue_kind::bias_residual:
    return CUBLASLT_EPILOGUE_BIAS;
  case epilogue_kind::bias_gelu:
    return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  case epilogue_kind::gelu_gradient:
    return CUBLASLT_EPILOGUE_DGELU;
  case epilogue_kind::none:
  case epilogue_kind::bias_relu:
    break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

/// A product of one shape: made once, with the algorithms that the library proposes.
/// The first is used until take() names another.
/// cuBLASLt stores matrices by columns, so products are of the transposes:
/// c^T = b^T a^T. In its terms D is the result, C the array that is added, and the
/// auxiliary array holds the GELU's inputs.
class planned_product {
public:
  /// \param most largest number of algorithms
  planned_product(cublasLtHandle_t handle, const library_product& product, int most)
    : planned_product() {
    const auto shape = shape_of(product);
    check(lt().create_product(
      &product_, shape.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
      CUDA_R_32F));
    // The left factor of the transposes is b.
    set(CUBLASLT_MATMUL_DESC_TRANSA, operation(shape.b_transposed));
    set(CUBLASLT_MATMUL_DESC_TRANSB, operation(shape.a_transposed));
    set_epilogue(product);
    const auto rows = shape.a_transposed ? shape.a_columns : shape.a_rows,
               columns = shape.b_transposed ? shape.b_rows : shape.b_columns;
    create(left_, shape.b_columns, shape.b_rows, shape.b);
    create(right_, shape.a_columns, shape.a_rows, shape.a);
    const auto added = adds_residual(product) ? shape.x : shape.c;
    const auto result = has_two_results(product) ? shape.y : shape.c;
    create(added_, columns, rows, has_two_results(product) ? result : added);
    create(result_, columns, rows, result);
    check(lt().create_wish(&wish_));
    wish(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
         static_cast<std::size_t>(cublas_lt_products::workspace_bytes));
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shape.b.alignment);
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.a.alignment);
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, added.alignment);
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result.alignment);
    std::array<cublasLtMatmulHeuristicResult_t, most_algorithms> proposed{};
    int count = 0;
    if (lt().choose(handle, product_, left_, right_, added_, result_, wish_, most,
                    proposed.data(), &count)
        != CUBLAS_STATUS_SUCCESS)
      return;
    for (int i = 0; i < count; ++i)
      algorithms_.push_back(proposed[static_cast<std::size_t>(i)].algo);
  }

  ~planned_product() {
    for (auto* const layout : {left_, right_, added_, result_})
      if (layout != nullptr)
        lt().destroy_layout(layout);
    if (wish_ != nullptr)
      lt().destroy_wish(wish_);
    if (product_ != nullptr)
      lt().destroy_product(product_);
  }

  planned_product(const planned_product&) = delete;
  planned_product& operator=(const planned_product&) = delete;

  std::size_t algorithms() const { return algorithms_.size(); }

  /// Makes run() use an algorithm. Without an algorithm of this index, run() continues
  /// to use the first.
  void take(int algorithm) {
    const auto index = static_cast<std::size_t>(algorithm);
    taken_ = index < algorithms_.size() ? index : 0;
  }

  void run(cublasLtHandle_t handle, const library_product& product, void* space,
           cudaStream_t stream) {
    if (algorithms_.empty())
      throw std::runtime_error{"cuBLASLt has no algorithm for a product"};
    check(run_by(taken_, handle, product, space, stream));
  }

  /// Launches the product by one of the algorithms.
  cublasStatus_t run_by(std::size_t algorithm, cublasLtHandle_t handle,
                        const library_product& product, void* space,
                        cudaStream_t stream) {
    set_epilogue(product);
    const float alpha = 1;
    const bool adds_x = adds_residual(product);
    const float beta = adds_x ? 1 : product.beta;
    void* const result = has_two_results(product) ? product.y.data : product.c.data;
    const void* const added = adds_x ? product.x.data : result;
    return lt().multiply(
      handle, product_, &alpha, product.b.data, left_, product.a.data, right_, &beta,
      added, added_, result, result_, &algorithms_[algorithm], space,
      static_cast<std::size_t>(cublas_lt_products::workspace_bytes), stream);
  }

private:
  // The object is complete here, so the destructor runs if the other constructor
  // throws.
  planned_product() = default;

  static bool adds_residual(const library_product& product) {
    return product.end == epilogue_kind::bias_residual;
  }

  /// Whether the library's result is y, and its auxiliary array is c.
  static bool has_two_results(const library_product& product) {
    return product.end == epilogue_kind::bias_gelu;
  }

  static cublasOperation_t operation(bool transposed) {
    return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  }

  template <class Value>
  void wish(cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
    check(lt().set_of_wish(wish_, attribute, &value, sizeof value));
  }

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t which, const Value& value) {
    check(lt().set_of_product(product_, which, &value, sizeof value));
  }

  void set_epilogue(const library_product& product) {
    if (product.end == epilogue_kind::none)
      return;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(product.end));
    if (product.end != epilogue_kind::gelu_gradient)
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
    if (product.end == epilogue_kind::bias_gelu)
      set_inputs_of_gelu(product.c.data, product.c.stride);
    if (product.end == epilogue_kind::gelu_gradient)
      set_inputs_of_gelu(product.x.data, product.x.stride);
  }

  void set_inputs_of_gelu(const void* data, std::int64_t stride) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, data);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, stride);
  }

  static void create(cublasLtMatrixLayout_t& to, std::int64_t rows,
                     std::int64_t columns, const product_shape::layout& stored) {
    check(lt().create_layout(&to, stored.is_bf16 ? CUDA_R_16BF : CUDA_R_32F,
                             static_cast<std::uint64_t>(rows),
                             static_cast<std::uint64_t>(columns), stored.stride));
  }

  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatmulPreference_t wish_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, added_ = nullptr,
                         result_ = nullptr;
  std::vector<cublasLtMatmulAlgo_t> algorithms_;
  std::size_t taken_ = 0;
};

} // namespace

struct cublas_lt_products::state {
  ~state() {
    planned.clear();
    if (handle != nullptr)
      lt().destroy(handle);
  }

  planned_product& planned_for(const library_product& product) {
    const auto shape = shape_of(product);
    auto match = planned.find(shape);
    if (match == planned.end()) {
      if (planned.size() >= most_planned) // counts of experts' rows keep changing
        planned.clear();
      const auto key = key_of(product, gpu, version);
      const bool measures = key && measured;
      const int listed = key && !measures ? listed_algorithm(*key) : 0;
      match =
        planned
          .emplace(std::piecewise_construct, std::forward_as_tuple(shape),
                   std::forward_as_tuple(handle, product,
                                         measures || listed > 0 ? most_algorithms : 1))
          .first;
      match->second.take(measures ? measured_algorithm(*key, product, match->second)
                                  : listed);
    }
    return match->second;
  }

  /// The algorithm that the table of this build names; without a choice the first.
  static int listed_algorithm(const product_key& key) {
    const auto& listed = known_choices().rows;
    const auto match = listed.find(key);
    return match == listed.end() ? 0 : match->second.algorithm;
  }

  /// The algorithm that is the fastest on this GPU now, or was when first measured.
  int measured_algorithm(const product_key& key, const library_product& product,
                         planned_product& of_product) const {
    if (of_product.algorithms() == 0)
      return 0;
    if (!measured->rows.contains(key)) {
      const scratch_product scratch{product, workspace_bytes, measured_on};
      const auto times = microseconds_of_turns(
        of_product.algorithms(),
        [&](std::size_t algorithm) {
          return of_product.run_by(algorithm, handle, scratch.product(),
                                   scratch.workspace(), measured_on)
                 == CUBLAS_STATUS_SUCCESS;
        },
        measured_on);
      if (!std::isfinite(times.front()))
        return 0; // run() reports why
      measured->rows.emplace(key, choice_of(times));
    }
    return measured->rows.at(key).algorithm;
  }

  std::string gpu;
  std::int64_t version = 0;
  cublasLtHandle_t handle = nullptr;
  std::map<product_shape, planned_product> planned;
  std::shared_ptr<product_choices> measured; // null: the table's choices are taken
  cudaStream_t measured_on = nullptr;
};

cublas_lt_products::cublas_lt_products(std::string gpu)
  : state_(std::make_unique<state>()) {
  state_->gpu = std::move(gpu);
  state_->version = static_cast<std::int64_t>(lt().version());
  check(lt().create(&state_->handle));
}

cublas_lt_products::~cublas_lt_products() = default;

void cublas_lt_products::measure_choices(std::shared_ptr<product_choices> measured,
                                         CUstream_st* stream) {
  state_->measured = std::move(measured);
  state_->measured_on = stream;
  state_->planned.clear();
}

std::int64_t cublas_lt_products::version() const {
  return state_->version;
}

bool cublas_lt_products::has_algorithm(const library_product& product) {
  return state_->planned_for(product).algorithms() > 0;
}

void cublas_lt_products::launch(const library_product& product, void* workspace,
                                CUstream_st* stream) {
  state_->planned_for(product).run(state_->handle, product, workspace, stream);
}

} // namespace troupe::cuda
