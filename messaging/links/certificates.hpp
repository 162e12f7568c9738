// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <ctime>
#include <string>

namespace troupe {

// Certificates for a cluster that trusts one authority of its own, and nobody else:
// keys on the curve P-256, signatures by ECDSA with SHA-256.

/// A certificate and its private key, in PEM.
struct certificate_pair {
  std::string certificate;
  std::string key;
};

/// From when until when a certificate is good; in seconds since 1970.
struct validity {
  std::time_t from;
  std::time_t until;

  /// From an hour ago, as clocks differ, so many days from now on.
  static validity of_days(int days);
};

/// What the other side of a connection may be by a certificate.
enum class certificate_use { both, server_only };

/// Whether a certificate can be for that: an IP address, or a host's name of letters,
/// digits and hyphens between dots. Such a name is also a file's name.
bool is_host_name(const std::string& name);

/// A new authority, which signs nothing but certificates of hosts.
/// \throws std::runtime_error if OpenSSL cannot
certificate_pair make_authority(const validity& when);

/// A new key, and the authority's certificate of it for one name. On error says why the
/// authority's PEM cannot sign. \pre is_host_name(name)
/// \throws std::runtime_error if OpenSSL cannot
tl::expected<certificate_pair, std::string>
make_certificate(const certificate_pair& authority, const std::string& name,
                 const validity& when, certificate_use use = certificate_use::both);

} // namespace troupe
