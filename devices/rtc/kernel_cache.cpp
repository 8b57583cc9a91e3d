// What this file is for: the files of the kernel cache: a head with length and checksum, then the binary.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rtc/kernel_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

namespace troupe::devices::rtc {

namespace {

struct file_head {
  char magic[8] = {'t', 'r', 'o', 'u', 'p', 'e', 'k', '1'};
  std::uint64_t length = 0, checksum = 0;
};

// FNV-1a. Not cryptographic: a process that may write to the cache may as well replace the program.
std::uint64_t fnv(const void* data, std::size_t n, std::uint64_t h = 14695981039346656037ull) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < n; ++i) h = (h ^ p[i]) * 1099511628211ull;
  return h;
}

bool write_all(int fd, const void* data, std::size_t n) {
  const auto* p = static_cast<const char*>(data);
  while (n > 0) {
    const auto done = ::write(fd, p, n);
    if (done <= 0) return false;
    p += done;
    n -= static_cast<std::size_t>(done);
  }
  return true;
}

}  // namespace

std::string key_of(std::span<const std::string_view> parts) {
  std::uint64_t a = fnv("", 0), b = fnv("troupe", 6);
  for (const auto part : parts) {
    const std::uint64_t n = part.size();  // ("ab", "c") is not ("a", "bc")
    a = fnv(part.data(), part.size(), fnv(&n, sizeof n, a));
    b = fnv(part.data(), part.size(), fnv(&n, sizeof n, b ^ (a >> 32)));
  }
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(a),
                static_cast<unsigned long long>(b));
  return text.data();
}

std::optional<std::vector<std::byte>> kernel_cache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream in(file(key), std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(in.tellg());
  file_head head, good;
  if (size < sizeof head || !in.seekg(0) || !in.read(reinterpret_cast<char*>(&head), sizeof head)) return std::nullopt;
  if (std::memcmp(head.magic, good.magic, sizeof good.magic) != 0 || head.length != size - sizeof head)
    return std::nullopt;
  std::vector<std::byte> binary(head.length);
  if (!in.read(reinterpret_cast<char*>(binary.data()), static_cast<std::streamsize>(binary.size())))
    return std::nullopt;
  if (fnv(binary.data(), binary.size()) != head.checksum) return std::nullopt;
  return binary;
}

void kernel_cache::store(const std::string& key, std::span<const std::byte> binary) const noexcept try {
  if (folder_.empty() || binary.size() > max_) return;
  std::error_code failed;
  std::filesystem::create_directories(folder_.parent_path(), failed);
  ::mkdir(folder_.c_str(), 0700);  // what lies here is executed: nobody else writes to it
  make_room(binary.size());

  std::string aside = (folder_ / "new-XXXXXX").string();
  const int fd = ::mkostemp(aside.data(), O_CLOEXEC);
  if (fd < 0) return;
  file_head head;
  head.length = binary.size();
  head.checksum = fnv(binary.data(), binary.size());
  bool good = write_all(fd, &head, sizeof head) && write_all(fd, binary.data(), binary.size());
  good = ::close(fd) == 0 && good;
  if (!good || std::rename(aside.c_str(), file(key).c_str()) != 0) ::unlink(aside.c_str());
} catch (...) {  // no memory for names: not kept
}

void kernel_cache::make_room(std::uint64_t bytes) const {
  struct entry {
    std::filesystem::file_time_type age;
    std::uint64_t size;
    std::filesystem::path path;
  };
  std::vector<entry> all;
  std::uint64_t sum = bytes;
  std::error_code failed;
  for (std::filesystem::directory_iterator i(folder_, failed), end; !failed && i != end; i.increment(failed)) {
    const auto& path = i->path();
    if (path.extension() != ".kernel" && !path.filename().string().starts_with("new-")) continue;  // somebody else's
    std::error_code gone;  // another process may tidy up too
    entry e{i->last_write_time(gone), 0, i->path()};
    if (!gone) e.size = i->file_size(gone);
    if (gone) continue;
    sum += e.size;
    all.push_back(std::move(e));
  }
  if (sum <= max_) return;
  std::sort(all.begin(), all.end(), [](const entry& a, const entry& b) { return a.age < b.age; });
  for (const auto& e : all) {
    if (sum <= max_) break;
    if (std::filesystem::remove(e.path, failed)) sum -= e.size;
  }
}

}  // namespace troupe::devices::rtc
