// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

namespace troupe {

/// The PEM files of a process: a certificate, that certificate's private key, and the
/// certificate of the authority that all processes of the cluster trust.
struct tls_files {
  std::filesystem::path certificate;
  std::filesystem::path key;
  std::filesystem::path authority;
};

} // namespace troupe
