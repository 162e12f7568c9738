// generate: generates text by saved weights, token by token
// SPDX-License-Identifier: BSD-3-Clause

#include "actors/inference/generation_run.hpp"
#include "experiments/options/saved_options.hpp"
#include "experiments/report/files.hpp"
#include "experiments/report/terminal_text.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/program.hpp"
#include "experiments/session/saved_network.hpp"
#include "models/utf8.hpp"
#include "plan/memory_check.hpp"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <iostream>

using namespace troupe;

namespace {

using json = nlohmann::ordered_json;
using tokens = std::vector<std::int32_t>;

int complain(const std::string& message, int exit_code) {
  std::cerr << "generate: " << message << '\n';
  return exit_code;
}

/// Converts tokens to text: to the bytes that the tokens stand for, or to numbers. For
/// a terminal, terminal_text makes the bytes harmless.
class token_printer {
public:
  token_printer(bool as_numbers, bool on_terminal)
    : as_numbers_(as_numbers), on_terminal_(on_terminal) {}

  bool as_numbers() const { return as_numbers_; }

  std::string operator()(std::int32_t token) {
    if (as_numbers_)
      return std::to_string(token) + " ";
    const auto byte = static_cast<unsigned char>(token);
    return on_terminal_ ? for_terminal_(byte) : std::string(1, static_cast<char>(byte));
  }
  std::string operator()(const tokens& sequence) {
    std::string result;
    for (const auto token : sequence)
      result += (*this)(token);
    return result;
  }

private:
  bool as_numbers_, on_terminal_;
  terminal_text for_terminal_;
};

/// The sentence about a prompt that is longer than the model reads; empty without one.
std::string note_on_prompt(const generation_job& job) {
  const auto most = job.plan.whole.rows, length = std::ssize(job.prompt);
  if (length <= most)
    return {};
  return "the prompt has " + std::to_string(length)
         + " tokens, and the model reads only " + "the last " + std::to_string(most)
         + ", its --seq";
}

/// The text to generate, as options ask. The error is one sentence with the mistake.
tl::expected<generation_job, std::string> job_of(const options& o,
                                                 inference_plan plan) {
  const auto& asked = o.inference;
  constexpr std::int64_t bytes = 256;
  if (asked.prompt_tokens.empty() && plan.whole.reads_tokens
      && plan.whole.options.words > bytes)
    return tl::unexpected{"the model's tokens are 0 to "
                          + std::to_string(plan.whole.options.words - 1)
                          + ", and no bytes of a text: give numbers of tokens by "
                            "--prompt-tokens"};
  generation_job job{.plan = std::move(plan),
                     .prompt = asked.prompt_tokens,
                     .tokens = asked.tokens,
                     .sequences = asked.sequences,
                     .sampling = {asked.temperature, asked.top_k},
                     .seed = o.data.seed};
  if (job.prompt.empty())
    for (const unsigned char byte : asked.prompt.value_or("\n"))
      job.prompt.push_back(byte);
  auto error = validation_error(job);
  if (error.empty())
    error = check_memory(bytes_needed(job), bytes_of_program);
  if (!error.empty())
    return tl::unexpected{error};
  return job;
}

std::int64_t written(const generation_job& job, const generation_result& result) {
  std::int64_t count = 0;
  for (const auto& text : result.sequences)
    count += std::ssize(text) - std::ssize(job.prompt);
  return count;
}

json to_json(const options& o, const saved_network& network, const generation_job& job,
             const generation_result& result) {
  token_printer printer{!o.inference.prompt_tokens.empty(), false};
  json texts = json::array();
  for (const auto& text : result.sequences)
    texts.push_back({{"tokens", text},
                     {"text", printer.as_numbers() ? json() : json(printer(text))}});
  const auto count = written(job, result);
  return {{"command", o.output.command},
          {"weights", network.from},
          {"stages", job.plan.stages()},
          {"prompt", job.prompt},
          {"temperature", job.sampling.temperature},
          {"top_k", job.sampling.top_k},
          {"seed", job.seed},
          {"sequences", texts},
          {"tokens", count},
          {"seconds", result.run.seconds},
          {"tokens_per_second", static_cast<double>(count) / result.run.seconds},
          {"bytes", result.run.bytes}};
}

int write_texts(const options& o) {
  output_files files{o};
  if (const auto error = files.prepare(); !error.empty())
    return complain(error, 2);
  auto network = open_saved_network(o);
  if (!network)
    return complain(network.error(), 2);
  for (const auto& warning : warnings_of(*network))
    std::cerr << "generate: " << warning << '\n';
  const auto job = job_of(o, network->plan);
  if (!job)
    return complain(job.error(), 2);
  if (const auto note = note_on_prompt(*job); !note.empty())
    std::cerr << "generate: " << note << '\n';
  const bool aside = o.output.results_on_stdout();
  token_printer printer{!o.inference.prompt_tokens.empty(),
                        isatty(aside ? STDERR_FILENO : STDOUT_FILENO) != 0};
  auto& out = aside ? std::cerr : std::cout;
  const bool streams = job->sequences == 1 && !o.output.quiet;
  if (!o.output.quiet)
    std::cerr << description(*network) << "; " << job->plan.whole.rows
              << " tokens are read at most\n\n";
  if (streams)
    out << printer(job->prompt) << std::flush;
  const auto result = generate(
    *job,
    [&](const generated_token& next) {
      if (streams)
        out << printer(next.token) << std::flush;
    },
    &interruption());
  if (streams)
    out << '\n' << std::flush;
  if (result.run.outcome == ending::failed)
    return complain(result.run.failure, 1);
  if (!o.output.quiet && !streams)
    for (std::size_t i = 0; i < result.sequences.size(); ++i)
      out << "--- " << i << '\n' << printer(result.sequences[i]) << '\n';
  if (!o.output.quiet) {
    char text[128];
    const auto count = written(*job, result);
    std::snprintf(text, sizeof text, "\n%lld tokens in %.3f s, %.1f a second%s\n",
                  static_cast<long long>(count), result.run.seconds,
                  static_cast<double>(count) / result.run.seconds,
                  result.run.outcome == ending::interrupted ? "; interrupted" : "");
    std::cerr << text;
  }
  const auto text = json_text(to_json(o, *network, *job, result), 2) + "\n";
  if (const auto failed = files.end_results(text); !failed.empty())
    return complain(failed, 1);
  return result.run.outcome == ending::interrupted ? ended_by_user : 0;
}

} // namespace

int main(int argc, char** argv) {
  const program_info program{
    .name = "generate",
    .description = "Generates text from saved weights of a GPT, token by token, by "
                   "stages that cache keys and values.",
    .keeps = false,
    .tells = true,
    .writes = true,
    .defaults = {.mesh = {.stages = 1}, .schedules = {.names = {"1f1b"}}},
  };
  return run_program(program, argc, argv, write_texts);
}
