// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/epilogue.hpp"

#include <optional>

namespace troupe::on_host {

/// Makes the simulated cuBLASLt double the product before one epilogue, in results of
/// bf16, as a faulty library might. Without a kind, all epilogues are right again.
void spoil_epilogue(std::optional<epilogue_kind> kind);

} // namespace troupe::on_host
