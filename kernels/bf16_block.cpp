// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/bf16_block.hpp"

#include "kernels/bf16.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#if defined(__x86_64__) && defined(__linux__)
#define TROUPE_X86
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace troupe {

namespace {

#if defined(TROUPE_X86) && defined(__AVX2__) && defined(__FMA__)

/// Sets flags of this thread for the lifetime of the object, so that operations behave
/// as instructions for bf16. Operations then read subnormal numbers as 0, and return 0
/// for a result that is subnormal after rounding.
class flushed_denormals {
public:
  flushed_denormals() {
    constexpr unsigned flush_to_zero = 1U << 15U, denormals_are_zeros = 1U << 6U;
    _mm_setcsr(previous_ | flush_to_zero | denormals_are_zeros);
    asm volatile("" ::: "memory"); // no operation moves to before this line
  }
  ~flushed_denormals() {
    asm volatile("" ::: "memory");
    _mm_setcsr(previous_);
  }
  flushed_denormals(const flushed_denormals&) = delete;
  flushed_denormals& operator=(const flushed_denormals&) = delete;

private:
  unsigned previous_ = _mm_getcsr();
};

/// Adds the products of one step to a row of one of c's tiles of 16 columns, from a row
/// of a's tile.
/// \pre denormals are flushed
void add_plain_row(const std::uint16_t* a, const std::uint16_t* b, float* c) {
  constexpr int columns = 8; // of one vector
  const auto upper_half = _mm256_set1_epi32(static_cast<int>(0xffff0000U));
  __m256 even[2]{_mm256_setzero_ps(), _mm256_setzero_ps()};
  __m256 odd[2]{_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int pair = 0; pair < step_depth / 2; ++pair) {
    const auto even_a = _mm256_set1_ps(fp32_of(a[2 * pair])),
               odd_a = _mm256_set1_ps(fp32_of(a[2 * pair + 1]));
    const auto* const row = b + pair * step_depth;
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const auto pairs =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + 2 * columns * i));
      const auto first = _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)),
                 second = _mm256_castsi256_ps(_mm256_and_si256(pairs, upper_half));
      even[i] = _mm256_fmadd_ps(even_a, first, even[i]);
      odd[i] = _mm256_fmadd_ps(odd_a, second, odd[i]);
    }
  }
  for (int i = 0; i < 2; ++i) {
    auto* const sums = c + columns * i;
    _mm256_storeu_ps(
      sums, _mm256_add_ps(_mm256_loadu_ps(sums), _mm256_add_ps(even[i], odd[i])));
  }
}

#else

struct flushed_denormals {}; // the functions below flush

/// A subnormal number becomes 0, as in the instructions.
float normal(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0F, x) : x;
}

/// sum + a b, rounded once. A result that is subnormal when rounded to 24 bits, with
/// any exponent, becomes 0. `std::fma` alone would round such a result up to the
/// smallest normal number where that is near.
float add_product(float a, float b, float sum) {
  constexpr float least = std::numeric_limits<float>::min();
  const float rounded = std::fma(a, b, sum);
  if (std::fabs(rounded) != least)
    return normal(rounded);
  const double exact = double{a} * double{b} + double{sum};
  constexpr double half_a_place = 0x1p-151;
  return std::fabs(exact) < double{least} - half_a_place ? std::copysign(0.0F, rounded)
                                                         : rounded;
}

/// Adds the products of one step to a row of one of c's tiles of 16 columns, from a row
/// of a's tile.
void add_plain_row(const std::uint16_t* a, const std::uint16_t* b, float* c) {
  std::array<float, tile_side> even{}, odd{};
  for (int pair = 0; pair < step_depth / 2; ++pair) {
    const float left = normal(fp32_of(a[2 * pair])),
                right = normal(fp32_of(a[2 * pair + 1]));
    const auto* const row = b + pair * step_depth;
    for (int n = 0; n < tile_side; ++n) {
      const auto i = static_cast<std::size_t>(n);
      even[i] = add_product(left, normal(fp32_of(row[2 * n])), even[i]);
      odd[i] = add_product(right, normal(fp32_of(row[2 * n + 1])), odd[i]);
    }
  }
  for (int n = 0; n < tile_side; ++n) {
    const auto i = static_cast<std::size_t>(n);
    c[n] = normal(normal(c[n]) + normal(even[i] + odd[i]));
  }
}

#endif

void plain_block(std::int64_t steps, const std::uint16_t* a, const std::uint16_t* b,
                 bool from_zero, float* c, std::int64_t stride) {
  [[maybe_unused]] const flushed_denormals flushed;
  for (int row = 0; row < block_side; ++row) {
    auto* const to = c + row * stride;
    if (from_zero)
      std::fill_n(to, block_side, 0.0F);
    const auto* from =
      a + row * step_depth; // two tiles have 32 rows, one after another
    for (std::int64_t step = 0; step < steps; ++step)
      for (int tile = 0; tile < 2; ++tile)
        add_plain_row(from + step * step_values,
                      b + step * step_values + tile * tile_values,
                      to + tile * tile_side);
  }
}

#ifdef TROUPE_X86

struct alignas(64) tile_shapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> bytes_a_row{};
  std::array<std::uint8_t, 16> rows{};
};

/// Whether the processor has AMX, and the system permits its use. The call asks for the
/// permission.
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned tile = 1U << 24U, bf16 = 1U << 22U;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0
      || (d & (tile | bf16)) != (tile | bf16))
    return false;
  constexpr int ask_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, ask_permission, tile_data) == 0;
}

[[gnu::target("amx-tile,amx-bf16")]] void load_tile_shapes() {
  static constexpr tile_shapes shapes = [] {
    tile_shapes result;
    for (std::size_t i = 0; i < 8; ++i) {
      result.bytes_a_row[i] = 64;
      result.rows[i] = tile_side;
    }
    return result;
  }();
  asm volatile("" ::: "memory"); // gcc assumes that 8 bytes are read
  _tile_loadconfig(&shapes);
}

[[gnu::target("amx-tile,amx-bf16")]] void release_tiles() {
  _tile_release();
}

// Two tiles of a and two of b give four of c.
[[gnu::target("amx-tile,amx-bf16")]] void
amx_block(std::int64_t steps, const std::uint16_t* a, const std::uint16_t* b,
          bool from_zero, float* c, std::int64_t stride) {
  asm volatile("" ::: "memory"); // gcc does not know that tiles are loaded from memory
  const auto bytes = static_cast<std::size_t>(stride) * sizeof(float);
  auto* const lower = c + tile_side * stride;
  if (from_zero) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, c, bytes);
    _tile_loadd(1, lower, bytes);
    _tile_loadd(2, c + tile_side, bytes);
    _tile_loadd(3, lower + tile_side, bytes);
  }
  for (std::int64_t step = 0; step < steps; ++step) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, a + tile_values, 64);
    _tile_dpbf16ps(1, 5, 6);
    _tile_loadd(7, b + tile_values, 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
    a += step_values;
    b += step_values;
  }
  _tile_stored(0, c, bytes);
  _tile_stored(1, lower, bytes);
  _tile_stored(2, c + tile_side, bytes);
  _tile_stored(3, lower + tile_side, bytes);
}

// Eight rows of c at a time, with two vectors each.
[[gnu::target("avx512f,avx512bw,avx512bf16")]] void
dot_block(std::int64_t steps, const std::uint16_t* a, const std::uint16_t* b,
          bool from_zero, float* c, std::int64_t stride) {
  constexpr int rows_at_once = 8;
  for (int first = 0; first < block_side; first += rows_at_once) {
    __m512 sums[rows_at_once][2];
#pragma GCC unroll 8
    for (int r = 0; r < rows_at_once; ++r) {
      auto* const row = c + (first + r) * stride;
      sums[r][0] = from_zero ? _mm512_setzero_ps() : _mm512_loadu_ps(row);
      sums[r][1] = from_zero ? _mm512_setzero_ps() : _mm512_loadu_ps(row + tile_side);
    }
    for (std::int64_t step = 0; step < steps; ++step) {
      const auto* const from = a + step * step_values + first * step_depth;
      const auto* const to = b + step * step_values;
      for (int pair = 0; pair < step_depth / 2; ++pair) {
        const auto b_left = (__m512bh)_mm512_loadu_si512(to + pair * step_depth),
                   b_right =
                     (__m512bh)_mm512_loadu_si512(to + tile_values + pair * step_depth);
#pragma GCC unroll 8
        for (int r = 0; r < rows_at_once; ++r) {
          int pair_bits = 0;
          std::memcpy(&pair_bits, from + r * step_depth + 2 * pair, sizeof pair_bits);
          const auto row = (__m512bh)_mm512_set1_epi32(pair_bits);
          sums[r][0] = _mm512_dpbf16_ps(sums[r][0], row, b_left);
          sums[r][1] = _mm512_dpbf16_ps(sums[r][1], row, b_right);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows_at_once; ++r) {
      auto* const row = c + (first + r) * stride;
      _mm512_storeu_ps(row, sums[r][0]);
      _mm512_storeu_ps(row + tile_side, sums[r][1]);
    }
  }
}

#endif

std::vector<bf16_path> find_paths() {
  std::vector<bf16_path> result;
#ifdef TROUPE_X86
  if (has_amx())
    result.push_back(bf16_path::amx);
  if (__builtin_cpu_supports("avx512bf16") != 0
      && __builtin_cpu_supports("avx512bw") != 0)
    result.push_back(bf16_path::dot);
#endif
  result.push_back(bf16_path::widen);
  result.push_back(bf16_path::plain);
  return result;
}

} // namespace

std::string to_text(bf16_path path) {
  switch (path) {
  case bf16_path::amx:
    return "amx";
  case bf16_path::dot:
    return "dot";
  case bf16_path::widen:
    return "widen";
  case bf16_path::plain:
    return "plain";
  }
  return {};
}

std::vector<bf16_path> bf16_paths() {
  static const auto paths = find_paths();
  return paths;
}

bf16_sums sums_of(bf16_path path) {
  switch (path) {
  case bf16_path::amx:
  case bf16_path::plain:
    return bf16_sums::tiles;
  case bf16_path::dot:
    return bf16_sums::pairs;
  case bf16_path::widen:
    return bf16_sums::fp32;
  }
  return {};
}

std::string paths_of(bf16_sums sums) {
  std::string result;
  for (const auto path :
       {bf16_path::amx, bf16_path::dot, bf16_path::widen, bf16_path::plain})
    if (sums_of(path) == sums)
      result += (result.empty() ? "" : " or ") + to_text(path);
  return result;
}

bf16_block block_of(bf16_path path) {
  if (path == bf16_path::widen)
    throw std::logic_error("the kernel of fp32 has no blocks of bf16");
#ifdef TROUPE_X86
  if (path == bf16_path::amx)
    return amx_block;
  if (path == bf16_path::dot)
    return dot_block;
#endif
  return plain_block;
}

tile_state::tile_state(bf16_path path) : tiles_(path == bf16_path::amx) {
#ifdef TROUPE_X86
  if (tiles_)
    load_tile_shapes();
#endif
}

tile_state::~tile_state() {
#ifdef TROUPE_X86
  if (tiles_)
    release_tiles();
#endif
}

} // namespace troupe
