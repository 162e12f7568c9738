// SPDX-License-Identifier: BSD-3-Clause
// The choice of a path: by instructions where that decides, else by one measurement
// that is kept in a file.

#include "kernels/bf16_choice.hpp"

#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <iterator>
#include <map>

namespace troupe::bf16_choice_test {

using Catch::Matchers::ContainsSubstring;

namespace {

namespace fs = std::filesystem;
using paths = std::vector<bf16_path>;

const paths without_amx{bf16_path::dot, bf16_path::widen, bf16_path::plain};

/// A machine whose products take the given times.
struct timed_machine : bf16_machine {
  timed_machine(paths all, double dot, double widen,
                std::optional<fs::path> folder = {}) {
    offered = std::move(all);
    name = "Some Processor, troupe 1.2";
    cache = std::move(folder);
    seconds = [this, dot, widen](bf16_path path) {
      ++measured;
      REQUIRE((path == bf16_path::dot || path == bf16_path::widen));
      return path == bf16_path::dot ? dot : widen;
    };
  }
  timed_machine(const timed_machine&) = delete;

  bf16_choice choice() {
    measured = 0;
    return choose_bf16_path(*this);
  }

  int measured = 0;
};

std::string content_of(const fs::path& file) {
  std::ifstream from{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{from}, {}};
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
    std::distance(fs::directory_iterator{folder}, fs::directory_iterator{}));
}

} // namespace

TEST_CASE("instructions decide where no measurement is needed", "[bf16]") {
  const auto chosen = [](paths all) {
    timed_machine machine{std::move(all), 1, 1};
    const auto result = machine.choice();
    CHECK(machine.measured == 0);
    CHECK(result.notice.empty());
    return result.path;
  };
  CHECK(chosen({bf16_path::amx, bf16_path::dot, bf16_path::widen, bf16_path::plain})
        == bf16_path::amx);
  CHECK(chosen({bf16_path::amx, bf16_path::widen, bf16_path::plain}) == bf16_path::amx);
  CHECK(chosen({bf16_path::widen, bf16_path::plain}) == bf16_path::widen);
}

TEST_CASE("dot is chosen if it is clearly faster than widen", "[bf16]") {
  const std::map<double, bf16_path> by_seconds{
    {0.5, bf16_path::dot},   {0.8, bf16_path::dot},   {0.9, bf16_path::widen},
    {1.0, bf16_path::widen}, {1.7, bf16_path::widen},
  };
  for (const auto& [dot, path] : by_seconds) {
    temporary_folder folder;
    CHECK(timed_machine{without_amx, dot, 1, folder.path()}.choice().path == path);
  }
}

TEST_CASE("a path is known without a measurement where one is not needed", "[bf16]") {
  temporary_folder folder;
  const auto cache = folder.path() / "new";
  timed_machine machine{without_amx, 0.5, 1, cache};
  CHECK_FALSE(known_bf16_path(machine));
  CHECK(machine.measured == 0);
  CHECK_FALSE(fs::exists(cache));
  machine.choice();
  CHECK(known_bf16_path(machine) == bf16_path::dot);
  timed_machine other{{bf16_path::widen, bf16_path::plain}, 1, 1};
  CHECK(known_bf16_path(other) == bf16_path::widen);
}

TEST_CASE("a measured choice holds for later runs", "[bf16]") {
  temporary_folder folder;
  const auto cache = folder.path() / "new" / "troupe";
  timed_machine first{without_amx, 0.5, 1, cache}, later{without_amx, 1, 0.5, cache};
  CHECK(first.choice().path == bf16_path::dot);
  CHECK(first.measured == 2 * 25); // products: few enough for less than a second
  CHECK(later.choice().path == bf16_path::dot);
  CHECK(later.measured == 0);
  CHECK(later.choice().notice.empty());
  CHECK(files_in(cache) == 1);
}

TEST_CASE("the choice of another processor or version is not taken", "[bf16]") {
  temporary_folder folder;
  timed_machine first{without_amx, 0.5, 1, folder.path()},
    other{without_amx, 1, 0.5, folder.path()};
  first.choice();
  other.name = "Some Processor, troupe 1.3";
  CHECK(other.choice().path == bf16_path::widen);
  CHECK(other.measured > 0);
  CHECK(files_in(folder.path()) == 2);
  // A file with the right name, and another machine's content.
  fs::copy_file(file_of_choice(other), file_of_choice(first),
                fs::copy_options::overwrite_existing);
  CHECK(first.choice().path == bf16_path::dot);
  CHECK(first.measured > 0);
  CHECK(first.choice().path == bf16_path::dot);
  CHECK(first.measured == 0);
}

TEST_CASE("a damaged file is measured again, and replaced", "[bf16]") {
  temporary_folder folder;
  timed_machine machine{without_amx, 0.5, 1, folder.path()};
  machine.choice();
  const auto file = file_of_choice(machine);
  const auto whole = content_of(file);
  for (const auto& damaged :
       {std::string{}, whole.substr(0, whole.size() - 1), whole + "\n", whole.substr(1),
        "plain\n" + whole, std::string(1 << 20, 'x')}) {
    folder.write(file.filename().string(), damaged);
    CHECK(machine.choice().path == bf16_path::dot);
    CHECK(machine.measured > 0);
    CHECK((content_of(file) == whole));
    CHECK(files_in(folder.path()) == 1);
  }
}

TEST_CASE("a choice that cannot be kept is measured each time, and says so", "[bf16]") {
  temporary_folder folder;
  const auto check = [](std::optional<fs::path> cache, const std::string& why) {
    timed_machine machine{without_amx, 0.5, 1, std::move(cache)};
    for (int run = 0; run < 2; ++run) {
      const auto choice = machine.choice();
      CHECK(choice.path == bf16_path::dot);
      CHECK(machine.measured > 0);
      CHECK_THAT(choice.notice,
                 ContainsSubstring("TROUPE_BF16=dot") && ContainsSubstring(why));
    }
  };
  check({}, "neither XDG_CACHE_HOME nor HOME names a folder");
  const auto no_folder = folder.write("file", "");
  check(no_folder / "troupe", (no_folder / "troupe").string() + " cannot be written");
  // A folder in the place of the file.
  timed_machine blocked{without_amx, 0.5, 1, folder.path() / "cache"};
  fs::create_directories(file_of_choice(blocked) / "full");
  check(folder.path() / "cache", "cannot be written");
  CHECK(files_in(folder.path() / "cache") == 1);
}

TEST_CASE("of processes that measure at once the first decides", "[bf16]") {
  temporary_folder folder;
  timed_machine slower{without_amx, 1, 0.5, folder.path()},
    faster{without_amx, 0.5, 1, folder.path()};
  if (GENERATE(false, true)) // a damaged file is replaced by one of them alone
    folder.write(file_of_choice(slower).filename().string(), "damaged");
  const auto measure = slower.seconds;
  bool other_has_begun = false;
  slower.seconds = [&](bf16_path path) {
    if (!std::exchange(other_has_begun, true))
      faster.choice();
    return measure(path);
  };
  CHECK(slower.choice().path == bf16_path::dot);
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("paths with the same bits are named together", "[bf16]") {
  CHECK(paths_of(sums_of(bf16_path::amx)) == "amx or plain");
  CHECK(paths_of(sums_of(bf16_path::plain)) == "amx or plain");
  CHECK(paths_of(sums_of(bf16_path::dot)) == "dot");
  CHECK(paths_of(sums_of(bf16_path::widen)) == "widen");
}

TEST_CASE("this machine has a name and makes products to measure", "[bf16]") {
  const auto machine = this_bf16_machine();
  CHECK_THAT(machine.name, ContainsSubstring("troupe 0."));
  CHECK(machine.seconds(bf16_path::widen) > 0);
}

} // namespace troupe::bf16_choice_test
