// A line of no GPU: work is kept, and done on this machine at some later time.

#include "kernels/bf16.hpp"
#include "kernels/cuda/line.hpp"
#include "kernels/cuda/on_host/block.hpp"
#include "kernels/cuda/on_host/queue.hpp"

#include <atomic>
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

void watch_rows(const stored_matrix<const float>& m, on_host::access_kind what) {
  const auto value = m.is_bf16 ? sizeof(bf16) : sizeof(float);
  for (std::int64_t r = 0; r < m.rows; ++r)
    on_host::watch_library(static_cast<const char*>(m.data)
                             + static_cast<std::size_t>(r * m.stride) * value,
                           m.columns * static_cast<std::int64_t>(value), what);
}

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

line::line(int) : state_(std::make_unique<state>()) {
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
                   float beta, matrix<float> c) {
  state_->queue.enqueue([=] {
    using enum on_host::access_kind;
    watch_rows(a, read);
    watch_rows(b, read);
    if (beta != 0)
      watch_rows(c, read);
    watch_rows(c, write);
    const auto depth = a.transposed ? a.rows : a.columns;
    for (std::int64_t m = 0; m < c.rows; ++m)
      for (std::int64_t n = 0; n < c.columns; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k)
          sum += static_cast<double>(value_at(a, m, k))
                 * static_cast<double>(value_at(b, k, n));
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

memory_space& unified_memory() {
  return host_memory();
}

} // namespace troupe::cuda
