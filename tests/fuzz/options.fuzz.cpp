// Any text, as the options of a run that a lead sends: tests/fuzz/run.

#include "experiments/options/options_text.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)troupe::options_from(std::string{data, data + size});
  return 0;
}
