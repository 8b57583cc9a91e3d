// What this file is for: certificates by OpenSSL's C interface, as few fields as work.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "certificates.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

namespace wires {

namespace {

using key_ptr = std::shared_ptr<EVP_PKEY>;
using certificate_ptr = std::shared_ptr<X509>;

void need(bool ok) {
  if (!ok) throw std::runtime_error("OpenSSL cannot make a certificate");
}

key_ptr make_key() {
  key_ptr k(EVP_EC_gen("P-256"), EVP_PKEY_free);
  need(k != nullptr);
  return k;
}

void extend(X509* c, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, c, nullptr, nullptr, 0);
  X509_EXTENSION* e = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  need(e != nullptr && X509_add_ext(c, e, -1) == 1);
  X509_EXTENSION_free(e);
}

certificate_ptr make_certificate(const char* name, int hours_valid, EVP_PKEY* key, X509* issuer) {
  static std::atomic<long> serial{1};
  certificate_ptr c(X509_new(), X509_free);
  need(X509_set_version(c.get(), 2) == 1);
  ASN1_INTEGER_set(X509_get_serialNumber(c.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(c.get()), -2 * 3600);
  X509_gmtime_adj(X509_getm_notAfter(c.get()), hours_valid * 3600L);
  X509_set_pubkey(c.get(), key);
  X509_NAME* n = X509_get_subject_name(c.get());
  X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  X509_set_issuer_name(c.get(), issuer == nullptr ? n : X509_get_subject_name(issuer));
  return c;
}

template <class Write>
void write_file(const std::string& file, Write write) {
  std::FILE* f = std::fopen(file.c_str(), "w");
  need(f != nullptr);
  const bool ok = write(f) == 1;
  std::fclose(f);
  need(ok);
}

}  // namespace

struct authority::inside {
  std::string folder;
  key_ptr key = make_key();
  certificate_ptr certificate;
  mutable std::atomic<int> issued{0};

  std::string file(const std::string& name) const { return folder + "/" + name; }
};

authority::authority(const std::string& name) : inside_(std::make_unique<inside>()) {
  std::string pattern = (std::filesystem::temp_directory_path() / "troupe-authority-XXXXXX").string();
  need(::mkdtemp(pattern.data()) != nullptr);
  inside_->folder = pattern;
  inside_->certificate = make_certificate(name.c_str(), 24, inside_->key.get(), nullptr);
  X509* const c = inside_->certificate.get();
  extend(c, c, NID_basic_constraints, "critical,CA:TRUE");
  extend(c, c, NID_key_usage, "critical,keyCertSign");
  extend(c, c, NID_subject_key_identifier, "hash");
  need(X509_sign(c, inside_->key.get(), EVP_sha256()) > 0);
  write_file(inside_->file("authority.pem"), [&](std::FILE* f) { return PEM_write_X509(f, c); });
}

authority::~authority() {
  std::error_code ignored;
  std::filesystem::remove_all(inside_->folder, ignored);
}

std::string authority::folder() const { return inside_->folder; }

troupe::net::credentials authority::issue(const wish& w) const {
  const std::string name = "node" + std::to_string(inside_->issued++);
  const key_ptr key = make_key();
  const auto c = make_certificate(name.c_str(), w.hours_valid, key.get(), inside_->certificate.get());
  if (w.names_it)
    extend(c.get(), inside_->certificate.get(), NID_subject_alt_name,
           "URI:urn:troupe:cluster:" + w.cluster + (w.node.empty() ? "" : ",URI:urn:troupe:node:" + w.node));
  need(X509_sign(c.get(), inside_->key.get(), EVP_sha256()) > 0);
  troupe::net::credentials files;
  files.certificate = inside_->file(name + ".pem");
  files.key = inside_->file(name + ".key");
  files.authority = inside_->file("authority.pem");
  write_file(files.certificate, [&](std::FILE* f) { return PEM_write_X509(f, c.get()); });
  write_file(files.key,
             [&](std::FILE* f) { return PEM_write_PrivateKey(f, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  return files;
}

}  // namespace wires
