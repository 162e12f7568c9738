// SPDX-License-Identifier: BSD-3-Clause
// A library in place of NCCL's, which answers calls as NCCL does where calls return
// early: with ncclInProgress for a while. Values are moved when both members have
// called, on the members' threads, and no GPU is used. So the project's calls, in
// order, and the handling of answers are tested; NCCL's own work is not.

#include <nccl.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

std::mutex lock;

struct posted {
  const void* from;
  void* to;
  std::size_t bytes;
};

struct group {
  int members = 0;
  std::set<int> joined;
  std::map<std::pair<int, int>, std::deque<posted>> sent, received;
};

std::map<std::string, group> groups;
std::atomic<int> aborted = 0, blocks = 0;
int ids = 0;

/// Fails calls of one kind, as a test says.
bool fails(const char* what) {
  const char* const told = std::getenv("FAKE_NCCL_FAILS");
  return told != nullptr && std::string{told} == what;
}

} // namespace

struct ncclComm {
  group* of;
  int member;
  int looks = 3; // that return "in progress"
  std::vector<std::pair<std::pair<int, int>, posted>> together;
};

namespace {

thread_local std::set<ncclComm*> touched; // since the group of calls began
thread_local bool is_together = false;

} // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (fails("id"))
    return ncclSystemError;
  const std::lock_guard guard{lock};
  std::memset(id, 0, sizeof *id);
  std::strcpy(id->internal, std::to_string(++ids).c_str());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* to, int members, ncclUniqueId id,
                                    int member, ncclConfig_t* how) {
  if (how->blocking != 0)
    return ncclInvalidArgument;
  const std::lock_guard guard{lock};
  auto& found = groups[id.internal];
  found.members = members;
  found.joined.insert(member);
  *to = new ncclComm{&found, member};
  blocks = how->maxCTAs;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t of, ncclResult_t* state) {
  const std::lock_guard guard{lock};
  *state = ncclSuccess;
  if (fails("later"))
    *state = ncclRemoteError;
  else if (static_cast<int>(of->of->joined.size()) < of->of->members || of->looks-- > 0)
    *state = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t of) {
  of->looks = 2;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t of) {
  delete of;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t of) {
  delete of;
  ++aborted;
  return ncclSuccess;
}

/// The number of groups that were aborted.
int fake_nccl_aborted() {
  return aborted;
}

/// The number of blocks that a call of the last joined group may use.
int fake_nccl_blocks() {
  return blocks;
}

ncclResult_t ncclGroupStart() {
  is_together = true;
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t, int to,
                      ncclComm_t of, cudaStream_t) {
  if (!is_together || fails("send"))
    return ncclInvalidUsage;
  of->together.push_back({{of->member, to}, {from, nullptr, 4 * count}});
  touched.insert(of);
  return ncclSuccess;
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t, int from,
                      ncclComm_t of, cudaStream_t) {
  if (!is_together)
    return ncclInvalidUsage;
  of->together.push_back({{from, of->member}, {nullptr, to, 4 * count}});
  touched.insert(of);
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  const std::lock_guard guard{lock};
  is_together = false;
  for (auto* const of : std::exchange(touched, {})) {
    for (const auto& [who, what] : std::exchange(of->together, {})) {
      auto& sent = of->of->sent[who];
      auto& received = of->of->received[who];
      (what.from != nullptr ? sent : received).push_back(what);
      if (sent.empty() || received.empty())
        continue;
      if (sent.front().bytes != received.front().bytes)
        return ncclInvalidUsage;
      std::memcpy(received.front().to, sent.front().from, sent.front().bytes);
      sent.pop_front();
      received.pop_front();
    }
    of->looks = 3;
  }
  return ncclInProgress;
}

const char* ncclGetErrorString(ncclResult_t) {
  return "a made-up error";
}

const char* ncclGetLastError(ncclComm_t) {
  return "as the test said";
}

} // extern "C"
