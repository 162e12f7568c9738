// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// The error text of a process without TLS whose peer uses TLS. The peer has answered
/// with an alert of TLS.
inline constexpr const char* expects_tls =
  "it expects TLS; say --tls CERTIFICATE,KEY,AUTHORITY";

} // namespace troupe
