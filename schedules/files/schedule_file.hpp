// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A schedule that was written down, and the sizes that it is written for.
struct filed_schedule {
  schedule sch;
  shape dims;
  /// Batches of the run are those of the file, as its actions cross batches; else the
  /// file is one batch, for any number of them.
  bool is_whole_run = false;
};

/// Reads a schedule from text in the form of PyTorch's pipelining: a row a rank, cells
/// between commas in the order in which the rank runs them, empty ones left out.
///
///   2F5   forward of microbatch 5 at stage 2; likewise B: backward, I and W: its input
///         gradient and weight gradient, U: an update that covers up to microbatch 5
///   (0F7;7B3)OVERLAP_F_B   both as one action
///   2SEND_F5 2RECV_F5 2SEND_B5 2RECV_B5 2UNSHARD 2RESHARD 2REDUCE_GRAD
///         of PyTorch's lowered form: checked against what they go with, and left out
///
/// Lines that begin with # are remarks, but for one "# troupe: key=value,..":
///
///   weights       flush (the default), stash, vertical_sync, double_buffered or latest
///   update_every  microbatches that an update covers, where weights are not flush
///   microbatches  of a batch, where the file has those of several
///   most_held     stage-microbatches that a rank may hold
///   directions    2 or more: the placement is bidirectional
///
/// Without U, updates come where those rules have them. On error says which row and
/// cell is wrong, and what can be written. \param name of the schedule, for messages
/// \param text of the whole file
/// \param values of the same keys, which go before those of the text
tl::expected<filed_schedule, std::string>
read_schedule(const std::string& name, const std::string& text,
              std::map<std::string, std::string> values = {});

/// Whether PyTorch's torch.distributed.pipelining reads what is written of a schedule:
/// it flushes, and a stage is on one rank. PyTorch takes every line for a rank, so such
/// a file has rows alone; the others begin with the line of their rules.
bool is_pytorch_form(const schedule& sch);

/// A schedule in that form: of a batch, if it flushes, else of the run. Recomputations
/// are an option of runs, and are left out, as is what ranks of a file that PyTorch
/// reads may hold.
/// \pre !sch.local_rule(), and the schedule allows `dims`
std::string write_schedule(const schedule& sch, const shape& dims);

/// What ranks have run, in that form: what a local rule has chosen, say.
std::string write_schedule(const schedule& sch, const shape& dims,
                           const std::vector<std::vector<action>>& ran);

} // namespace troupe
