// What this file is for: OpenSSL's objects with owners, and its errors in words.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <memory>
#include <string>

#include <troupe/error.hpp>

namespace troupe::net::openssl {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* p) const {
    Free(p);
  }
};

using bio = std::unique_ptr<BIO, freed_by<BIO_free_all>>;
using number = std::unique_ptr<BIGNUM, freed_by<BN_free>>;
using key = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using certificate = std::unique_ptr<X509, freed_by<X509_free>>;
using extension = std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>>;
using names = std::unique_ptr<GENERAL_NAMES, freed_by<GENERAL_NAMES_free>>;
using mac = std::unique_ptr<EVP_MAC, freed_by<EVP_MAC_free>>;
using mac_context = std::unique_ptr<EVP_MAC_CTX, freed_by<EVP_MAC_CTX_free>>;
using kdf = std::unique_ptr<EVP_KDF, freed_by<EVP_KDF_free>>;
using kdf_context = std::unique_ptr<EVP_KDF_CTX, freed_by<EVP_KDF_CTX_free>>;
using store = std::unique_ptr<X509_STORE, freed_by<X509_STORE_free>>;
using store_context = std::unique_ptr<X509_STORE_CTX, freed_by<X509_STORE_CTX_free>>;

/// Returns what the last call on this thread complained about; forgets it.
inline std::string last_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return text ? text : "no reason given";
}

/// For calls that fail only if something is wrong with the library or this machine.
inline void must(bool done, const char* what) {
  if (!done) throw error(errc::io_failed, std::string("OpenSSL cannot ") + what + ": " + last_reason());
}

}  // namespace troupe::net::openssl
