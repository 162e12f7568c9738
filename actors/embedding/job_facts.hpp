// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/checkpoint_manifest.hpp"
#include "actors/embedding/training_job.hpp"
#include "plan/run_plan.hpp"

#include <map>
#include <string>

// The values of a job that decide numbers: recorded in checkpoints, and compared
// between the leader of a run and nodes.

namespace troupe {

/// Values that decide the numbers of a job's training, by the name of the program's
/// option: "--lr". A checkpoint records the values.
/// \param plan the job's plan, with the processors that the job asks for
std::map<std::string, std::string> facts_of(const training_job& job,
                                            const run_plan& plan);

/// The values that must be equal on the leader and on nodes: facts_of(), the schedule,
/// the mesh, and names and dims of the parameters.
/// \param plan the job's plan before the job resumes
std::string job_text(const training_job& job, const run_plan& plan);

/// True for a result of job_text(); false for the options of a program.
bool is_job_text(const std::string& text);

/// One sentence about a value by which two jobs differ, else an empty text.
/// \param leader_text job_text() of the leader, from another process
/// \param node_text job_text() of the node
std::string job_difference(const std::string& leader_text,
                           const std::string& node_text);

/// One sentence about the first name in `change` that is no name of a value in `now`,
/// or that is a size of the network; else an empty text.
std::string change_error(const std::string& change,
                         const std::map<std::string, std::string>& now);

/// The end of a sentence about the first value of a checkpoint's training that a job
/// has changed. Empty if there is none. Values that only one side has are not compared,
/// nor is the number of steps. \param change names that may differ, separated by
/// commas: "lr,data"
std::string changed_fact(const training_facts& recorded, const training_facts& now,
                         const std::string& change);

} // namespace troupe
