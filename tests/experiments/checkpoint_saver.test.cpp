// SPDX-License-Identifier: BSD-3-Clause
// Messages for checkpoints that cannot be written: each reason once, then a count.

#include "actors/checkpoints/checkpoint_saver.hpp"

#include "tests/experiments/tiny_options.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::checkpoint_saver_test {

using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

TEST_CASE("a reason that costs many checkpoints is told once, and then counted",
          "[programs]") {
  const temporary_folder folder;
  const auto shared = tiny::set_up_training(tiny::options_of("1f1b"));
  REQUIRE(shared);
  const checkpoint_options options{.folder = (folder.path() / "c").string()};
  std::vector<std::string> said;
  const auto save = [&](checkpoint_saver& saver, int first, int last) {
    for (int batches = first; batches <= last; ++batches)
      saver.save(training_copies{batches, {}});
    saver.wait();
  };
  {
    checkpoint_saver saver{options, shared->runs.front().plan,
                           [&](const std::string& line) { said.push_back(line); }};
    folder.write("c", "a file, where no folder can be made");
    save(saver, 1, 583);
    REQUIRE(said.size() == 1);
    CHECK_THAT(said[0], ContainsSubstring("no checkpoint: "));
    CHECK_THAT(said[0], ContainsSubstring("/c"));
    fs::remove(folder.path() / "c");
    fs::create_directory(folder.path() / "c");
    save(saver, 584, 585); // a checkpoint of no stages, which succeeds
    REQUIRE(said.size() == 2);
    CHECK_THAT(said[1], ContainsSubstring("582 more checkpoints could not be written"));
    fs::remove_all(folder.path() / "c");
    folder.write("c", "a file again");
    save(saver, 586, 587);
    REQUIRE(said.size() == 3);
    CHECK(said[2] == said[0]);
  }
  REQUIRE(said.size() == 4);
  CHECK_THAT(said[3], ContainsSubstring("1 more checkpoint could not be written"));
}

TEST_CASE("what gets a checkpoint's name during a run is not replaced", "[programs]") {
  const temporary_folder folder;
  const auto shared = tiny::set_up_training(tiny::options_of("1f1b"));
  REQUIRE(shared);
  const auto& plan = shared->runs.front().plan;
  known_checkpoints known;
  const auto save = [&](int batches, int keep = 1) {
    const auto outcome =
      write_checkpoint(folder.path(), plan, training_copies{batches, {}}, keep, known);
    CHECK(outcome.removal_error.empty());
    return outcome.write_error;
  };
  const auto in = [&](int batches, const std::string& file) {
    const auto name = "batch-" + std::to_string(batches);
    fs::create_directories(folder.path() / name);
    return name + "/" + file;
  };
  REQUIRE(save(1).empty());
  fs::rename(folder.path() / "batch-1", folder.path() / "batch-3");
  folder.write(in(2, "mine.txt"), "data");
  folder.write(in(4, manifest_name), "{}");
  folder.write(in(5, manifest_name), "{"); // broken
  CHECK_THAT(save(2), ContainsSubstring("batch-2 is no checkpoint"));
  CHECK_THAT(save(3), ContainsSubstring("batch-3 may be another checkpoint, which is "
                                        "not replaced")
                        && ContainsSubstring("records 1 batches"));
  CHECK_THAT(save(4), ContainsSubstring("it is JSON of another program"));
  CHECK(save(5).empty());
  CHECK(save(5).empty()); // once more, as after a restart
  CHECK(reason_to_keep(folder.path() / "batch-5").ends_with("batch-5 is whole"));
  CHECK(save(6).empty());
  CHECK_FALSE(fs::exists(folder.path() / "batch-5"));
  for (const auto* const stays : {"batch-2/mine.txt", "batch-3/manifest.json",
                                  "batch-4/manifest.json", "batch-6/manifest.json"})
    CHECK(fs::exists(folder.path() / stays));
}

TEST_CASE("whole checkpoints alone count, and others stay or go by what is known",
          "[programs]") {
  const temporary_folder folder;
  const auto shared = tiny::set_up_training(tiny::options_of("1f1b"));
  REQUIRE(shared);
  const auto& plan = shared->runs.front().plan;
  const auto save = [&](int batches, int keep, known_checkpoints known = {}) {
    return write_checkpoint(folder.path(), plan, training_copies{batches, {}}, keep,
                            known);
  };
  const auto has = [&](int batches) {
    return fs::exists(folder.path() / ("batch-" + std::to_string(batches)));
  };
  for (const int batches : {2, 4, 6, 8})
    CHECK(save(batches, 9).write_error.empty());
  for (const auto* const broken : {"batch-6", "batch-8"})
    folder.write(broken + std::string{"/manifest.json"}, "{");
  SECTION("a broken one takes no place of a whole one") {
    CHECK(save(11, 2).removal_error.empty());
    CHECK(has(11));
    CHECK(has(4)); // the second whole one
    CHECK_FALSE(has(2));
  }
  SECTION("the written one stays beside a name with a leading zero") {
    fs::rename(folder.path() / "batch-6", folder.path() / "batch-04");
    CHECK(save(8, 1).write_error.empty()); // a broken one is replaced
    CHECK(has(8));
    CHECK(fs::exists(folder.path() / "batch-04/manifest.json")); // no checkpoint's name
  }
  SECTION("a whole one is replaced by its own program alone") {
    CHECK_THAT(save(4, 9).write_error, ContainsSubstring("which is not replaced")
                                         && ContainsSubstring("batch-4 is whole"));
    CHECK(save(4, 9, {.whole = {"batch-4"}}).write_error.empty());
  }
  SECTION("one that cannot be removed is named, and the others go") {
    fs::create_directory(folder.path() / "batch-4.unfinished");
    folder.write("batch-4.unfinished/mine.txt", "data");
    const auto outcome = save(11, 1);
    CHECK(outcome.write_error.empty());
    CHECK_THAT(outcome.removal_error,
               ContainsSubstring("batch-11 is written, and ")
                 && ContainsSubstring("batch-4 cannot be removed: "));
    CHECK(has(4));
    CHECK_FALSE(has(2));
  }
}

TEST_CASE("an unfinished folder is no link to another folder", "[programs]") {
  const temporary_folder folder;
  fs::create_directory(folder.path() / "other");
  folder.write("other/manifest.json", "of another training");
  fs::create_directory_symlink("other", folder.path() / "batch-3.unfinished");
  {
    const unfinished_folder unfinished{folder.path() / "batch-3"};
    CHECK_FALSE(fs::is_symlink(unfinished.path()));
    CHECK(fs::is_directory(unfinished.path()));
  }
  CHECK(fs::exists(folder.path() / "other/manifest.json"));
}

} // namespace troupe::checkpoint_saver_test
