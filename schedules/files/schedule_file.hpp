// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

// Schedule files: reading and writing schedules as text in PyTorch's form.

namespace troupe {

/// A schedule that was read from a file, and the sizes that the file is written for.
struct filed_schedule {
  schedule sch;
  shape dims;
  /// True if the file states all batches of the run, because actions cross batches.
  /// Otherwise the file states one batch, and a run may have any number of batches.
  bool is_whole_run = false;
};

/// Reads a schedule from text in the form of PyTorch's pipelining. Each row is a rank.
/// Cells between commas are in the order in which the rank runs them; empty cells are
/// left out.
///
///   2F5   forward of microbatch 5 at stage 2; 2B5: the backward of F5
///   2I5   input gradient of F5; 2W5: the weight gradient of F5
///   2U5   update of stage 2 that covers gradients up to microbatch 5
///   (0F7;7B3)OVERLAP_F_B   a pair: 0F7 and 7B3 run as one action
///   2SEND_F5 2RECV_F5 2SEND_B5 2RECV_B5 2UNSHARD 2RESHARD 2REDUCE_GRAD
///         of PyTorch's lowered form: checked against the actions nearby, and left out
///
/// Lines that begin with # are remarks, except "# troupe: key=value,.." with each key
/// once. A remark that contains "weights=" is an error. Keys are:
///
///   weights       flush (the default), stash, vertical_sync, double_buffered or latest
///   update_every  microbatches that an update covers, where weights are not flush
///   microbatches  microbatches of a batch, where the file has several batches
///   most_held     stage-microbatches that a rank may hold
///   directions    1 (the default), or an even number of pipelines in pairs
///
/// A file without U gets updates. With weights=flush, each batch ends with an update.
/// Without a flush, an update follows every `update_every` microbatches of a stage, by
/// default a batch. An update at the end of the run may cover fewer. A file with
/// several directions has no U and no transfers. On error, one sentence says which row,
/// line or key is wrong, and which text is allowed. Transfers are checked, and
/// backwards of a stage must be in order, except with weights=flush and one direction.
/// check() checks the rest of the order.
/// \param name of the schedule, for messages
/// \param text of the whole file
/// \param values of header keys that the caller sets; a different value in the text is
/// an error
tl::expected<filed_schedule, std::string>
read_schedule(const std::string& name, const std::string& text,
              std::map<std::string, std::string> values = {});

/// True if PyTorch's torch.distributed.pipelining can read the text that
/// write_schedule() makes: the schedule flushes, and has one direction. PyTorch takes
/// every line for a rank, so such a file has only rows. Other files begin with lines
/// for the sizes and the rules.
bool is_pytorch_form(const schedule& sch);

/// Writes a schedule in the form of read_schedule(): one batch if the schedule flushes,
/// else the whole run. Recomputations are an option of runs, and are left out. Updates
/// are left out if the schedule flushes. A file that PyTorch can read also omits the
/// limit of held microbatches.
/// \pre !sch.local_rule(), and the schedule allows `dims`
std::string write_schedule(const schedule& sch, const shape& dims);

/// Writes the actions `ran` of each rank in the form of read_schedule(): for example,
/// the choices of a local rule. Leaves out recomputations, and updates of a schedule
/// that flushes.
std::string write_schedule(const schedule& sch, const shape& dims,
                           const std::vector<std::vector<action>>& ran);

} // namespace troupe
