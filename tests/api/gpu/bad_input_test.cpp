// What this file is for: kernels, scopes and files that are wrong: a clear error where it belongs, and work goes on.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"

namespace {

using namespace troupe;
using test::caught;
using test::error_of;
using word = std::uint32_t;

constexpr auto add_text = R"(
GPU_KERNEL void add(GPU_INOUT(unsigned, a), const unsigned more) {
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) += more;
})";
constexpr auto adder(const char* name, const source& s) { return kernel<inout<word, 1>, word>(name).on(gpu, s); }
constexpr auto add = adder("add", {add_text, "add"});

// In every test a device of this kind, if there is one.
class gpu_bad_input : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    options o;
    o.threads = 1;
    o.devices = {{GetParam()}};
    o.cost_cache = "none";
    for (const auto& l : list_devices())
      if (l.kind_name + ":0" == GetParam() && l.devices.empty())
        GTEST_SKIP() << "no " << l.kind_name << ": " << l.remark;
    rt_.emplace(o);
  }
  void TearDown() override {
    if (!rt_) return;
    auto a = rt_->filled<word>({100}, tiles(30), 1);
    rt_->for_each(here(), grid(100), add, update(a), word{4}).get();
    EXPECT_EQ(a.read()(99), 5u) << "the runtime does not go on";
  }
  task_options here() const { return {.where = scope::executor(GetParam())}; }
  /// Returns the error that the task of this kernel ends with.
  template <class K>
  caught failure_of(const K& k) {
    auto a = rt_->filled<word>({100}, tiles(100), 1);
    auto f = rt_->spawn(here(), k, update(a), word{4});
    auto e = error_of([&] { f.get(); });
    EXPECT_TRUE(e && e->from_task) << "it ran";
    if (!e || !e->cause) return {};
    e->code = test::code_of([&] { std::rethrow_exception(e->cause); }).value_or(errc{});
    return *e;
  }
  std::optional<runtime> rt_;
};

void expect_says(const caught& e, errc code, std::initializer_list<const char*> parts) {
  EXPECT_EQ(e.code, code) << e.text;
  for (const char* part : parts) EXPECT_TRUE(e.says(part)) << "'" << part << "' is not in: " << e.text;
}

TEST_P(gpu_bad_input, a_body_without_text_or_entry_is_refused_by_the_call) {
  auto a = rt_->filled<word>({100}, tiles(100), 1);
  for (const source& s : {source{nullptr, "add"}, source{"", "add"}, source{add_text, nullptr}, source{add_text, ""}}) {
    const auto bad = adder("hollow", s);
    const auto e = error_of([&] { rt_->spawn(here(), bad, update(a), word{4}); });
    ASSERT_TRUE(e);
    expect_says(*e, errc::bad_argument, {"hollow", s.text && *s.text ? "entry" : "text"});
    EXPECT_EQ(test::code_of([&] { rt_->for_each(grid(100), bad, update(a), word{4}); }), errc::bad_argument);
  }
}

TEST_P(gpu_bad_input, an_entry_that_is_not_in_the_text_fails_the_task) {
  constexpr auto k = adder("lost", {add_text, "subtract"});
  expect_says(failure_of(k), errc::compile_failed, {"lost", "subtract"});
  constexpr auto odd = adder("odd", {add_text, "add me (now)"});
  expect_says(failure_of(odd), errc::compile_failed, {"odd"});
}

TEST_P(gpu_bad_input, a_text_that_does_not_compile_fails_the_task) {
  constexpr auto k = adder("typo", {"GPU_KERNEL void typo(GPU_INOUT(unsigned, a)) { a = ; }", "typo"});
  expect_says(failure_of(k), errc::compile_failed, {"typo", "does not compile"});
}

// Not by its cause alone.
TEST_P(gpu_bad_input, texts_that_do_not_compile_are_told_by_the_code_of_the_error) {
  auto a = rt_->filled<word>({100}, tiles(100), 1);
  const auto typo = adder("typo", {"GPU_KERNEL void typo(GPU_INOUT(unsigned, a)) { a = ; }", "typo"});
  EXPECT_EQ(test::code_of([&] { rt_->spawn(here(), typo, update(a), word{4}).get(); }), errc::compile_failed);
  auto b = rt_->filled<word>({100}, tiles(100), 1);
  const auto lost = adder("lost", {add_text, "subtract"});
  const auto e = error_of([&] { rt_->spawn(here(), lost, update(b), word{4}).get(); });
  ASSERT_TRUE(e);
  expect_says(*e, errc::compile_failed, {"there is no function 'subtract' in the text, which has: add"});
  EXPECT_EQ(e->text.find('\n'), std::string::npos) << e->text;
}

TEST_P(gpu_bad_input, parameters_other_than_those_of_the_signature_fail_the_task) {
  constexpr auto fewer = adder("fewer", {"GPU_KERNEL void k(GPU_INOUT(unsigned, a)) { GPU_AT1(a, 0) = 1; }", "k"});
  expect_says(failure_of(fewer), errc::bad_argument, {"fewer", "2", "3"});
  constexpr auto more = adder(
      "more",
      {"GPU_KERNEL void k(GPU_INOUT(unsigned, a), const unsigned x, const int y) { GPU_AT1(a, 0) = x + y; }", "k"});
  expect_says(failure_of(more), errc::bad_argument, {"more", "3", "4"});
  constexpr auto wide =
      adder("wide", {"GPU_KERNEL void k(GPU_INOUT(unsigned, a), const unsigned long x) { GPU_AT1(a, 0) = x; }", "k"});
  expect_says(failure_of(wide), errc::bad_argument, {"wide", "4", "8"});
  constexpr auto swapped =
      adder("swapped", {"GPU_KERNEL void k(const unsigned x, GPU_INOUT(unsigned, a)) { GPU_AT1(a, 0) = x; }", "k"});
  expect_says(failure_of(swapped), errc::bad_argument, {"swapped"});
}

// Not by its cause alone.
TEST_P(gpu_bad_input, parameters_that_do_not_fit_are_told_by_the_code_of_the_error) {
  constexpr auto fewer = adder("fewer", {"GPU_KERNEL void k(GPU_INOUT(unsigned, a)) { GPU_AT1(a, 0) = 1; }", "k"});
  auto a = rt_->filled<word>({100}, tiles(100), 1);
  EXPECT_EQ(test::code_of([&] { rt_->spawn(here(), fewer, update(a), word{4}).get(); }), errc::bad_argument);
  auto b = rt_->filled<word>({100}, tiles(100), 1);
  const graph g = rt_->record([&](recorder& r) { r.spawn(here(), fewer, update(b), word{4}); });
  EXPECT_EQ(test::code_of([&] { rt_->run(g).get(); }), errc::bad_argument);
}

// The rest may be a compiler's log.
TEST_P(gpu_bad_input, the_first_line_of_a_text_that_does_not_compile_is_a_sentence) {
  const auto typo =
      adder("typo", {"GPU_KERNEL void typo(GPU_INOUT(unsigned, a)) { GPU_AT1(a, 0) = nothing_of_that_name; }", "typo"});
  const auto e = failure_of(typo);
  const std::string line = e.text.substr(0, e.text.find('\n'));
  for (const char* part : {"typo", GetParam(), "does not compile", "nothing_of_that_name"})
    EXPECT_NE(line.find(part), std::string::npos) << "'" << part << "' is not in the first line of: " << e.text;
}

// The kernel would write outside of its memory, and the accesses that are compared with the box are all inside it.
TEST_P(gpu_bad_input, elements_of_another_size_than_those_of_the_signature_fail_the_task) {
  const std::string body =
      " a), const unsigned x) { const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0); "
      "if (i < GPU_HI(a, 0)) GPU_AT1(a, i) = x; }";
  const std::string doubles = "GPU_KERNEL void k(GPU_INOUT(double," + body;
  const std::string bytes = "GPU_KERNEL void k(GPU_INOUT(unsigned char," + body;
  const std::string named = "typedef unsigned long wide; GPU_KERNEL void k(GPU_INOUT(wide," + body;
  const std::string defined = "#define WIDE unsigned long\nGPU_KERNEL void k(GPU_INOUT(WIDE," + body;
  const auto says = [&](const char* name, const std::string& text, const char* bytes_of_text) {
    const auto k = adder(name, {text.c_str(), "k"});
    expect_says(failure_of(k), errc::bad_argument, {name, "'a'", bytes_of_text, "4 in the kernel's signature"});
  };
  says("doubles", doubles, "of 8 bytes");
  says("chars", bytes, "of 1 bytes");
  says("named", named, "of 8 bytes");
  says("defined", defined, "of 8 bytes");
  const std::string reads =
      "GPU_KERNEL void k(GPU_IN(float, a), GPU_OUT(unsigned short, b)) { GPU_AT1(b, GPU_LO(b, 0)) = GPU_AT1(a, 0); }";
  const auto k = kernel<in<float, 1>, out<double, 1>>("reads").on(gpu, source{reads.c_str(), "k"});
  auto a = rt_->filled<float>({10}, tiles(10), 1.0f);
  auto b = rt_->array<double>({10}, tiles(10));
  const auto e = error_of([&] { rt_->spawn(here(), k, read(a), write(b)).get(); });
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->says("reads") && e->says("argument 2") && e->says("'b'") && e->says("2 bytes") && e->says("of 8"))
      << e->text;
}

TEST_P(gpu_bad_input, groups_that_are_too_large_for_the_device_fail_the_task) {
  for (const auto& group : {std::array<std::uint16_t, 3>{65535, 1, 1}, {256, 256, 1}, {1, 65535, 1}, {1, 1, 65535}}) {
    const auto k = adder("crowd", {add_text, "add", group});
    expect_says(failure_of(k), errc::bad_argument, {"add", "work-items"});
  }
}

// The text is the same, so is the signature.
TEST_P(gpu_bad_input, kernels_that_differ_in_their_groups_only_are_different_ones) {
  auto a = rt_->filled<word>({100}, tiles(100), 1);
  rt_->spawn(here(), adder("twin", {add_text, "add"}), update(a), word{1}).get();
  expect_says(failure_of(adder("twin", {add_text, "add", {65535, 1, 1}})), errc::bad_argument, {"work-items"});
}

TEST_P(gpu_bad_input, empty_chunks_run_and_change_nothing) {
  constexpr auto none = kernel<in<word, 1>, inout<word, 1>, word>("none").on(gpu, source{R"(
GPU_KERNEL void none(GPU_IN(unsigned, a), GPU_INOUT(unsigned, b), const unsigned more) {
  const long i = GPU_LO(b, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(b, 0)) GPU_AT1(b, i) += more;
})",
                                                                                         "none"});
  auto a = rt_->filled<word>({100}, tiles(30), 1), b = rt_->filled<word>({100}, tiles(30), 1);
  const auto empty = [](const box<1>& chunk, const extent<1>&) { return box<1>{{chunk.lo[0]}, {chunk.lo[0]}}; };
  const auto e = error_of([&] { rt_->for_each(here(), grid(100), none, read(a), update(b, empty), word{4}).get(); });
  EXPECT_FALSE(e) << e->text;
  const auto both =
      error_of([&] { rt_->for_each(here(), grid(100), none, read(a, empty), update(b, empty), word{4}).get(); });
  EXPECT_FALSE(both) << both->text;
  const auto v = b.read();
  for (index_t i = 0; i < 100; ++i) ASSERT_EQ(v(i), 1u) << i;
}

TEST_P(gpu_bad_input, arrays_without_elements_are_no_error) {
  auto nothing = rt_->array<word>({0}, tiles(10));
  rt_->for_each(here(), grid(0), add, update(nothing), word{4}).get();
  auto filled = rt_->filled<word>({0}, tiles(10), 3);
  rt_->spawn(here(), add, update(filled), word{4}).get();
  EXPECT_EQ(filled.read().size(0), 0);
}

TEST_P(gpu_bad_input, executors_that_are_not_there_are_refused_with_those_that_are) {
  auto a = rt_->filled<word>({100}, tiles(100), 1);
  for (const scope& s : {scope::executor("sim:7"), scope::executor(""), scope::executor("sim"),
                         scope::executor("sim:7") | scope::executor("toaster"), scope::gpu() & scope::cpu()}) {
    const auto e = error_of([&] { rt_->spawn(task_options{.where = s}, add, update(a), word{4}); });
    ASSERT_TRUE(e);
    expect_says(*e, errc::no_executor, {"add", "cpu:0", GetParam()});
  }
}

INSTANTIATE_TEST_SUITE_P(on, gpu_bad_input, testing::Values("sim:0", "opencl:0", "cuda:0", "hip:0"),
                         [](const auto& p) { return std::string(p.param, std::strcspn(p.param, ":")); });

// ---- compiled kernels on disk ---------------------------------------------------------------------------------------

namespace fs = std::filesystem;
using bytes = std::vector<char>;

/// A folder for compiled kernels that goes with the test.
class kernel_folder {
 public:
  kernel_folder() {
    std::string name = (fs::temp_directory_path() / "troupe-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no folder");
    path_ = name;
    if (const char* old = std::getenv("XDG_CACHE_HOME")) before_ = old;
    ::setenv("XDG_CACHE_HOME", path_.c_str(), 1);
  }
  ~kernel_folder() {
    before_ ? ::setenv("XDG_CACHE_HOME", before_->c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  kernel_folder(const kernel_folder&) = delete;
  kernel_folder& operator=(const kernel_folder&) = delete;

  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& f : fs::directory_iterator(path_ / "troupe"))
      if (f.path().extension() == ".kernel") all.push_back(f.path());
    return all;
  }

 private:
  fs::path path_;
  std::optional<std::string> before_;
};

bytes content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void overwrite(const fs::path& file, const bytes& with) {
  std::ofstream(file, std::ios::binary | std::ios::trunc).write(with.data(), static_cast<std::streamsize>(with.size()));
}

// Whole, by its head, and nothing that could be loaded.
bytes sealed(const std::string& binary) {
  std::uint64_t sum = 14695981039346656037ull;
  for (const char c : binary) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  const std::uint64_t length = binary.size();
  bytes file(24 + binary.size());
  std::memcpy(file.data(), "troupek1", 8);
  std::memcpy(file.data() + 8, &length, 8);
  std::memcpy(file.data() + 16, &sum, 8);
  std::memcpy(file.data() + 24, binary.data(), binary.size());
  return file;
}

TEST(gpu_bad_input, corrupt_compiled_kernels_are_made_again) {
  const kernel_folder folder;
  const auto run = [] {
    options o;
    o.threads = 1;
    o.devices = {{"sim:0"}};
    runtime rt(o);
    auto a = rt.filled<word>({100}, tiles(100), 1);
    rt.spawn(task_options{.where = scope::gpu()}, add, update(a), word{4}).get();
    return a.read()(42);
  };
  ASSERT_EQ(run(), 5u);
  const auto files = folder.files();
  ASSERT_FALSE(files.empty());
  const auto spoil = [&](const char* how, auto&& spoiled) {
    SCOPED_TRACE(how);
    std::vector<bytes> good, bad;
    for (const auto& f : files) {
      good.push_back(content(f));
      bad.push_back(spoiled(good.back()));
      overwrite(f, bad.back());
    }
    EXPECT_EQ(run(), 5u);
    EXPECT_EQ(folder.files().size(), files.size());
    bool replaced = false;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (content(files[i]) == bad[i]) continue;  // of a kernel that was not needed
      replaced = true;
      EXPECT_EQ(content(files[i]).size(), good[i].size());
    }
    EXPECT_TRUE(replaced);
    EXPECT_EQ(run(), 5u);
  };
  spoil("empty", [](const bytes&) { return bytes(); });
  spoil("short", [](bytes b) { return b.resize(b.size() / 2), b; });
  spoil("long", [](bytes b) { return b.push_back('x'), b; });
  spoil("no head", [](bytes b) { return b.resize(20), b; });
  spoil("one bit", [](bytes b) { return b[b.size() / 2] = static_cast<char>(b[b.size() / 2] ^ 1), b; });
  spoil("another head", [](bytes b) { return b[0] = 'x', b; });
  spoil("nothing to load", [](const bytes&) { return sealed("this is no shared object"); });
}

}  // namespace
