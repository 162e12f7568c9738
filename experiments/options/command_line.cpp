#include "experiments/options/command_line.hpp"

#include "experiments/options/build_info.hpp"
#include "experiments/options/config_file.hpp"
#include "experiments/options/effects.hpp"
#include "experiments/options/option_list.hpp"
#include "experiments/options/saved_options.hpp"

#include <iostream>

namespace troupe {

namespace {

std::string up_to_colon(const std::string& text) {
  return text.substr(0, text.find(':'));
}

/// A text of the user's, for one line of a terminal.
std::string printable(std::string text) {
  std::ranges::replace_if(
    text, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return text;
}

/// A mistake that CLI11 found, as a sentence of ours.
std::string sentence(const CLI::App& app, const CLI::ParseError& wrong) {
  const auto what = printable(wrong.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&wrong) != nullptr)
    return "there is no option '" + printable(app.remaining().front()) + "'";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&wrong) != nullptr)
    return up_to_colon(what) + " needs a value";
  return what;
}

/// What was said beside --all, which chooses nearly everything itself; empty if nothing
/// is without effect.
std::string beside_all(const CLI::App& app) {
  for (const auto* const option : app.get_options())
    if (const auto name = option->get_name();
        option->count() > 0 && name != "--all" && name != "--seed" && name != "--quiet"
        && name != "--stall-timeout" && name != "--precision" && name != "--config")
      return name;
  return {};
}

} // namespace

tl::expected<options, int> read_command_line(const program_about& about, int argc,
                                             const char* const* argv) {
  const auto refuse = [&](const std::string& why) {
    std::cerr << about.name << ": " << why << "; see " << about.name << " --help\n";
    return tl::unexpected{2};
  };
  auto typed = about.defaults;
  CLI::App app{about.description, about.name};
  app.option_defaults()->always_capture_default();
  option_list list{app};
  app.set_help_flag("-h,--help", "Help: this text.");
  app.set_version_flag("--version", build_info,
                       "Version of troupe, and what it was built with.");
  const auto* const file =
    list.add_file("--config", "TOML file with any of these options.")
      ->check(unreadable);
  app.config_formatter(std::make_shared<config_reader>(app));
  app.footer(add_options(list, typed, about));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) { // --help, --version
    return tl::unexpected{app.exit(asked)};
  } catch (const CLI::ParseError& wrong) {
    return refuse(sentence(app, wrong));
  } catch (const config_mistake& wrong) {
    return refuse("--config: " + printable(wrong.what()));
  }
  if (const auto name = list.given_twice(); !name.empty())
    return refuse(name + " is given several values: give it one");
  if (typed.mesh.axes.find("pipe") != std::string::npos && app.count("--stages") > 0)
    return refuse("--stages and the pipe of --mesh are the same: give one of them");
  if (const auto other = beside_all(app); typed.output.all && !other.empty())
    return refuse("--all chooses models, schedules and sizes itself: only --seed, "
                  "--precision, --stall-timeout and --quiet go with it, not "
                  + other);
  if (about.infers())
    if (const auto wrong = take_saved_options(app, typed.inference.weights);
        !wrong.empty()) {
      std::cerr << about.name << ": " << wrong << '\n';
      return tl::unexpected{2};
    }
  if (file->count() > 0)
    typed.output.config = file->as<std::string>();
  const auto says = [&](const char* option) {
    return app.get_option_no_throw(option) != nullptr && app.count(option) > 0;
  };
  typed.mesh.says_stages = says("--stages");
  typed.schedules.says_microbatches = says("--microbatches");
  typed.schedules.says_steps = says("--steps");
  typed.output.command = {about.name};
  typed.output.command.insert(typed.output.command.end(), argv + 1, argv + argc);
  auto o = parse(typed, about.trains);
  if (!o) {
    std::cerr << about.name << ": " << o.error() << '\n';
    return tl::unexpected{2};
  }
  if (const auto wrong = without_effect(typed, *o, about); !wrong.empty())
    return refuse(wrong);
  return std::move(*o);
}

} // namespace troupe
