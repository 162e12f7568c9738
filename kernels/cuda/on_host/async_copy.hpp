#pragma once

#include <cstdint>
#include <vector>

namespace troupe::on_host {

/// Copies that a thread of a block has begun (cuda/async_copy.hpp). They are made as
/// late as a GPU may make them: when the thread waits. Who looks on learns of both
/// moments, as a GPU may write from the first on.
class pending_copies {
public:
  /// \param is_there else zeros are written \param by the address of the code
  void begin(void* to, const void* from, std::int64_t bytes, bool is_there,
             const void* by);
  void finish();

  /// Those of a thread that has ended without a wait.
  void forget() { copies_.clear(); }

private:
  struct copy {
    void* to;
    const void* from; // null: zeros
    std::int64_t bytes;
    const void* by;
  };

  std::vector<copy> copies_;
};

// Called by kernels:

void begin_copy(void* to, const void* from, std::int64_t bytes, bool is_there);
void wait_for_copies();

} // namespace troupe::on_host
