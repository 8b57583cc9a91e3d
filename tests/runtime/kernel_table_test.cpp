// What this file is for: a runtime has one copy of each kernel that it has seen, and knows which nodes offer it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/kernel_table.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include <troupe/error.hpp>

namespace {

using namespace troupe::detail;
using troupe::device_kind;

constexpr auto bit(device_kind k) { return static_cast<unsigned char>(1u << static_cast<int>(k)); }
constexpr auto sim = static_cast<std::size_t>(device_kind::sim), cuda = static_cast<std::size_t>(device_kind::cuda);

kernel_info on_cores(std::uint64_t key) {
  kernel_info k;
  k.name = "scale";
  k.key = key;
  k.portable = true;
  return k;
}
kernel_info on_devices(std::uint64_t key, const char* text, const char* entry = "scale") {
  kernel_info k = on_cores(key);
  k.kinds = bit(device_kind::sim);
  k.texts[sim].text = text;
  k.texts[sim].entry = entry;
  return k;
}
std::set<int> nodes_of(const kernel_info& k) {
  std::set<int> all;
  k.nodes->get().each([&](auto id) { all.insert(static_cast<int>(id)); });
  return all;
}

TEST(kernel_table, gives_one_copy_for_kernels_that_are_the_same) {
  kernel_table table;
  kernel_info mine = on_cores(7);
  const kernel_info* const first = table.intern(mine);
  EXPECT_NE(first, &mine) << "the caller's may go";
  EXPECT_EQ(first->key, 7u);
  EXPECT_STREQ(first->name, "scale");
  EXPECT_EQ(table.intern(mine), first);
  EXPECT_EQ(table.intern(on_cores(7)), first);
}

TEST(kernel_table, keeps_kernels_of_one_name_apart_whose_bodies_differ) {
  static const char text[] = "GPU_KERNEL void scale() {}";
  static const char other[] = "GPU_KERNEL void scale() { }";
  kernel_table table;
  std::vector<kernel_info> all{on_cores(7), on_devices(7, text), on_devices(7, other), on_devices(7, text, "other")};
  all.push_back(on_devices(7, text));
  all.back().texts[sim].group = {8, 8, 1};
  all.push_back(on_cores(7));
  all.back().repeat = purity::once;
  all.push_back(on_cores(7));
  all.back().shape_count = 1;
  std::set<const kernel_info*> kept;
  for (const kernel_info& k : all) kept.insert(table.intern(k));
  EXPECT_EQ(kept.size(), all.size());
  for (const kernel_info& k : all) EXPECT_TRUE(kept.contains(table.intern(k))) << "found again";
}

TEST(kernel_table, finds_more_kernels_than_it_can_look_up_without_a_lock) {
  kernel_table table;
  std::vector<const kernel_info*> all;
  for (std::uint64_t key = 0; key < 1500; ++key) all.push_back(table.intern(on_cores(key * 1024)));  // all in one place
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size());
  for (const std::uint64_t key : {0u, 1u, 1023u, 1024u, 1499u}) {
    EXPECT_EQ(table.intern(on_cores(key * 1024)), all[key]);
    EXPECT_EQ(all[key]->key, key * 1024);
  }
}

TEST(kernel_table, gives_threads_that_come_together_the_same_copy) {
  for (std::uint64_t key = 1; key <= 20; ++key) {
    kernel_table table;
    std::vector<const kernel_info*> got(4);
    std::vector<std::jthread> threads;
    for (auto& mine : got) threads.emplace_back([&] { mine = table.intern(on_cores(key)); });
    threads.clear();
    EXPECT_EQ(std::set(got.begin(), got.end()).size(), 1u);
  }
}

TEST(kernel_table, refuses_a_body_for_an_accelerator_without_a_text_or_an_entry) {
  kernel_table table;
  const auto refusal = [&](const kernel_info& k) {
    try {
      table.intern(k);
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::bad_argument);
      return std::string(e.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(refusal(on_devices(1, nullptr)), "kernel 'scale': its body for an accelerator has no text");
  EXPECT_EQ(refusal(on_devices(1, "")), "kernel 'scale': its body for an accelerator has no text");
  EXPECT_EQ(refusal(on_devices(1, "void f() {}", "")),
            "kernel 'scale': its body for an accelerator has no entry, the name of the function");
  kernel_info routine = on_devices(1, nullptr);
  routine.routines[sim] = +[](troupe::device_call&, const void*) {};
  EXPECT_EQ(refusal(routine), "none") << "a routine needs no text";
}

TEST(kernel_table, notes_which_texts_need_doubles) {
  kernel_table table;
  kernel_info k = on_devices(1, "void f(double x) {}");
  k.kinds |= bit(device_kind::cuda);
  k.texts[cuda] = {"void f(float x) {}  // no double here", "f"};
  EXPECT_EQ(table.intern(k)->doubles, bit(device_kind::sim));
  EXPECT_EQ(k.doubles, 0) << "only the copy knows";
}

TEST(kernel_table, knows_the_nodes_that_offer_a_kernel_seen_before_or_after) {
  kernel_table table;
  const kernel_info* const before = table.intern(on_cores(1));
  EXPECT_TRUE(nodes_of(*before).empty());
  table.offer(3, {1, 2});
  table.offer(5, {1});
  EXPECT_EQ(nodes_of(*before), (std::set{3, 5}));
  EXPECT_EQ(nodes_of(*table.intern(on_cores(2))), std::set{3});
  EXPECT_TRUE(nodes_of(*table.intern(on_cores(9))).empty());
}

TEST(kernel_table, takes_the_last_word_of_a_node) {
  kernel_table table;
  const kernel_info* const one = table.intern(on_cores(1));
  const kernel_info* const two = table.intern(on_cores(2));
  table.offer(3, {1});
  table.offer(4, {1});
  table.offer(3, {2});
  EXPECT_EQ(nodes_of(*one), std::set{4});
  EXPECT_EQ(nodes_of(*two), std::set{3});
  table.offer(3, {});  // it has left
  table.offer(4, {});
  EXPECT_TRUE(nodes_of(*one).empty());
  EXPECT_TRUE(nodes_of(*two).empty());
}

TEST(kernel_table, has_no_nodes_for_a_kernel_whose_scalars_cannot_travel) {
  kernel_table table;
  kernel_info k = on_cores(1);
  k.portable = false;
  const kernel_info* const before = table.intern(k);
  table.offer(3, {1, 2});
  EXPECT_TRUE(nodes_of(*before).empty());
  k.key = 2;
  EXPECT_TRUE(nodes_of(*table.intern(k)).empty());
}

}  // namespace
