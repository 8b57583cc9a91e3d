// What this file is for: authorities and the certificates they issue: made, checked as peers do, refused.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <openssl/pem.h>
#include <sys/stat.h>
#include <filesystem>
#include <string>

#include "files.hpp"
#include "net/credentials/certificates.hpp"
#include "net/credentials/credentials.hpp"
#include "net/credentials/making.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace troupe;
using namespace troupe::net;
using test::complaint;
using test::put;
using test::text_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class certificates : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder.path() / name).string(); }
  // Returns what a node of the cluster of that name would be given.
  credential_files member(const std::string& authority, const std::string& cluster, const std::string& node) {
    if (!std::filesystem::exists(at(authority))) make_authority(at(authority), cluster, 30);
    const auto made = issue_member(at(authority), node, 10);
    return {.certificate = made.certificate, .key = made.key, .authority = made.authority};
  }
  // A member's certificate that was not made by `issue_member`.
  credential_files made_by_hand(int authority_days, int days, bool is_authority = false) {
    const auto a_key = make_key(), key = make_key();
    const auto a = make_authority_certificate(*a_key, "c", authority_days);
    const auto c = is_authority ? make_authority_certificate(*key, "c", days)
                                : make_member_certificate(*key, *a, *a_key, "c", "n", days);
    put(at("n.key"), std::string(view_of(*pem_of(*key))));
    put(at("n.pem"), std::string(view_of(*pem_of(*c))), 0644);
    put(at("ca.pem"), std::string(view_of(*pem_of(*a))), 0644);
    return {.certificate = at("n.pem"), .key = at("n.key"), .authority = at("ca.pem")};
  }
  const test::scratch_folder folder;
};

TEST_F(certificates, that_are_issued_are_accepted) {
  const auto files = member("a", "physics", "node-7.rack_2");
  EXPECT_EQ(test::mode_of(at("a")), 0700u);
  EXPECT_EQ(test::mode_of(at("a/ca.key")), 0600u);
  EXPECT_EQ(test::mode_of(files.key), 0600u);
  EXPECT_EQ(test::mode_of(files.certificate) & 0400u, 0400u);
  EXPECT_EQ(files.authority, at("a/ca.pem"));
  const credentials proof = load(files, "physics");
  EXPECT_EQ(proof.certificate, files.certificate);
  EXPECT_EQ(proof.key, files.key);
  EXPECT_EQ(proof.authority, files.authority);
  EXPECT_TRUE(proof.secrets.empty());
  EXPECT_EQ(load(files).key, files.key);
}

TEST_F(certificates, name_their_cluster_and_their_node) {
  const auto files = member("a", "physics", "n1");
  const auto chain = read_certificates(files.certificate);
  ASSERT_EQ(chain.size(), 1u);
  EXPECT_THAT(names_in(*chain[0], cluster_prefix), ElementsAre("physics"));
  EXPECT_THAT(names_in(*chain[0], node_prefix), ElementsAre("n1"));
  EXPECT_THAT(names_in(*chain[0], "urn:troupe:"), ElementsAre("cluster:physics", "node:n1"));
  EXPECT_EQ(X509_check_ca(chain[0].get()), 0);
  EXPECT_EQ(X509_get_extended_key_usage(chain[0].get()), static_cast<std::uint32_t>(XKU_SSL_SERVER | XKU_SSL_CLIENT));
  const auto authority = read_certificates(files.authority);
  EXPECT_EQ(X509_check_ca(authority[0].get()), 1);
  EXPECT_EQ(X509_get_pathlen(authority[0].get()), 0);
}

TEST_F(certificates, are_good_for_as_many_days_as_asked_for) {
  make_authority(at("a"), "c", 30);
  const auto chain = read_certificates(issue_member(at("a"), "n", 10).certificate);
  int days = 0, seconds = 0;
  ASSERT_EQ(ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(chain[0].get())), 1);
  const int left = days * 86400 + seconds;
  EXPECT_LE(left, 10 * 86400);
  EXPECT_GT(left, 10 * 86400 - 600);
  EXPECT_LT(X509_cmp_current_time(X509_get0_notBefore(chain[0].get())), 0);
}

TEST_F(certificates, have_numbers_of_their_own) {
  const auto a = read_certificates(member("a", "c", "n1").certificate);
  const auto b = read_certificates(member("a", "c", "n2").certificate);
  EXPECT_NE(ASN1_INTEGER_cmp(X509_get0_serialNumber(a[0].get()), X509_get0_serialNumber(b[0].get())), 0);
}

TEST_F(certificates, for_as_many_days_as_the_authority_end_with_it) {
  const auto authority_key = make_key(), key = make_key();
  const auto authority = make_authority_certificate(*authority_key, "c", 10);
  const auto end_of = [](X509& c) { return X509_get0_notAfter(&c); };
  const auto made_before = [&](long seconds) {
    ASSERT_NE(X509_time_adj_ex(X509_getm_notAfter(authority.get()), 10, -seconds, nullptr), nullptr);
    ASSERT_GT(X509_sign(authority.get(), authority_key.get(), EVP_sha256()), 0);
  };
  for (const long seconds : {1L, 3600L, 86000L}) {
    made_before(seconds);
    const auto c = make_member_certificate(*key, *authority, *authority_key, "c", "n", 10);
    EXPECT_EQ(ASN1_TIME_compare(end_of(*c), end_of(*authority)), 0) << seconds;
    EXPECT_EQ(X509_verify(c.get(), authority_key.get()), 1) << "it was signed with another date";
  }
  made_before(2 * 86400);
  const auto longer = make_member_certificate(*key, *authority, *authority_key, "c", "n", 10);
  EXPECT_EQ(ASN1_TIME_compare(end_of(*longer), end_of(*authority)), 1) << "issue_member could not refuse it";
}

TEST_F(certificates, are_not_issued_for_longer_than_the_authority_lasts) {
  make_authority(at("a"), "c", 30);
  EXPECT_THAT(complaint(errc::bad_argument, [&] { issue_member(at("a"), "n", 31); }), HasSubstr("30 days at most"));
  EXPECT_FALSE(std::filesystem::exists(at("a/n.key")));
  for (const int days : {0, -1, 40000}) {
    complaint(errc::bad_argument, [&] { issue_member(at("a"), "n", days); });
    complaint(errc::bad_argument, [&] { make_authority(at("b"), "c", days); });
  }
  EXPECT_NO_THROW(issue_member(at("a"), "n", 30)) << "as it said";
}

TEST_F(certificates, replace_nothing) {
  const auto files = member("a", "c", "n");
  const std::string key = text_of(files.key), authority_key = text_of(at("a/ca.key"));
  EXPECT_THAT(complaint(errc::io_failed, [&] { issue_member(at("a"), "n", 5); }), HasSubstr("is there already"));
  EXPECT_THAT(complaint(errc::io_failed, [&] { make_authority(at("a"), "c", 5); }), HasSubstr("is there already"));
  EXPECT_EQ(text_of(files.key), key);
  EXPECT_EQ(text_of(at("a/ca.key")), authority_key);
  // The two files are made, or none.
  put(at("a/half.pem"), "mine", 0644);
  complaint(errc::io_failed, [&] { issue_member(at("a"), "half", 5); });
  EXPECT_FALSE(std::filesystem::exists(at("a/half.key")));
  EXPECT_EQ(text_of(at("a/half.pem")), "mine");
}

TEST_F(certificates, are_issued_for_names_that_are_names_only) {
  make_authority(at("a"), "c", 30);
  for (const char* name : {"", ".", "..", "../up", "a/b", "-n", "a b", "a,DNS:x", "a:b", "n\xc3\xa4h"})
    EXPECT_THAT(complaint(errc::bad_argument, [&] { issue_member(at("a"), name, 5); }), HasSubstr("name")) << name;
  complaint(errc::bad_argument, [&] { issue_member(at("a"), std::string(64, 'n'), 5); });
  complaint(errc::bad_argument, [&] { issue_member(at("a"), "ca", 5); });
  complaint(errc::bad_argument, [&] { make_authority(at("b"), "a,b", 5); });
  EXPECT_FALSE(std::filesystem::exists(at("b")));
  issue_member(at("a"), std::string(63, 'n'), 5);
}

TEST_F(certificates, need_an_authority_that_is_whole) {
  complaint(errc::io_failed, [&] { issue_member(at("none"), "n", 5); });
  member("a", "c", "n");
  member("b", "c", "n");
  std::filesystem::copy_file(at("b/ca.key"), at("a/ca.key"), std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(complaint(errc::bad_argument, [&] { issue_member(at("a"), "m", 5); }),
              HasSubstr("not the folder of an authority"));
  ::chmod(at("b/ca.key").c_str(), 0644);
  EXPECT_THAT(complaint(errc::bad_argument, [&] { issue_member(at("b"), "m", 5); }), HasSubstr("chmod 600"));
}

TEST_F(certificates, of_another_cluster_or_authority_are_refused) {
  auto files = member("a", "physics", "n");
  EXPECT_THAT(complaint(errc::bad_argument, [&] { load(files, "chemistry"); }),
              AllOf(HasSubstr("'physics'"), HasSubstr("'chemistry'")));
  files.authority = member("b", "physics", "n").authority;
  EXPECT_THAT(complaint(errc::bad_argument, [&] { load(files, "physics"); }), HasSubstr("no peer would accept"));
}

TEST_F(certificates, that_have_expired_or_are_not_for_members_are_refused) {
  EXPECT_THAT(complaint(errc::bad_argument, [&] { load(made_by_hand(30, -1)); }), HasSubstr("expired"));
  EXPECT_THAT(complaint(errc::bad_argument, [&] { load(made_by_hand(-1, 30)); }), HasSubstr("expired"));
  complaint(errc::bad_argument, [&] { load(made_by_hand(30, 30, true)); });
  EXPECT_EQ(load(made_by_hand(30, 30)).key, at("n.key"));
}

TEST_F(certificates, go_with_their_own_key_which_is_nobody_elses) {
  auto files = member("a", "c", "n");
  const auto other = member("a", "c", "m");
  EXPECT_THAT(
      complaint(errc::bad_argument,
                [&] { load({.certificate = files.certificate, .key = other.key, .authority = files.authority}); }),
      HasSubstr("is not that of the certificate"));
  ::chmod(files.key.c_str(), 0640);
  EXPECT_THAT(complaint(errc::bad_argument, [&] { load(files); }), AllOf(HasSubstr(files.key), HasSubstr("chmod 600")));
}

TEST_F(certificates, in_files_of_something_else_are_refused) {
  const auto files = member("a", "c", "n");
  const std::string good = text_of(files.certificate);
  auto wrong = files;
  for (const std::string& text : {std::string(), std::string("hello\n"), text_of(files.key),
                                  good.substr(0, good.size() / 2), good + good.substr(0, good.size() / 2)}) {
    wrong.certificate = put(at("wrong.pem"), text, 0644);
    EXPECT_THAT(complaint(errc::bad_argument, [&] { load(wrong); }), HasSubstr("'" + at("wrong.pem") + "'"));
  }
  wrong = files;
  wrong.key = put(at("wrong.key"), good);
  EXPECT_THAT(complaint(errc::bad_argument, [&] { load(wrong); }), HasSubstr("not a private key"));
  wrong.key = at("none.key");
  complaint(errc::io_failed, [&] { load(wrong); });
}

TEST_F(certificates, with_a_key_that_wants_a_password_are_refused_without_asking) {
  auto files = member("a", "c", "n");
  const auto key = make_key();
  const openssl::bio locked(BIO_new(BIO_s_mem()));
  char password[] = "secret";
  ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(locked.get(), key.get(), EVP_aes_128_cbc(), password, 6, nullptr, nullptr),
            1);
  files.key = put(at("locked.key"), std::string(view_of(*locked)));
  EXPECT_THAT(complaint(errc::bad_argument, [&] { load(files); }), HasSubstr("without a password"));
}

TEST_F(certificates, of_two_authorities_are_accepted_while_one_replaces_the_other) {
  auto old_member = member("old", "c", "n"), new_member = member("new", "c", "n");
  const std::string both = put(at("both.pem"), text_of(old_member.authority) + text_of(new_member.authority), 0644);
  old_member.authority = new_member.authority = both;
  EXPECT_EQ(load(old_member, "c").authority, both);
  EXPECT_EQ(load(new_member, "c").authority, both);
}

TEST_F(certificates, come_with_key_and_authority_and_without_a_secret) {
  const auto files = member("a", "c", "n");
  EXPECT_THAT(complaint(errc::bad_argument, [&] { load({.certificate = files.certificate, .key = files.key}); }),
              HasSubstr("authority"));
  EXPECT_THAT(
      complaint(errc::bad_argument, [&] { load({.certificate = files.certificate, .authority = files.authority}); }),
      HasSubstr("key"));
  EXPECT_THAT(complaint(errc::bad_argument, [&] { load({.key = files.key, .authority = files.authority}); }),
              HasSubstr("certificate"));
  auto both = files;
  both.secret_file = at("secret");
  EXPECT_THAT(complaint(errc::bad_argument, [&] { load(both); }), HasSubstr("choose one"));
  const credentials none = load({});
  EXPECT_TRUE(none.secrets.empty() && none.certificate.empty());
}

}  // namespace
