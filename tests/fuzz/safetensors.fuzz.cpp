// Any bytes, as a file of tensors: tests/fuzz/run.

#include "models/safetensors.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  static const int memory = memfd_create("safetensors", 0);
  static const auto path = "/proc/self/fd/" + std::to_string(memory);
  if (ftruncate(memory, 0) != 0
      || pwrite(memory, data, size, 0) != static_cast<ssize_t>(size))
    return 0;
  if (const auto file = safetensors_file::open(path))
    for (const auto& t : file->tensors()) {
      if (t.type != "F32")
        continue;
      const auto bytes = t.end - t.begin;
      std::vector<float> values(static_cast<std::size_t>(bytes) / sizeof(float));
      file->read(t, 0, values);
    }
  return 0;
}
