#include "models/parameter.hpp"

#include "models/random.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace troupe {

std::int64_t parameter::values() const {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies{});
}

std::int64_t place_in_bucket(std::vector<parameter>& parameters) {
  std::int64_t end = 0;
  for (auto& p : parameters) {
    p.offset = end;
    end += padded(p.values());
  }
  return end;
}

template <class Scalar>
void initialise(const parameter& p, std::uint64_t seed, Scalar* values) {
  auto stream = p.name;
  for (const auto dim : p.dims)
    stream += "," + std::to_string(dim);
  const random_stream random{seed, stream};
  const auto n = static_cast<std::uint64_t>(p.values());
  switch (p.begins) {
  case beginning::zeros:
    std::fill_n(values, n, Scalar{0});
    break;
  case beginning::ones:
    std::fill_n(values, n, Scalar{1});
    break;
  case beginning::normal:
    for (std::uint64_t i = 0; i < n; ++i)
      values[i] = static_cast<Scalar>(p.scale * random.normal(i));
    break;
  case beginning::uniform:
    for (std::uint64_t i = 0; i < n; ++i)
      values[i] = static_cast<Scalar>(p.scale * (2 * random.uniform(i) - 1));
    break;
  }
}

template void initialise<float>(const parameter&, std::uint64_t, float*);
template void initialise<double>(const parameter&, std::uint64_t, double*);

} // namespace troupe
