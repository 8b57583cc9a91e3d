// What this file is for: OpenSSL set up so that only members of the cluster come through a handshake.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// RFC 8446: TLS 1.3, section 4.2.11: external pre-shared keys; psk_dhe_ke only, so that a secret which leaks later
// opens nothing that was recorded. Secrets are not used as they are: what goes on the wire to name one, and the key of
// TLS, are derived from it, so that other uses of the same secret (signed datagrams) share nothing with these.
#include "net/tcp/tls.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "net/credentials/certificates.hpp"
#include "net/tcp/openssl_text.hpp"
#include "net/tcp/tls_guard.hpp"

namespace troupe::net::tcp {

namespace {

using digest = std::array<std::uint8_t, 32>;

/// Says to OpenSSL what sessions are for; those of other uses do not fit.
constexpr std::array<unsigned char, 6> use{'t', 'r', 'o', 'u', 'p', 'e'};

struct shared_key {
  std::array<std::uint8_t, 16> name{};
  digest key{};

  explicit shared_key(const credentials::secret_bytes& secret) {
    const auto derive = [&](std::string_view label) {
      digest d{};
      unsigned int size = 0;
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(label.data()), label.size(), d.data(), &size);
      return d;
    };
    const digest told = derive("troupe 1 tls name");
    std::memcpy(name.data(), told.data(), name.size());
    key = derive("troupe 1 tls key");
  }
  ~shared_key() { OPENSSL_cleanse(key.data(), key.size()); }
  shared_key(const shared_key&) = default;
  shared_key& operator=(const shared_key&) = default;

  /// As TLS wants it; null without memory.
  SSL_SESSION* session(SSL* of) const {
    static constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    SSL_SESSION* s = SSL_SESSION_new();
    if (s == nullptr) return nullptr;
    const SSL_CIPHER* cipher = SSL_CIPHER_find(of, aes_128_gcm_sha256);
    if (cipher != nullptr && SSL_SESSION_set1_master_key(s, key.data(), key.size()) == 1 &&
        SSL_SESSION_set1_id_context(s, use.data(), use.size()) == 1 && SSL_SESSION_set_cipher(s, cipher) == 1 &&
        SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) == 1)
      return s;
    SSL_SESSION_free(s);
    return nullptr;
  }
};

void need_readable(const std::string& file, const char* what) {
  std::FILE* f = std::fopen(file.c_str(), "re");
  if (f == nullptr)
    throw error(errc::io_failed,
                std::string(what) + " " + file + " cannot be read: " + std::generic_category().message(errno));
  std::fclose(f);
}

}  // namespace

struct tls::inside {
  std::string cluster;
  std::vector<shared_key> keys{};
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context{nullptr, SSL_CTX_free};

  void use_secrets(const credentials&);
  void use_certificates(const credentials&);
  ssl_st* connection() const {
    SSL* s = SSL_new(context.get());
    if (s == nullptr) throw error(errc::out_of_memory, "no memory for a connection: " + openssl_text());
    return s;
  }

  static const inside& of(SSL* s) { return *static_cast<inside*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(s))); }
  static int use_key(SSL* s, const EVP_MD* md, const unsigned char** name, std::size_t* name_size, SSL_SESSION** key) {
    *key = nullptr;
    if (md != nullptr && EVP_MD_get_type(md) != NID_sha256) return 1;
    const shared_key& first = of(s).keys.front();
    *name = first.name.data();
    *name_size = first.name.size();
    *key = first.session(s);
    return *key != nullptr ? 1 : 0;
  }
  static int find_key(SSL* s, const unsigned char* name, std::size_t name_size, SSL_SESSION** key) {
    *key = nullptr;
    for (const shared_key& k : of(s).keys) {
      if (name_size == k.name.size() && CRYPTO_memcmp(name, k.name.data(), name_size) == 0) {
        *key = k.session(s);
        return *key != nullptr ? 1 : 0;
      }
    }
    return 1;  // none of ours: there is no certificate either, so the handshake fails
  }
};

tls::tls(const credentials& c, const std::string& cluster) : inside_(std::make_unique<inside>()) {
  inside_->cluster = cluster;
  inside_->context.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* x = inside_->context.get();
  if (x == nullptr) throw error(errc::io_failed, "TLS cannot be set up: " + openssl_text());
  SSL_CTX_set_app_data(x, inside_.get());
  SSL_CTX_set_options(x, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(x, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(x, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(x, tls_guard::message_max);
  // Nothing is resumed, but keys that are shared beforehand take the same way through OpenSSL, which asks for this.
  SSL_CTX_set_session_id_context(x, use.data(), use.size());
  if (SSL_CTX_set_min_proto_version(x, TLS1_3_VERSION) != 1 || SSL_CTX_set_max_proto_version(x, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_num_tickets(x, 0) != 1 || SSL_CTX_set1_groups_list(x, "X25519") != 1 ||
      SSL_CTX_set_ciphersuites(x, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") != 1)
    throw error(errc::io_failed, "TLS 1.3 cannot be set up: " + openssl_text());
  const bool files = !c.certificate.empty() || !c.key.empty() || !c.authority.empty();
  if (files && !c.secrets.empty())
    throw error(errc::bad_argument, "give either a cluster secret or certificates, not both");
  if (files) {
    inside_->use_certificates(c);
  } else {
    inside_->use_secrets(c);
  }
}

tls::~tls() = default;

void tls::inside::use_secrets(const credentials& c) {
  for (const auto& secret : c.secrets) {
    if (secret == credentials::secret_bytes{})
      throw error(errc::bad_argument, "a cluster secret is all zeros: make one with `troupe keygen`");
    keys.emplace_back(secret);
  }
  if (keys.empty()) throw error(errc::bad_argument, "there are no credentials: give a cluster secret or certificates");
  // A peer that answers with a certificate instead has no authority that is known here.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_psk_use_session_callback(context.get(), use_key);
  SSL_CTX_set_psk_find_session_callback(context.get(), find_key);
}

void tls::inside::use_certificates(const credentials& c) {
  if (c.certificate.empty() || c.key.empty() || c.authority.empty())
    throw error(errc::bad_argument, "certificates need three files: the certificate, its key and the authority's");
  need_readable(c.certificate, "the certificate");
  need_readable(c.key, "the key");
  need_readable(c.authority, "the authority's certificate");
  SSL_CTX* x = context.get();
  ERR_clear_error();
  const auto wrong = [](const std::string& file, const char* what) {
    throw error(errc::bad_argument, file + " does not hold " + what + " in PEM: " + openssl_text());
  };
  if (SSL_CTX_use_certificate_chain_file(x, c.certificate.c_str()) != 1) wrong(c.certificate, "a certificate");
  // A wrong password is no password: nobody is asked for one.
  SSL_CTX_set_default_passwd_cb(x, [](char*, int, int, void*) { return 0; });
  if (SSL_CTX_use_PrivateKey_file(x, c.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    const bool other = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
    if (!other) wrong(c.key, "an unencrypted private key");
  }
  if (SSL_CTX_check_private_key(x) != 1) {
    ERR_clear_error();
    throw error(errc::bad_argument, "the key in " + c.key + " is not that of the certificate in " + c.certificate);
  }
  if (SSL_CTX_load_verify_file(x, c.authority.c_str()) != 1) wrong(c.authority, "an authority's certificate");
  SSL_CTX_set_verify(x, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(x, 4);
}

ssl_st* tls::dials() const {
  SSL* s = inside_->connection();
  SSL_set_connect_state(s);
  return s;
}

ssl_st* tls::accepts() const {
  SSL* s = inside_->connection();
  SSL_set_accept_state(s);
  return s;
}

std::string tls::objection(ssl_st* s) const {
  if (SSL_version(s) != TLS1_3_VERSION) return "the connection is not TLS 1.3";
  const std::unique_ptr<X509, void (*)(X509*)> peer(SSL_get1_peer_certificate(s), X509_free);
  if (!inside_->keys.empty()) return SSL_session_reused(s) == 1 && !peer ? "" : "the cluster secret was not used";
  if (!peer || SSL_get_verify_result(s) != X509_V_OK) return "there is no certificate of the cluster's authority";
  const std::string begins = "urn:troupe:cluster:";
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(peer.get(), NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  std::string other;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* n = sk_GENERAL_NAME_value(names.get(), i);
    if (n->type != GEN_URI) continue;
    const auto* text = reinterpret_cast<const char*>(ASN1_STRING_get0_data(n->d.uniformResourceIdentifier));
    const std::string_view uri(text, static_cast<std::size_t>(ASN1_STRING_length(n->d.uniformResourceIdentifier)));
    if (!uri.starts_with(begins)) continue;
    if (uri.substr(begins.size()) == inside_->cluster) return "";
    other = uri.substr(begins.size());
  }
  if (!other.empty()) return "the certificate is for cluster " + other + ", not for " + inside_->cluster;
  return "the certificate names no cluster: it needs the subject alternative name URI:" + begins + inside_->cluster;
}

std::vector<std::string> tls::node_names(ssl_st* s) const {
  const std::unique_ptr<X509, void (*)(X509*)> peer(SSL_get1_peer_certificate(s), X509_free);
  return peer ? names_in(*peer, node_prefix) : std::vector<std::string>();
}

std::vector<std::string> tls::own_node_names(ssl_st* s) const {
  X509* const own = SSL_get_certificate(s);  // not ours to free
  return own ? names_in(*own, node_prefix) : std::vector<std::string>();
}

}  // namespace troupe::net::tcp
