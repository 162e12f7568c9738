// SPDX-License-Identifier: BSD-3-Clause
// The free memory of a machine, by files as the kernel writes.

#include "plan/free_memory.hpp"

#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace troupe::free_memory_test {

namespace {

constexpr std::int64_t mib = 1 << 20;

/// Files as below the root of a machine with 8 GiB of free memory.
struct machine {
  machine() {
    write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n");
  }

  void write(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories((folder.path() / path).parent_path());
    folder.write(path, content);
  }

  /// A control group of the second version, in MiB; the files are pages of data sets.
  void group(const std::string& at, const std::string& limit, std::int64_t used,
             std::int64_t files = 0) const {
    write(at + "/memory.max", limit + "\n");
    write(at + "/memory.current", std::to_string(used * mib) + "\n");
    write(at + "/memory.stat",
          "anon 5\ninactive_file " + std::to_string(files * mib) + "\nactive_file 0\n");
  }

  /// A control group of the first version.
  void old_group(const std::string& at, std::int64_t limit, std::int64_t used,
                 std::int64_t files = 0) const {
    write(at + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    write(at + "/memory.usage_in_bytes", std::to_string(used * mib) + "\n");
    write(at + "/memory.stat",
          "cache 7\ntotal_inactive_file " + std::to_string(files * mib) + "\n");
  }

  void mounts(const std::string& lines) const { write("proc/self/mountinfo", lines); }
  void is_in(const std::string& lines) const { write("proc/self/cgroup", lines); }

  free_memory left() const { return memory_by_files(folder.path()); }

  temporary_folder folder;
};

const std::string second_version =
  "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw\n";

const std::string first_version =
  "30 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
  "31 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
  "32 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

} // namespace

TEST_CASE("without control groups there is what the machine says", "[memory]") {
  const machine m;
  CHECK(m.left().bytes == 8192 * mib);
  CHECK(m.left().where == "the machine");
  m.mounts(second_version);
  m.is_in("0::/user.slice/session.scope\n");
  m.group("sys/fs/cgroup/user.slice/session.scope", "max", 100);
  CHECK(m.left().bytes == 8192 * mib);
}

TEST_CASE("a control group leaves its limit less what it uses, pages of files apart",
          "[memory]") {
  const machine m;
  m.mounts(second_version);
  m.is_in("0::/job\n");
  m.group("sys/fs/cgroup/job", std::to_string(300 * mib), 120, 20);
  CHECK(m.left().bytes == 200 * mib);
  CHECK(m.left().where == "its control group");
  m.group("sys/fs/cgroup/job", std::to_string(300 * mib), 400);
  CHECK(m.left().bytes == 0);
}

TEST_CASE("the tightest of a control group and those above it counts", "[memory]") {
  const machine m;
  m.mounts(second_version);
  m.is_in("0::/a/b/c\n");
  const auto tightest = GENERATE(0, 1, 2);
  const std::string at[] = {"sys/fs/cgroup/a", "sys/fs/cgroup/a/b",
                            "sys/fs/cgroup/a/b/c"};
  for (int i = 0; i < 3; ++i)
    m.group(at[i], std::to_string((i == tightest ? 100 : 200) * mib), 10);
  CHECK(m.left().bytes == 90 * mib);
}

TEST_CASE("the first version of control groups counts as well", "[memory]") {
  const machine m;
  m.mounts(first_version);
  m.is_in("4:memory:/jobs/one\n3:cpu:/elsewhere\n0::/\n");
  m.old_group("sys/fs/cgroup/memory/jobs/one", 9223372036854771712, 50);
  CHECK(m.left().bytes == 8192 * mib);
  m.old_group("sys/fs/cgroup/memory/jobs/one", 9223372036854771712, 50, 60);
  CHECK(m.left().bytes == 8192 * mib); // usage is not exact
  m.old_group("sys/fs/cgroup/memory/jobs", 400 * mib, 150);
  CHECK(m.left().bytes == 250 * mib);
}

TEST_CASE("in a container the group is found below where it is mounted", "[memory]") {
  const machine m;
  const bool named_as_outside = GENERATE(false, true);
  m.mounts(
    "31 23 0:28 /docker/1f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  m.is_in(named_as_outside ? "4:memory:/docker/1f/sub\n" : "4:memory:/docker/other\n");
  m.old_group("sys/fs/cgroup/memory", 500 * mib, 100);
  m.old_group("sys/fs/cgroup/memory/sub", 300 * mib, 100);
  CHECK(m.left().bytes == (named_as_outside ? 200 : 400) * mib);
}

} // namespace troupe::free_memory_test
