// What this file is for: reading secrets, checking that certificates fit, deriving keys.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/credentials/credentials.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <algorithm>

#include "net/credentials/certificates.hpp"
#include "net/credentials/key_files.hpp"

namespace troupe::net {

namespace {

constexpr std::size_t secrets_max = 16;

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool parse(std::string_view line, credentials::secret_bytes& to) {
  if (line.size() != 2 * to.size()) return false;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const int high = digit(line[2 * i]), low = digit(line[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    to[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
}

// A certificate and all that belongs to it.
void check_member(const credential_files& files, std::string_view cluster) {
  const auto chain = read_certificates(files.certificate);
  const auto own_key = read_private_key(files.key);
  const auto authorities = read_certificates(files.authority);
  if (X509_check_private_key(chain.front().get(), own_key.get()) != 1) {
    ERR_clear_error();
    throw error(errc::bad_argument,
                "the key '" + files.key + "' is not that of the certificate '" + files.certificate + "'");
  }
  check_chain(chain, authorities, files.certificate);
  const auto clusters = names_in(*chain.front(), cluster_prefix);
  if (clusters.empty())
    throw error(errc::bad_argument, "the certificate '" + files.certificate +
                                        "' names no cluster: it needs the subject alternative name URI:" +
                                        std::string(cluster_prefix) + "NAME");
  if (!cluster.empty() && std::find(clusters.begin(), clusters.end(), cluster) == clusters.end())
    throw error(errc::bad_argument, "the certificate '" + files.certificate + "' is of the cluster '" +
                                        clusters.front() + "', not of '" + std::string(cluster) + "'");
}

}  // namespace

std::vector<credentials::secret_bytes> read_secrets(const std::string& file) {
  const secret_text text = read_key_file(file, readers::owner_only);
  std::vector<credentials::secret_bytes> all;
  all.reserve(secrets_max);  // no copies left behind by growing
  const auto wrong = [&](const std::string& what) {
    wipe(all);
    throw error(errc::bad_argument, "'" + file + "' " + what + "; `troupe keygen FILE` makes one");
  };
  std::size_t number = 1;
  for (std::string_view rest = text.view(); !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (all.size() == secrets_max) wrong("holds more than " + std::to_string(secrets_max) + " secrets");
    all.emplace_back();
    if (!parse(line, all.back()))  // never the line itself: it may be nearly a secret
      wrong("line " + std::to_string(number) + " is not 64 hexadecimal digits");
  }
  if (all.empty()) wrong("holds no secret: 64 hexadecimal digits a line");
  return all;
}

void wipe(std::vector<credentials::secret_bytes>& all) {
  OPENSSL_cleanse(all.data(), all.size() * sizeof(credentials::secret_bytes));
  all.clear();
}

std::vector<std::string> node_names_in(const std::string& certificate) {
  const auto chain = read_certificates(certificate);
  return names_in(*chain.front(), node_prefix);
}

credentials load(const credential_files& files, std::string_view cluster) {
  const bool any = !files.certificate.empty() || !files.key.empty() || !files.authority.empty();
  const bool all = !files.certificate.empty() && !files.key.empty() && !files.authority.empty();
  if (any && !files.secret_file.empty())
    throw error(errc::bad_argument, "a secret and a certificate are given: choose one");
  if (any && !all)
    throw error(errc::bad_argument, std::string("a certificate needs all three files; missing is ") +
                                        (files.certificate.empty() ? "the certificate"
                                         : files.key.empty()       ? "its key"
                                                                   : "the authority's certificate"));
  credentials proof;
  if (!files.secret_file.empty()) proof.secrets = read_secrets(files.secret_file);
  if (all) {
    check_member(files, cluster);
    proof.certificate = files.certificate;
    proof.key = files.key;
    proof.authority = files.authority;
  }
  return proof;
}

credentials::secret_bytes derive(const credentials::secret_bytes& from, std::string_view purpose) {
  const openssl::kdf method(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  openssl::must(method != nullptr, "find HKDF");
  const openssl::kdf_context context(EVP_KDF_CTX_new(method.get()));
  char digest[] = "SHA256";
  const OSSL_PARAM with[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<std::uint8_t*>(from.data()), from.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, const_cast<char*>(purpose.data()), purpose.size()),
      OSSL_PARAM_construct_end()};
  credentials::secret_bytes to{};
  openssl::must(context && EVP_KDF_derive(context.get(), to.data(), to.size(), with) == 1, "derive a key");
  return to;
}

}  // namespace troupe::net
