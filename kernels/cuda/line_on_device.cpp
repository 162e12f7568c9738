// A line of a real GPU: CUDA's runtime, and cuBLASLt.

#include "kernels/cuda/line.hpp"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <tuple>

namespace troupe::cuda {

namespace {

void check(cudaError_t state, const char* what) {
  if (state == cudaErrorMemoryAllocation)
    throw std::bad_alloc{};
  if (state != cudaSuccess)
    throw std::runtime_error{std::string{"the GPU cannot "} + what + ": "
                             + cudaGetErrorString(state)};
}

void check(cublasStatus_t state) {
  if (state != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error{"cuBLASLt cannot multiply: status "
                             + std::to_string(static_cast<int>(state))};
}

/// cuBLASLt is half a gigabyte: it is loaded when the first line of a GPU is made.
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
    const auto version = std::to_string(CUBLAS_VER_MAJOR);
    void* const library =
      dlopen(("libcublasLt.so." + version).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      throw std::runtime_error{"cuBLASLt " + version
                               + " is not installed, or not where "
                                 "LD_LIBRARY_PATH says: "
                               + std::string{dlerror()}};
    find(library, "cublasLtCreate", create);
    find(library, "cublasLtDestroy", destroy);
    find(library, "cublasLtMatmulDescCreate", create_product);
    find(library, "cublasLtMatmulDescDestroy", destroy_product);
    find(library, "cublasLtMatmulDescSetAttribute", set_of_product);
    find(library, "cublasLtMatrixLayoutCreate", create_layout);
    find(library, "cublasLtMatrixLayoutDestroy", destroy_layout);
    find(library, "cublasLtMatmulPreferenceCreate", create_wish);
    find(library, "cublasLtMatmulPreferenceDestroy", destroy_wish);
    find(library, "cublasLtMatmulPreferenceSetAttribute", set_of_wish);
    find(library, "cublasLtMatmulAlgoGetHeuristic", choose);
    find(library, "cublasLtMatmul", multiply);
  }

private:
  template <class Function>
  static void find(void* library, const char* name, Function& to) {
    to = reinterpret_cast<Function>(dlsym(library, name));
    if (to == nullptr)
      throw std::runtime_error{std::string{"cuBLASLt lacks "} + name};
  }
};

const cublas_lt& lt() {
  static const cublas_lt loaded;
  return loaded;
}

/// What cuBLASLt has to know of a product. It has columns first, so it is told of the
/// transposes: c^T = b^T a^T.
struct product_shape {
  std::int64_t a_rows, a_columns, a_stride;
  std::int64_t b_rows, b_columns, b_stride;
  std::int64_t c_stride;
  bool a_transposed, b_transposed, is_bf16, tf32;
  std::uint32_t a_alignment, b_alignment, c_alignment; // bytes

  auto operator<=>(const product_shape&) const = default;
};

constexpr std::int64_t workspace_bytes = std::int64_t{32} << 20;
constexpr std::size_t most_planned = 1024;

/// Bytes, up to the 16 that kernels move at once.
std::uint32_t alignment_of(const void* array) {
  const auto address = reinterpret_cast<std::uintptr_t>(array) | 16U;
  return static_cast<std::uint32_t>(address & -address);
}

/// Of one shape: made once, with the algorithm that the library finds best.
class planned_product {
public:
  planned_product(cublasLtHandle_t with, const product_shape& of) : planned_product() {
    const auto stored = of.is_bf16 ? CUDA_R_16BF : CUDA_R_32F;
    check(lt().create_product(
      &product_, of.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
      CUDA_R_32F));
    // The left factor of the transposes is b.
    set_operation(CUBLASLT_MATMUL_DESC_TRANSA, of.b_transposed);
    set_operation(CUBLASLT_MATMUL_DESC_TRANSB, of.a_transposed);
    const auto rows = of.a_transposed ? of.a_columns : of.a_rows,
               columns = of.b_transposed ? of.b_rows : of.b_columns;
    layout(left_, stored, of.b_columns, of.b_rows, of.b_stride);
    layout(right_, stored, of.a_columns, of.a_rows, of.a_stride);
    layout(result_, CUDA_R_32F, columns, rows, of.c_stride);
    const auto most = static_cast<std::size_t>(workspace_bytes);
    check(lt().create_wish(&wish_));
    wish(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most);
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, of.b_alignment);
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, of.a_alignment);
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of.c_alignment);
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of.c_alignment);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    check(lt().choose(with, product_, left_, right_, result_, result_, wish_, 1, &found,
                      &count));
    if (count == 0)
      throw std::runtime_error{"cuBLASLt has no algorithm for a product"};
    how_ = found.algo;
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

  void run(cublasLtHandle_t with, const void* a, const void* b, float beta, float* c,
           void* space, cudaStream_t on) const {
    const float one = 1;
    check(lt().multiply(with, product_, &one, b, left_, a, right_, &beta, c, result_, c,
                        result_, &how_, space,
                        static_cast<std::size_t>(workspace_bytes), on));
  }

private:
  planned_product() = default; // is whole, so that what is made after it is destroyed

  template <class Value>
  void wish(cublasLtMatmulPreferenceAttributes_t what, const Value& value) {
    check(lt().set_of_wish(wish_, what, &value, sizeof value));
  }

  void set_operation(cublasLtMatmulDescAttributes_t which, bool transposed) {
    const auto what = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(lt().set_of_product(product_, which, &what, sizeof what));
  }

  static void layout(cublasLtMatrixLayout_t& to, cudaDataType_t stored,
                     std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    check(lt().create_layout(&to, stored, static_cast<std::uint64_t>(rows),
                             static_cast<std::uint64_t>(columns), stride));
  }

  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatmulPreference_t wish_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, result_ = nullptr;
  cublasLtMatmulAlgo_t how_{};
};

/// Of 13000: "13.0".
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

int attribute_of(int gpu, cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, gpu), "be asked");
  return value;
}

class unified_space : public memory_space {
public:
  explicit unified_space(int gpu) : gpu_(gpu) {
    // nop
  }

  void* take(std::int64_t bytes) override {
    const auto size = static_cast<std::size_t>(bytes);
    check(cudaSetDevice(gpu_), "be used");
    void* memory = nullptr;
    check(cudaMallocManaged(&memory, size), "take memory");
    check(cudaMemset(memory, 0, size), "clear memory");
    check(cudaStreamSynchronize(nullptr), "clear memory");
    return memory;
  }

  void give_back(void* memory, std::int64_t) noexcept override { cudaFree(memory); }

private:
  int gpu_;
};

} // namespace

struct line::state {
  ~state() {
    cudaSetDevice(gpu);
    if (stream != nullptr)
      cudaStreamSynchronize(stream);
    for (auto& [which, used] : rooms)
      cudaFree(used.memory);
    planned.clear();
    if (products != nullptr)
      lt().destroy(products);
    if (stream != nullptr)
      cudaStreamDestroy(stream);
  }

  int gpu = 0;
  cudaStream_t stream = nullptr;
  cublasLtHandle_t products = nullptr;
  std::map<product_shape, planned_product> planned;
  struct place {
    void* memory = nullptr;
    std::int64_t bytes = 0;
  };
  std::map<room, place> rooms;
};

line::line(int gpu, bool tf32) : tf32_(tf32), state_(std::make_unique<state>()) {
  if (const auto why = absence(); !why.empty())
    throw std::runtime_error{why};
  if (gpu < 0 || gpu >= count())
    throw std::runtime_error{"this machine has " + std::to_string(count())
                             + " GPUs, and no cuda:" + std::to_string(gpu)};
  if (attribute_of(gpu, cudaDevAttrConcurrentManagedAccess) == 0)
    throw std::runtime_error{
      "cuda:" + std::to_string(gpu)
      + " cannot share memory with this machine while it computes"};
  state_->gpu = gpu;
  check(cudaSetDevice(gpu), "be used");
  check(cudaStreamCreateWithFlags(&state_->stream, cudaStreamNonBlocking),
        "make a stream");
  check(lt().create(&state_->products));
}

line::~line() = default;

CUstream_st* line::on() const {
  check(cudaSetDevice(state_->gpu), "be used");
  return state_->stream;
}

void line::wait() {
  check(cudaStreamSynchronize(state_->stream), "compute");
}

void line::product(stored_matrix<const float> a, stored_matrix<const float> b,
                   float beta, matrix<float> c, bool rounds) {
  auto* const stream = on(); // the library's calls are of this GPU too
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
  auto found = planned.find(shape);
  if (found == planned.end()) {
    if (planned.size() >= most_planned) // rows of experts have ever new shapes
      planned.clear();
    found = planned
              .emplace(std::piecewise_construct, std::forward_as_tuple(shape),
                       std::forward_as_tuple(state_->products, shape))
              .first;
  }
  found->second.run(state_->products, a.data, b.data, beta, c.data,
                    space(room::products, workspace_bytes), stream);
}

void* line::space(room which, std::int64_t bytes) {
  auto& found = state_->rooms[which];
  if (found.bytes >= bytes)
    return found.memory;
  on();
  wait();
  cudaFree(found.memory);
  found = {};
  check(cudaMallocManaged(&found.memory, static_cast<std::size_t>(bytes)),
        "take memory");
  found.bytes = bytes;
  return found.memory;
}

int count() {
  int result = 0;
  return cudaGetDeviceCount(&result) == cudaSuccess ? result : 0;
}

std::string absence() {
  int found = 0;
  const auto state = cudaGetDeviceCount(&found);
  if (state == cudaErrorInsufficientDriver) {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
      return "this machine has no driver of NVIDIA's";
    return "NVIDIA's driver is of CUDA " + version_text(driver)
           + ", and this build needs " + version_text(CUDART_VERSION) + " or newer";
  }
  if (state != cudaSuccess)
    return std::string{"no GPU can be used: "} + cudaGetErrorString(state);
  return found == 0 ? "this machine has no GPU of NVIDIA's" : "";
}

bool reaches_host_memory(int gpu) {
  return attribute_of(gpu, cudaDevAttrPageableMemoryAccess) != 0;
}

memory_space& unified_memory(int gpu) {
  static std::mutex lock;
  static std::map<int, unified_space> spaces; // one a GPU; what they are of never ends
  const std::lock_guard guard{lock};
  return spaces.try_emplace(gpu, gpu).first->second;
}

} // namespace troupe::cuda
