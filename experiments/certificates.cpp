// certificates: makes a private authority and certificates for a test cluster
// SPDX-License-Identifier: BSD-3-Clause

#include "messaging/links/certificates.hpp"

#include "experiments/options/help.hpp"
#include "experiments/options/parse_mistake.hpp"
#include "models/input_file.hpp"
#include "models/whole_file.hpp"

#include <CLI/CLI.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace troupe;
namespace fs = std::filesystem;

namespace {

/// A mistake in the command line, as one sentence.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct certificate_request {
  fs::path folder;
  std::vector<std::string> names;
  int days = 365;
  bool replace = false;
};

/// Paths of the certificate and the key of a name.
struct pair_files {
  fs::path certificate;
  fs::path key;

  pair_files(const fs::path& folder, const std::string& name)
    : certificate(folder / (name + ".crt")), key(folder / (name + ".key")) {
    // nop
  }

  bool are_there() const { return fs::exists(certificate) && fs::exists(key); }
  bool is_one_there() const { return fs::exists(certificate) || fs::exists(key); }
};

std::string content_of(const fs::path& file) {
  const auto open = input_file::open(file, "the authority's file");
  if (!open)
    throw usage_error(open.error());
  return open->content();
}

void write(const fs::path& file, const std::string& content, mode_t mode) {
  if (fs::exists(file)) // a replaced file hands on its mode
    fs::permissions(file, static_cast<fs::perms>(mode));
  const auto previous_mask = ::umask(0777 & ~mode);
  const auto problem = write_whole_file(file, content);
  ::umask(previous_mask);
  if (!problem.empty())
    throw std::runtime_error(problem);
}

/// Writes the key first, so that no certificate exists without a key.
void write(const pair_files& files, const certificate_pair& pair) {
  write(files.key, pair.key, 0600);
  write(files.certificate, pair.certificate, 0644);
}

void check(const certificate_request& request) {
  if (request.days < 1 || request.days > 3650)
    throw usage_error(
      "--days is out of range: a certificate is valid for 1 to 3650 days");
  for (const auto& name : request.names) {
    if (!is_host_name(name) || name == "authority")
      throw usage_error(
        "'" + name
        + "' cannot have a certificate: give an IP address, or a host's name of "
          "letters, digits, dots and hyphens, except 'authority'");
    if (std::ranges::count(request.names, name) > 1)
      throw usage_error("'" + name + "' is given twice: give each NAME once");
    const pair_files files{request.folder, name};
    if (files.is_one_there() && !request.replace)
      throw usage_error("there is a certificate of " + name + " in "
                        + request.folder.string()
                        + ": say --replace for a new certificate");
  }
}

certificate_pair authority_in(const certificate_request& request) {
  const pair_files files{request.folder, "authority"};
  if (files.are_there())
    return {content_of(files.certificate), content_of(files.key)};
  if (files.is_one_there())
    throw usage_error("the authority in " + request.folder.string()
                      + " lacks a key or a certificate: name another DIR");
  auto result = make_authority(validity::of_days(request.days));
  write(files, result);
  return result;
}

void make_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed || !fs::is_directory(folder))
    throw usage_error(
      "DIR " + folder.string() + " cannot be a folder: "
      + (failed ? failed : std::make_error_code(std::errc::not_a_directory)).message());
}

int make(const certificate_request& request) {
  check(request);
  make_folder(request.folder);
  const auto authority = authority_in(request);
  for (const auto& name : request.names) {
    const auto pair =
      make_certificate(authority, name, validity::of_days(request.days));
    if (!pair)
      throw usage_error(pair.error() + " (" + request.folder.string() + ")");
    write({request.folder, name}, *pair);
  }
  std::cout << "A host needs its certificate, its key and authority.crt. Keep "
               "authority.key on this machine.\n";
  for (const auto& name : request.names) {
    const pair_files files{request.folder, name};
    const auto host = name.find(':') == std::string::npos ? name : "[" + name + "]";
    std::cout << "./troupe node --listen " << host << ":4242 --tls "
              << files.certificate.string() << ',' << files.key.string() << ','
              << (request.folder / "authority.crt").string() << '\n';
  }
  return std::cout.flush() ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Makes a private authority, and certificates for the nodes of a cluster "
               "that the authority signs. DIR keeps the authority for later calls.",
               "certificates"};
  add_help(app);
  certificate_request request;
  app
    .add_option("DIR", request.folder, "Folder of the authority and the certificates.")
    ->required();
  app
    .add_option("NAME", request.names,
                "Host names or IP addresses at which the nodes are reached.")
    ->required();
  app
    .add_option("--days", request.days,
                "Days for which a certificate is valid, 1 to 3650.")
    ->capture_default_str();
  app.add_flag("--replace", request.replace,
               "Replaces certificates of the given NAMEs, but not the authority.");
  try {
    app.parse(argc, argv);
    return make(request);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "certificates: " << sentence_of(app, error)
              << "; see certificates --help\n";
    return 2;
  } catch (const usage_error& error) {
    std::cerr << "certificates: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "certificates: " << error.what() << '\n';
    return 1;
  }
}
