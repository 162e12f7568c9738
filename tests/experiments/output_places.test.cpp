// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/output_places.hpp"

#include "kernels/folder_lock.hpp"
#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

namespace troupe::output_places_test {

using Catch::Matchers::ContainsSubstring;
using std::filesystem::path;

namespace {

std::size_t files_in(const path& folder) {
  return static_cast<std::size_t>(
    std::distance(std::filesystem::directory_iterator{folder},
                  std::filesystem::directory_iterator{}));
}

} // namespace

TEST_CASE("one file is one file however it is spelled", "[output_places]") {
  const temporary_folder folder;
  const auto at = folder.path();
  std::filesystem::create_directory(at / "r");
  std::filesystem::create_directory_symlink(at / "r", at / "link");
  std::filesystem::create_symlink("r/w", at / "w"); // points to no file yet
  std::filesystem::create_symlink("loop", at / "loop");
  const auto twice = [&](const path& a, const path& b) {
    return !written_twice({{"--save", a}, {"--json", b}}, {}).empty();
  };
  CHECK(twice(at / "x", at / "x"));
  CHECK(twice(at / "x", at / "r/../x"));
  CHECK(twice(at / "x", at / "./x"));
  CHECK(twice(at / "r/x", at / "link/x"));
  CHECK(twice(at / "w", at / "link/w"));
  CHECK(twice("not-there", "./not-there"));
  CHECK(twice("not-there", std::filesystem::current_path() / "not-there"));
  CHECK_FALSE(twice(at / "x", at / "r/x"));
  CHECK_FALSE(twice(at / "x", at / "X"));
  CHECK_FALSE(twice(at / "loop", at / "x"));
  CHECK_THAT(written_twice({{"--save", at / "x"}, {"--json", at / "x"}}, {}),
             ContainsSubstring("--save and --json both name the file"));
  // A path that is read may not be written; the path may be read twice.
  CHECK_THAT(written_twice({{"--json", at / "x"}}, {{"--data", at / "r/../x"}}),
             ContainsSubstring("--data and --json"));
  CHECK(written_twice({}, {{"--data", at / "x"}, {"--init", at / "x"}}).empty());
  CHECK_THAT(written_twice({{"--save", at / "link/new"}}, {{"--data", at / "r"}}),
             ContainsSubstring("is in the folder that --data reads"));
  CHECK(written_twice({{"--save", at / "x"}}, {{"--data", at / "r"}}).empty());
}

TEST_CASE("two options that cannot have one place are both named", "[output_places]") {
  using kind = named_file::kind;
  const temporary_folder folder;
  const auto at = folder.path();
  const named_file checkpoint{"--checkpoint", at / "x", kind::folder},
    report{"--report", at / "x/", kind::folder},
    events{"--tensorboard", at / "x", kind::shared_folder}, save{"--save", at / "x"};
  CHECK_THAT(written_twice({checkpoint, report}, {}),
             ContainsSubstring("--checkpoint and --report both name the folder"));
  CHECK_THAT(written_twice({checkpoint, save}, {}),
             ContainsSubstring("--save names the file")
               && ContainsSubstring("and --checkpoint the folder of that name"));
  CHECK_THAT(written_twice({events, save}, {}),
             ContainsSubstring("and --tensorboard the folder of that name"));
  CHECK_THAT(written_twice({{"--report", at / "x/r", kind::folder}, save}, {}),
             ContainsSubstring("--save names the file")
               && ContainsSubstring("needs a folder of that name"));
  CHECK_THAT(written_twice({events, events}, {}),
             ContainsSubstring("both name the folder"));
  CHECK(written_twice({checkpoint, events}, {}).empty());
  CHECK(written_twice({events, report}, {}).empty());
  CHECK(written_twice({report, {"--json", at / "x/r.json"}}, {}).empty());
  CHECK(written_twice({checkpoint}, {{"--data", at}}).empty());
  for (const auto* const typed :
       {"--checkpoint x --checkpoint-every 1 --report x",
        "--checkpoint x --checkpoint-every 1 --tensorboard x --json x"}) {
    const auto ran = run_program_in(folder, std::string{"train --steps 1 "} + typed);
    CHECK(ran.exit_code == 2);
    CHECK_THAT(ran.err, ContainsSubstring("--checkpoint")
                          && ContainsSubstring("give each option another"));
    CHECK_FALSE(std::filesystem::exists(at / "x"));
  }
}

TEST_CASE("links are followed as far as the system does, also where they lead nowhere",
          "[output_places]") {
  const temporary_folder folder;
  const auto at = folder.path();
  const auto twice = [&](const path& a, const path& b) {
    return !written_twice({{"--save", a}, {"--json", b}}, {}).empty();
  };
  std::filesystem::create_symlink("there", at / "back");
  std::filesystem::create_symlink("back", at / "there");
  CHECK(twice(at / "back", at / "back"));
  CHECK_FALSE(twice(at / "back", at / "there"));
  CHECK_FALSE(twice(at / "back", at / "w"));
  CHECK_THAT(write_error({"--save", at / "back"}),
             ContainsSubstring("its symbolic links form a cycle"));
  // Linux follows 40 links.
  std::filesystem::create_symlink("w", at / "link1");
  for (int i = 2; i <= 41; ++i)
    std::filesystem::create_symlink("link" + std::to_string(i - 1),
                                    at / ("link" + std::to_string(i)));
  CHECK(twice(at / "link40", at / "w"));
  CHECK(write_error({"--save", at / "link40"}).empty());
  CHECK_FALSE(write_error({"--save", at / "link41"}).empty());
}

TEST_CASE("a place is tried without a change to what is there", "[output_places]") {
  const temporary_folder folder;
  const auto file = folder.write("w", "precious");
  folder.write("w.unfinished", "mine");
  const auto before = std::filesystem::last_write_time(file);
  CHECK(write_error({"--save", file}).empty());
  CHECK(write_error({"--save", folder.path() / "new"}).empty());
  CHECK(content_of(file) == "precious");
  CHECK(content_of(folder.path() / "w.unfinished") == "mine");
  CHECK(std::filesystem::last_write_time(file) == before);
  CHECK(files_in(folder.path()) == 2);
}

TEST_CASE("a place that takes no file is refused with what it is", "[output_places]") {
  const temporary_folder folder;
  const auto at = folder.path();
  REQUIRE(mkfifo((at / "pipe").c_str(), 0600) == 0);
  const auto why = [](const path& file) { return write_error({"--json", file}); };
  CHECK_THAT(why(at), ContainsSubstring("--json: cannot write")
                        && ContainsSubstring("it is a folder"));
  CHECK_THAT(why(at / ""), ContainsSubstring("it is a folder"));
  CHECK_THAT(why("/dev/null"), ContainsSubstring("not a file that can be replaced"));
  CHECK_THAT(why("/dev/stdout"), ContainsSubstring("not a file that can be replaced"));
  CHECK_THAT(why(at / "pipe"), ContainsSubstring("not a file that can be replaced"));
  CHECK_THAT(why(at / "none/r.json"), ContainsSubstring("there is no folder"));
  CHECK_THAT(why(at / std::string(300, 'x')), ContainsSubstring("too long"));
  CHECK_THAT(why("/proc/r.json"), ContainsSubstring("cannot write /proc/r.json: "));
}

TEST_CASE("a file or folder that may not be written is refused", "[output_places]") {
  if (geteuid() == 0)
    SKIP("root may write everything");
  const temporary_folder folder;
  const auto file = folder.write("r.json", "kept");
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  CHECK_THAT(write_error({"--json", file}),
             ContainsSubstring("protected from writing"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read
                                                | std::filesystem::perms::owner_exec);
  CHECK_THAT(write_error({"--json", folder.path() / "new"}),
             ContainsSubstring("Permission denied"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
}

TEST_CASE("of many who ask for a new folder each gets another", "[output_places]") {
  const temporary_folder folder;
  std::vector<path> made(8);
  std::vector<std::thread> asking;
  for (auto& one : made)
    asking.emplace_back([&] {
      std::error_code failed;
      one = make_new_folder(folder.path() / "runs/compare", failed);
    });
  for (auto& one : asking)
    one.join();
  std::ranges::sort(made);
  CHECK(std::ranges::adjacent_find(made) == made.end());
  CHECK(files_in(folder.path() / "runs") == made.size());
  CHECK(made[0].filename() == "compare");
  CHECK(made[1].filename() == "compare-2");
}

TEST_CASE("a folder is locked while somebody holds it", "[output_places]") {
  const temporary_folder folder;
  {
    folder_lock first, second;
    CHECK(first.try_lock(folder.path()));
    CHECK_FALSE(second.try_lock(folder.path()));
  }
  folder_lock later;
  CHECK(later.try_lock(folder.path()));
}

} // namespace troupe::output_places_test
