// SPDX-License-Identifier: BSD-3-Clause
// A stream without a GPU: work is enqueued, and done on this machine at some later
// time.

#include "kernels/cuda/stream.hpp"

#include "kernels/bf16.hpp"
#include "kernels/cuda/launch_list.hpp"
#include "kernels/cuda/library_attention.hpp"
#include "kernels/cuda/on_host/launch_registry.hpp"
#include "kernels/cuda/on_host/plain_attention.hpp"
#include "kernels/cuda/on_host/spoiled_epilogue.hpp"
#include "kernels/cuda/on_host/stream_events.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"
#include "kernels/cuda/on_host/watched_rows.hpp"
#include "kernels/vector_math.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <bitset>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe::cuda {

namespace {

using clock = std::chrono::steady_clock;

float value_at(const stored_matrix<const float>& m, std::int64_t row,
               std::int64_t column) {
  if (m.transposed)
    std::swap(row, column);
  if (m.is_bf16)
    return fp32_of(m.rounded().row(row)[column].bits);
  return m.plain().row(row)[column];
}

/// Rounds to nearest, to 10 bits of mantissa behind the first. \pre finite
float tf32_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x0fffU + ((bits >> 13) & 1U)) & 0xffffe000U);
}

constexpr int gpus = 5; // one thread imitates all GPUs (stream_queue.hpp)

void check_gpu_index(int gpu) {
  if (gpu < 0 || gpu >= gpus)
    throw std::runtime_error{"there is no cuda:" + std::to_string(gpu)};
}

void store_at(const stored_matrix<float>& m, std::int64_t row, std::int64_t column,
              float value) {
  if (m.is_bf16)
    m.rounded().row(row)[column].bits = bf16_of(value);
  else
    m.plain().row(row)[column] = value;
}

/// Applies cuBLASLt's epilogue, as its documentation defines the epilogue: to the sum
/// of products and the added matrix, with the bias of the column.
/// \returns the value of c
float finish_as_library(const library_product& p, std::int64_t m, std::int64_t n,
                        float sum) {
  const auto with_bias = [&] {
    on_host::watch_library(p.bias + n, sizeof(bf16), on_host::access_kind::read);
    return sum + fp32_of(p.bias[n].bits);
  };
  switch (p.end) {
  case epilogue_kind::none:
  case epilogue_kind::bias_relu: // not the library's
    return sum;
  case epilogue_kind::bias:
    return with_bias();
  case epilogue_kind::bias_residual:
    return with_bias() + value_at(p.x, m, n);
  case epilogue_kind::bias_gelu: {
    const auto input = with_bias();
    store_at(p.y, m, n, static_cast<float>(gelu_and_slope(double{input}).value));
    return input;
  }
  case epilogue_kind::gelu_gradient:
    return sum
           * static_cast<float>(
             gelu_and_slope(static_cast<double>(value_at(p.x, m, n))).slope);
  }
  return sum;
}

constexpr int no_kind = -1;
std::atomic<int> spoiled_kind = no_kind; // of epilogue_kind

bool is_spoiled(const library_product& p) {
  return p.c.is_bf16 && static_cast<int>(p.end) == spoiled_kind;
}

/// Whether cuBLASLt takes the array of a GELU's inputs.
bool is_auxiliary(const stored_matrix<const float>& m) {
  return m.stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0;
}

/// The product of stream::launch_product(), with sums in double.
void multiply(const library_product& p) {
  using enum on_host::access_kind;
  if ((p.end == epilogue_kind::bias_gelu && !is_auxiliary(p.c))
      || (p.end == epilogue_kind::gelu_gradient && !is_auxiliary(p.x)))
    throw std::runtime_error{"the rows of a GELU's inputs are not aligned"};
  watch_rows(p.a, read);
  watch_rows(p.b, read);
  if (p.beta != 0)
    watch_rows(p.c, read);
  if (p.x.data != nullptr)
    watch_rows(p.x, read);
  watch_rows(p.c, write);
  if (p.y.data != nullptr)
    watch_rows(p.y, write);
  const auto factor = [tf32 = p.tf32 && !p.a.is_bf16](float value) {
    return static_cast<double>(tf32 ? tf32_of(value) : value);
  };
  const auto depth = p.a.transposed ? p.a.rows : p.a.columns;
  const double scale = is_spoiled(p) ? 2 : 1;
  for (std::int64_t m = 0; m < p.c.rows; ++m)
    for (std::int64_t n = 0; n < p.c.columns; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += factor(value_at(p.a, m, k)) * factor(value_at(p.b, k, n));
      const auto added =
        p.beta == 0 ? 0 : p.beta * value_at(stored_matrix<const float>{p.c}, m, n);
      store_at(p.c, m, n,
               finish_as_library(p, m, n, static_cast<float>(scale * sum) + added));
    }
}

/// Memory of this machine that the memory watch knows: kernels may access no other
/// memory.
class watched_space : public memory_space {
public:
  void* allocate(std::int64_t bytes) override {
    auto* const memory = host_memory().allocate(bytes);
    if (auto* const watch = on_host::current_memory_watch())
      watch->add(memory, {"tensors", bytes, 1});
    return memory;
  }

  void name(const void* memory, const std::string& purpose) override {
    if (auto* const watch = on_host::current_memory_watch())
      watch->rename(memory, purpose);
  }

  void deallocate(void* memory, std::int64_t bytes) noexcept override {
    if (auto* const watch = on_host::current_memory_watch())
      watch->remove(memory);
    host_memory().deallocate(memory, bytes);
  }
};

/// A list of launches that repeats all launches with the arguments at the time of the
/// copy.
struct graph_on_host : public launch_graphs::graph {
  explicit graph_on_host(launch_list launches) : kept(std::move(launches)) {
    // nop
  }

  void launch() override {
    ++replayed;
    kept.launch();
  }

  static inline std::atomic<std::int64_t> replayed = 0;

  launch_list kept;
};

} // namespace

struct stream::state {
  using words = std::vector<std::uint64_t>;
  using result_slot = std::array<std::uint64_t, result_bytes / sizeof(std::uint64_t)>;

  ~state() {
    try {
      queue.wait();
    } catch (...) {
      // no caller is left to receive the error
    }
    for (const auto& [which, kept] : spaces)
      forget(kept.data());
    for (const auto& slot : result_slots)
      forget(slot.get());
  }

  static void forget(const void* array) {
    if (auto* const watch = on_host::current_memory_watch())
      watch->remove(array);
  }

  /// Makes a work space look as if no thread had written there.
  static void renew(words& space) {
    forget(space.data());
    std::ranges::fill(space, ~std::uint64_t{0}); // NaNs
    if (auto* const watch = on_host::current_memory_watch())
      watch->add(space.data(),
                 {"a workspace", static_cast<std::int64_t>(8 * space.size()),
                  sizeof(bf16), true, false});
  }

  CUstream_st queue;
  launch_list list; // deferred launches of a thread
  std::optional<deferral> deferring;
  launch_graphs graphs{[](const launch_list& launches) {
    return std::make_unique<graph_on_host>(launches);
  }};
  std::map<workspace, words> spaces;
  std::bitset<8> epilogues; // by kind: accept_epilogue()
  bool has_attention = false;
  std::mutex lock; // of the members below
  std::vector<std::unique_ptr<result_slot>> result_slots;
  std::vector<void*> free;
};

stream::stream(int gpu, bool tf32)
  : gpu_(gpu), tf32_(tf32), state_(std::make_unique<state>()) {
  check_gpu_index(gpu);
}

stream::~stream() = default;

CUstream_st* stream::handle() const {
  return &state_->queue;
}

void stream::name_launches(const std::string& name) {
  state_->queue.name_launches(name);
}

void stream::capture_launches() {
  state_->deferring.emplace(handle(), state_->list);
}

void stream::launch_captured() {
  if (deferred_on(handle()) == &state_->list)
    state_->graphs.launch(state_->list);
}

void stream::stop_capture() noexcept {
  state_->deferring.reset();
  state_->list.clear();
}

void stream::on_complete(completion_callback callback) {
  launch_captured();
  state_->queue.on_complete(std::move(callback));
}

/// Work spaces belong to the GPU alone, and contents end with a wait: readers find
/// NaNs.
void stream::wait() {
  launch_captured();
  state_->queue.wait();
  for (auto& [which, kept] : state_->spaces)
    state::renew(kept);
}

std::int64_t stream::product_version() const {
  return 130000;
}

void stream::launch_product(const library_product& product) {
  const auto launch = [product, queue = &state_->queue] {
    queue->enqueue([product] { multiply(product); });
  };
  launch_or_defer(&state_->queue, launch);
}

bool stream::is_available(const library_product& product) {
  return !product.c.is_bf16 || accepts_epilogue(product.end);
}

bool stream::accepts_epilogue(epilogue_kind kind) const {
  return state_->epilogues.test(static_cast<std::size_t>(kind));
}

void stream::accept_epilogue(epilogue_kind kind, bool accept) {
  state_->epilogues.set(static_cast<std::size_t>(kind), accept);
}

std::string stream::load_attention() {
  state_->has_attention = true;
  return {};
}

void stream::unload_attention() {
  state_->has_attention = false;
}

std::int64_t stream::attention_version() const {
  return state_->has_attention ? 90000 : 0;
}

bool stream::attention_forward(const attention_shape& dims,
                               stored_matrix<const float> qkv, stored_matrix<float> y,
                               float* log_sum) {
  if (!state_->has_attention || !library_can_attend(dims, {qkv, y}))
    return false;
  auto* const queue = &state_->queue;
  const auto launch = [=] {
    queue->enqueue([=] { on_host::attend(dims, qkv, y, log_sum); });
  };
  launch_or_defer(queue, launch);
  return true;
}

bool stream::attention_backward(const attention_shape& dims,
                                stored_matrix<const float> qkv,
                                stored_matrix<const float> y, const float* log_sum,
                                stored_matrix<const float> dy,
                                stored_matrix<float> dqkv) {
  if (!state_->has_attention || !library_can_attend(dims, {qkv, y, dy, dqkv}))
    return false;
  auto* const queue = &state_->queue;
  const auto launch = [=] {
    queue->enqueue([=] { on_host::attend_backward(dims, qkv, y, log_sum, dy, dqkv); });
  };
  launch_or_defer(queue, launch);
  return true;
}

void stream::measure_choices(std::shared_ptr<product_choices>) {
  // nop
}

void* stream::space(workspace which, std::int64_t bytes) {
  auto& kept = state_->spaces[which];
  const auto words = static_cast<std::size_t>((bytes + 7) / 8);
  if (kept.size() < words) {
    launch_captured();
    state_->queue.wait(); // unlike stream::wait(), keeps other spaces
    state::forget(kept.data());
    kept.resize(words);
    state::renew(kept);
  }
  return kept.data();
}

std::shared_ptr<void> stream::result() {
  const std::lock_guard guard{state_->lock};
  auto& free = state_->free;
  if (free.empty()) {
    state_->result_slots.push_back(std::make_unique<state::result_slot>());
    free.push_back(state_->result_slots.back().get());
    if (auto* const watch = on_host::current_memory_watch())
      watch->add(free.back(), {"a result", result_bytes, 8, true, false});
  }
  auto* const slot = free.back();
  free.pop_back();
  return {slot, [owner = state_.get()](void* returned) {
            const std::lock_guard back{owner->lock};
            owner->free.push_back(returned);
          }};
}

std::shared_ptr<void> stream::gpu_timestamp() {
  launch_captured();
  const auto result = std::make_shared<clock::time_point>();
  state_->queue.enqueue([result] { *result = clock::now(); });
  return result;
}

std::shared_ptr<void> stream::event() {
  launch_captured();
  auto& queue = state_->queue;
  const auto result = std::make_shared<on_host::stream_event>(queue.number());
  queue.enqueue(std::make_shared<on_host::event_record>(result));
  return result;
}

void stream::wait_for(const std::shared_ptr<void>& event) {
  launch_captured();
  auto& queue = state_->queue;
  queue.enqueue(std::make_shared<on_host::event_wait>(
    queue.number(), std::static_pointer_cast<on_host::stream_event>(event)));
}

double seconds_between(const std::shared_ptr<void>& earlier,
                       const std::shared_ptr<void>& later) {
  const auto& first = *static_cast<const clock::time_point*>(earlier.get());
  const auto& last = *static_cast<const clock::time_point*>(later.get());
  return std::chrono::duration<double>(last - first).count();
}

std::string unavailable_reason() {
  return {};
}

int count() {
  return gpus;
}

processor_facts facts_of(int gpu) {
  check_gpu_index(gpu);
  return {gpu + 1 < gpus ? "stand-in" : "other stand-in", std::to_string(gpu)};
}

std::int64_t free_memory(int gpu) {
  check_gpu_index(gpu);
  return std::int64_t{8} << 30;
}

memory_space& unified_memory(int) {
  static watched_space only; // has no state
  return only;
}

memory_space& pinned_memory(int gpu) {
  return unified_memory(gpu);
}

} // namespace troupe::cuda

std::int64_t troupe::on_host::marks_passed() {
  return event_wait::passed;
}

std::int64_t troupe::on_host::graphs_launched() {
  return cuda::graph_on_host::replayed;
}

void troupe::on_host::spoil_epilogue(std::optional<epilogue_kind> kind) {
  cuda::spoiled_kind = kind ? static_cast<int>(*kind) : cuda::no_kind;
}
