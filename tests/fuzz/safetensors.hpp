// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/safetensors.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fuzz {

/// Takes bytes of anybody for a file of tensors, and reads them.
inline void take_safetensors(std::span<const std::uint8_t> bytes) {
  static const int memory = memfd_create("safetensors", 0);
  static const auto path = "/proc/self/fd/" + std::to_string(memory);
  if (ftruncate(memory, 0) != 0
      || pwrite(memory, bytes.data(), bytes.size(), 0)
           != static_cast<ssize_t>(bytes.size()))
    return;
  if (const auto file = troupe::safetensors_file::open(path))
    for (const auto& t : file->tensors()) {
      if (!t.is_readable())
        continue;
      std::vector<float> values(static_cast<std::size_t>(t.values()));
      file->read(t, 0, values);
    }
}

} // namespace fuzz
