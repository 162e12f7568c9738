// SPDX-License-Identifier: BSD-3-Clause
// A stream of a real GPU, by CUDA's runtime.

#include "kernels/cuda/stream.hpp"

#include "kernels/cuda/library_attention.hpp"
#include "kernels/cuda/on_device/captured_graph.hpp"
#include "kernels/cuda/on_device/check.hpp"
#include "kernels/cuda/on_device/cublas_lt.hpp"
#include "kernels/cuda/on_device/cudnn_attention.hpp"
#include "kernels/cuda/on_device/event_thread.hpp"

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <bitset>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cuda {

namespace {

/// The text of a CUDA version: "13.0" for 13000.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Loads all kernels before the first launch. Loading a kernel later may wait for all
/// streams, of which some may wait for other GPUs. Sets the largest number of queues,
/// because streams that share a queue of the GPU wait for each other too. \pre before
/// CUDA's first call
void keep_streams_apart() {
  static const int once = setenv("CUDA_MODULE_LOADING", "EAGER", 0)
                          + setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  (void)once;
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

  void* allocate(std::int64_t bytes) override {
    const auto size = static_cast<std::size_t>(bytes);
    use(gpu_);
    void* memory = nullptr;
    check(cudaMallocManaged(&memory, size), "take memory");
    check(cudaMemset(memory, 0, size), "clear memory");
    check(cudaStreamSynchronize(nullptr), "clear memory");
    return memory;
  }

  void deallocate(void* memory, std::int64_t) noexcept override { cudaFree(memory); }

private:
  int gpu_;
};

class pinned_space : public memory_space {
public:
  explicit pinned_space(int gpu) : gpu_(gpu) {
    // nop
  }

  void* allocate(std::int64_t bytes) override {
    const auto size = static_cast<std::size_t>(bytes);
    use(gpu_);
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, size, cudaHostAllocPortable), "take memory");
    return std::memset(memory, 0, size);
  }

  void deallocate(void* memory, std::int64_t) noexcept override {
    cudaFreeHost(memory);
  }

private:
  int gpu_;
};

/// One space per GPU, until the program ends.
template <class Space>
memory_space& space_of(int gpu) {
  static std::mutex lock;
  static std::map<int, Space> spaces;
  const std::lock_guard guard{lock};
  return spaces.try_emplace(gpu, gpu).first->second;
}

} // namespace

struct stream::state {
  explicit state(int gpu_index) : gpu(gpu_index) {
    use(gpu);
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
    graphs.emplace(make_graph_maker(stream));
    cudaMemPool_t pool = nullptr;
    std::uint64_t threshold = ~std::uint64_t{0};
    check(cudaDeviceGetDefaultMemPool(&pool, gpu), "be asked for its pool");
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
          "keep memory"); // else a wait returns free memory to the driver
    for (int i = 0; i < first_result_slots; ++i)
      add_result_slot();
  }

  ~state() {
    try {
      use(gpu);
    } catch (...) {
      // calls below may fail
    }
    cudaStreamSynchronize(stream);
    ends.reset(); // runs the remaining callbacks
    graphs.reset();
    attention.reset();
    for (auto& [which, kept] : spaces)
      cudaFreeAsync(kept.memory, stream);
    for (auto* const slot : result_slots)
      cudaFreeHost(slot);
    cudaStreamDestroy(stream);
  }

  /// Pinned memory is allocated before a run, because an allocation may wait for the
  /// GPU.
  static constexpr int first_result_slots = 32;

  void add_result_slot() {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, result_bytes, cudaHostAllocPortable), "take memory");
    result_slots.push_back(memory);
    free.push_back(memory);
  }

  struct kept_space {
    void* memory = nullptr;
    std::int64_t bytes = 0;
  };

  int gpu;
  cudaStream_t stream = nullptr;
  launch_list list; // deferred launches of a thread
  std::optional<deferral> deferring;
  std::optional<launch_graphs> graphs;
  std::unique_ptr<event_thread> ends;
  std::unique_ptr<cublas_lt_products> products;
  std::unique_ptr<cudnn_attention> attention; // null: not loaded
  std::bitset<8> epilogues;                   // by kind: accept_epilogue()
  bool measures_choices = false;              // measure_choices()
  std::map<workspace, kept_space> spaces;
  std::mutex lock; // of the members below
  std::vector<void*> result_slots;
  std::vector<void*> free;
};

stream::stream(int gpu, bool tf32) : gpu_(gpu), tf32_(tf32) {
  if (const auto why = unavailable_reason(); !why.empty())
    throw std::runtime_error{why};
  if (gpu < 0 || gpu >= count())
    throw std::runtime_error{"this machine has " + std::to_string(count())
                             + " GPUs, and no cuda:" + std::to_string(gpu)};
  if (attribute_of(gpu, cudaDevAttrConcurrentManagedAccess) == 0)
    throw std::runtime_error{
      "cuda:" + std::to_string(gpu)
      + " cannot share memory with this machine while it computes"};
  state_ = std::make_unique<state>(gpu);
  state_->ends = std::make_unique<event_thread>(gpu);
  state_->products = std::make_unique<cublas_lt_products>(facts_of(gpu).kind);
}

stream::~stream() = default;

CUstream_st* stream::handle() const {
  use(state_->gpu);
  return state_->stream;
}

void stream::name_launches(const std::string& name) {
  name.empty() ? nvtxRangePop() : nvtxRangePushA(name.c_str());
}

void stream::capture_launches() {
  state_->deferring.emplace(handle(), state_->list);
}

void stream::launch_captured() {
  if (deferred_on(state_->stream) == &state_->list)
    state_->graphs->launch(state_->list);
}

void stream::stop_capture() noexcept {
  state_->deferring.reset();
  state_->list.clear();
}

void stream::on_complete(completion_callback callback) {
  launch_captured();
  state_->ends->add(handle(), std::move(callback));
}

void stream::wait() {
  launch_captured();
  const auto status = cudaStreamSynchronize(state_->stream);
  state_->ends->wait();
  check(status, "compute");
}

std::int64_t stream::product_version() const {
  return state_->products->version();
}

void stream::launch_product(const library_product& product) {
  auto* const where = handle(); // cuBLASLt uses the current GPU
  void* const scratch = space(workspace::products, cublas_lt_products::workspace_bytes);
  if (state_->measures_choices) // now, not while a graph is captured
    state_->products->has_algorithm(product);
  const auto launch = [=, products = state_->products.get()] {
    products->launch(product, scratch, where);
  };
  launch_or_defer(where, launch);
}

bool stream::is_available(const library_product& product) {
  if (product.c.is_bf16 && !accepts_epilogue(product.end))
    return false;
  handle();
  return state_->products->has_algorithm(product);
}

bool stream::accepts_epilogue(epilogue_kind kind) const {
  return state_->epilogues.test(static_cast<std::size_t>(kind));
}

void stream::accept_epilogue(epilogue_kind kind, bool accept) {
  state_->epilogues.set(static_cast<std::size_t>(kind), accept);
}

std::string stream::load_attention() {
  if (state_->attention != nullptr)
    return {};
  handle(); // cuDNN uses the current GPU
  try {
    state_->attention = std::make_unique<cudnn_attention>();
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

void stream::unload_attention() {
  wait(); // launched work uses cuDNN's kernels, and so do graphs
  state_->graphs.emplace(make_graph_maker(state_->stream));
  state_->attention.reset();
}

std::int64_t stream::attention_version() const {
  return state_->attention == nullptr ? 0 : state_->attention->version();
}

bool stream::attention_forward(const attention_shape& dims,
                               stored_matrix<const float> qkv, stored_matrix<float> y,
                               float* log_sum) {
  auto* const library = state_->attention.get();
  if (library == nullptr || !library_can_attend(dims, {qkv, y}))
    return false;
  auto* const where = handle(); // cuDNN uses the current GPU
  const auto bytes = library->forward_space(dims, qkv, y);
  if (!bytes)
    return false;
  void* const scratch = space(workspace::attention, *bytes);
  const auto launch = [=] { library->forward(dims, qkv, y, log_sum, scratch, where); };
  launch_or_defer(where, launch);
  return true;
}

bool stream::attention_backward(const attention_shape& dims,
                                stored_matrix<const float> qkv,
                                stored_matrix<const float> y, const float* log_sum,
                                stored_matrix<const float> dy,
                                stored_matrix<float> dqkv) {
  auto* const library = state_->attention.get();
  if (library == nullptr || !library_can_attend(dims, {qkv, y, dy, dqkv}))
    return false;
  auto* const where = handle(); // cuDNN uses the current GPU
  const auto bytes = library->backward_space(dims, qkv, y, dy, dqkv);
  if (!bytes)
    return false;
  void* const scratch = space(workspace::attention, *bytes);
  const auto launch = [=] {
    library->backward(dims, qkv, y, log_sum, dy, dqkv, scratch, where);
  };
  launch_or_defer(where, launch);
  return true;
}

void stream::measure_choices(std::shared_ptr<product_choices> to) {
  state_->measures_choices = true;
  state_->products->measure_choices(std::move(to), handle());
}

// Allocates and frees in the stream's order, so that no thread waits for the GPU. Other
// streams of the GPU may be waiting for other GPUs.
void* stream::space(workspace which, std::int64_t bytes) {
  auto& kept = state_->spaces[which];
  if (kept.bytes >= bytes)
    return kept.memory;
  launch_captured(); // deferred launches use the old memory
  auto* const where = handle();
  if (kept.memory != nullptr)
    check(cudaFreeAsync(kept.memory, where), "give memory back");
  kept = {};
  check(cudaMallocAsync(&kept.memory, static_cast<std::size_t>(bytes), where),
        "take memory");
  kept.bytes = bytes;
  return kept.memory;
}

std::shared_ptr<void> stream::result() {
  const std::lock_guard guard{state_->lock};
  auto& free = state_->free;
  if (free.empty()) {
    handle();
    state_->add_result_slot();
  }
  auto* const slot = free.back();
  free.pop_back();
  return {slot, [owner = state_.get()](void* returned) {
            const std::lock_guard back{owner->lock};
            owner->free.push_back(returned);
          }};
}

namespace {

/// Records an event behind all work that is on a stream now.
std::shared_ptr<void> event_on(cudaStream_t where, unsigned flags) {
  cudaEvent_t created = nullptr;
  check(cudaEventCreateWithFlags(&created, flags), "make an event");
  std::shared_ptr<void> result{
    created, [](void* event) { cudaEventDestroy(static_cast<cudaEvent_t>(event)); }};
  check(cudaEventRecord(created, where), "record an event");
  return result;
}

} // namespace

std::shared_ptr<void> stream::gpu_timestamp() {
  launch_captured();
  return event_on(handle(), cudaEventDefault);
}

std::shared_ptr<void> stream::event() {
  launch_captured();
  return event_on(handle(), cudaEventDisableTiming);
}

void stream::wait_for(const std::shared_ptr<void>& event) {
  launch_captured();
  check(cudaStreamWaitEvent(handle(), static_cast<cudaEvent_t>(event.get()), 0),
        "wait for another stream");
}

double seconds_between(const std::shared_ptr<void>& earlier,
                       const std::shared_ptr<void>& later) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(earlier.get()),
                             static_cast<cudaEvent_t>(later.get())),
        "say how long it took");
  return static_cast<double>(milliseconds) / 1e3;
}

int count() {
  keep_streams_apart();
  int result = 0;
  return cudaGetDeviceCount(&result) == cudaSuccess ? result : 0;
}

std::string unavailable_reason() {
  keep_streams_apart();
  int device_count = 0;
  const auto state = cudaGetDeviceCount(&device_count);
  if (state == cudaErrorInsufficientDriver) {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
      return "this machine has no driver of NVIDIA's";
    return "NVIDIA's driver is of CUDA " + version_text(driver)
           + ", and this build needs " + version_text(CUDART_VERSION) + " or newer";
  }
  if (state != cudaSuccess)
    return std::string{"no GPU can be used: "} + cudaGetErrorString(state);
  return device_count == 0 ? "this machine has no GPU of NVIDIA's" : "";
}

processor_facts facts_of(int gpu) {
  cudaDeviceProp facts{};
  check(cudaGetDeviceProperties(&facts, gpu), "say what it is");
  processor_facts result{.kind = facts.name, .name = "GPU"};
  for (const char byte : facts.uuid.bytes)
    for (const int half : {byte >> 4 & 15, byte & 15})
      result.name += "0123456789abcdef"[half];
  return result;
}

std::int64_t free_memory(int gpu) {
  std::size_t free = 0, total = 0;
  try {
    use(gpu);
    check(cudaMemGetInfo(&free, &total), "say what memory it has");
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return static_cast<std::int64_t>(free);
}

memory_space& unified_memory(int gpu) {
  return space_of<unified_space>(gpu);
}

memory_space& pinned_memory(int gpu) {
  return space_of<pinned_space>(gpu);
}

} // namespace troupe::cuda
