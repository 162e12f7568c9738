// checkpoint: lists the checkpoints of a folder, and checks each by its checksums
// SPDX-License-Identifier: BSD-3-Clause

#include "actors/checkpoints/checkpoint_folder.hpp"
#include "experiments/options/help.hpp"
#include "experiments/options/parse_mistake.hpp"
#include "experiments/options/parsing.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <string>

using namespace troupe;

namespace {

/// One line about a checkpoint.
std::string line_of(const std::filesystem::path& checkpoint,
                    const checkpoint_facts& facts) {
  std::int64_t bytes = 0;
  for (const auto& file : facts.files)
    bytes += file.bytes;
  return checkpoint.string() + ": " + std::to_string(facts.batches) + " steps, "
         + std::to_string(facts.samples) + " samples, "
         + std::to_string(facts.older + 1)
         + (facts.older == 0 ? " version, " : " versions, ")
         + (facts.state.empty() ? "no optimizer state" : listed(facts.state)) + ", "
         + std::to_string(bytes / 1000) + " kB, whole";
}

int check(const std::string& folder) {
  const auto checkpoints = checkpoints_at(folder);
  if (checkpoints.empty()) {
    std::cerr << "checkpoint: " << no_checkpoint_in(folder) << '\n';
    return 1;
  }
  int exit_code = 0;
  for (const auto& checkpoint : checkpoints)
    if (const auto facts = check_checkpoint(checkpoint)) {
      std::cout << line_of(checkpoint, *facts) << '\n';
    } else {
      std::cerr << "checkpoint: " << facts.error() << '\n';
      exit_code = 1;
    }
  if (!std::cout.flush()) {
    std::cerr << "checkpoint: cannot write standard output\n";
    return 1;
  }
  return exit_code;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{
    "Lists checkpoints of a folder, the newest first, and compares each file with its "
    "checksum. A line begins with the name to give to --resume and --weights.",
    "checkpoint"};
  add_help(app);
  std::string folder;
  app
    .add_option("DIR", folder,
                "Folder of --checkpoint, or the folder of one checkpoint.")
    ->required();
  try {
    app.parse(argc, argv);
    return check(folder);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "checkpoint: " << sentence_of(app, error)
              << "; see checkpoint --help\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "checkpoint: " << error.what() << '\n';
    return 1;
  }
}
