// What this file is for: host memory: aligned allocation, strided copies, fills.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/host/host_device.hpp"

#include <unistd.h>
#include <cstring>
#include <new>

#include <troupe/error.hpp>

namespace troupe::devices {

namespace {

class host_device final : public device {
 public:
  host_device() {
    facts_.name = "host";
    const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
    if (pages > 0 && size > 0)
      facts_.memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
  }

  const device_facts& facts() const override { return facts_; }

  std::byte* allocate(std::size_t bytes, std::size_t align) override {
    void* p = ::operator new(bytes ? bytes : 1, std::align_val_t(align), std::nothrow);
    if (!p)
      throw error(errc::out_of_memory, "host memory: " + std::to_string(bytes) +
                                           " bytes could not be had; free handles or use smaller tiles");
    return static_cast<std::byte*>(p);
  }
  void deallocate(std::byte* p, std::size_t, std::size_t align) noexcept override {
    ::operator delete(p, std::align_val_t(align));
  }

  void copy(std::byte* to, const std::array<index_t, rank_max>& ts, const std::byte* from,
            const std::array<index_t, rank_max>& fs, const std::array<index_t, rank_max>& n,
            std::size_t element) override {
    const auto e = static_cast<index_t>(element);
    // The fastest dimension that has more than one element is copied as a run where both sides are contiguous.
    int run = rank_max - 1;
    while (run > 0 && n[run] == 1) --run;
    const bool contiguous = ts[run] == 1 && fs[run] == 1;
    std::array<index_t, rank_max> outer = n;
    if (contiguous) outer[run] = 1;
    const std::size_t bytes = contiguous ? static_cast<std::size_t>(n[run]) * element : element;
    for (index_t a = 0; a < outer[0]; ++a)
      for (index_t b = 0; b < outer[1]; ++b)
        for (index_t c = 0; c < outer[2]; ++c)
          for (index_t d = 0; d < outer[3]; ++d)
            std::memcpy(to + (a * ts[0] + b * ts[1] + c * ts[2] + d * ts[3]) * e,
                        from + (a * fs[0] + b * fs[1] + c * fs[2] + d * fs[3]) * e, bytes);
  }

  void fill(std::byte* to, const std::byte* value, std::size_t element, std::size_t count) override {
    if (count == 0) return;
    std::memcpy(to, value, element);
    // Double what is there until all is.
    std::size_t done = element;
    const std::size_t all = element * count;
    while (done < all) {
      const std::size_t next = done < all - done ? done : all - done;
      std::memcpy(to + done, to, next);
      done += next;
    }
  }

 private:
  device_facts facts_;
};

}  // namespace

std::unique_ptr<device> make_host_device() { return std::make_unique<host_device>(); }

}  // namespace troupe::devices
