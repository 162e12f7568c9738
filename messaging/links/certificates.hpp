// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <ctime>
#include <string>

namespace troupe {

// Certificates for a cluster that trusts a single, private authority: keys on the curve
// P-256, signatures by ECDSA with SHA-256.

/// A certificate and its private key, in PEM.
struct certificate_pair {
  std::string certificate;
  std::string key;
};

/// The period in which a certificate is valid. Times are in seconds since 1970.
struct validity {
  std::time_t from;
  std::time_t until;

  /// Returns the period from an hour ago until `days` days from now. The hour is for
  /// clocks that differ.
  static validity of_days(int days);
};

/// The side of a connection for which a certificate is valid.
enum class certificate_use { server_and_client, server_only };

/// True if a certificate can have this name: an IP address, or a host's name of
/// letters, digits and hyphens between dots. Such a name is also a valid file name.
bool is_host_name(const std::string& name);

/// Makes a new authority, whose certificate may sign only certificates of hosts.
/// \throws std::runtime_error if OpenSSL fails
certificate_pair make_authority(const validity& when);

/// Makes a new key, and a certificate for that key and for `name`, signed by the
/// authority. The error says why the authority's PEM cannot sign.
/// \pre is_host_name(name)
/// \throws std::runtime_error if OpenSSL fails
tl::expected<certificate_pair, std::string>
make_certificate(const certificate_pair& authority, const std::string& name,
                 const validity& when,
                 certificate_use use = certificate_use::server_and_client);

} // namespace troupe
