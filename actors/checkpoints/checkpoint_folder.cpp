#include "actors/checkpoints/checkpoint_folder.hpp"

#include "models/descriptor.hpp"
#include "models/whole_file.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace troupe {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* manifest_name = "manifest.json";
constexpr const char* parameters_name = "parameters.safetensors";
constexpr int format = 1;

/// A sentence about a checkpoint.
struct broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string name_of_version(int older) {
  return "parameters-" + std::to_string(older) + ".safetensors";
}

std::string name_of_moment(int moment) {
  return "moment-" + std::to_string(moment) + ".safetensors";
}

checkpoint_facts::file facts_of(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  std::vector<char> some(std::size_t{1} << 20);
  checkpoint_facts::file result{file.filename().string(), 0, 0};
  auto sum = crc32(0, nullptr, 0);
  while (in) {
    in.read(some.data(), std::ssize(some));
    const auto count = in.gcount();
    sum =
      crc32(sum, reinterpret_cast<const Bytef*>(some.data()), static_cast<uInt>(count));
    result.bytes += count;
  }
  result.sum = static_cast<std::uint32_t>(sum);
  return result;
}

void reach_disk(const fs::path& folder) {
  const descriptor open{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (open.is_open())
    ::fsync(open.number());
}

/// Gives a folder that is complete the name of one that may be there, and gets its own.
void take_place(const fs::path& made, const fs::path& name) {
  if (!fs::exists(name))
    return fs::rename(made, name);
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, name.c_str(), RENAME_EXCHANGE) != 0)
    throw fs::filesystem_error("cannot replace", name,
                               std::error_code(errno, std::generic_category()));
}

bool is_file(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed);
}

/// The batches that a folder is called after; -1: it is none of a checkpoint.
int batches_of(const fs::path& folder) {
  const auto name = folder.filename().string();
  const std::string_view begin = "batch-";
  int result = 0;
  const auto* const end = name.data() + name.size();
  if (!name.starts_with(begin)
      || std::from_chars(name.data() + begin.size(), end, result).ptr != end)
    return -1;
  return result;
}

void write_buckets(const fs::path& file, const network<float>& whole,
                   const whole_buckets& buckets) {
  std::vector<const float*> all;
  for (const auto& bucket : buckets)
    all.push_back(bucket.data());
  if (const auto wrong = save_weights(file, whole, all); !wrong.empty())
    throw broken(wrong);
}

whole_buckets read_buckets(const fs::path& file, const network<float>& whole) {
  const auto source = weights_from(file, whole);
  if (!source)
    throw broken(source.error());
  whole_buckets result;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    auto& bucket = result.emplace_back(whole.layers[l]->bucket());
    (*source)(l, bucket.data());
  }
  return result;
}

std::string manifest_of(const checkpoint_facts& facts) {
  auto files = json::array();
  for (const auto& file : facts.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"crc32", file.sum}});
  return json{{"troupe_checkpoint", format},
              {"batches", facts.batches},
              {"samples", facts.samples},
              {"older_versions", facts.older},
              {"moments", facts.moments},
              {"updates", facts.updates},
              {"files", files}}
           .dump(2)
         + '\n';
}

/// A whole number of a manifest. \throws broken
std::int64_t number(const json& of, std::int64_t least, std::int64_t most) {
  if (!of.is_number_integer() || (of.is_number_unsigned() && of > most) || of < least
      || of > most)
    throw broken("a number is " + of.dump() + ", and " + std::to_string(least) + " to "
                 + std::to_string(most) + " are allowed");
  return of;
}

checkpoint_facts facts_in(const json& all) {
  constexpr std::int64_t most = std::numeric_limits<int>::max(),
                         largest = std::int64_t{1} << 50;
  if (all.at("troupe_checkpoint") != format)
    throw broken("it is of another version of troupe");
  checkpoint_facts result{
    .batches = static_cast<int>(number(all.at("batches"), 1, most)),
    .samples = number(all.at("samples"), 1, largest),
    .older = static_cast<int>(number(all.at("older_versions"), 0, most)),
    .moments = static_cast<int>(number(all.at("moments"), 0, 2)),
    .updates = {},
    .files = {}};
  for (const auto& updates : all.at("updates"))
    result.updates.push_back(number(updates, 0, most));
  for (const auto& f : all.at("files"))
    result.files.push_back(
      {f.at("name"), number(f.at("bytes"), 0, largest),
       static_cast<std::uint32_t>(number(f.at("crc32"), 0, std::int64_t{0xffffffff}))});
  return result;
}

checkpoint_facts read_manifest(const fs::path& file) {
  std::ifstream in{file};
  try {
    return facts_in(json::parse(in));
  } catch (const json::exception&) {
    throw broken(file.string() + " is no manifest of a checkpoint");
  } catch (const broken& wrong) {
    throw broken(file.string() + " is no manifest of a checkpoint: " + wrong.what());
  }
}

/// \throws broken
checkpoint_facts checked(const fs::path& one) {
  auto result = read_manifest(one / manifest_name);
  if (result.batches != batches_of(one) || result.samples % result.batches != 0)
    throw broken((one / manifest_name).string() + " is of "
                 + std::to_string(result.batches) + " batches of "
                 + std::to_string(result.samples)
                 + " samples, which is not what its folder is called");
  std::vector<std::string> needed;
  if (std::ssize(result.files) == 1 + std::int64_t{result.older} + result.moments) {
    needed.emplace_back(parameters_name);
    for (int i = 1; i <= result.older; ++i)
      needed.push_back(name_of_version(i));
    for (int i = 0; i < result.moments; ++i)
      needed.push_back(name_of_moment(i));
  }
  std::vector<std::string> named;
  for (const auto& file : result.files)
    named.push_back(file.name);
  if (named != needed)
    throw broken((one / manifest_name).string() + " does not name the files of "
                 + std::to_string(std::int64_t{result.older} + 1) + " versions and "
                 + std::to_string(result.moments) + " moments");
  for (const auto& file : result.files) {
    if (!is_file(one / file.name))
      throw broken((one / file.name).string() + " is missing");
    const auto there = facts_of(one / file.name);
    if (there.bytes != file.bytes)
      throw broken((one / file.name).string() + " has " + std::to_string(there.bytes)
                   + " bytes, not " + std::to_string(file.bytes));
    if (there.sum != file.sum)
      throw broken((one / file.name).string() + " is not what was written: its sum is "
                   + std::to_string(there.sum) + ", not " + std::to_string(file.sum));
  }
  return result;
}

/// A folder for what is being written; gone in the end, unless it got another name.
class unfinished_folder {
public:
  explicit unfinished_folder(fs::path name) : name_(std::move(name)) {
    fs::remove_all(name_); // of who was killed
    fs::create_directories(name_);
  }
  ~unfinished_folder() {
    std::error_code ignored;
    fs::remove_all(name_, ignored);
  }
  unfinished_folder(const unfinished_folder&) = delete;
  unfinished_folder& operator=(const unfinished_folder&) = delete;

  const fs::path& name() const { return name_; }

private:
  fs::path name_;
};

/// \throws broken, fs::filesystem_error
void write(const fs::path& folder, const network<float>& whole,
           const saved_training& all, std::int64_t samples) {
  const auto name = folder / ("batch-" + std::to_string(all.batches));
  const unfinished_folder unfinished{name.string() + ".unfinished"};
  const auto& made = unfinished.name();
  checkpoint_facts facts{.batches = all.batches,
                         .samples = samples,
                         .older = static_cast<int>(all.older.size()),
                         .moments = static_cast<int>(all.moments.size()),
                         .updates = all.updates,
                         .files = {}};
  const auto add = [&](const std::string& file, const whole_buckets& buckets) {
    write_buckets(made / file, whole, buckets);
    facts.files.push_back(facts_of(made / file));
  };
  add(parameters_name, all.parameters);
  for (int i = 1; i <= facts.older; ++i)
    add(name_of_version(i), all.older[static_cast<std::size_t>(i) - 1]);
  for (int i = 0; i < facts.moments; ++i)
    add(name_of_moment(i), all.moments[static_cast<std::size_t>(i)]);
  if (const auto wrong = write_whole_file(made / manifest_name, manifest_of(facts));
      !wrong.empty())
    throw broken(wrong);
  reach_disk(made);
  take_place(made, name);
  reach_disk(folder);
}

} // namespace

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator{folder, failed})
    if (batches_of(entry.path()) >= 0 && is_file(entry.path() / manifest_name))
      result.push_back(entry.path());
  std::ranges::sort(result, std::greater{}, batches_of);
  return result;
}

void sweep_checkpoints(const fs::path& folder) {
  std::error_code failed;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator{folder, failed}) {
    auto name = entry.path();
    const bool unfinished = name.extension() == ".unfinished";
    if (unfinished)
      name.replace_extension();
    if (batches_of(name) >= 0 && (unfinished || !is_file(name / manifest_name)))
      left.push_back(entry.path());
  }
  for (const auto& one : left)
    if (!fs::is_symlink(one, failed))
      fs::remove_all(one, failed);
}

std::string write_checkpoint(const fs::path& folder, const network<float>& whole,
                             const saved_training& all, std::int64_t samples,
                             int keep) {
  try {
    write(folder, whole, all, samples);
    int kept = 0;
    for (const auto& one : checkpoints_in(folder)) {
      const bool newer = batches_of(one) > all.batches; // broken, or passed over
      if (!newer && ++kept <= keep)
        continue;
      fs::remove(one / manifest_name); // first: what is left is no checkpoint
      fs::remove_all(one);
    }
    return {};
  } catch (const broken& wrong) {
    return wrong.what();
  } catch (const fs::filesystem_error& wrong) {
    return "cannot write " + folder.string() + ": " + wrong.code().message();
  } catch (const std::exception& wrong) { // no memory: the training goes on
    return "cannot write " + folder.string() + ": " + wrong.what();
  }
}

tl::expected<checkpoint_facts, std::string> check_checkpoint(const fs::path& one) {
  try {
    return checked(one);
  } catch (const broken& wrong) {
    return tl::unexpected<std::string>{wrong.what()};
  }
}

tl::expected<found_checkpoint, std::string>
newest_checkpoint(const fs::path& folder, const network<float>& whole) {
  found_checkpoint result;
  for (const auto& one : checkpoints_in(folder))
    try {
      result.facts = checked(one);
      saved_training all{.batches = result.facts.batches,
                         .parameters = read_buckets(one / parameters_name, whole),
                         .updates = result.facts.updates};
      for (int i = 1; i <= result.facts.older; ++i)
        all.older.push_back(read_buckets(one / name_of_version(i), whole));
      for (int i = 0; i < result.facts.moments; ++i)
        all.moments.push_back(read_buckets(one / name_of_moment(i), whole));
      if (all.updates.size() != whole.layers.size())
        throw broken(one.string() + " is of a network of "
                     + std::to_string(all.updates.size()) + " layers, not "
                     + std::to_string(whole.layers.size()));
      result.folder = one;
      result.saved = std::make_shared<const saved_training>(std::move(all));
      return result;
    } catch (const broken& wrong) {
      result.passed_over.emplace_back(wrong.what());
    }
  if (result.passed_over.empty())
    return tl::unexpected{"there is no checkpoint in " + folder.string()};
  return tl::unexpected{result.passed_over.front()};
}

} // namespace troupe
