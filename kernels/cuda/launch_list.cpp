// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/launch_list.hpp"

namespace troupe::cuda {

void launch_graphs::launch(launch_list& what) {
  struct emptied {
    launch_list& list;
    ~emptied() { list.clear(); } // launches that failed are not tried again
  } const at_end{what};
  launch_all(what);
}

void launch_graphs::launch_all(const launch_list& what) {
  if (what.size() < 2 || !make_)
    return what.launch();
  if (known_.size() >= most_known) { // learning rates and counts of rows keep changing
    std::erase_if(known_, [](const auto& one) { return !one.second; });
    if (known_.size() >= most_known)
      known_.clear();
  }
  const auto [found, is_new] = known_.try_emplace(what.key());
  if (is_new)
    return what.launch();
  if (!found->second)
    found->second = make_(what);
  found->second->launch();
}

namespace {

struct place_of_thread {
  const CUstream_st* on = nullptr;
  launch_list* to = nullptr;
};

thread_local place_of_thread here;

} // namespace

launch_list* deferred_on(const CUstream_st* stream) {
  return here.on == stream ? here.to : nullptr;
}

deferral::deferral(const CUstream_st* on, launch_list& to) {
  here = {on, &to};
}

deferral::~deferral() {
  here = {};
}

} // namespace troupe::cuda
