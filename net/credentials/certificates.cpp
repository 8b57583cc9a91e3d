// What this file is for: the calls of OpenSSL that make, read and check certificates.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/credentials/certificates.hpp"

#include <openssl/pem.h>
#include <utility>

#include "net/credentials/key_files.hpp"

namespace troupe::net {

using namespace openssl;

namespace {

// Clocks of machines differ; a certificate made now is good on one that is behind.
constexpr long valid_before_s = 3600;

certificate blank(EVP_PKEY& subject_key, const char* organisation, const std::string& name, int days) {
  certificate c(X509_new());
  must(c && X509_set_version(c.get(), X509_VERSION_3) && X509_set_pubkey(c.get(), &subject_key), "make a certificate");
  const number serial(BN_new());
  must(serial && BN_rand(serial.get(), 159, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
           BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(c.get())),
       "number a certificate");
  must(X509_time_adj_ex(X509_getm_notBefore(c.get()), 0, -valid_before_s, nullptr) &&
           X509_time_adj_ex(X509_getm_notAfter(c.get()), days, 0, nullptr),
       "date a certificate");
  X509_NAME* subject = X509_get_subject_name(c.get());
  const auto add = [&](const char* field, const char* text) {
    must(X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(text), -1, -1,
                                    0) == 1,
         "name a certificate");
  };
  add("O", organisation);
  add("CN", name.c_str());
  return c;
}

// Ends a certificate with the authority's where it would last less than a day longer: an authority for ten days issues
// certificates for ten days in the seconds after it was made, too.
void end_with_authority(X509& c, X509& authority) {
  int days = 0, seconds = 0;
  must(ASN1_TIME_diff(&days, &seconds, X509_get0_notAfter(&authority), X509_get0_notAfter(&c)) == 1, "compare dates");
  if (days == 0 && seconds > 0)
    must(X509_set1_notAfter(&c, X509_get0_notAfter(&authority)) == 1, "date a certificate");
}

// `text` is in OpenSSL's little language; names in it have been checked by the callers.
void extend(X509& c, X509& issuer, int what, const std::string& text) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &c, nullptr, nullptr, 0);
  const extension e(X509V3_EXT_conf_nid(nullptr, &context, what, text.c_str()));
  must(e && X509_add_ext(&c, e.get(), -1) == 1, "extend a certificate");
}

void sign(X509& c, EVP_PKEY& by) { must(X509_sign(&c, &by, EVP_sha256()) > 0, "sign a certificate"); }

bio reading(const secret_text& text) {
  bio b(BIO_new_mem_buf(text.size() == 0 ? "" : text.view().data(), static_cast<int>(text.size())));
  must(b != nullptr, "read from memory");
  return b;
}

// Asked for the password of a key: OpenSSL's own would ask at the terminal.
int no_password(char*, int, int, void*) { return 0; }

}  // namespace

key make_key() {
  key k(EVP_EC_gen("P-256"));
  must(k != nullptr, "make a key");
  return k;
}

certificate make_authority_certificate(EVP_PKEY& own, const std::string& cluster, int days) {
  certificate c = blank(own, "troupe authority", cluster, days);
  must(X509_set_issuer_name(c.get(), X509_get_subject_name(c.get())) == 1, "name an issuer");
  extend(*c, *c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  extend(*c, *c, NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(*c, *c, NID_subject_key_identifier, "hash");
  extend(*c, *c, NID_subject_alt_name, "URI:" + std::string(cluster_prefix) + cluster);
  sign(*c, own);
  return c;
}

certificate make_member_certificate(EVP_PKEY& own, X509& authority, EVP_PKEY& authority_key, const std::string& cluster,
                                    const std::string& node, int days) {
  certificate c = blank(own, "troupe member", node, days);
  end_with_authority(*c, authority);
  must(X509_set_issuer_name(c.get(), X509_get_subject_name(&authority)) == 1, "name an issuer");
  extend(*c, authority, NID_basic_constraints, "critical,CA:FALSE");
  extend(*c, authority, NID_key_usage, "critical,digitalSignature");
  extend(*c, authority, NID_ext_key_usage, "serverAuth,clientAuth");
  extend(*c, authority, NID_subject_key_identifier, "hash");
  extend(*c, authority, NID_authority_key_identifier, "keyid:always");
  extend(*c, authority, NID_subject_alt_name,
         "URI:" + std::string(cluster_prefix) + cluster + ",URI:" + std::string(node_prefix) + node);
  sign(*c, authority_key);
  return c;
}

bio pem_of(X509& c) {
  bio b(BIO_new(BIO_s_mem()));
  must(b && PEM_write_bio_X509(b.get(), &c) == 1, "write a certificate");
  return b;
}

bio pem_of(EVP_PKEY& k) {
  bio b(BIO_new(BIO_s_mem()));  // overwrites what it holds when it is freed
  must(b && PEM_write_bio_PKCS8PrivateKey(b.get(), &k, nullptr, nullptr, 0, nullptr, nullptr) == 1, "write a key");
  return b;
}

std::string_view view_of(BIO& b) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(&b, &text);
  return {text, static_cast<std::size_t>(size)};
}

std::vector<certificate> read_certificates(const std::string& path) {
  const secret_text text = read_key_file(path, readers::everybody);
  const bio b = reading(text);
  std::vector<certificate> all;
  while (certificate c{PEM_read_bio_X509(b.get(), nullptr, no_password, nullptr)}) all.push_back(std::move(c));
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string why = last_reason();
  if (all.empty() || !at_end)
    throw error(errc::bad_argument, "'" + path + "' is not a file of certificates in PEM: " + why);
  return all;
}

key read_private_key(const std::string& path) {
  const secret_text text = read_key_file(path, readers::owner_only);
  const bio b = reading(text);
  key k(PEM_read_bio_PrivateKey(b.get(), nullptr, no_password, nullptr));
  if (!k)
    throw error(errc::bad_argument, "'" + path + "' is not a private key in PEM, without a password: " + last_reason());
  return k;
}

std::vector<std::string> names_in(X509& c, std::string_view prefix) {
  std::vector<std::string> found;
  const names all(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&c, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* n = sk_GENERAL_NAME_value(all.get(), i);
    if (n->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = n->d.uniformResourceIdentifier;
    const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                                static_cast<std::size_t>(ASN1_STRING_length(uri)));
    if (text.starts_with(prefix)) found.emplace_back(text.substr(prefix.size()));
  }
  ERR_clear_error();
  return found;
}

void check_chain(const std::vector<certificate>& chain, const std::vector<certificate>& authorities,
                 const std::string& path) {
  const store trusted(X509_STORE_new());
  must(trusted != nullptr, "make a store");
  for (const certificate& a : authorities) must(X509_STORE_add_cert(trusted.get(), a.get()) == 1, "fill a store");
  STACK_OF(X509)* links = sk_X509_new_null();
  must(links != nullptr, "make a list");
  const std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)> links_owner(
      links, [](STACK_OF(X509) * s) { sk_X509_free(s); });
  for (const certificate& c : chain) must(sk_X509_push(links, c.get()) > 0, "fill a list");
  for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT}) {
    const store_context context(X509_STORE_CTX_new());
    must(context && X509_STORE_CTX_init(context.get(), trusted.get(), chain.front().get(), links) == 1 &&
             X509_STORE_CTX_set_purpose(context.get(), purpose) == 1,
         "check a certificate");
    if (X509_verify_cert(context.get()) == 1) continue;
    const int code = X509_STORE_CTX_get_error(context.get());
    ERR_clear_error();
    throw error(errc::bad_argument,
                "no peer would accept the certificate '" + path + "': " + X509_verify_cert_error_string(code));
  }
}

}  // namespace troupe::net
