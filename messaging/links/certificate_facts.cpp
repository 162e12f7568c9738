// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/certificate_facts.hpp"

#include <arpa/inet.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <memory>

namespace troupe {

namespace {

std::string text_of(const ASN1_TIME* time) {
  std::tm parts{};
  char text[32];
  if (ASN1_TIME_to_tm(time, &parts) != 1
      || std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts) == 0)
    return "an unknown date";
  return text;
}

/// The host that an entry names; empty if the entry is of another kind.
std::string host_of(const GENERAL_NAME& name) {
  if (name.type != GEN_DNS && name.type != GEN_IPADD)
    return {};
  const auto* const value = name.type == GEN_DNS ? name.d.dNSName : name.d.iPAddress;
  const auto* const bytes = ASN1_STRING_get0_data(value);
  const auto size = static_cast<std::size_t>(ASN1_STRING_length(value));
  if (name.type == GEN_DNS)
    return {reinterpret_cast<const char*>(bytes), size};
  char text[INET6_ADDRSTRLEN] = "";
  if (size == 4 || size == 16)
    (void)inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, text, sizeof text);
  return text;
}

} // namespace

bool is_expired(const X509* certificate) {
  return certificate != nullptr
         && X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0;
}

bool is_early(const X509* certificate) {
  return certificate != nullptr
         && X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0;
}

std::string first_date(const X509* certificate) {
  return text_of(X509_get0_notBefore(certificate));
}

std::string last_date(const X509* certificate) {
  return text_of(X509_get0_notAfter(certificate));
}

std::string in_quotes(std::string_view name) {
  constexpr std::size_t longest = 64;
  std::string result{name.substr(0, longest)};
  std::ranges::replace_if(
    result, [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return "'" + result + (name.size() > longest ? ".." : "") + "'";
}

std::string names_of(const X509* certificate) {
  constexpr int most_names = 3;
  std::string result;
  if (certificate == nullptr)
    return "no host";
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names{
    static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
    GENERAL_NAMES_free};
  const int count = names ? sk_GENERAL_NAME_num(names.get()) : 0;
  for (int i = 0; i < std::min(count, most_names); ++i)
    if (const auto host = host_of(*sk_GENERAL_NAME_value(names.get(), i));
        !host.empty())
      result += (result.empty() ? "" : ", ") + in_quotes(host);
  return result.empty() ? "no host" : result + (count > most_names ? ", .." : "");
}

} // namespace troupe
