// SPDX-License-Identifier: BSD-3-Clause
// Files that are read and written, and failures on the way.

#include "models/file_within.hpp"
#include "models/input_file.hpp"
#include "models/whole_file.hpp"
#include "tests/file_size_limit.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/unprivileged.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

namespace troupe::files_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> result;
  for (const auto& entry : fs::directory_iterator{folder})
    result.insert(entry.path().filename());
  return result;
}

struct stat status_of(const fs::path& path) {
  struct stat result {};
  REQUIRE(stat(path.c_str(), &result) == 0);
  return result;
}

} // namespace

TEST_CASE("pieces are written one behind another, in the place of an older file",
          "[whole_file]") {
  temporary_folder folder;
  const auto path = folder.write("w", std::string(100, 'o'));
  const std::vector<std::string_view> pieces{"ab", "", "cd"};
  CHECK(write_whole_file(path, pieces).empty());
  CHECK(content_of(path) == "abcd");
  CHECK(write_whole_file(folder.path() / "new", "x").empty());
  CHECK(names_in(folder.path()) == std::set<std::string>{"new", "w"});
}

TEST_CASE("what cannot be written is refused before and while writing, without a trace",
          "[whole_file]") {
  temporary_folder folder;
  fs::permissions(folder.path(), fs::perms::all);
  fs::create_directory(folder.path() / "folder");
  fs::create_directory(folder.path() / "closed", folder.path());
  fs::permissions(folder.path() / "closed", fs::perms{0555});
  fs::permissions(folder.write("protected", "old"), fs::perms{0444});
  REQUIRE(mkfifo((folder.path() / "fifo").c_str(), 0666) == 0);
  fs::create_symlink("loop", folder.path() / "loop");
  const auto before = names_in(folder.path());
  const unprivileged user;
  const std::vector<std::pair<fs::path, std::string>> mistakes{
    {folder.path() / "none" / "w", "there is no folder"},
    {folder.path() / "folder", "it is a folder, and not a file in a folder"},
    {folder.path() / "", "it is a folder"},
    {folder.path() / "protected" / "w", "there is no folder"},
    {folder.path() / "closed" / "w", "Permission denied"},
    {folder.path() / "protected", "protected from writing"},
    {folder.path() / "fifo", "not a file that can be replaced"},
    {"/dev/null", "not a file that can be replaced"},
    {folder.path() / "loop", "its symbolic links form a cycle"}};
  for (const auto& [path, why] : mistakes)
    for (const auto& sentence :
         {writability_error(path), write_whole_file(path, "new")}) {
      CHECK_THAT(sentence, StartsWith("cannot write " + path.string() + ": "));
      CHECK_THAT(sentence, ContainsSubstring(why));
    }
  CHECK(writability_error(folder.path() / "new").empty());
  CHECK(names_in(folder.path()) == before);
  CHECK(content_of(folder.path() / "protected") == "old");
}

TEST_CASE("a write that fails on the way leaves the older file alone", "[whole_file]") {
  temporary_folder folder;
  const auto path = folder.write("w", "precious");
  const auto was = std::signal(SIGXFSZ, SIG_IGN);
  {
    const file_size_limit limit{1000};
    const std::vector<std::string> parts(3, std::string(400, 'x'));
    const std::vector<std::string_view> pieces{parts.begin(), parts.end()};
    CHECK_THAT(write_whole_file(path, pieces), ContainsSubstring("too large"));
  }
  std::signal(SIGXFSZ, was);
  CHECK(content_of(path) == "precious");
  CHECK(names_in(folder.path()) == std::set<std::string>{"w"});
}

TEST_CASE("a program that is killed while it writes leaves the older file alone",
          "[whole_file]") {
  temporary_folder folder;
  const auto path = folder.write("w", "precious");
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGXFSZ, SIG_DFL); // the default action kills the process
    const file_size_limit limit{1000};
    write_whole_file(path, std::string(3000, 'x'));
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(content_of(path) == "precious");
  auto names = names_in(folder.path());
  const int nameless = open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (nameless < 0) // then an unfinished file is known by its name
    std::erase_if(names, [](const auto& name) { return name.starts_with(".troupe-"); });
  else
    close(nameless);
  CHECK(names == std::set<std::string>{"w"});
}

TEST_CASE("links stay, and what they lead to is written", "[whole_file]") {
  temporary_folder folder;
  fs::create_directory(folder.path() / "far");
  const auto target = folder.path() / "far" / "w";
  fs::create_symlink("far/link", folder.path() / "link");
  fs::create_symlink("w", folder.path() / "far" / "link");
  for (const char* content : {"new", "newer"}) { // a new file, then an existing one
    CHECK(write_whole_file(folder.path() / "link", content).empty());
    CHECK(content_of(target) == content);
    CHECK_FALSE(fs::is_symlink(target));
  }
  CHECK(fs::read_symlink(folder.path() / "link") == "far/link");
  CHECK(fs::read_symlink(folder.path() / "far" / "link") == "w");
  fs::create_symlink(target, folder.path() / "absolute");
  CHECK(write_whole_file(folder.path() / "absolute", "newest").empty());
  CHECK(content_of(target) == "newest");
}

TEST_CASE("a file keeps its permissions and its owner", "[whole_file]") {
  temporary_folder folder;
  const auto path = folder.write("w", "old");
  for (const mode_t mode : {0600U, 0640U, 0666U}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    CHECK(write_whole_file(path, "new").empty());
    CHECK((status_of(path).st_mode & 07777) == mode);
  }
  if (chown(path.c_str(), 12345, 23456) == 0) { // only root can give files away
    CHECK(write_whole_file(path, "newer").empty());
    CHECK(status_of(path).st_uid == 12345);
    CHECK(status_of(path).st_gid == 23456);
  }
  const auto mask = umask(0027);
  CHECK(write_whole_file(folder.path() / "new", "new").empty());
  umask(mask);
  CHECK((status_of(folder.path() / "new").st_mode & 07777) == 0640);
}

TEST_CASE("two who write one file at once both write it whole, and no file of others",
          "[whole_file]") {
  temporary_folder folder;
  const auto path = folder.path() / "w";
  folder.write("w.unfinished", "somebody's");
  folder.write(".troupe-" + std::to_string(getpid()) + "-0", "a dead program's");
  constexpr std::size_t size = 100'000;
  std::vector<std::thread> writers;
  int torn[2] = {};
  for (const int writer : {0, 1})
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 10; ++i) {
        torn[writer] +=
          !write_whole_file(path, std::string(size, static_cast<char>('a' + writer)))
             .empty();
        const auto content = content_of(path);
        torn[writer] += content.size() != size
                        || content.find_first_not_of(content[0]) != std::string::npos;
      }
    });
  for (auto& writer : writers)
    writer.join();
  CHECK(torn[0] + torn[1] == 0);
  CHECK(content_of(folder.path() / "w.unfinished") == "somebody's");
  CHECK(names_in(folder.path()).size() == 3);
}

TEST_CASE("what is no regular file is refused, and nothing waits for it",
          "[input_file]") {
  temporary_folder folder;
  fs::permissions(folder.path(), fs::perms::all);
  REQUIRE(mkfifo((folder.path() / "fifo").c_str(), 0666) == 0);
  fs::permissions(folder.write("secret", "s"), fs::perms{0});
  fs::create_symlink("fifo", folder.path() / "link");
  const unprivileged user;
  const std::vector<std::pair<fs::path, std::string>> mistakes{
    {folder.path() / "none", "No such file or directory"},
    {folder.path() / "fifo", "it is a FIFO, not a regular file"},
    {folder.path() / "link", "it is a FIFO, not a regular file"},
    {folder.path(), "it is a folder, not a regular file"},
    {folder.path() / "secret", "Permission denied"},
    {"/dev/zero", "it is a device, not a regular file"}};
  for (const auto& [path, why] : mistakes)
    CHECK(input_file::open(path, "the text").error()
          == "cannot read the text " + path.string() + ": " + why);
}

TEST_CASE("a FIFO is not opened before it is refused", "[input_file]") {
  temporary_folder folder;
  const auto path = folder.path() / "fifo";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  REQUIRE(inotify_add_watch(watch, path.c_str(), IN_OPEN) >= 0);
  CHECK_FALSE(input_file::open(path, "the text"));
  alignas(inotify_event) std::array<char, 4096> events{};
  CHECK(read(watch, events.data(), events.size()) < 0);
  close(watch);
}

TEST_CASE("a file within a folder is none that a link leads to elsewhere",
          "[input_file]") {
  temporary_folder folder;
  const auto inside = folder.path() / "in";
  fs::create_directories(inside / "deep");
  folder.write("out", "outside");
  folder.write("in/file", "inside");
  fs::create_symlink("../in/file", inside / "there");
  fs::create_symlink(inside / "file", inside / "deep/up");
  fs::create_symlink("../out", inside / "link");
  fs::create_symlink(folder.path(), inside / "parent");
  fs::create_symlink("in", folder.path() / "alias");
  const auto opens = [&](const char* path, const char* within) {
    const auto file =
      open_within(folder.path() / path, "the text", folder.path() / within);
    if (!file)
      CHECK(file.error()
            == "cannot read the text " + (folder.path() / path).string()
                 + ": it is outside the folder that may be read (--folder)");
    return file.has_value();
  };
  for (const char* path : {"in/file", "in/there", "in/deep/up", "alias/file",
                           "in/parent/in/file", "in/deep/../file"}) {
    CHECK(opens(path, "in"));
    CHECK(opens(path, "alias"));
  }
  for (const char* path :
       {"out", "in/link", "in/../out", "in/parent/out", "in/none/../../out"})
    CHECK_FALSE(opens(path, "in"));
  CHECK_FALSE(opens("in/file", "in/deep"));
}

TEST_CASE("a link that changes while it is opened leads nowhere else", "[input_file]") {
  temporary_folder folder;
  const auto inside = folder.path() / "in";
  fs::create_directory(inside);
  folder.write("out", "outside");
  folder.write("in/file", "in");
  const auto link = inside / "link";
  std::atomic<bool> done = false;
  std::thread changes{[&] {
    for (int i = 0; !done; ++i) {
      const auto next = folder.path() / "next";
      fs::create_symlink(i % 2 == 0 ? inside / "file" : folder.path() / "out", next);
      fs::rename(next, link);
    }
  }};
  int others = 0;
  for (int i = 0; i < 3000; ++i)
    if (const auto file = open_within(link, "the text", inside))
      others += file->size() != 2;
  done = true;
  changes.join();
  CHECK(others == 0);
}

TEST_CASE("an open file stays what it was when its name is written anew",
          "[input_file]") {
  temporary_folder folder;
  const auto path = folder.write("w", "older");
  const auto file = *input_file::open(path, "the text");
  CHECK(file.size() == 5);
  REQUIRE(write_whole_file(path, "new").empty());
  std::string got(3, '?');
  file.read(1, got.data(), 3);
  CHECK(got == "lde");
  CHECK(std::string(static_cast<const char*>(file.mapped().get()), 5) == "older");
  CHECK_THROWS_WITH(file.read(3, got.data(), 3), ContainsSubstring("became shorter"));
}

} // namespace troupe::files_test
