// SPDX-License-Identifier: BSD-3-Clause
#include "plan/free_memory.hpp"

#include "kernels/processor.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

namespace troupe {

namespace {

using std::filesystem::path;

/// The number behind a key in a file of lines "key number"; absent if there is none.
std::optional<std::int64_t> number_of(const path& file, const std::string& key) {
  std::ifstream lines{file};
  std::string name;
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);)
    if (std::istringstream{line} >> name >> number; name == key)
      return number;
  return {};
}

/// The only number of a file; absent if the file holds another text, as "max".
std::optional<std::int64_t> number_of(const path& file) {
  std::int64_t number = 0;
  return std::ifstream{file} >> number ? std::optional{number} : std::nullopt;
}

/// The file names and keys that one version of control groups uses.
struct group_files {
  bool second; // version
  const char *limit, *usage, *inactive, *active;
};

constexpr group_files versions[]{
  {true, "memory.max", "memory.current", "inactive_file", "active_file"},
  {false, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
   "total_active_file"},
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> result;
  std::istringstream stream{text};
  for (std::string part; std::getline(stream, part, separator);)
    result.push_back(part);
  return result;
}

bool names(const std::string& list, const std::string& name) {
  return std::ranges::count(split(list, ','), name) > 0;
}

/// The path where a version's memory controller is mounted, and the group that is seen
/// there.
struct mounted {
  std::string group, mount_point;
};

std::optional<mounted> mount_of(const path& root, const group_files& version) {
  std::ifstream lines{root / "proc/self/mountinfo"};
  for (std::string line; std::getline(lines, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos)
      continue;
    const auto head = split(line.substr(0, dash), ' '),
               tail = split(line.substr(dash + 3), ' ');
    const bool fits = version.second ? tail.at(0) == "cgroup2"
                                     : tail.at(0) == "cgroup" && tail.size() > 2
                                         && names(tail[2], "memory");
    if (fits && head.size() > 4)
      return mounted{head[3], head[4]};
  }
  return {};
}

/// The name of the process's group where groups are mounted.
std::string group_of(const path& root, const group_files& version) {
  std::ifstream lines{root / "proc/self/cgroup"};
  for (std::string line; std::getline(lines, line);) { // number:controllers:group
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (version.second ? controllers.empty() : names(controllers, "memory"))
      return line.substr(second + 1);
  }
  return "/";
}

void look_at_groups(const path& root, const group_files& version, free_memory& least) {
  const auto mount = mount_of(root, version);
  if (!mount)
    return;
  auto group = group_of(root, version);
  if (mount->group != "/" && group.starts_with(mount->group))
    group = group.substr(mount->group.size());
  const auto top = root / path{mount->mount_point}.relative_path();
  auto folder = top / path{group}.relative_path();
  if (!std::filesystem::exists(folder)) // the group has another name outside
    folder = top;
  for (;; folder = folder.parent_path()) {
    const auto limit = number_of(folder / version.limit),
               usage = number_of(folder / version.usage);
    if (limit && usage) {
      const auto pages =
        number_of(folder / "memory.stat", version.inactive).value_or(0)
        + number_of(folder / "memory.stat", version.active).value_or(0);
      const auto left =
        std::max<std::int64_t>(*limit - std::max<std::int64_t>(*usage - pages, 0), 0);
      if (left < least.bytes)
        least = {left, "its control group"};
    }
    if (folder == top || folder == folder.parent_path())
      return;
  }
}

void look_at_limit(int which, std::int64_t pages_used, const char* name,
                   free_memory& least) {
  rlimit limit{};
  if (getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
      || limit.rlim_cur > static_cast<rlim_t>(std::numeric_limits<std::int64_t>::max()))
    return;
  const auto left = std::max<std::int64_t>(
    static_cast<std::int64_t>(limit.rlim_cur) - pages_used * sysconf(_SC_PAGESIZE), 0);
  if (left < least.bytes)
    least = {left, name};
}

} // namespace

free_memory memory_by_files(const path& root) {
  const auto kilobytes = number_of(root / "proc/meminfo", "MemAvailable:");
  free_memory least{kilobytes ? *kilobytes * 1024
                              : sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
                    "the machine"};
  for (const auto& version : versions)
    look_at_groups(root, version, least);
  return least;
}

free_memory memory_of_process() {
  auto least = memory_by_files("/");
  std::int64_t address_space = 0, resident = 0, shared = 0, text = 0, unused = 0,
               data = 0;
  std::ifstream{"/proc/self/statm"} >> address_space >> resident >> shared >> text
    >> unused >> data;
  look_at_limit(RLIMIT_AS, address_space, "its address space", least);
  look_at_limit(RLIMIT_DATA, data, "its data segment", least);
  return least;
}

machine_memory memory_of_this_machine(const std::set<int>& gpus) {
  machine_memory result{memory_of_process()};
  for (const int number : gpus) {
    const processor gpu{number};
    result.gpus[number] = {free_memory_of(gpu), facts_of(gpu).kind};
  }
  return result;
}

} // namespace troupe
