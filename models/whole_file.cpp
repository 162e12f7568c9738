// SPDX-License-Identifier: BSD-3-Clause
#include "models/whole_file.hpp"

#include "models/descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// The end of a sentence: the reason why a file cannot be written.
struct write_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void refuse_by_errno() {
  throw write_failure(std::generic_category().message(errno));
}

/// The path of the file that will be replaced.
fs::path target_of(const fs::path& path) {
  if (auto target = without_links(path))
    return *target;
  throw write_failure("its symbolic links form a cycle, or a chain of more than 40");
}

/// A new file in the same folder, which will replace the file at a path. The destructor
/// removes a file that has not taken the place.
class unfinished_file {
public:
  explicit unfinished_file(const fs::path& path)
    : target_(target_of(path)),
      folder_(target_.has_parent_path() ? target_.parent_path() : ".") {
    if (!fs::is_directory(folder_))
      throw write_failure("there is no folder " + folder_.string());
    inspect_older();
    const mode_t mode = older_ ? older_->st_mode & 0777 : 0666;
    if (access("/proc/self/fd", F_OK) == 0) // the name for linkat comes from there
      file_ =
        descriptor{::open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode)};
    if (!file_.is_open())
      under_new_name([&](const fs::path& name) {
        file_ = descriptor{
          ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode)};
        return file_.is_open();
      });
  }

  ~unfinished_file() {
    if (!name_.empty())
      ::unlink(name_.c_str());
  }

  unfinished_file(const unfinished_file&) = delete;
  unfinished_file& operator=(const unfinished_file&) = delete;

  void write(std::string_view piece) {
    while (!piece.empty()) {
      const auto count = ::write(file_.number(), piece.data(), piece.size());
      if (count < 0 && errno != EINTR)
        refuse_by_errno();
      if (count > 0)
        piece.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void reach_disk() const {
    keep_owner_and_mode();
    if (::fsync(file_.number()) != 0)
      refuse_by_errno();
  }

  /// The last step, which replaces the older file. Errors throw only until the new name
  /// is in place.
  void take_place() {
    if (name_.empty())
      under_new_name([&](const fs::path& name) {
        const auto descriptor_path = "/proc/self/fd/" + std::to_string(file_.number());
        return ::linkat(AT_FDCWD, descriptor_path.c_str(), AT_FDCWD, name.c_str(),
                        AT_SYMLINK_FOLLOW)
               == 0;
      });
    if (std::rename(name_.c_str(), target_.c_str()) != 0)
      refuse_by_errno();
    name_.clear();
    const descriptor folder{::open(folder_.c_str(), O_RDONLY | O_CLOEXEC)};
    if (folder.is_open())
      ::fsync(folder.number()); // the name is then on the disk, too
  }

private:
  void inspect_older() {
    struct stat status {};
    if (::stat(target_.c_str(), &status) != 0) {
      if (errno == ENOENT && target_.has_filename())
        return;
      refuse_by_errno();
    }
    if (S_ISDIR(status.st_mode))
      throw write_failure("it is a folder, and not a file in a folder");
    if (!S_ISREG(status.st_mode))
      throw write_failure("it is not a file that can be replaced");
    if ((status.st_mode & 0222) == 0) // root could write
      throw write_failure("it is protected from writing");
    if (::faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0)
      refuse_by_errno();
    older_ = status;
  }

  /// Tries names until one is new. \param make returns false, with errno, on failure
  template <class Make>
  void under_new_name(const Make& make) {
    for (int number = 0;; ++number) {
      const auto name =
        folder_
        / (".troupe-" + std::to_string(::getpid()) + "-" + std::to_string(number));
      if (make(name)) {
        name_ = name;
        return;
      }
      if (errno != EEXIST)
        refuse_by_errno();
    }
  }

  void keep_owner_and_mode() const {
    if (!older_)
      return;
    const int file = file_.number();
    // If the system allows neither, everyone could write the older file.
    [[maybe_unused]] const bool kept =
      ::fchown(file, older_->st_uid, older_->st_gid) == 0
      || ::fchown(file, static_cast<uid_t>(-1), older_->st_gid) == 0;
    if (::fchmod(file, older_->st_mode & 0777) != 0)
      refuse_by_errno();
  }

  fs::path target_;
  fs::path folder_;
  std::optional<struct stat> older_;
  descriptor file_;
  fs::path name_; // empty while the file has no name
};

/// Runs `use` on an unfinished file. Returns one sentence on error; empty on success.
template <class Use>
std::string write_error(const fs::path& path, const Use& use) {
  std::string why;
  try {
    unfinished_file file{path};
    use(file);
    return {};
  } catch (const write_failure& error) {
    why = error.what();
  } catch (const fs::filesystem_error& error) {
    why = error.code().message();
  }
  return "cannot write " + path.string() + ": " + why;
}

} // namespace

std::optional<fs::path> without_links(fs::path path) {
  constexpr int most = 40; // Linux's own limit
  std::error_code unknown;
  for (int links = 0; fs::is_symlink(path, unknown); ++links) {
    if (links == most)
      return {};
    path = path.parent_path() / fs::read_symlink(path);
  }
  return path;
}

std::string write_whole_file(const fs::path& path,
                             std::span<const std::string_view> pieces,
                             const std::function<void()>& on_complete) {
  return write_error(path, [&](unfinished_file& file) {
    for (const auto piece : pieces)
      file.write(piece);
    file.reach_disk();
    if (on_complete)
      on_complete();
    file.take_place();
  });
}

std::string write_whole_file(const fs::path& path, std::string_view content) {
  return write_whole_file(path, {&content, 1});
}

std::string writability_error(const fs::path& path) {
  return write_error(path, [](unfinished_file&) {});
}

} // namespace troupe
