// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// The cause of a failure where a side without TLS meets one with TLS, which answers by
/// an alert of TLS.
inline constexpr const char* expects_tls =
  "it expects TLS: say --tls CERTIFICATE,KEY,AUTHORITY";

} // namespace troupe
