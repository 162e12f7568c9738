// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/command_line.hpp"

#include "experiments/options/config_file.hpp"
#include "experiments/options/effects.hpp"
#include "experiments/options/help.hpp"
#include "experiments/options/init_options.hpp"
#include "experiments/options/option_list.hpp"
#include "experiments/options/parse_mistake.hpp"
#include "experiments/options/saved_options.hpp"

#include <filesystem>
#include <iostream>
#include <system_error>

namespace troupe {

namespace {

/// The name of an option that is given together with --all and has no effect, as --all
/// chooses nearly all options itself. Empty if there is none.
std::string beside_all(const CLI::App& app) {
  for (const auto* const option : app.get_options())
    if (const auto name = option->get_name();
        option->count() > 0 && name != "--all" && name != "--seed" && name != "--quiet"
        && name != "--stall-timeout" && name != "--precision" && name != "--config")
      return name;
  return {};
}

/// One parse of a program's command line and of the file that --config names.
class reading {
public:
  /// \param defaults values of options that are left out
  reading(const program_about& about, const typed_options& defaults)
    : typed(defaults), app(about.description, about.name), list(app) {
    app.option_defaults()->always_capture_default();
    add_help(app);
    list.begin_group("General");
    file =
      list.add_file("--config", "TOML file with any of these options, a line each.")
        ->check(unreadable);
    app.config_formatter(std::make_shared<config_reader>(app));
    app.footer(add_options(list, typed, about));
  }

  /// Returns one sentence about a mistake, else an empty text.
  /// \throws CLI::Success after --help, --version
  std::string parse(int argc, const char* const* argv) {
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success&) {
      throw;
    } catch (const CLI::ParseError& wrong) {
      return sentence_of(app, wrong);
    } catch (const config_mistake& wrong) {
      return "--config: " + printable(wrong.what());
    }
    if (auto missing = missing_value(app); !missing.empty())
      return missing;
    if (const auto name = list.given_twice(); !name.empty())
      return name + " takes one value, and several are given: leave all but one out";
    return {};
  }

  bool says(const char* option) const {
    const auto* const found = app.get_option_no_throw(option);
    return found != nullptr && found->count() > 0;
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
std::string take_init(const reading& said, reading& to) {
  const auto& init = said.typed.data.init;
  if (auto wrong = take_options_of_init(said.app, to.app, init); !wrong.empty())
    return wrong;
  if (const auto saved = saved_run_of(init)) // else set_up reports the mistake
    to.typed.data.origin = origin_of_data(*saved, said, true);
  return {};
}

/// Defaults of a program that starts with files of weights or a checkpoint: the values
/// that the files record, where the command line gives none. The error is one sentence
/// with the mistake.
tl::expected<typed_options, std::string> defaults_after(const program_about& about,
                                                        const reading& said) {
  const auto& weights = said.typed.inference.weights;
  const auto& place = about.infers() ? weights : said.typed.checkpoint.resume;
  reading silent{about, about.defaults};
  if (place.empty()) {
    if (!about.infers() && !said.typed.data.init.empty())
      if (auto wrong = take_init(said, silent); !wrong.empty())
        return problem{wrong};
    return silent.typed;
  }
  std::error_code unknown; // resume() refuses --resume without a folder
  if (!about.infers() && !std::filesystem::is_directory(place, unknown))
    return silent.typed;
  const auto saved = saved_run_of(place);
  if (!saved)
    return problem{saved.error()};
  if (auto wrong = take_saved_options(*saved, said.app, silent.app); !wrong.empty())
    return problem{wrong};
  if (about.infers())
    if (auto wrong = take_options_of_config(said.app, silent.app, weights);
        !wrong.empty())
      return problem{wrong};
  // For a resumed run the data's identity is one of the facts that --change lets
  // differ.
  silent.typed.data.origin = origin_of_data(*saved, said, about.infers());
  return silent.typed;
}

/// Decides whether a training with `--resume auto` resumes from a checkpoint. A
/// training that resumes ignores the file of --init.
void find_beginning(typed_options& typed) {
  find_checkpoints(typed.checkpoint);
  if (typed.checkpoint.resumes_if_any && !typed.checkpoint.resume.empty())
    typed.data.init.clear();
}

} // namespace

tl::expected<options, int> read_command_line(const program_about& about, int argc,
                                             const char* const* argv) {
  const auto refuse = [&](const std::string& why) {
    std::cerr << about.name << ": " << why << "; see " << about.name << " --help\n";
    return tl::unexpected{2};
  };
  reading first{about, about.defaults};
  try {
    if (const auto wrong = first.parse(argc, argv); !wrong.empty())
      return refuse(wrong);
  } catch (const CLI::Success& asked) {
    return tl::unexpected{first.app.exit(asked)};
  }
  find_beginning(first.typed);
  const auto defaults = defaults_after(about, first);
  if (!defaults) {
    std::cerr << about.name << ": " << defaults.error() << '\n';
    return tl::unexpected{2};
  }
  reading second{about, *defaults};
  (void)second.parse(argc, argv); // correct, as the first was
  auto& typed = second.typed;
  find_beginning(typed);
  if (typed.mesh.axes.find("pipe") != std::string::npos && second.says("--stages"))
    return refuse("--stages and pipe= in --mesh both give the ranks of a pipeline: "
                  "leave one of them out");
  if (const auto other = beside_all(second.app); typed.output.all && !other.empty())
    return refuse(
      "--all runs a fixed list of models, schedules and sizes: beside it only --seed, "
      "--precision, --stall-timeout and --quiet are allowed, not "
      + other);
  if (second.file->count() > 0)
    typed.output.config = second.file->as<std::string>();
  typed.mesh.says_stages = second.says("--stages");
  typed.schedules.says_microbatches = second.says("--microbatches");
  typed.schedules.says_steps = second.says("--steps");
  typed.output.command = {about.name};
  typed.output.command.insert(typed.output.command.end(), argv + 1, argv + argc);
  auto o = parse(typed, about.trains);
  if (!o) {
    std::cerr << about.name << ": " << o.error() << '\n';
    return tl::unexpected{2};
  }
  auto without_saved = about;
  without_saved.defaults = *defaults;
  if (const auto wrong = without_effect(typed, *o, without_saved); !wrong.empty())
    return refuse(wrong);
  return std::move(*o);
}

} // namespace troupe
