// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// The error text for a side without TLS whose peer uses TLS: the peer answers with an
/// alert of TLS.
inline constexpr const char* expects_tls =
  "it expects TLS: say --tls CERTIFICATE,KEY,AUTHORITY";

} // namespace troupe
