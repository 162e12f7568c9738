// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/launch_list.hpp"

#include <xxhash.h>

namespace troupe::cuda {

void launch_graphs::launch(launch_list& list) {
  struct emptied {
    launch_list& list;
    ~emptied() { list.clear(); } // launches that failed are not tried again
  } const at_end{list};
  launch_all(list);
}

void launch_graphs::launch_all(const launch_list& list) {
  if (list.size() < 2 || !make_)
    return list.launch();
  if (known_.size() >= most_known) { // learning rates and counts of rows keep changing
    std::erase_if(known_, [](const auto& entry) { return !entry.second.repeated; });
    if (known_.size() >= most_known)
      known_.clear();
  }
  const auto& key = list.key();
  auto& known = known_[XXH3_64bits(key.data(), key.size())];
  if (known.key != key) { // a new list, or once in an age another one with this hash
    known = {key, nullptr};
    return list.launch();
  }
  if (!known.repeated)
    known.repeated = make_(list);
  known.repeated->launch();
}

namespace {

struct thread_deferral {
  const CUstream_st* stream = nullptr;
  launch_list* to = nullptr;
};

thread_local thread_deferral current_deferral;

} // namespace

launch_list* deferred_on(const CUstream_st* stream) {
  return current_deferral.stream == stream ? current_deferral.to : nullptr;
}

deferral::deferral(const CUstream_st* stream, launch_list& to) {
  current_deferral = {stream, &to};
}

deferral::~deferral() {
  current_deferral = {};
}

} // namespace troupe::cuda
