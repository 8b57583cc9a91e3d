// What this file is for: the codes of OpenSSL that people meet, as sentences; the others as OpenSSL writes them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/openssl_text.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

namespace troupe::net::tcp {

namespace {

const char* known(int reason) {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return "the other side does not accept this cluster's proof: check that both have the same secret, or "
             "certificates of the same authority";
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
      return "the other side has no secret that is accepted here";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "one side has no certificate: all nodes of a cluster need the same kind of proof";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the other side does not know the authority of this side's certificate";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the other side says that this side's certificate has expired";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      return "the other side does not accept this side's certificate";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_HTTP_REQUEST:
      return "the other side does not speak TLS 1.3";
    default:
      return nullptr;
  }
}

std::string text(unsigned long code) {
  if (code == 0) return "no reason is given";
  if (ERR_GET_LIB(code) == ERR_LIB_SSL) {
    if (const char* words = known(ERR_GET_REASON(code))) return words;
  }
  const char* words = ERR_reason_error_string(code);
  return words != nullptr ? words : "OpenSSL's code " + std::to_string(code);
}

}  // namespace

std::string openssl_text() {
  const std::string words = text(ERR_peek_error());
  ERR_clear_error();
  return words;
}

std::string openssl_text(ssl_st* tls) {
  // The last says what it means for the connection; those before it, how it came about.
  const unsigned long code = ERR_peek_last_error();
  if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    ERR_clear_error();
    return std::string("the other side's certificate is not accepted: ") +
           X509_verify_cert_error_string(SSL_get_verify_result(tls));
  }
  ERR_clear_error();
  return text(code);
}

}  // namespace troupe::net::tcp
