// What this file is for: work-items as a loop, or as fibres where they wait for each other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/sim/launch.hpp"

#include <cstring>
#include <exception>
#include <stdexcept>

namespace troupe::soft_gpu {

namespace {

thread_local const troupe_sim_item* running = nullptr;

/// Thrown by a barrier to unwind work-items whose group has failed.
struct group_failed {};

struct outside_of_array : std::out_of_range {
  using std::out_of_range::out_of_range;
};

}  // namespace

const troupe_sim_item& self() noexcept {
  static constexpr troupe_sim_item nobody{};
  return running ? *running : nobody;
}

std::string kernel_runner::run(const launch& l) {
  count_ = std::size_t{l.group.x} * l.group.y * l.group.z;
  fibres_on_ = l.barriers && count_ > 1;
  failed_ = left_an_array_ = false;
  why_.clear();
  locals_.clear();
  const std::size_t items = fibres_on_ ? count_ : 1;
  if (items_.size() < items) items_.resize(items);
  while (fibres_on_ && fibres_.size() < count_) fibres_.push_back(std::make_unique<fibre>());
  if (!fibres_on_) {
    prepare(items_[0], l, {0, 0, 0});
    run_plain(l, items_[0]);
  } else {
    std::size_t i = 0;
    for (unsigned z = 0; z < l.group.z; ++z)
      for (unsigned y = 0; y < l.group.y; ++y)
        for (unsigned x = 0; x < l.group.x; ++x, ++i) {
          prepare(items_[i], l, {x, y, z});
          items_[i].index = static_cast<int>(i);
        }
    run_with_barriers(l, count_);
  }
  running = nullptr;
  return std::exchange(why_, {});
}

void kernel_runner::prepare(item& i, const launch& l, dim3 local) {
  const dim3 all[] = {local, l.group, l.groups};
  int* to[] = {i.local_id, i.local_size, i.group_count};
  for (int k = 0; k < 3; ++k) {
    to[k][0] = static_cast<int>(all[k].x);
    to[k][1] = static_cast<int>(all[k].y);
    to[k][2] = static_cast<int>(all[k].z);
  }
  i.barrier = &wait_for_group;
  i.local_memory = &find_local;
  i.outside = &complain;
  i.runner = this;
  i.arguments = const_cast<void**>(l.arguments.data());
  i.invoke = l.invoke;
}

template <class F>
void kernel_runner::for_each_group(const launch& l, F&& f) {
  for (unsigned z = 0; z < l.groups.z; ++z)
    for (unsigned y = 0; y < l.groups.y; ++y)
      for (unsigned x = 0; x < l.groups.x; ++x) {
        for (auto& a : locals_) a.used = false;
        f(static_cast<int>(x), static_cast<int>(y), static_cast<int>(z));
        if (failed_) return;
      }
}

void kernel_runner::fail(const char* why) {
  if (!failed_) why_ = why;
  failed_ = true;
}

void kernel_runner::run_plain(const launch& l, item& i) {
  running = &i;
  try {
    for_each_group(l, [&](int gx, int gy, int gz) {
      i.group_id[0] = gx;
      i.group_id[1] = gy;
      i.group_id[2] = gz;
      for (i.local_id[2] = 0; i.local_id[2] < i.local_size[2]; ++i.local_id[2])
        for (i.local_id[1] = 0; i.local_id[1] < i.local_size[1]; ++i.local_id[1])
          for (i.local_id[0] = 0; i.local_id[0] < i.local_size[0]; ++i.local_id[0]) l.invoke(&i, i.arguments);
    });
  } catch (const outside_of_array& e) {
    left_an_array_ = true;
    fail(e.what());
  } catch (const std::exception& e) {
    fail(e.what());
  } catch (...) {
    fail("an exception left the kernel");
  }
}

void kernel_runner::run_in_fibre(void* p) {
  auto& i = *static_cast<item*>(p);
  try {
    i.invoke(&i, i.arguments);
  } catch (const group_failed&) {
    i.runner->failed_ = true;
  } catch (const outside_of_array& e) {
    i.runner->left_an_array_ = i.runner->left_an_array_ || !i.runner->failed_;
    i.runner->fail(e.what());
  } catch (const std::exception& e) {
    i.runner->fail(e.what());
  } catch (...) {
    i.runner->fail("an exception left the kernel");
  }
}

void kernel_runner::run_with_barriers(const launch& l, std::size_t count) {
  std::vector<bool> paused(count);
  for_each_group(l, [&](int gx, int gy, int gz) {
    for (std::size_t k = 0; k < count; ++k) {
      items_[k].group_id[0] = gx;
      items_[k].group_id[1] = gy;
      items_[k].group_id[2] = gz;
      fibres_[k]->start(&run_in_fibre, &items_[k]);
      paused[k] = true;
    }
    // A round brings every work-item to the next barrier, or to its end. One that failed lets the others unwind.
    for (std::size_t waiting = count; waiting > 0;) {
      waiting = 0;
      for (std::size_t k = 0; k < count; ++k) {
        if (!paused[k]) continue;
        running = &items_[k];
        paused[k] = fibres_[k]->resume();
        if (paused[k]) ++waiting;
      }
      if (waiting != 0 && waiting != count) fail("only a part of the group reached a barrier");
    }
  });
}

void kernel_runner::wait_for_group(const troupe_sim_item* p) {
  const auto& i = *static_cast<const item*>(p);
  kernel_runner& r = *i.runner;
  if (!r.fibres_on_) {
    if (r.count_ > 1) throw std::logic_error("a kernel launched without barriers reached one");
    return;
  }
  if (!r.failed_) r.fibres_[static_cast<std::size_t>(i.index)]->pause();
  if (r.failed_) throw group_failed{};
}

void kernel_runner::complain(const troupe_sim_item*, const char* array, int rank, const long* at, const long* lo,
                             const long* hi) {
  std::string element, box;
  for (int d = 0; d < rank; ++d) {
    element += (d ? "," : "") + std::to_string(at[d]);
    box += (d ? " x [" : "[") + std::to_string(lo[d]) + "," + std::to_string(hi[d]) + ")";
  }
  throw outside_of_array("argument '" + std::string(array) + "': element (" + element + ") is outside its box " + box);
}

void* kernel_runner::find_local(const troupe_sim_item* p, const void* key, unsigned long bytes) {
  auto& locals = static_cast<const item*>(p)->runner->locals_;
  local_array* found = nullptr;
  for (auto& a : locals)
    if (a.key == key) found = &a;
  if (!found) {
    constexpr std::size_t unit = sizeof(std::max_align_t);
    auto memory = std::make_unique_for_overwrite<std::max_align_t[]>((bytes + unit - 1) / unit);
    locals.push_back({key, bytes, std::move(memory), false});
    found = &locals.back();
  }
  if (found->bytes != bytes) throw std::logic_error("a local array was asked for in two sizes");
  if (!found->used) std::memset(found->memory.get(), 0xFF, bytes);
  found->used = true;
  return found->memory.get();
}

}  // namespace troupe::soft_gpu
