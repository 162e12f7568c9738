#include "experiments/support/results.hpp"

#include "experiments/support/expert_report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

constexpr double nanoseconds_a_second = 1e9;
constexpr double nanoseconds_a_millisecond = 1e6;

json number(std::optional<double> x) {
  return x && std::isfinite(*x) ? json(*x) : json(nullptr);
}

json seconds(const std::vector<nanoseconds>& times) {
  auto result = json::array();
  for (const auto t : times)
    result.push_back(static_cast<double>(t) / nanoseconds_a_second);
  return result;
}

json score_json(const std::optional<score>& s) {
  return {{"loss", number(s ? std::optional{s->loss} : std::nullopt)},
          {"accuracy", number(s ? s->accuracy : std::nullopt)}};
}

json parameters_json(const run_request& request) {
  auto result = json::object();
  for (const auto& [key, value] : request.parameters)
    result[key] = value;
  return result;
}

const char* text_of(ending how) {
  switch (how) {
  case ending::finished:
    return "finished";
  case ending::interrupted:
    return "interrupted";
  default:
    return "failed";
  }
}

json run_json(const run_account& run) {
  const auto& plan = run.request->plan;
  const auto& r = run.result;
  auto evaluations = json::array();
  for (const auto& [step, s] : run.evaluations) {
    auto entry = score_json(s);
    entry["steps"] = step;
    evaluations.push_back(std::move(entry));
  }
  json result{
    {"schedule", plan.sch.name},
    {"parameters", parameters_json(*run.request)},
    {"ending", text_of(r.how)},
    {"clock", run.virtual_time() ? "virtual" : "real"},
    {"device", plan.work ? "cpu" : "none"},
    {"timing", run.modelled ? "modelled" : "measured"},
    {"stages", plan.dims.stages},
    {"ranks", plan.ranks()},
    {"replicas", plan.replicas()},
    {"exchange", plan.data > 1 ? json(plan.exchange->name) : json(nullptr)},
    {"tensor", plan.tensor},
    {"sequence_parallel", plan.sequence_parallel},
    {"expert", plan.expert},
    {"microbatches", plan.batches().microbatches},
    {"steps", plan.dims.steps},
    {"samples", plan.work ? json(r.samples) : json(nullptr)},
    {"updates", r.updates.empty() ? json(nullptr) : json(r.updates)},
    // Wall time would differ each time, and virtual runs are to be the same byte for
    // byte.
    {"seconds", run.virtual_time() ? json(nullptr) : json(r.seconds)},
    {"samples_per_second", number(run.samples_per_second())},
    {"tokens_per_second", number(run.tokens_per_second())},
    {"makespan", static_cast<double>(r.sums.makespan) / nanoseconds_a_second},
    {"busy", seconds(r.sums.busy)},
    {"idle", seconds(r.sums.idle())},
    {"bubble", r.sums.bubble()},
    {"bubble_ideal", r.sums.bubble_ideal()},
    {"span_idle", seconds(r.sums.span_idle)},
    {"peak_activations", r.sums.peak_activations},
    {"peak_bytes", plan.work ? json(r.peak_bytes) : json(nullptr)},
    {"bytes_moved",
     {{"pipeline", r.bytes_moved[0]},
      {"gradients", r.bytes_moved[1]},
      {"parameters", r.bytes_moved[2]},
      {"tensor", r.bytes_moved[3]},
      {"experts", r.bytes_moved[4]}}},
    {"weight_versions", r.sums.weight_versions},
    {"staleness", {{"max", r.sums.max_staleness}, {"mean", r.sums.mean_staleness}}},
    {"exchange_staleness",
     r.exchange.max.empty() ? json(nullptr)
                            : json{{"max", r.exchange.max}, {"mean", r.exchange.mean}}},
    {"loss", plan.work ? json(r.loss) : json(nullptr)},
    {"loss_samples", plan.work ? json(r.loss_samples) : json(nullptr)},
    {"loss_every", plan.work ? json(r.loss_every) : json(nullptr)},
    {"evaluation", score_json(run.evaluated)},
    {"evaluations", std::move(evaluations)},
    {"experts", experts_json(plan, r.loads)},
  };
  if (r.how == ending::failed) {
    for (const char* unknown :
         {"makespan", "busy", "idle", "bubble", "bubble_ideal", "span_idle",
          "peak_activations", "weight_versions", "staleness", "exchange_staleness"})
      result[unknown] = nullptr;
    result["failure"] = r.failure;
  }
  return result;
}

/// Columns of text, as wide as they must be; the first to the left, the others to the
/// right.
std::string in_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths.resize(std::max(widths.size(), c + 1));
      widths[c] = std::max(widths[c], row[c].size());
    }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - row[c].size(), ' ');
      text += c == 0 ? row[c] + space : "  " + space + row[c];
    }
    text += '\n';
  }
  return text;
}

std::string text(std::optional<double> x, const char* format) {
  if (!x || !std::isfinite(*x))
    return "-";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, *x);
  return buffer;
}

template <class Value>
std::string largest(const std::vector<Value>& values) {
  return values.empty() ? "-" : std::to_string(*std::ranges::max_element(values));
}

double mean(const std::vector<nanoseconds>& times) {
  double sum = 0;
  for (const auto t : times)
    sum += static_cast<double>(t);
  return times.empty() ? 0 : sum / static_cast<double>(times.size());
}

std::vector<std::string> table_row(const run_account& run, bool trains,
                                   bool classifies) {
  const auto& sums = run.result.sums;
  std::vector<std::string> row{run.request->text};
  if (trains) {
    row.push_back(text(run.samples_per_second(), "%.1f"));
    if (!classifies)
      row.push_back(text(run.tokens_per_second(), "%.0f"));
  }
  const double unit = trains ? nanoseconds_a_second : nanoseconds_a_millisecond;
  row.push_back(text(static_cast<double>(sums.makespan) / unit, "%.3f"));
  row.push_back(text(mean(sums.idle()) / unit, "%.3f"));
  row.push_back(text(100 * sums.bubble(), "%.1f%%"));
  row.push_back(largest(sums.peak_activations));
  if (trains) {
    const auto& bytes = run.result.peak_bytes;
    row.push_back(
      bytes.empty()
        ? "-"
        : text(static_cast<double>(*std::ranges::max_element(bytes)) / (1 << 20),
               "%.1f"));
  }
  row.push_back(largest(sums.weight_versions));
  double stale = 0;
  for (const double s : sums.mean_staleness)
    stale = std::max(stale, s);
  row.push_back(largest(sums.max_staleness) + text(stale, " (%.2f)"));
  if (trains) {
    const auto& loss = run.result.loss;
    row.push_back(loss.empty() ? "-" : text(loss.back(), "%.4f"));
    row.push_back(
      text(run.evaluated ? std::optional{run.evaluated->loss} : std::nullopt, "%.4f"));
  }
  if (classifies)
    row.push_back(text(run.evaluated && run.evaluated->accuracy
                         ? std::optional{100 * *run.evaluated->accuracy}
                         : std::nullopt,
                       "%.1f%%"));
  return row;
}

} // namespace

std::optional<double> run_account::samples_per_second() const {
  if (!request->plan.work)
    return {};
  const double time =
    virtual_time() ? static_cast<double>(result.sums.makespan) / nanoseconds_a_second
                   : result.seconds;
  return time > 0 ? std::optional{static_cast<double>(result.samples) / time}
                  : std::nullopt;
}

std::optional<double> run_account::tokens_per_second() const {
  const auto samples = samples_per_second();
  if (!samples || !request->plan.work->whole.reads_tokens)
    return {};
  return *samples * static_cast<double>(request->plan.work->whole.rows);
}

std::string results_json(const options& o, const setup& shared,
                         const std::vector<run_account>& runs) {
  const bool trains = !runs.empty() && runs.front().request->plan.work.has_value();
  const auto& m = shared.model;
  json model = nullptr, data = nullptr;
  if (trains && (m.model == "gpt" || m.model == "moe"))
    model = {{"name", m.model},  {"layers", m.layers}, {"d_model", m.width},
             {"heads", m.heads}, {"seq", m.length},    {"vocab", m.words}};
  else if (trains && m.model == "mlp")
    model = {{"name", m.model}, {"layers", m.layers}, {"d_model", m.width}};
  else if (trains)
    model = {{"name", m.model}};
  if (trains && m.model == "moe")
    model["experts"] = {
      {"count", m.experts.count},       {"top_k", m.experts.chosen},
      {"capacity", m.experts.capacity}, {"balance", m.experts.balance},
      {"gate_noise", m.experts.noise},  {"shared", m.experts.shared}};
  if (trains) {
    model["parameters"] = runs.front().request->plan.work->whole.values();
    data = {{"name", o.data.substr(0, o.data.find(':'))},
            {"description", shared.data},
            {"batch", runs.front().request->plan.work->batch},
            {"evaluates_training_data", shared.evaluates_training_data},
            {"loss_floor", number(shared.loss_floor)}};
  }
  json result{{"troupe", TROUPE_VERSION}, {"command", o.command},
              {"model", model},           {"data", data},
              {"seed", o.seed},           {"runs", json::array()}};
  for (const auto& run : runs)
    result["runs"].push_back(run_json(run));
  return result.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string results_table(const setup& shared, const std::vector<run_account>& runs) {
  if (runs.empty())
    return {};
  const bool trains = runs.front().request->plan.work.has_value();
  const bool classifies =
    trains && !runs.front().request->plan.work->whole.reads_tokens;
  std::vector<std::string> head{"schedule"};
  if (trains)
    head.emplace_back("samples/s");
  if (trains && !classifies)
    head.emplace_back("tokens/s");
  const std::string unit = trains ? "s" : "ms";
  head.insert(head.end(),
              {"makespan " + unit, "idle " + unit, "bubble", "activations"});
  if (trains)
    head.emplace_back("MiB/rank");
  head.insert(head.end(), {"versions", "staleness"});
  if (trains)
    head.insert(head.end(), {"loss", "evaluated"});
  if (classifies)
    head.emplace_back("accuracy");
  std::vector<std::vector<std::string>> rows{head};
  bool modelled = false;
  for (const auto& run : runs) {
    rows.push_back(table_row(run, trains, classifies));
    if (run.result.how == ending::failed) {
      rows.back().assign(head.size(), "-");
      rows.back().front() = run.request->text + " (failed)";
    }
    modelled = modelled || run.modelled;
  }
  auto result = in_columns(rows);
  result += "\nidle: mean over ranks of makespan - busy; bubble: mean over ranks of "
            "idle / makespan;\nactivations, "
            + std::string{trains ? "MiB, " : ""}
            + "versions: of the rank or stage with most; staleness: of the stalest "
              "update (mean of its stage)";
  if (modelled)
    result += "\nmakespan, idle and bubble are modelled: laid out from the measured "
              "cost of each action with one\ndevice a rank, as there are fewer cores "
              "than ranks; samples/s is the wall's";
  std::string exchange;
  for (const auto& run : runs)
    if (const auto& of = run.result.exchange; !of.max.empty())
      exchange += (exchange.empty() ? "" : "; ") + run.request->text + ": "
                  + largest(of.max)
                  + text(*std::ranges::max_element(of.mean), " (%.2f)");
  if (!exchange.empty())
    result +=
      "\nupdates of others between what a data replica read and its own, of the "
      "stalest update (mean of its\nstage): "
      + exchange;
  std::string experts;
  for (const auto& run : runs)
    if (!run.result.loads.of.empty())
      experts += (experts.empty() ? "" : "; ") + run.request->text + ": "
                 + summary_of(run.result.loads);
  if (!experts.empty())
    result += "\nexperts: rows of the fullest over the mean of its layer, and choices "
              "dropped, in the last tenth of\nthe steps: "
              + experts;
  if (shared.evaluates_training_data)
    result += "\nevaluated: on data that training sees too, as order=sequential goes "
              "through all of it";
  if (trains)
    result += "\nloss: of the last minibatch";
  if (shared.loss_floor)
    result += "; no model of this data can stay below "
              + text(*shared.loss_floor, "%.4f") + " nats";
  return result + "\n";
}

} // namespace troupe
