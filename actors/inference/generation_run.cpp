// SPDX-License-Identifier: BSD-3-Clause
#include "actors/inference/generation_run.hpp"

#include "actors/inference/cached_stage.hpp"
#include "models/random.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace troupe {

namespace {

std::int64_t context_of(const generation_job& job) {
  return job.plan.whole.rows;
}

/// The numbers of tokens that stages may read in one pass.
std::set<std::int64_t> lengths_of(const generation_job& job) {
  std::set<std::int64_t> result{
    1, std::min<std::int64_t>(std::ssize(job.prompt), context_of(job))};
  if (std::ssize(job.prompt) + job.tokens - 1 > context_of(job))
    result.insert(context_of(job));
  return result;
}

/// Stores the text of each sequence, and samples the next tokens.
class generation_client : public inference_client {
public:
  generation_client(const generation_job& job,
                    const std::function<void(const generated_token&)>& on_token)
    : job_(job),
      on_token_(on_token),
      inputs_("tokens", portions_between, *lengths_of(job).rbegin(), account_,
              element::int32) {
    for (int s = 0; s < job.sequences; ++s) {
      texts_.push_back(job.prompt);
      ready_.push_back(s);
      draws_.emplace_back(job.seed, "text " + std::to_string(s));
    }
  }

  /// Returns the input of a sequence whose last token is known.
  std::optional<portion> next() override {
    if (ready_.empty())
      return {};
    const int sequence = ready_.front();
    ready_.pop_front();
    const auto& text = texts_[static_cast<std::size_t>(sequence)];
    const auto size = std::ssize(text), generated = size - std::ssize(job_.prompt);
    portion result{.number = sequence, .length = 1, .values = inputs_.acquire()};
    if (size > context_of(job_))
      result.length = context_of(job_);
    else if (generated == 0)
      result.length = size;
    else
      result.past = size - 1;
    std::copy(text.end() - result.length, text.end(), result.values.integers());
    return result;
  }

  void receive(const portion& result) override {
    const auto sequence = static_cast<std::size_t>(result.number);
    auto& text = texts_[sequence];
    const std::span logits{result.values.data(),
                           static_cast<std::size_t>(job_.plan.whole.classes)};
    const auto drawn = std::ssize(text) - std::ssize(job_.prompt);
    const auto token =
      sample(logits, job_.sampling,
             draws_[sequence].uniform(static_cast<std::uint64_t>(drawn)));
    text.push_back(token);
    if (on_token_)
      on_token_({static_cast<int>(sequence), token, logits});
    if (drawn + 1 < job_.tokens)
      ready_.push_back(static_cast<int>(sequence));
    else
      ++finished_;
  }

  bool is_done() const override { return finished_ == job_.sequences; }

  std::vector<std::vector<std::int32_t>> texts() { return std::move(texts_); }

private:
  const generation_job& job_;
  const std::function<void(const generated_token&)>& on_token_;
  memory_account account_;
  pool inputs_;
  std::vector<std::vector<std::int32_t>> texts_;
  std::vector<random_stream> draws_;
  std::deque<int> ready_;
  int finished_ = 0; // sequences
};

} // namespace

std::string validation_error(const generation_job& job) {
  const auto& model = job.plan.whole.options;
  if (!job.plan.whole.reads_tokens)
    return "only gpt and moe generate text, not " + model.model;
  if (job.prompt.empty())
    return "a prompt has at least one token";
  for (std::size_t i = 0; i < job.prompt.size(); ++i)
    if (job.prompt[i] < 0 || job.prompt[i] >= model.words)
      return "token " + std::to_string(job.prompt[i]) + " at position "
             + std::to_string(i)
             + " of the prompt is not in the model's vocabulary, 0 to "
             + std::to_string(model.words - 1);
  return {};
}

std::vector<std::int64_t> bytes_needed(const generation_job& job) {
  const auto lengths = lengths_of(job);
  std::vector<std::int64_t> result;
  for (int s = 0; s < job.plan.stages(); ++s)
    result.push_back(cached_stage::bytes(job.plan, s, job.sequences, lengths));
  result.front() += portions_between * *lengths.rbegin()
                    * static_cast<std::int64_t>(sizeof(std::int32_t));
  return result;
}

generation_result generate(const generation_job& job,
                           const std::function<void(const generated_token&)>& on_token,
                           const std::atomic<bool>* interrupted) {
  generation_client client{job, on_token};
  const auto lengths = lengths_of(job);
  const auto make = [&](const inference_plan& plan, int stage, stream& compute_stream,
                        memory_account& account) {
    return std::make_unique<cached_stage>(plan, stage, job.sequences, lengths,
                                          compute_stream, account);
  };
  generation_result result;
  result.run = perform(job.plan, client, make, interrupted);
  result.sequences = client.texts();
  return result;
}

} // namespace troupe
