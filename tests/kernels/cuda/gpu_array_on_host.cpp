// SPDX-License-Identifier: BSD-3-Clause
// A GPU's memory and order on fibres: every access is checked.

#include "kernels/cuda/on_host/block.hpp"
#include "tests/kernels/cuda/gpu_array.hpp"

#include <stdexcept>
#include <utility>

namespace gpu {

namespace {

troupe::on_host::memory_watch watch;

} // namespace

memory::memory(std::string name, const void* initial, std::int64_t bytes,
               std::int64_t value, use what)
  : data_(::operator new (static_cast<std::size_t>(bytes), std::align_val_t{256})),
    bytes_(bytes) {
#ifndef TROUPE_SANITIZED // only where kernels report accesses
  troupe::on_host::set_memory_watch(&watch);
#endif
  if (initial != nullptr)
    std::memcpy(data_, initial, static_cast<std::size_t>(bytes));
  else
    std::memset(data_, 0xff, static_cast<std::size_t>(bytes)); // NaNs
  if (bytes > 0)
    watch.add(data_,
              {std::move(name), bytes, value, what != use::read, what != use::written});
}

memory::~memory() {
  watch.remove(data_);
  ::operator delete (data_, std::align_val_t{256});
}

std::vector<unsigned char> memory::bytes() const {
  const auto* const begin = static_cast<const unsigned char*>(data_);
  return {begin, begin + bytes_};
}

void wait() {}

std::string absent() {
  return {};
}

std::vector<std::vector<float>>
in_every_order(const std::function<std::vector<std::vector<float>>()>& run) {
  using enum troupe::on_host::thread_order;
  troupe::on_host::run_threads(forward);
  auto first = run();
  for (const auto order : {backward, odd_first}) {
    troupe::on_host::run_threads(order);
    const auto other = run();
    troupe::on_host::run_threads(forward);
    for (std::size_t i = 0; i < first.size(); ++i)
      if (!same_bits(first[i], other.at(i)))
        throw std::logic_error{"another order of threads makes other bits of array "
                               + std::to_string(i)};
  }
  return first;
}

} // namespace gpu
