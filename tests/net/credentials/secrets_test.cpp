// What this file is for: secret files: made, read, refused; keys derived from them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>

#include "files.hpp"
#include "net/credentials/credentials.hpp"
#include "net/credentials/making.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace troupe;
using namespace troupe::net;
using test::complaint;
using test::put;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string ones(64, '1'), twos(64, '2');

class secrets : public testing::Test {
 protected:
  std::string file(const std::string& name = "secret") const { return (folder.path() / name).string(); }
  const test::scratch_folder folder;
};

TEST_F(secrets, that_are_made_are_read_back_and_differ) {
  std::set<credentials::secret_bytes> seen;
  for (const char* name : {"a", "b", "c"}) {
    make_secret(file(name));
    EXPECT_EQ(test::mode_of(file(name)), 0600u);
    EXPECT_EQ(test::text_of(file(name)).size(), 65u);
    const auto all = read_secrets(file(name));
    ASSERT_EQ(all.size(), 1u);
    EXPECT_TRUE(seen.insert(all.front()).second);
  }
}

TEST_F(secrets, are_never_made_over_a_file_that_is_there) {
  put(file(), "precious");
  EXPECT_THAT(complaint(errc::io_failed, [&] { make_secret(file()); }), HasSubstr("is there already"));
  EXPECT_EQ(test::text_of(file()), "precious");
  ASSERT_EQ(::symlink("/no/such/place", file("link").c_str()), 0);
  complaint(errc::io_failed, [&] { make_secret(file("link")); });
  EXPECT_THAT(complaint(errc::io_failed, [&] { make_secret("/no/such/folder/secret"); }),
              HasSubstr("'/no/such/folder/secret'"));
}

TEST_F(secrets, leave_no_half_of_a_file_where_it_cannot_be_written) {
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // then a file that grows too large is an error of write()
  const rlimit small{10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string said = complaint(errc::io_failed, [&] { make_secret(file()); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(said, HasSubstr("cannot write '" + file() + "'"));
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(secrets, are_read_in_the_order_of_their_lines) {
  const auto all = read_secrets(put(file(), ones + "\n\r\n" + twos + "\r\n\nABCDEFabcdef" + std::string(52, '0')));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0][0], 0x11);
  EXPECT_EQ(all[1][31], 0x22);
  EXPECT_EQ(all[2][0], 0xab);
  EXPECT_EQ(all[2][5], 0xef);
  EXPECT_EQ(load({.secret_file = file()}).secrets, all);
}

TEST_F(secrets, that_others_may_touch_are_refused) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0644, 0777}) {
    put(file(), ones + "\n", mode);
    EXPECT_THAT(complaint(errc::bad_argument, [&] { read_secrets(file()); }),
                AllOf(HasSubstr(file()), HasSubstr("chmod 600"), Not(HasSubstr("1111"))));
  }
  for (const mode_t mode : {0600, 0400, 0700}) {
    put(file(), ones + "\n", mode);
    EXPECT_EQ(read_secrets(file()).size(), 1u);
    ::chmod(file().c_str(), 0600);
  }
}

TEST_F(secrets, of_a_wrong_form_are_refused_by_line_and_never_shown) {
  const std::string wrong[] = {ones.substr(1), ones + "1", ones.substr(1) + "g", " " + ones, ones + " ", "0x" + ones};
  for (const std::string& line : wrong) {
    put(file(), twos + "\n" + line + "\n");
    EXPECT_THAT(complaint(errc::bad_argument, [&] { read_secrets(file()); }),
                AllOf(HasSubstr("line 2"), HasSubstr("64 hexadecimal digits"), Not(HasSubstr("1111"))));
  }
  for (const char* empty : {"", "\n", "\r\n\n"})
    EXPECT_THAT(complaint(errc::bad_argument, [&] { read_secrets(put(file(), empty)); }), HasSubstr("no secret"));
  std::string many;
  for (int i = 0; i < 17; ++i) many += ones + "\n";
  EXPECT_THAT(complaint(errc::bad_argument, [&] { read_secrets(put(file(), many)); }), HasSubstr("more than 16"));
  complaint(errc::bad_argument, [&] { read_secrets(put(file(), std::string(1 << 20, '1'))); });
}

TEST_F(secrets, come_from_regular_files_only) {
  EXPECT_THAT(complaint(errc::io_failed, [&] { read_secrets(file("none")); }), HasSubstr("No such file"));
  EXPECT_THAT(complaint(errc::bad_argument, [&] { read_secrets(folder.path().string()); }),
              HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(complaint(errc::bad_argument, [&] { read_secrets(file("pipe")); }), HasSubstr("not a regular file"));
  // A link to a file is fine: that is how orchestrators hand out secrets.
  put(file(), ones);
  ASSERT_EQ(::symlink(file().c_str(), file("link").c_str()), 0);
  EXPECT_EQ(read_secrets(file("link")).size(), 1u);
}

TEST_F(secrets, give_a_key_per_purpose) {
  credentials::secret_bytes secret{};
  secret.fill(7);
  EXPECT_EQ(derive(secret, "one"), derive(secret, "one"));
  EXPECT_NE(derive(secret, "one"), derive(secret, "two"));
  EXPECT_NE(derive(secret, "one"), secret);
  auto other = secret;
  other[31] ^= 1;
  EXPECT_NE(derive(secret, "one"), derive(other, "one"));
  // HKDF-SHA256 with an input of 32 zeros, no salt and no info, by RFC 5869: T(1) = HMAC(HMAC(0^32, 0^32), 0x01).
  const auto known = derive({}, "");
  EXPECT_EQ(known[0], 0xdf);
  EXPECT_EQ(known[1], 0x72);
}

TEST_F(secrets, are_overwritten_when_they_are_wiped) {
  std::vector<credentials::secret_bytes> all(1);
  all[0].fill(0x5a);
  const std::uint8_t* at = all[0].data();
  wipe(all);
  EXPECT_TRUE(all.empty());
  EXPECT_GE(all.capacity(), 1u);  // the memory is still there
  for (int i = 0; i < 32; ++i) EXPECT_EQ(static_cast<const volatile std::uint8_t*>(at)[i], 0);
}

}  // namespace
