// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/command_line.hpp"

#include "experiments/options/config_file.hpp"
#include "experiments/options/effects.hpp"
#include "experiments/options/help.hpp"
#include "experiments/options/option_list.hpp"
#include "experiments/options/parse_mistake.hpp"
#include "experiments/options/saved_options.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>

namespace troupe {

namespace {

/// The sentence about an option that is given together with --all and has no effect, as
/// --all chooses nearly all options itself. Empty if there is none.
std::string error_beside_all(const CLI::App& app) {
  const std::vector<std::string> allowed{"--all",           "--config", "--seed",
                                         "--stall-timeout", "--quiet",  "--precision",
                                         "--json"};
  for (const auto* const option : app.get_options())
    if (const auto name = option->get_name();
        option->count() > 0 && std::ranges::find(allowed, name) == allowed.end())
      return "--all runs a fixed list, and allows only --seed, --precision, "
             "--stall-timeout, --json and --quiet: leave --all or "
             + name + " out";
  return {};
}

/// One parse of a program's command line and of the file that --config names.
class reading {
public:
  /// \param defaults values of options that are left out
  reading(const program_info& program, const typed_options& defaults)
    : typed(defaults), app(program.description, program.name), list(app) {
    app.option_defaults()->always_capture_default();
    add_help(app);
    list.begin_group("General");
    file =
      list
        .add_file(
          "--config",
          "TOML file of options, each on a line of its own, for example steps = 100.")
        ->check(read_error);
    app.config_formatter(std::make_shared<config_reader>(app));
    app.footer(add_options(list, typed, program));
  }

  /// Returns one sentence about a mistake, else an empty text.
  /// \throws CLI::Success after --help, --version
  std::string parse(int argc, const char* const* argv) {
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success&) {
      throw;
    } catch (const CLI::ParseError& error) {
      return sentence_of(app, error);
    } catch (const config_error& error) {
      return "--config: " + printable(error.what());
    }
    if (auto missing = missing_value(app); !missing.empty())
      return missing;
    if (const auto name = list.given_twice(); !name.empty())
      return name
             + " is given several times, and takes one value: give the option once";
    return {};
  }

  bool says(const char* option) const {
    const auto* const known_option = app.get_option_no_throw(option);
    return known_option != nullptr && known_option->count() > 0;
  }

  typed_options typed;
  CLI::App app;
  option_list list;
  const CLI::Option* file; // of options
};

/// The saved run as the origin of the data, if the run names data and no option does.
/// \param compares whether the data must have the recorded identity
std::optional<data_origin> origin_of_data(const saved_run& saved, const reading& said,
                                          bool compares) {
  if (said.says("--data") || said.says("--evaluate-data")
      || !saved.options.contains("--data"))
    return {};
  return data_origin{saved.from, compares ? saved.data : std::nullopt};
}

/// Sets options that the command line leaves out to the values in the file of --init.
/// Returns one sentence about a mistake, else an empty text.
std::string apply_init(const reading& said, reading& to) {
  const auto& init = said.typed.data.init;
  if (auto error = set_options_from_init(said.app, to.app, init); !error.empty())
    return error;
  if (const auto saved = saved_run_of(init)) // else set_up reports the mistake
    to.typed.data.origin = origin_of_data(*saved, said, true);
  return {};
}

/// Defaults of a program that starts with files of weights or a checkpoint: the values
/// that the files record, where the command line gives none. The error is one sentence
/// with the mistake.
tl::expected<typed_options, std::string> defaults_after(const program_info& program,
                                                        const reading& said) {
  const auto& weights = said.typed.inference.weights;
  const auto& location = program.infers() ? weights : said.typed.checkpoint.resume;
  reading silent{program, program.defaults};
  if (location.empty()) {
    if (!program.infers() && !said.typed.data.init.empty())
      if (auto error = apply_init(said, silent); !error.empty())
        return problem{error};
    return silent.typed;
  }
  std::error_code unknown; // resume() refuses --resume without a folder
  if (!program.infers() && !std::filesystem::is_directory(location, unknown))
    return silent.typed;
  const auto saved = saved_run_of(location);
  if (!saved)
    return problem{saved.error()};
  if (auto error = set_saved_options(*saved, said.app, silent.app); !error.empty())
    return problem{error};
  if (program.infers())
    if (auto error = set_options_from_config(said.app, silent.app, weights);
        !error.empty())
      return problem{error};
  // For a resumed run the data's identity is one of the facts that --change lets
  // differ.
  silent.typed.data.origin = origin_of_data(*saved, said, program.infers());
  return silent.typed;
}

/// Decides whether a training with `--resume auto` resumes from a checkpoint. A
/// training that resumes ignores the file of --init.
void find_beginning(typed_options& typed) {
  find_checkpoints(typed.checkpoint);
  if (typed.checkpoint.resumes_if_any && !typed.checkpoint.resume.empty())
    typed.data.init.clear();
}

/// Prints one sentence about a mistake, and returns the exit code.
tl::unexpected<int> refuse(const program_info& program, const std::string& why) {
  std::cerr << program.name << ": " << why << "; see " << program.name << " --help\n";
  return tl::unexpected{2};
}

/// The word that gives an option the values that were typed.
std::string word_of(const CLI::Option& option) {
  const auto name = option.get_name();
  if (option.get_expected_max() == 0)
    return option.as<bool>() ? name : "";
  std::string values;
  for (const auto& value : option.results())
    values += (values.empty() ? "" : ",") + value;
  return name + "=" + values;
}

} // namespace

tl::expected<typed_words, int> read_words(const program_info& program, int argc,
                                          const char* const* argv) {
  reading read{program, program.defaults};
  try {
    if (const auto error = read.parse(argc, argv); !error.empty())
      return refuse(program, error);
  } catch (const CLI::Success& asked) {
    return tl::unexpected{read.app.exit(asked)};
  }
  typed_words result{read.typed, {}};
  for (const auto* const option : read.app.get_options())
    if (option != read.file && option->count() > 0)
      if (const auto word = word_of(*option); !word.empty())
        result.words.push_back(word);
  return result;
}

tl::expected<options, option_mistake>
options_of(const program_info& program, const std::vector<std::string>& words) {
  std::vector<const char*> argv{program.name.c_str()};
  for (const auto& word : words)
    argv.push_back(word.c_str());
  const auto argc = static_cast<int>(argv.size());
  const auto mistaken = [](std::string sentence, bool help_tells_more = true) {
    return tl::unexpected{option_mistake{std::move(sentence), help_tells_more}};
  };
  reading first{program, program.defaults};
  if (auto error = first.parse(argc, argv.data()); !error.empty())
    return mistaken(std::move(error));
  if (auto error = unreadable_folder_error(first.typed.checkpoint); !error.empty())
    return mistaken(std::move(error));
  find_beginning(first.typed);
  const auto defaults = defaults_after(program, first);
  if (!defaults)
    return mistaken(defaults.error(), false);
  reading second{program, *defaults};
  (void)second.parse(argc, argv.data()); // correct, as the first was
  auto& typed = second.typed;
  find_beginning(typed);
  if (typed.mesh.axes.find("pipe") != std::string::npos && second.says("--stages"))
    return mistaken("--stages and pipe= in --mesh both give the ranks of a pipeline: "
                    "leave --stages or pipe= out");
  if (auto error = error_beside_all(second.app);
      typed.output.whole_catalog && !error.empty())
    return mistaken(std::move(error));
  if (second.file->count() > 0)
    typed.output.config = second.file->as<std::string>();
  typed.mesh.says_stages = second.says("--stages");
  typed.schedules.says_microbatches = second.says("--microbatches");
  typed.schedules.says_steps = second.says("--steps");
  typed.output.command = {program.name};
  typed.output.command.insert(typed.output.command.end(), words.begin(), words.end());
  auto o = parse(typed, program.trains);
  if (!o)
    return mistaken(o.error(), false);
  auto without_saved = program;
  without_saved.defaults = *defaults;
  if (auto error = without_effect(typed, *o, without_saved); !error.empty())
    return mistaken(std::move(error));
  return std::move(*o);
}

tl::expected<options, int> read_command_line(const program_info& program, int argc,
                                             const char* const* argv) {
  reading shown{program, program.defaults};
  try {
    (void)shown.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return tl::unexpected{shown.app.exit(asked)};
  }
  auto o = options_of(program, {argv + 1, argv + argc});
  if (o)
    return std::move(*o);
  const auto& [sentence, help_tells_more] = o.error();
  if (help_tells_more)
    return refuse(program, sentence);
  std::cerr << program.name << ": " << sentence << '\n';
  return tl::unexpected{2};
}

} // namespace troupe
