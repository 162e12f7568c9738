// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_device/cublas_lt.hpp"

#include "kernels/cuda/on_device/library.hpp"

#include <cublasLt.h>

#include <compare>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

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

/// Sizes and types of a product. cuBLASLt stores matrices by columns, so products are
/// of the transposes: c^T = b^T a^T.
struct product_shape {
  std::int64_t a_rows, a_columns, a_stride;
  std::int64_t b_rows, b_columns, b_stride;
  std::int64_t c_stride;
  bool a_transposed, b_transposed, is_bf16, tf32;
  std::uint32_t a_alignment, b_alignment, c_alignment; // bytes

  auto operator<=>(const product_shape&) const = default;
};

constexpr std::size_t most_planned = 1024;

/// Alignment of an array in bytes, up to the 16 that kernels move at once.
std::uint32_t alignment_of(const void* array) {
  const auto address = reinterpret_cast<std::uintptr_t>(array) | 16U;
  return static_cast<std::uint32_t>(address & -address);
}

/// A product of one shape: made once, with the algorithm that the library finds best.
class planned_product {
public:
  planned_product(cublasLtHandle_t handle, const product_shape& shape)
    : planned_product() {
    const auto stored = shape.is_bf16 ? CUDA_R_16BF : CUDA_R_32F;
    check(lt().create_product(
      &product_, shape.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
      CUDA_R_32F));
    // The left factor of the transposes is b.
    set_operation(CUBLASLT_MATMUL_DESC_TRANSA, shape.b_transposed);
    set_operation(CUBLASLT_MATMUL_DESC_TRANSB, shape.a_transposed);
    const auto rows = shape.a_transposed ? shape.a_columns : shape.a_rows,
               columns = shape.b_transposed ? shape.b_rows : shape.b_columns;
    layout(left_, stored, shape.b_columns, shape.b_rows, shape.b_stride);
    layout(right_, stored, shape.a_columns, shape.a_rows, shape.a_stride);
    layout(result_, CUDA_R_32F, columns, rows, shape.c_stride);
    const auto most = static_cast<std::size_t>(cublas_lt_products::workspace_bytes);
    check(lt().create_wish(&wish_));
    wish(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most);
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shape.b_alignment);
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.a_alignment);
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.c_alignment);
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.c_alignment);
    cublasLtMatmulHeuristicResult_t heuristic{};
    int count = 0;
    check(lt().choose(handle, product_, left_, right_, result_, result_, wish_, 1,
                      &heuristic, &count));
    if (count == 0)
      throw std::runtime_error{"cuBLASLt has no algorithm for a product"};
    algorithm_ = heuristic.algo;
  }

  ~planned_product() {
    for (auto* const layout : {left_, right_, result_})
      if (layout != nullptr)
        lt().destroy_layout(layout);
    if (wish_ != nullptr)
      lt().destroy_wish(wish_);
    if (product_ != nullptr)
      lt().destroy_product(product_);
  }

  planned_product(const planned_product&) = delete;
  planned_product& operator=(const planned_product&) = delete;

  void run(cublasLtHandle_t handle, const void* a, const void* b, float beta, float* c,
           void* space, cudaStream_t stream) const {
    const float alpha = 1;
    check(lt().multiply(handle, product_, &alpha, b, left_, a, right_, &beta, c,
                        result_, c, result_, &algorithm_, space,
                        static_cast<std::size_t>(cublas_lt_products::workspace_bytes),
                        stream));
  }

private:
  // The object is complete here, so the destructor runs if the other constructor
  // throws.
  planned_product() = default;

  template <class Value>
  void wish(cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
    check(lt().set_of_wish(wish_, attribute, &value, sizeof value));
  }

  void set_operation(cublasLtMatmulDescAttributes_t which, bool transposed) {
    const auto operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(lt().set_of_product(product_, which, &operation, sizeof operation));
  }

  static void layout(cublasLtMatrixLayout_t& to, cudaDataType_t stored,
                     std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    check(lt().create_layout(&to, stored, static_cast<std::uint64_t>(rows),
                             static_cast<std::uint64_t>(columns), stride));
  }

  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatmulPreference_t wish_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, result_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

} // namespace

struct cublas_lt_products::state {
  ~state() {
    planned.clear();
    if (handle != nullptr)
      lt().destroy(handle);
  }

  cublasLtHandle_t handle = nullptr;
  std::map<product_shape, planned_product> planned;
};

cublas_lt_products::cublas_lt_products() : state_(std::make_unique<state>()) {
  check(lt().create(&state_->handle));
}

cublas_lt_products::~cublas_lt_products() = default;

void cublas_lt_products::launch(stored_matrix<const float> a,
                                stored_matrix<const float> b, float beta,
                                matrix<float> c, bool rounds, void* workspace,
                                CUstream_st* stream) {
  const product_shape shape{a.rows,
                            a.columns,
                            a.stride,
                            b.rows,
                            b.columns,
                            b.stride,
                            c.stride,
                            a.transposed,
                            b.transposed,
                            a.is_bf16,
                            rounds && !a.is_bf16,
                            alignment_of(a.data),
                            alignment_of(b.data),
                            alignment_of(c.data)};
  auto& planned = state_->planned;
  auto match = planned.find(shape);
  if (match == planned.end()) {
    if (planned.size() >= most_planned) // counts of experts' rows keep changing
      planned.clear();
    match = planned
              .emplace(std::piecewise_construct, std::forward_as_tuple(shape),
                       std::forward_as_tuple(state_->handle, shape))
              .first;
  }
  match->second.run(state_->handle, a.data, b.data, beta, c.data, workspace, stream);
}

} // namespace troupe::cuda
