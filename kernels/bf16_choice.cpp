// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/bf16_choice.hpp"

#include "kernels/bf16.hpp"
#include "kernels/bf16_gemm.hpp"
#include "kernels/checksum.hpp"
#include "kernels/cpu_name.hpp"
#include "kernels/folder_lock.hpp"
#include "kernels/vector.hpp"
#include "kernels/version.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <span>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// The least factor of speed by which another path must beat `widen` to be chosen. The
/// margin is larger than the differences between measurements of one product.
constexpr double clear_margin = 1.2;

bool offers(const bf16_machine& machine, bf16_path path) {
  return std::ranges::find(machine.offered, path) != machine.offered.end();
}

/// The faster of dot and widen: compares the shortest time of either, from products
/// that alternate between the two paths.
bf16_path measured_path(const bf16_machine& machine) {
  constexpr int rounds = 25;
  auto dot = std::numeric_limits<double>::infinity(), widen = dot;
  for (int round = 0; round < rounds; ++round) {
    dot = std::min(dot, machine.seconds(bf16_path::dot));
    widen = std::min(widen, machine.seconds(bf16_path::widen));
  }
  return clear_margin * dot < widen ? bf16_path::dot : bf16_path::widen;
}

std::string text_of(const bf16_machine& machine, bf16_path path) {
  return "products of bf16 on " + machine.name + "\n" + to_text(path) + "\n";
}

/// The path that a file stores for this machine; none if the file is another machine's,
/// damaged, or absent.
std::optional<bf16_path> kept_path(const bf16_machine& machine, const fs::path& file) {
  std::error_code unknown;
  if (!fs::is_regular_file(file, unknown))
    return {};
  std::ifstream from{file, std::ios::binary};
  for (const auto path : {bf16_path::dot, bf16_path::widen}) {
    const auto expected = text_of(machine, path);
    std::string content(expected.size() + 1, '\0');
    from.clear();
    from.seekg(0);
    from.read(content.data(), static_cast<std::streamsize>(content.size()));
    content.resize(
      static_cast<std::size_t>(std::max<std::streamsize>(from.gcount(), 0)));
    if (content == expected && offers(machine, path))
      return path;
  }
  return {};
}

/// Writes a text to a new file whose name is the given path and a random suffix.
/// Returns the name, or an empty path on failure.
fs::path write_temporary(const fs::path& file, const std::string& text) {
  auto name = file.string() + ".XXXXXX";
  const int descriptor = mkstemp(name.data());
  if (descriptor < 0)
    return {};
  ::close(descriptor);
  std::ofstream to{name, std::ios::binary | std::ios::trunc};
  to << text;
  to.close();
  if (to)
    return name;
  std::error_code gone;
  fs::remove(name, gone);
  return {};
}

/// Stores a path, and returns the path in the file afterwards. If several processes
/// measure at once, the first one decides for all. None if nothing can be stored.
std::optional<bf16_path> keep(const bf16_machine& machine, bf16_path path) {
  const auto file = file_of_choice(machine);
  std::error_code failed;
  fs::create_directories(*machine.cache, failed);
  const auto written = write_temporary(file, text_of(machine, path));
  if (written.empty())
    return {};
  folder_lock lock;
  lock.wait(*machine.cache);
  fs::create_hard_link(written, file, failed);
  auto result = kept_path(machine, file);
  if (!result) { // the file is damaged, or the file system has no hard links
    fs::rename(written, file, failed);
    result = kept_path(machine, file);
  }
  std::error_code gone;
  fs::remove(written, gone);
  return result;
}

double seconds_of_product(bf16_path path) {
  constexpr std::int64_t side = 256;
  static const std::vector<bf16> a(side * side, bf16{bf16_of(0.5F)}), b = a;
  static std::vector<bf16> c(side * side);
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  bf16_gemm(path, dense(a.data(), side, side), dense(b.data(), side, side).t(), 1, 0,
            dense(c.data(), side, side), {});
  return std::chrono::duration<double>(clock::now() - begin).count();
}

std::optional<fs::path> cache_of_user() {
  const auto path_in = [](const char* variable) {
    const auto* const value = std::getenv(variable);
    return fs::path{value == nullptr ? "" : value};
  };
  if (const auto cache = path_in("XDG_CACHE_HOME"); cache.is_absolute())
    return cache / "troupe";
  if (const auto home = path_in("HOME"); home.is_absolute())
    return home / ".cache" / "troupe";
  return {};
}

/// The path that TROUPE_BF16 names, if the variable is set.
tl::expected<std::optional<bf16_path>, std::string> named_path() {
  const auto* const asked = std::getenv("TROUPE_BF16");
  if (asked == nullptr)
    return std::nullopt;
  std::string names;
  for (const auto path : bf16_paths()) {
    if (to_text(path) == asked)
      return path;
    names += (names.empty() ? "" : ", ") + to_text(path);
  }
  return tl::unexpected{"TROUPE_BF16=" + std::string{asked}
                        + ": on this processor write " + names};
}

tl::expected<bf16_choice, std::string> choose() {
  return named_path().map([](std::optional<bf16_path> named) {
    return named ? bf16_choice{*named, ""} : choose_bf16_path(this_bf16_machine());
  });
}

const tl::expected<bf16_choice, std::string>& chosen() {
  static const auto result = choose();
  return result;
}

} // namespace

tl::expected<bf16_path, std::string> chosen_bf16_path() {
  return chosen().map([](const bf16_choice& choice) { return choice.path; });
}

tl::expected<std::optional<bf16_path>, std::string> known_bf16_path() {
  return named_path().map([](std::optional<bf16_path> named) {
    return named ? named : known_bf16_path(this_bf16_machine());
  });
}

std::string notice_of_bf16_path() {
  return chosen() ? chosen()->notice : "";
}

std::optional<bf16_path> known_bf16_path(const bf16_machine& machine) {
  if (offers(machine, bf16_path::amx))
    return bf16_path::amx;
  if (!offers(machine, bf16_path::dot))
    return bf16_path::widen;
  return machine.cache ? kept_path(machine, file_of_choice(machine)) : std::nullopt;
}

bf16_choice choose_bf16_path(const bf16_machine& machine) {
  if (const auto known = known_bf16_path(machine))
    return {*known, ""};
  const auto path = measured_path(machine);
  if (machine.cache)
    if (const auto kept = keep(machine, path))
      return {*kept, ""};
  return {path, "products of bf16 use TROUPE_BF16=" + to_text(path)
                  + " after a measurement, which is not kept for later runs: "
                  + (machine.cache ? machine.cache->string() + " cannot be written"
                                   : "neither XDG_CACHE_HOME nor HOME names a folder")};
}

std::filesystem::path file_of_choice(const bf16_machine& machine) {
  running_checksum sum;
  sum.add(std::as_bytes(std::span{machine.name}));
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(sum.value()));
  return *machine.cache / (std::string{"bf16-"} + digits);
}

bf16_machine this_bf16_machine() {
  return {.offered = bf16_paths(),
          .name = name_of_cpu() + ", troupe " + version() + ", vectors of "
                  + std::to_string(lanes),
          .cache = cache_of_user(),
          .seconds = seconds_of_product};
}

} // namespace troupe
