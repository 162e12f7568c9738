// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/files/schedule_file.hpp"

#include "schedules/bounds.hpp"
#include "schedules/files/file_rows.hpp"
#include "schedules/files/file_rules.hpp"
#include "schedules/files/transfers.hpp"
#include "schedules/program.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace troupe {

namespace {

using problem = tl::unexpected<std::string>;
using rows = std::vector<std::vector<action>>;

/// The rank of each stage, by the rows of a file. On error, one sentence says which
/// stage has no rank, or two.
tl::expected<std::vector<int>, std::string>
ranks_of_stages(const std::vector<std::vector<file_cell>>& cell_rows) {
  std::vector<int> result;
  for (std::size_t rank = 0; rank < cell_rows.size(); ++rank)
    for (const auto& cell : cell_rows[rank])
      for (const auto& a : cell.actions) {
        const auto s = static_cast<std::size_t>(a.stage);
        result.resize(std::max(result.size(), s + 1), -1);
        if (result[s] >= 0 && result[s] != static_cast<int>(rank))
          return problem{
            "stage " + std::to_string(s) + " is in row " + std::to_string(result[s])
            + ", and by " + to_string(a, true) + " also in row " + std::to_string(rank)
            + " (rows count from 0): write the stage in one row, or directions=2"};
        result[s] = static_cast<int>(rank);
      }
  if (const auto none = std::ranges::find(result, -1); none != result.end())
    return problem{"stage " + std::to_string(none - result.begin())
                   + " is in no row: write all actions of the stage in one row"};
  return result;
}

placement placement_of(const std::vector<int>& ranks) {
  const int count = *std::ranges::max_element(ranks) + 1;
  return {
    .name = "file",
    .ranks = [count](const shape&) { return count; },
    .host =
      [ranks](const shape&, hosted_stage hosted) {
        return ranks[static_cast<std::size_t>(hosted.stage)];
      },
    .hosted =
      [ranks](const shape&, int rank) {
        std::vector<hosted_stage> result;
        for (std::size_t s = 0; s < ranks.size(); ++s)
          if (ranks[s] == rank)
            result.push_back({0, static_cast<int>(s)});
        return result;
      },
  };
}

/// Sets the directions of actions where pipelines run in several directions: the
/// direction that runs the microbatch.
void set_directions(rows& program_rows, const placement& where, const shape& dims) {
  for (auto& row : program_rows)
    for (auto& a : row)
      a.direction = direction_of(where, dims, a.microbatch);
}

/// Programs that follow the rows of a file, one row per rank.
explicit_program program_of(std::shared_ptr<const rows> program_rows) {
  return [rows_by_rank = std::move(program_rows)](int rank,
                                                  const shape&) -> action_generator {
    return
      [rows_by_rank, rank, index = std::size_t{0}]() mutable -> std::optional<action> {
        const auto& row = (*rows_by_rank)[static_cast<std::size_t>(rank)];
        if (index == row.size())
          return {};
        return row[index++];
      };
  };
}

/// Whether the gradients of some stage are not summed in the order of microbatches.
bool sums_in_another_order(const rows& program_rows) {
  for (const auto& row : program_rows) {
    std::map<std::pair<int, int>, int> last;
    for (const auto& a : row)
      if (adds_gradient(a.op)) {
        auto& last_microbatch =
          last.try_emplace({a.direction, a.stage}, -1).first->second;
        if (a.microbatch < last_microbatch)
          return true;
        last_microbatch = a.microbatch;
      }
  }
  return false;
}

/// Adds updates where the rules put updates, if the file has no update.
void add_updates(rows& program_rows, const schedule& sch, const shape& dims,
                 bool whole_run) {
  const bool has_some = std::ranges::any_of(program_rows, [](const auto& row) {
    return std::ranges::any_of(row, [](const action& a) { return a.op == op::update; });
  });
  if (has_some)
    return;
  for (std::size_t rank = 0; rank < program_rows.size(); ++rank) {
    std::vector<action> row_with_updates;
    std::map<std::pair<int, int>, int> summed;
    const int of_stage = dims.total() / directions_of(sch.where);
    for (const auto& a : program_rows[rank]) {
      row_with_updates.push_back(a);
      if (!whole_run || !adds_gradient(a.op))
        continue;
      if (const int n = ++summed[{a.direction, a.stage}];
          n % update_size(sch, dims) == 0 || n == of_stage)
        row_with_updates.push_back({op::update, a.direction, a.stage, a.microbatch});
    }
    if (!whole_run)
      for (const auto& where : hosted_by(sch.where, dims, static_cast<int>(rank)))
        row_with_updates.push_back(
          {op::update, where.direction, where.stage, dims.microbatches - 1});
    program_rows[rank] = std::move(row_with_updates);
  }
}

/// One sentence about the first cell that cannot be assigned to one of several
/// directions; empty if there is none.
std::string
first_without_direction(const std::vector<std::vector<file_cell>>& cell_rows) {
  for (const auto& row : cell_rows)
    for (const auto& cell : row) {
      if (cell.moves)
        return "directions=2 allows no transfers like SEND_F and UNSHARD: leave the "
               "transfers out";
      for (const auto& a : cell.actions)
        if (a.op == op::update)
          return "directions=2 ends each batch with an update: leave "
                 + to_string(a, true) + " out";
    }
  return {};
}

std::string sizes_of(const filed_schedule& filed) {
  const auto counted = [](int n, const std::string& noun, const char* plural) {
    return std::to_string(n) + " " + noun + (n == 1 ? "" : plural);
  };
  return "the file has " + counted(filed.dims.stages, "stage", "s") + " on "
         + counted(ranks_of(filed.sch.where, filed.dims), "rank", "s") + " and "
         + counted(filed.dims.microbatches, "microbatch", "es") + " a batch"
         + (filed.is_whole_run ? ", and " + counted(filed.dims.steps, "batch", "es")
                               : "");
}

} // namespace

tl::expected<filed_schedule, std::string>
read_schedule(const std::string& name, const std::string& text,
              std::map<std::string, std::string> values) {
  const auto make_error = [&](const std::string& message) {
    return problem{name + ": " + message};
  };
  auto parsed = read_rows(text);
  if (!parsed)
    return make_error(parsed.error());
  for (const auto& [key, value] : parsed->values)
    if (const auto [said, is_new] = values.emplace(key, value);
        !is_new && said->second != value)
      return make_error(key + "=" + value + " stands in the file, and " + key + "="
                        + said->second + " follows the path: leave either out");
  const auto rules = file_rules::parse(values);
  if (!rules)
    return make_error(rules.error());

  filed_schedule result;
  auto program_rows = std::make_shared<rows>();
  int microbatches = 0, stages = 0;
  for (const auto& row : parsed->rows) {
    auto& to = program_rows->emplace_back();
    for (const auto& cell : row)
      for (const auto& a : cell.actions) {
        to.push_back(a);
        microbatches = std::max(microbatches, a.microbatch + 1);
        stages = std::max(stages, a.stage + 1);
      }
  }
  for (std::size_t row = 0; row < program_rows->size(); ++row)
    if ((*program_rows)[row].empty())
      return make_error(
        "row " + std::to_string(row)
        + " has no action: write a row for each rank, for example 0F0,0F1,0B0,0B1");
  const int batch = rules->microbatches.value_or(microbatches);
  if (microbatches % batch != 0 || (rules->flushes() && batch != microbatches))
    return make_error(
      "the file has " + std::to_string(microbatches) + " microbatches, which are not "
      + (rules->flushes() ? "the single batch of weights=flush" : "whole batches")
      + " with microbatches=" + std::to_string(batch));
  result.is_whole_run = !rules->flushes();
  result.dims = {stages, batch, microbatches / batch};
  auto& sch = result.sch;
  sch.name = name;
  sch.most_held = rules->most_held;
  sch.update_every = rules->update_every;
  sch.streams = result.is_whole_run;
  sch.repeats = !result.is_whole_run;
  if (rules->directions > 1) {
    sch.where = placement::bidirectional(rules->directions / 2);
    if (stages != static_cast<int>(program_rows->size())
        || stages % (rules->directions / 2) != 0 || batch % rules->directions != 0)
      return make_error(
        "directions=" + std::to_string(rules->directions)
        + " needs as many rows as stages, and equal shares of a batch, but there are "
        + std::to_string(stages) + " stages, " + std::to_string(program_rows->size())
        + " rows and " + std::to_string(batch) + " microbatches");
    if (auto error = first_without_direction(parsed->rows); !error.empty())
      return make_error(error);
    set_directions(*program_rows, sch.where, result.dims);
  } else {
    const auto ranks = ranks_of_stages(parsed->rows);
    if (!ranks)
      return make_error(ranks.error());
    if (auto error = first_wrong_transfer(parsed->rows, *ranks); !error.empty())
      return make_error(error);
    sch.where = placement_of(*ranks);
  }
  sch.sums_in_any_order = sums_in_another_order(*program_rows);
  if (sch.sums_in_any_order && (rules->directions > 1 || result.is_whole_run))
    return make_error("a stage has backwards out of the order of microbatches, which "
                      "only weights=flush with one direction allows");
  add_updates(*program_rows, sch, result.dims, result.is_whole_run);
  sch.weights = rules->weights_of(*program_rows, result.dims);
  if (result.is_whole_run)
    sch.order = program_of(program_rows);
  else
    sch.order = batch_by_batch([program_rows](int rank, const shape&) {
      return (*program_rows)[static_cast<std::size_t>(rank)];
    });
  sch.refuses = [sizes = result.dims, whole = result.is_whole_run, name,
                 sizes_text = sizes_of(result)](const shape& dims) -> std::string {
    if (whole && dims.batches_before > 0)
      return name
             + " has the actions of a whole run from the first step on, and cannot "
             + "continue a checkpoint: choose a schedule of the catalog by --schedule";
    if (dims.stages == sizes.stages && dims.microbatches == sizes.microbatches
        && (!whole || dims.steps == sizes.steps))
      return {};
    return name + " fits only the sizes of its file: " + sizes_text;
  };
  return result;
}

bool is_pytorch_form(const schedule& sch) {
  return !sch.asynchronous() && directions_of(sch.where) == 1;
}

// The order of a batch may depend on the number of batches, so a settled run is
// generated.
std::string write_schedule(const schedule& sch, const shape& dims) {
  const auto sizes = sch.asynchronous() ? dims : settled(sch, dims);
  rows program_rows;
  for (int rank = 0; rank < ranks_of(sch.where, sizes); ++rank) {
    auto& row = program_rows.emplace_back(generate(sch, sizes, rank));
    if (!sch.asynchronous())
      std::erase_if(
        row, [&](const action& a) { return a.microbatch >= sizes.microbatches; });
  }
  return write_schedule(sch, sizes, program_rows);
}

std::string write_schedule(const schedule& sch, const shape& dims, const rows& ran) {
  std::string result;
  if (!is_pytorch_form(sch))
    result = "# " + sch.name + ": " + std::to_string(dims.stages) + " stages, "
             + std::to_string(dims.microbatches) + " microbatches\n"
             + header_of(sch, dims);
  for (const auto& row : ran) {
    std::string line;
    for (const auto& a : row) {
      if (a.op == op::recompute || (a.op == op::update && !sch.asynchronous()))
        continue; // a run option, or implied at the end of a batch
      const auto cell =
        std::to_string(a.stage) + letter_of(a.op) + std::to_string(a.microbatch);
      if (a.pair == in_pair::second)
        line += ";" + cell + ")OVERLAP_F_B";
      else
        line +=
          (line.empty() ? "" : ",") + (a.pair == in_pair::first ? "(" + cell : cell);
    }
    result += line + '\n';
  }
  return result;
}

} // namespace troupe
