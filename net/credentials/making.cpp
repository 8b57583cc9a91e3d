// What this file is for: random secrets, and the files of an authority's folder.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/credentials/making.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "net/credentials/certificates.hpp"
#include "net/credentials/key_files.hpp"

namespace troupe::net {

namespace {

constexpr int days_max = 36500;

// Checks a name, which stands in a certificate and is the name of a file.
void check_name(const char* what, const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  if (name.empty() || name.size() > 63 || name.front() == '.' || name.front() == '-' ||
      !std::all_of(name.begin(), name.end(), allowed))
    throw error(errc::bad_argument, std::string("the ") + what + " '" + name +
                                        "' is not a name of 1 to 63 letters, digits, '-', '_' and '.', the first of "
                                        "which is none of '-' and '.'");
}

void check_days(int days) {
  if (days < 1 || days > days_max)
    throw error(errc::bad_argument, "a certificate is good for 1 to " + std::to_string(days_max) + " days, not for " +
                                        std::to_string(days));
}

struct key_and_certificate {
  std::string key, certificate;
};
key_and_certificate files_of(const std::string& folder, const std::string& name) {
  const std::string stem = (folder.ends_with('/') ? folder : folder + '/') + name;
  return {stem + ".key", stem + ".pem"};
}

// Writes both files or none.
void write_both(const key_and_certificate& to, EVP_PKEY& k, X509& c) {
  const auto key_text = pem_of(k), certificate_text = pem_of(c);
  write_key_file(to.key, view_of(*key_text), readers::owner_only);
  try {
    write_key_file(to.certificate, view_of(*certificate_text), readers::everybody);
  } catch (...) {
    ::unlink(to.key.c_str());
    throw;
  }
}

}  // namespace

void make_secret(const std::string& file) {
  std::array<std::uint8_t, 32> bytes{};
  openssl::must(RAND_priv_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "make random bytes");
  secret_text text(2 * bytes.size() + 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text.data()[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
    text.data()[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
  }
  text.data()[2 * bytes.size()] = '\n';
  OPENSSL_cleanse(bytes.data(), bytes.size());
  write_key_file(file, text.view(), readers::owner_only);
}

void make_authority(const std::string& folder, const std::string& cluster, int days) {
  check_name("cluster's name", cluster);
  check_days(days);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw error(errc::io_failed, "cannot make the folder '" + folder + "': " + std::generic_category().message(errno));
  const auto k = make_key();
  const auto c = make_authority_certificate(*k, cluster, days);
  write_both(files_of(folder, "ca"), *k, *c);
}

issued_files issue_member(const std::string& folder, const std::string& node, int days) {
  check_name("node's name", node);
  check_days(days);
  if (node == "ca") throw error(errc::bad_argument, "'ca' is the name of the authority's own files: take another");
  const auto authority_files = files_of(folder, "ca");
  const auto authority = read_certificates(authority_files.certificate);
  const auto authority_key = read_private_key(authority_files.key);
  const auto clusters = names_in(*authority.front(), cluster_prefix);
  if (clusters.size() != 1 || X509_check_private_key(authority.front().get(), authority_key.get()) != 1) {
    ERR_clear_error();
    throw error(errc::bad_argument, "'" + folder + "' is not the folder of an authority; `troupe ca DIR` makes one");
  }
  const auto k = make_key();
  const auto c = make_member_certificate(*k, *authority.front(), *authority_key, clusters.front(), node, days);
  if (ASN1_TIME_compare(X509_get0_notAfter(c.get()), X509_get0_notAfter(authority.front().get())) > 0) {
    int left = 0, seconds = 0;
    ASN1_TIME_diff(&left, &seconds, nullptr, X509_get0_notAfter(authority.front().get()));
    throw error(errc::bad_argument, left < 1 && seconds <= 0
                                        ? "the authority in '" + folder + "' has expired: make a new one"
                                        : "the authority in '" + folder + "' ends before that: ask for " +
                                              std::to_string(left + (seconds > 0 ? 1 : 0)) + " days at most");
  }
  const auto own_files = files_of(folder, node);
  write_both(own_files, *k, *c);
  return {own_files.certificate, own_files.key, authority_files.certificate};
}

}  // namespace troupe::net
