// SPDX-License-Identifier: BSD-3-Clause
// The peers that TLS accepts, and the errors that other peers receive.

#include "messaging/links/tls.hpp"

#include "messaging/links/expects_tls.hpp"
#include "messaging/links/frame.hpp"
#include "tests/messaging/raw_tls.hpp"
#include "tests/messaging/stream_ends.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <malloc.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <vector>

namespace troupe::tls_test {

using Catch::Matchers::ContainsSubstring;
using state = stream_progress::state;

namespace {

/// The first bytes of a client.
std::string client_hello(const test_authority& authority) {
  auto sockets = local_sockets();
  const auto client =
    authority.identity("a")->to_server(std::move(sockets.client), "b");
  CHECK(client->shake_hands().outcome == state::needs_read);
  std::string result(5000, '\0');
  const auto size = ::recv(sockets.server.get(), result.data(), result.size(), 0);
  REQUIRE(size > 0);
  result.resize(static_cast<std::size_t>(size));
  return result;
}

/// The answer of a server to some bytes, behind which the stream ends.
handshake_end answer_to(tls_identity& server, const std::string& bytes) {
  auto sockets = local_sockets();
  send_raw(sockets.client, bytes);
  ::shutdown(sockets.client.get(), SHUT_WR);
  const auto stream = server.to_client(std::move(sockets.server));
  handshake_end result;
  for (int i = 0; i < 100 && !result.is_over(); ++i)
    result.progress = stream->shake_hands();
  result.why = stream->failure();
  return result;
}

/// The handshakes of two identities, by TLS.
handshake_ends meet(const std::shared_ptr<tls_identity>& client,
                    const std::shared_ptr<tls_identity>& server,
                    const std::string& host = "b") {
  auto sockets = GENERATE(false, true) ? tcp_sockets() : local_sockets();
  stream_ends ends{client->to_server(std::move(sockets.client), host),
                   server->to_client(std::move(sockets.server))};
  return shake_hands(ends);
}

template <class Value>
using owned = std::unique_ptr<Value, void (*)(Value*)>;

owned<BIO> memory_of(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free_all};
}

/// An authority's certificate in PEM, with the same name and key, which has expired.
std::string expired_copy(const certificate_pair& authority) {
  const owned<X509> certificate{
    PEM_read_bio_X509(memory_of(authority.certificate).get(), nullptr, nullptr,
                      nullptr),
    X509_free};
  const owned<EVP_PKEY> key{
    PEM_read_bio_PrivateKey(memory_of(authority.key).get(), nullptr, nullptr, nullptr),
    EVP_PKEY_free};
  REQUIRE((certificate && key));
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), 1'000'000'000);
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), 1'000'086'400);
  const bool has_digest = EVP_PKEY_id(key.get()) == EVP_PKEY_ED25519; // of its own
  REQUIRE(X509_sign(certificate.get(), key.get(), has_digest ? nullptr : EVP_sha256())
          > 0);
  const owned<BIO> out{BIO_new(BIO_s_mem()), BIO_free_all};
  REQUIRE(PEM_write_bio_X509(out.get(), certificate.get()) == 1);
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

constexpr validity long_ago{1'000'000'000, 1'000'086'400}; // until 10 September 2001
constexpr validity far_away{4'000'000'000, 4'000'086'400}; // from 2 October 2096 on

} // namespace

TEST_CASE("two of one authority are joined, whatever a host is called by", "[tls]") {
  const test_authority authority;
  for (const std::string host : {"b", "node-1.example.org", "127.0.0.1", "::1"}) {
    const auto ends = meet(authority.identity("a"), authority.identity(host), host);
    INFO(host << ": " << ends.client.why << ends.server.why);
    CHECK(ends.are_good());
  }
}

TEST_CASE("a server of another name is refused", "[tls]") {
  const test_authority authority;
  const auto [is, host] =
    GENERATE(table<std::string, std::string>({{"b", "c"},
                                              {"b", "b.c"},
                                              {"b.c", "b"},
                                              {"b", "127.0.0.1"},
                                              {"127.0.0.1", "127.0.0.2"},
                                              {"127.0.0.1", "localhost"},
                                              {"::1", "::2"}}));
  const auto ends = meet(authority.identity("a"), authority.identity(is), host);
  CHECK(ends.client.progress.outcome == state::failed);
  CHECK(ends.client.why
        == "its certificate is for '" + is + "', not for '" + host + "'");
  CHECK(ends.server.progress.outcome == state::failed);
  const bool is_address = host.find_first_not_of("0123456789.:") == std::string::npos;
  CHECK(ends.server.why
        == "it refuses this side's certificate, which is for '" + is
             + "', but it connects to "
             + (is_address ? "another name" : "'" + host + "'"));
}

TEST_CASE("a stream to a host without a name fails", "[tls]") {
  const test_authority authority;
  for (const auto& host : {std::string{}, std::string{"b\0c", 3}}) {
    const auto stream =
      authority.identity("a")->to_server(local_sockets().client, host);
    CHECK(stream->shake_hands().outcome == state::failed);
    CHECK_THAT(stream->failure(), ContainsSubstring("is not the name of a host"));
  }
}

TEST_CASE("a certificate that is not good is refused on both sides", "[tls]") {
  const test_authority ours, foreign;
  const auto identity_of = [](const tls_files& files) {
    return tls_identity::from(files).value();
  };
  using maker = std::function<tls_files(const std::string&)>;
  const auto [bad, why, to_it] = GENERATE_REF(table<maker, std::string, std::string>(
    {{[&](const std::string& name) {
        return ours.written(
          *make_certificate(foreign.pair(), name, validity::of_days(1)));
      },
      "its certificate is of another authority",
      "it refuses this side's certificate, as it trusts another authority"},
     {[&](const std::string& name) { return ours.files(name, long_ago); },
      "its certificate expired on 2001-09-10 01:46 UTC",
      "it refuses this side's certificate, which expired on 2001-09-10 01:46 UTC"},
     {[&](const std::string& name) { return ours.files(name, far_away); },
      "its certificate is valid from 2096-10-02 07:06 UTC on; do the clocks agree?",
      "it refuses this side's certificate, which is valid from 2096-10-02 07:06 UTC "
      "on"},
     {[&](const std::string&) { return ours.written(foreign.pair()); },
      "its certificate is signed by itself, not by this side's authority",
      "it refuses this side's certificate, as it trusts another authority"}}));
  SECTION("the client's") {
    const auto ends = meet(identity_of(bad("a")), ours.identity("b"));
    CHECK(ends.server.progress.outcome == state::failed);
    CHECK(ends.server.why == why);
    CHECK(ends.client.progress.outcome == state::failed);
    CHECK_THAT(ends.client.why, ContainsSubstring(to_it));
  }
  SECTION("the server's") {
    const auto ends = meet(ours.identity("a"), identity_of(bad("b")));
    CHECK(ends.client.progress.outcome == state::failed);
    CHECK(ends.client.why == why);
    CHECK(ends.server.progress.outcome == state::failed);
    CHECK_THAT(ends.server.why, ContainsSubstring(to_it));
  }
}

TEST_CASE("a certificate for servers only makes no client", "[tls]") {
  const test_authority authority;
  const auto one = [&](const std::string& name) {
    return tls_identity::from(
             authority.files(name, validity::of_days(1), certificate_use::server_only))
      .value();
  };
  CHECK(meet(authority.identity("a"), one("b")).are_good());
  const auto ends = meet(one("a"), authority.identity("b"));
  CHECK(ends.server.progress.outcome == state::failed);
  CHECK(ends.server.why
        == "its certificate is not for clients: a node needs a certificate for servers "
           "and clients");
  CHECK(ends.client.progress.outcome == state::failed);
  CHECK(ends.client.why
        == "it refuses this side's certificate, which is not for clients: a node needs "
           "a certificate for servers and clients");
}

TEST_CASE("an authority that has expired is named, not the certificate below it",
          "[tls]") {
  const test_authority ours;
  const auto expired = expired_copy(ours.pair());
  const auto identity = [&](const std::string& name) {
    const auto files = ours.files(name);
    std::ofstream{files.authority} << expired;
    return tls_identity::from(files).value();
  };
  const auto client = identity("a"), server = identity("b");
  const auto ends = meet(client, server);
  CHECK(ends.client.why
        == "the certificate of the authority that signed its certificate expired");
  CHECK_THAT(ends.server.why, ContainsSubstring("do the clocks agree?"));
}

TEST_CASE("a side without TLS is answered by an alert, at which it says what it lacks",
          "[tls]") {
  const test_authority authority;
  auto sockets = tcp_sockets();
  const greeting hello;
  const auto* const bytes = reinterpret_cast<const char*>(&hello);
  send_raw(sockets.client, {bytes, sizeof hello});
  {
    const auto server = authority.identity("b")->to_client(std::move(sockets.server));
    while (server->shake_hands().outcome == state::needs_read)
      continue;
    CHECK_THAT(server->failure(), ContainsSubstring("does not speak TLS"));
  }
  pollfd waits{sockets.client.get(), POLLIN, 0};
  REQUIRE(::poll(&waits, 1, 10'000) == 1);
  std::uint32_t first = 0;
  REQUIRE(::recv(sockets.client.get(), &first, sizeof first, 0) == sizeof first);
  CHECK(magic_error(first) == expects_tls);
}

TEST_CASE("a node without TLS says that a client speaks it", "[tls]") {
  const test_authority authority;
  greeting first;
  std::memcpy(&first, client_hello(authority).data(), sizeof first);
  CHECK(greeting_error(first)
        == "it speaks TLS, and this side was started without --tls");
}

TEST_CASE("a client without a certificate is refused", "[tls]") {
  const test_authority authority;
  auto sockets = local_sockets();
  stream_ends ends{raw_client(std::move(sockets.client)),
                   authority.identity("b")->to_client(std::move(sockets.server))};
  const auto met = shake_hands(ends);
  CHECK(met.server.progress.outcome == state::failed);
  CHECK(met.server.why == "it sent no certificate");
}

TEST_CASE("a client of an older TLS is refused, with its certificate too", "[tls]") {
  const test_authority authority;
  auto sockets = local_sockets();
  auto client = raw_client(std::move(sockets.client));
  SSL_CTX_set_max_proto_version(client->context(), TLS1_2_VERSION);
  client->show(authority.files("a"));
  stream_ends ends{std::move(client),
                   authority.identity("b")->to_client(std::move(sockets.server))};
  const auto met = shake_hands(ends);
  CHECK(met.server.progress.outcome == state::failed);
  CHECK(met.server.why == "it does not speak TLS 1.3");
  CHECK(met.client.progress.outcome == state::failed);
}

TEST_CASE("what is no TLS is refused", "[tls]") {
  const test_authority authority;
  const auto server = authority.identity("b");
  const auto bytes =
    GENERATE(std::string{"hello, I am a node and speak in plain\n"},
             std::string{"GET / HTTP/1.1\r\nHost: b\r\n\r\n"}, std::string(100, '\0'),
             std::string(100'000, '\xff'), std::string{"\x16\x03\x01\xff\xff"});
  const auto answer = answer_to(*server, bytes);
  CHECK(answer.progress.outcome == state::failed);
  CHECK_FALSE(answer.why.empty());
  SECTION("by a client as well") {
    auto sockets = local_sockets();
    send_raw(sockets.server, bytes);
    stream_ends ends{authority.identity("a")->to_server(std::move(sockets.client), "b"),
                     plain_stream(std::move(sockets.server))};
    const auto met = shake_hands(ends);
    CHECK(met.client.progress.outcome == state::failed);
    CHECK_FALSE(met.client.why.empty());
  }
}

TEST_CASE("a handshake that breaks off anywhere is refused", "[tls]") {
  const test_authority authority;
  const auto server = authority.identity("b");
  const auto hello = client_hello(authority);
  for (std::size_t size = 0; size <= hello.size(); ++size) {
    const auto answer = answer_to(*server, hello.substr(0, size));
    REQUIRE(answer.progress.outcome == state::failed);
    REQUIRE(answer.why == "it has closed the connection during the handshake");
  }
}

TEST_CASE("a first message with any byte changed makes no connection", "[tls]") {
  const test_authority authority;
  const auto server = authority.identity("b");
  const auto hello = client_hello(authority);
  for (std::size_t i = 0; i < hello.size(); ++i) {
    auto changed = hello;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    const auto answer = answer_to(*server, changed);
    REQUIRE(answer.progress.outcome == state::failed);
    REQUIRE_FALSE(answer.why.empty());
  }
}

#ifndef TROUPE_SANITIZED // whose allocators count otherwise
TEST_CASE("a connection that says half a hello takes no memory of TLS", "[tls]") {
  const test_authority authority;
  const auto identity = authority.identity("b");
  const auto hello = client_hello(authority);
  const auto allocated = [] { return static_cast<std::int64_t>(mallinfo2().uordblks); };
  (void)answer_to(*identity, hello); // allocations that OpenSSL makes once
  constexpr int connections = 100;
  std::vector<socket_pair> sockets;
  for (int i = 0; i < connections; ++i) {
    sockets.push_back(local_sockets());
    send_raw(sockets.back().client, hello.substr(0, i % 2 == 0 ? 3 : hello.size() - 1));
  }
  std::vector<std::unique_ptr<byte_stream>> streams;
  const auto before = allocated();
  for (auto& pair : sockets) {
    streams.push_back(identity->to_client(std::move(pair.server)));
    CHECK(streams.back()->shake_hands().outcome == state::needs_read);
  }
  CHECK((allocated() - before) / connections < 2000);
  send_raw(sockets[1].client, hello.substr(hello.size() - 1));
  CHECK(streams[1]->shake_hands().outcome == state::needs_read);
  char answer = 0;
  CHECK(::recv(sockets[1].client.get(), &answer, 1, 0) == 1); // the server's hello
}
#endif

} // namespace troupe::tls_test
