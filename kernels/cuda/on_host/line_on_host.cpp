// A line of no GPU: work is kept, and done on this machine at some later time.

#include "kernels/bf16.hpp"
#include "kernels/cuda/line.hpp"
#include "kernels/cuda/on_host/block.hpp"
#include "kernels/cuda/on_host/queue.hpp"

#include <atomic>
#include <bit>
#include <map>
#include <utility>
#include <vector>

namespace {

std::atomic<std::uint64_t> next_seed = 1;

} // namespace

void CUstream_st::enqueue(std::function<void()> work) {
  waiting_.push_back(std::move(work));
  for (auto n = dice_() % 3; n > 0 && !waiting_.empty(); --n)
    run_first();
}

void CUstream_st::run_all() {
  while (!waiting_.empty())
    run_first();
}

void CUstream_st::run_first() {
  const auto work = std::move(waiting_.front());
  waiting_.pop_front();
  work();
}

namespace troupe::on_host {

void seed_queues(std::uint64_t seed) {
  next_seed = seed;
}

} // namespace troupe::on_host

namespace troupe::cuda {

namespace {

float value_at(const stored_matrix<const float>& m, std::int64_t row,
               std::int64_t column) {
  if (m.transposed)
    std::swap(row, column);
  if (m.is_bf16)
    return fp32_of(m.rounded().row(row)[column].bits);
  return m.plain().row(row)[column];
}

/// Rounded to nearest, to 10 bits of mantissa behind the first. \pre finite
float tf32_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x0fffU + ((bits >> 13) & 1U)) & 0xffffe000U);
}

void watch_rows(const stored_matrix<const float>& m, on_host::access_kind what) {
  const auto value = m.is_bf16 ? sizeof(bf16) : sizeof(float);
  for (std::int64_t r = 0; r < m.rows; ++r)
    on_host::watch_library(static_cast<const char*>(m.data)
                             + static_cast<std::size_t>(r * m.stride) * value,
                           m.columns * static_cast<std::int64_t>(value), what);
}

/// This machine's memory, of which whoever looks on is told: kernels reach no other.
class told_space : public memory_space {
public:
  void* take(std::int64_t bytes) override {
    auto* const memory = host_memory().take(bytes);
    if (auto* const watch = on_host::who_looks_on())
      watch->add(memory, {"tensors", bytes, 1});
    return memory;
  }

  void give_back(void* memory, std::int64_t bytes) noexcept override {
    if (auto* const watch = on_host::who_looks_on())
      watch->remove(memory);
    host_memory().give_back(memory, bytes);
  }
};

} // namespace

struct line::state {
  ~state() {
    for (const auto& [which, words] : rooms)
      forget(words);
  }

  static void forget(const std::vector<std::uint64_t>& words) {
    if (auto* const watch = on_host::who_looks_on())
      watch->remove(words.data());
  }

  CUstream_st queue{next_seed++};
  std::map<room, std::vector<std::uint64_t>> rooms;
};

line::line(int, bool tf32) : tf32_(tf32), state_(std::make_unique<state>()) {
  // nop
}

line::~line() = default;

CUstream_st* line::on() const {
  return &state_->queue;
}

void line::wait() {
  state_->queue.run_all();
}

void line::product(stored_matrix<const float> a, stored_matrix<const float> b,
                   float beta, matrix<float> c, bool rounds) {
  state_->queue.enqueue([=] {
    using enum on_host::access_kind;
    watch_rows(a, read);
    watch_rows(b, read);
    if (beta != 0)
      watch_rows(c, read);
    watch_rows(c, write);
    const auto factor = [rounds = rounds && !a.is_bf16](float value) {
      return static_cast<double>(rounds ? tf32_of(value) : value);
    };
    const auto depth = a.transposed ? a.rows : a.columns;
    for (std::int64_t m = 0; m < c.rows; ++m)
      for (std::int64_t n = 0; n < c.columns; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k)
          sum += factor(value_at(a, m, k)) * factor(value_at(b, k, n));
        auto& to = c.row(m)[n];
        to = static_cast<float>(sum) + (beta == 0 ? 0 : beta * to);
      }
  });
}

void* line::space(room which, std::int64_t bytes) {
  auto& found = state_->rooms[which];
  const auto words = static_cast<std::size_t>((bytes + 7) / 8);
  if (found.size() < words) {
    wait();
    state::forget(found);
    found.resize(words);
    if (auto* const watch = on_host::who_looks_on())
      watch->add(found.data(), {"a room", bytes, sizeof(bf16), true, false});
  }
  return found.data();
}

std::string absence() {
  return {};
}

int count() {
  return 1;
}

bool reaches_host_memory(int) {
  return true;
}

memory_space& unified_memory(int) {
  static told_space only; // has no state
  return only;
}

} // namespace troupe::cuda
