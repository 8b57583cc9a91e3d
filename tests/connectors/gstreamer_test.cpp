// What this file is for: streams out of GStreamer pipelines and into them: all of it, bounded, and how they end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "connectors/gstreamer.hpp"
#include "tests/support/comes_true.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace std::chrono_literals;
namespace st = troupe::stream;
namespace connect = troupe::connectors;
using connect::gstreamer_buffer;
using connect::gstreamer_sink;
using connect::gstreamer_source;
using test::comes_true;
using bytes = std::vector<unsigned char>;

constexpr std::chrono::seconds patience{30};

bytes content(const std::filesystem::path& path) {
  std::ifstream f(path, std::ios::binary);
  return bytes(std::istreambuf_iterator<char>(f), {});
}

// Runs a pipeline to its end, without the library.
void run_plainly(const std::string& description) {
  GstElement* const p = gst_parse_launch(description.c_str(), nullptr);
  ASSERT_NE(p, nullptr);
  gst_element_set_state(p, GST_STATE_PLAYING);
  GstBus* const bus = gst_element_get_bus(p);
  GstMessage* const end = gst_bus_timed_pop_filtered(bus, 30 * GST_SECOND,
                                                     static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(GST_MESSAGE_TYPE(end), GST_MESSAGE_EOS);
  gst_message_unref(end);
  gst_element_set_state(p, GST_STATE_NULL);
  gst_object_unref(bus);
  gst_object_unref(p);
}

// The code and the text of what a call throws, or of what its stream has failed with.
struct thrown {
  std::optional<troupe::errc> code;
  std::string text;
};
template <class F>
thrown thrown_by(F f) {
  try {
    f();
  } catch (const st::stage_failed& e) {
    try {
      std::rethrow_exception(e.cause());
    } catch (const troupe::error& cause) {
      return {cause.code(), cause.what()};
    }
  } catch (const troupe::error& e) {
    return {e.code(), e.what()};
  }
  return {};
}

// Descriptors of this process, and whether one of them is that file.
std::size_t open_descriptors(const std::filesystem::path& file, bool& has_file) {
  std::size_t n = 0;
  has_file = false;
  for (const auto& d : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    has_file |= std::filesystem::read_symlink(d.path(), gone) == file;
    ++n;
  }
  return n;
}

// How far this process has read the file that it has open.
std::size_t bytes_read(const std::filesystem::path& file) {
  for (const auto& d : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(d.path(), gone) != file) continue;
    std::ifstream about("/proc/self/fdinfo/" + d.path().filename().string());
    std::string word;
    std::size_t at = 0;
    about >> word >> at;
    return at;
  }
  return 0;
}

// A pipe into which GStreamer writes. It has 64 KiB; what is above waits.
class pipe {
 public:
  explicit pipe(int flags) {
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    EXPECT_EQ(::fcntl(ends_[1], F_SETFL, flags), 0);
  }
  pipe(const pipe&) = delete;
  pipe& operator=(const pipe&) = delete;
  ~pipe() {
    close_in();
    ::close(ends_[0]);
  }
  std::string sink() const { return "fdsink sync=false fd=" + std::to_string(ends_[1]); }
  void close_in() {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }
  std::size_t waiting() const {
    int n = 0;
    EXPECT_EQ(::ioctl(ends_[0], FIONREAD, &n), 0);
    return static_cast<std::size_t>(n);
  }
  // Reads so many bytes, or to the end.
  std::size_t take(std::size_t wanted) const {
    bytes some(1 << 16);
    std::size_t got = 0;
    for (ssize_t n; got < wanted && (n = ::read(ends_[0], some.data(), std::min(some.size(), wanted - got))) > 0;)
      got += static_cast<std::size_t>(n);
    return got;
  }

 private:
  int ends_[2] = {-1, -1};
};

const std::string frames = "! video/x-raw,format=GRAY8,width=64,height=48,framerate=25/1 ";

class gstreamer : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    for (const char* name : {"appsink", "appsrc", "audiotestsrc", "videotestsrc", "videoconvert"}) {
      GstElementFactory* const is_there = gst_element_factory_find(name);
      if (!is_there)
        GTEST_SKIP() << "GStreamer's element " << name << " is missing (on Debian: gstreamer1.0-plugins-base)";
      gst_object_unref(is_there);
    }
  }
};
class slow_gstreamer : public gstreamer {};

TEST_F(gstreamer, buffers_come_with_their_bytes_times_and_caps) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<gstreamer_buffer> got;
  auto p = st::from("video", gstreamer_source("videotestsrc num-buffers=20 " + frames + "! appsink name=out")) |
           st::sink("keep", [&](gstreamer_buffer b) { got.push_back(std::move(b)); });
  {
    auto r = p.start(rt);
    ASSERT_TRUE(r.wait_for(patience));
  }
  // The pipeline is gone, the bytes are there.
  ASSERT_EQ(got.size(), 20u);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].bytes().size(), 64u * 48u);
    EXPECT_EQ(got[i].time(), 40ms * i);
    EXPECT_EQ(got[i].duration(), 40ms);
    EXPECT_NE(got[i].caps().find("format=(string)GRAY8"), std::string::npos) << got[i].caps();
    EXPECT_EQ(st::item_bytes<gstreamer_buffer>::of(got[i]), sizeof(gstreamer_buffer) + 64 * 48);
  }
  EXPECT_EQ(&got.front().caps(), &got.back().caps());
  const gstreamer_buffer none;
  EXPECT_TRUE(none.bytes().empty() && none.caps().empty() && !none.time() && !none.duration());
}

TEST_F(gstreamer, the_bytes_are_those_that_the_pipeline_writes_to_a_file) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const test::scratch_folder folder;
  const std::string path = folder.path() / "plain";
  for (const std::string& from : {"videotestsrc num-buffers=30 pattern=ball " + frames,
                                  std::string("audiotestsrc num-buffers=100 samplesperbuffer=441 wave=square ")}) {
    run_plainly(from + "! filesink location=" + path);
    bytes got;
    auto p =
        st::from("in", gstreamer_source(from + "! appsink name=samples", {.appsink = "samples"})) |
        st::async({.items = 2}) |
        st::sink("keep", [&](const gstreamer_buffer& b) { got.insert(got.end(), b.bytes().begin(), b.bytes().end()); });
    auto r = p.start(rt);
    ASSERT_TRUE(r.wait_for(patience));
    EXPECT_FALSE(got.empty());
    EXPECT_TRUE(got == content(path)) << from;
  }
}

TEST_F(gstreamer, the_pipeline_waits_while_there_is_no_room) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const test::scratch_folder folder;
  const std::filesystem::path path = folder.path() / "numbers";
  constexpr std::size_t count = 200, each = 1000;
  bytes all(count * each), got;
  std::iota(all.begin(), all.end(), static_cast<unsigned char>(0));
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(all.data()), std::ssize(all));
  std::atomic<bool> go{false};
  auto p = st::from("file", gstreamer_source("filesrc blocksize=1000 location=" + path.string() + " ! appsink name=out",
                                             {.buffers_max = 3})) |
           st::async({.items = 2}) | st::sink("slow", [&](const gstreamer_buffer& b) {
             troupe::yield_core([&] {
               while (!go) std::this_thread::yield();
             });
             got.insert(got.end(), b.bytes().begin(), b.bytes().end());
           });
  auto r = p.start(rt);
  // 2 in the edge, of which the sink has one, 3 in the appsink, and one that waits to get there.
  const std::size_t most = (2 + 3 + 1) * each;
  EXPECT_TRUE(comes_true([&] { return r.report().edges[0].items == 2 && bytes_read(path) >= most; }));
  EXPECT_FALSE(r.wait_for(100ms));  // in which it would go too far, if it did
  EXPECT_EQ(bytes_read(path), most);
  go = true;
  ASSERT_TRUE(r.wait_for(patience));
  EXPECT_TRUE(got == all);
}

TEST_F(gstreamer, an_element_that_fails_fails_the_stream_after_what_came_before) {
  troupe::runtime rt(troupe::options{.threads = 2});
  // Directly before the appsink, and with more between than the appsink holds. (What is not held back at all may fail
  // before the pipeline has come to play: then nothing comes.)
  for (const std::string& between : {std::string(""), std::string("! queue max-size-buffers=8 ")}) {
    std::size_t got = 0;
    auto p = st::from("video", gstreamer_source("videotestsrc " + frames + "! identity error-after=20 " + between +
                                                    "! appsink name=out",
                                                {.buffers_max = 2})) |
             st::sink("count", [&](const gstreamer_buffer& b) { EXPECT_EQ(b.time(), 40ms * got++); });
    auto r = p.start(rt);
    const thrown t = thrown_by([&] { EXPECT_TRUE(r.wait_for(patience)); });
    EXPECT_EQ(t.code, troupe::errc::io_failed) << t.text;
    EXPECT_NE(t.text.find("'identity"), std::string::npos) << t.text;
    EXPECT_NE(t.text.find("Failed after iterations as requested"), std::string::npos) << t.text;
    EXPECT_EQ(got, 19u) << between;  // the 20th fails
  }
}

TEST_F(gstreamer, an_element_that_fails_before_anything_comes_fails_the_stream_soon) {
  troupe::runtime rt(troupe::options{.threads = 2});
  for (const std::string& between : {std::string(""), std::string("! queue ")}) {
    auto p =
        st::from("video", gstreamer_source("videotestsrc ! identity error-after=1 " + between + "! appsink name=out")) |
        st::sink("none", [](const gstreamer_buffer&) { ADD_FAILURE(); });
    auto r = p.start(rt);
    const thrown t = thrown_by([&] { EXPECT_TRUE(r.wait_for(patience)); });
    EXPECT_EQ(t.code, troupe::errc::io_failed) << t.text;
    EXPECT_NE(t.text.find("Failed after iterations as requested"), std::string::npos) << t.text;
  }
}

TEST_F(gstreamer, an_endless_pipeline_of_which_one_branch_fails_fails_the_stream) {
  troupe::runtime rt(troupe::options{.threads = 2});
  auto p = st::from("video", gstreamer_source("videotestsrc " + frames +
                                              "! appsink name=out "
                                              "audiotestsrc ! identity error-after=3 ! fakesink")) |
           st::sink("slower", [](const gstreamer_buffer&) {  // than the branch that goes on
             for (const auto end = std::chrono::steady_clock::now() + 2ms; std::chrono::steady_clock::now() < end;) {
             }
           });
  auto r = p.start(rt);
  const thrown t = thrown_by([&] { EXPECT_TRUE(r.wait_for(patience)); });
  EXPECT_EQ(t.code, troupe::errc::io_failed) << t.text;
}

TEST_F(gstreamer, the_stream_ends_when_all_sinks_of_the_pipeline_are_at_their_end) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const test::scratch_folder folder;
  const std::string path = folder.path() / "other";
  std::size_t got = 0;
  auto p = st::from("audio", gstreamer_source("audiotestsrc num-buffers=1 ! appsink name=out videotestsrc "
                                              "num-buffers=500 " +
                                              frames + "! filesink location=" + path)) |
           st::sink("count", [&](const gstreamer_buffer&) { ++got; });
  auto r = p.start(rt);
  ASSERT_TRUE(r.wait_for(patience));
  EXPECT_EQ(got, 1u);
  EXPECT_EQ(content(path).size(), 500u * 64u * 48u);
}

TEST_F(gstreamer, a_pipeline_without_buffers_is_an_empty_stream) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const test::scratch_folder folder;
  std::ofstream(folder.path() / "empty").flush();
  for (const std::string& from : {"filesrc location=" + (folder.path() / "empty").string(),
                                  std::string("videotestsrc num-buffers=5 ! identity drop-probability=1")}) {
    std::size_t got = 0;
    auto p = st::from("none", gstreamer_source(from + " ! appsink name=out")) |
             st::sink("count", [&](const gstreamer_buffer&) { ++got; });
    auto r = p.start(rt);
    ASSERT_TRUE(r.wait_for(patience));
    EXPECT_EQ(got, 0u);
  }
}

TEST_F(gstreamer, what_cannot_be_is_refused_at_once) {
  const auto source = [](const std::string& text, const connect::gstreamer_source_options& o = {}) {
    return thrown_by([&] { static_cast<void>(gstreamer_source(text, o)); });
  };
  using troupe::errc;
  thrown t = source("no_such_element_at_all ! appsink name=out");
  EXPECT_EQ(t.code, errc::bad_argument);
  EXPECT_NE(t.text.find("no_such_element_at_all"), std::string::npos) << t.text;
  EXPECT_EQ(source("").code, errc::bad_argument);
  EXPECT_EQ(source("videotestsrc ! ! appsink name=out").code, errc::bad_argument);
  EXPECT_EQ(source("videotestsrc no-such-property=1 ! appsink name=out").code, errc::bad_argument);
  EXPECT_EQ(source("videotestsrc ! appsink").code, errc::bad_argument);
  EXPECT_EQ(source("videotestsrc ! appsink name=other").code, errc::bad_argument);
  EXPECT_EQ(source("videotestsrc ! fakesink name=out").code, errc::bad_argument);
  EXPECT_EQ(source("videotestsrc").code, errc::bad_argument);
  EXPECT_EQ(source("videotestsrc ! appsink name=out", {.buffers_max = 0}).code, errc::bad_argument);
  t = source("filesrc location=/no/such/file ! appsink name=out");
  EXPECT_EQ(t.code, errc::io_failed);
  EXPECT_NE(t.text.find("/no/such/file"), std::string::npos) << t.text;

  const auto sink = [](const std::string& text, const std::string& caps = "",
                       const connect::gstreamer_sink_options& o = {}) {
    return thrown_by([&] { gstreamer_sink(text, caps, o); });
  };
  EXPECT_EQ(sink("appsrc name=in ! no_such_element_at_all").code, errc::bad_argument);
  EXPECT_EQ(sink("appsrc ! fakesink").code, errc::bad_argument);
  EXPECT_EQ(sink("fakesrc name=in ! fakesink").code, errc::bad_argument);
  EXPECT_EQ(sink("appsrc name=in ! fakesink", "these are no caps").code, errc::bad_argument);
  EXPECT_EQ(sink("appsrc name=in ! fakesink", "", {.bytes_max = 0}).code, errc::bad_argument);
  EXPECT_EQ(sink("appsrc name=in ! fakesink", "", {.buffers_max = 0}).code, errc::bad_argument);
  EXPECT_EQ(sink("appsrc name=in ! fakesink", "", {.finish_max = 0ms}).code, errc::bad_argument);
  EXPECT_EQ(sink("appsrc name=in ! filesink location=/no/such/folder/x").code, errc::io_failed);
}

TEST_F(gstreamer, a_pipeline_is_stopped_and_freed_when_the_stream_ends_first) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const test::scratch_folder folder;
  const std::string path = folder.path() / "written";
  const std::string endless =
      "videotestsrc " + frames + "! tee name=t ! queue ! filesink location=" + path + " t. ! queue ! appsink name=out";
  std::optional<std::size_t> open;
  for (int round = 0; round < 4; ++round) {
    bool has_file = false;
    // Never started; full, and nobody takes anything; it waits for the pipeline.
    {
      const auto never = gstreamer_source(endless);
      open_descriptors(path, has_file);
      EXPECT_TRUE(has_file);
    }
    open_descriptors(path, has_file);
    EXPECT_FALSE(has_file);
    for (const bool is_full : {true, false}) {
      std::atomic<int> got{0};
      std::atomic<bool> go{false};
      auto p = st::from("endless", gstreamer_source(endless, {.in_real_time = !is_full})) | st::async({.items = 2}) |
               st::sink("some", [&](const gstreamer_buffer&) {
                 ++got;
                 if (is_full)
                   troupe::yield_core([&] {
                     while (!go) std::this_thread::yield();
                   });
               });
      auto r = p.start(rt);
      ASSERT_TRUE(comes_true([&] { return got >= 1 && (!is_full || r.report().edges[0].items == 2); }));
      r.cancel();
      go = true;
      EXPECT_EQ(thrown_by([&] { r.wait(); }).code, troupe::errc::cancelled);
    }
    rt.wait_all();
    EXPECT_TRUE(comes_true([&] {
      const std::size_t now = open_descriptors(path, has_file);
      if (!open && !has_file) open = now;  // what GStreamer keeps for later is there from now on
      return !has_file && now <= open.value_or(0);
    }));
  }
}

TEST_F(gstreamer, a_stream_that_drains_stops_its_pipeline) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> got{0};
  auto p = st::from("endless", gstreamer_source("videotestsrc is-live=true " + frames + "! appsink name=out")) |
           st::sink("count", [&](const gstreamer_buffer&) { ++got; });
  auto r = p.start(rt);
  ASSERT_TRUE(comes_true([&] { return got >= 2; }));
  EXPECT_EQ(r.drain(patience).state, st::state::ended);
}

std::vector<bytes> blocks(std::size_t count) {
  std::vector<bytes> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.emplace_back(i * 37 % 1000);
    std::iota(all.back().begin(), all.back().end(), static_cast<unsigned char>(i));
  }
  return all;
}
bytes joined(const std::vector<bytes>& all) {
  bytes to;
  for (const bytes& b : all) to.insert(to.end(), b.begin(), b.end());
  return to;
}

TEST_F(gstreamer, items_go_into_a_pipeline_in_order_to_the_last_one) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const test::scratch_folder folder;
  const std::string path = folder.path() / "written";
  const std::vector<bytes> all = blocks(2000);
  for (const std::size_t bytes_max : {1u, 5000u, 1u << 20}) {
    gstreamer_sink out("appsrc name=in ! queue ! filesink location=" + path, "", {.bytes_max = bytes_max});
    auto p = st::from("blocks", all) | st::async({.items = 8}) | st::sink("out", out);
    auto r = p.start(rt);
    ASSERT_TRUE(r.wait_for(patience));
    out.finish();
    EXPECT_TRUE(content(path) == joined(all)) << bytes_max;
    out.finish();  // says the same again
    EXPECT_EQ(thrown_by([&] { out(all[1]); }).code, troupe::errc::bad_argument);
  }
  {
    // The destructor of the last copy finishes, too.
    auto p = st::from("blocks", all) | st::sink("out", gstreamer_sink("appsrc name=in ! filesink location=" + path));
    auto r = p.start(rt);
    ASSERT_TRUE(r.wait_for(patience));
  }
  rt.wait_all();
  EXPECT_TRUE(comes_true([&] { return content(path) == joined(all); }));
}

TEST_F(gstreamer, what_comes_out_of_one_pipeline_goes_into_another_with_its_times_and_caps) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const test::scratch_folder folder;
  const std::string path = folder.path() / "plain", copy = folder.path() / "copy";
  const std::string from = "videotestsrc num-buffers=40 " + frames;
  // What the writer of this format does depends on caps and times.
  const std::string to = "! videoconvert ! video/x-raw,format=I420 ! filesink location=";
  run_plainly(from + to + path);
  gstreamer_sink out("appsrc name=in " + to + copy);
  auto p = st::from("in", gstreamer_source(from + "! appsink name=out")) | st::sink("out", out);
  auto r = p.start(rt);
  ASSERT_TRUE(r.wait_for(patience));
  out.finish();
  EXPECT_EQ(content(copy).size(), 40u * 64u * 48u * 3u / 2u);
  EXPECT_TRUE(content(copy) == content(path));
}

TEST_F(gstreamer, times_that_are_given_are_those_of_the_buffers) {
  // A clock that waits for the times of its buffers shows that they have arrived.
  gstreamer_sink out("appsrc name=in ! fakesink sync=true", "application/x-test");
  const bytes some(10);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) out(some, 100ms * i);
  out.finish();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 290ms);
  EXPECT_EQ(thrown_by([&] { out(some, -1ns); }).code, troupe::errc::bad_argument);
}

TEST_F(gstreamer, a_slow_pipeline_holds_the_stream_back) {
  troupe::runtime rt(troupe::options{.threads = 2});
  pipe to(O_NONBLOCK);
  gstreamer_sink out("appsrc name=in ! " + to.sink(), "", {.bytes_max = 50'000});
  auto p =
      st::from("blocks", std::vector<bytes>(1000, bytes(10'000, 7))) | st::async({.items = 4}) | st::sink("out", out);
  auto r = p.start(rt);
  // 6 in the pipe, a seventh partly, 5 in the appsrc, 4 in the edge, of which the sink that waits has one.
  EXPECT_TRUE(comes_true([&] { return r.report().edges[0].items == 4 && to.waiting() >= 60'000; }));
  EXPECT_FALSE(r.wait_for(100ms));
  EXPECT_LE(r.report().items.pushed, 6u + 1 + 5 + 4);
  std::size_t got = 0;
  std::thread reader([&] { got = to.take(1'000'000'000); });
  EXPECT_TRUE(r.wait_for(patience));
  out.finish();
  to.close_in();
  reader.join();
  EXPECT_EQ(got, 1000u * 10'000u);
}

TEST_F(gstreamer, a_pipeline_that_fails_says_so_to_the_stream_and_at_the_end) {
  troupe::runtime rt(troupe::options{.threads = 2});
  for (const std::size_t bytes_max : {1u, 1u << 20}) {
    gstreamer_sink out("appsrc name=in ! identity error-after=10 ! fakesink", "", {.bytes_max = bytes_max});
    auto p = st::from<bytes>("blocks") | st::sink("out", out);
    auto r = p.start(rt);
    auto in = r.input<bytes>("blocks");
    while (in.push(bytes(100)) == st::pushed::ok) {
    }
    const thrown t = thrown_by([&] { EXPECT_TRUE(r.wait_for(patience)); });
    EXPECT_EQ(t.code, troupe::errc::io_failed) << t.text;
    EXPECT_NE(t.text.find("Failed after iterations as requested"), std::string::npos) << t.text;
    for (int again = 0; again < 2; ++again) EXPECT_EQ(thrown_by([&] { out.finish(); }).code, troupe::errc::io_failed);
  }
  // It fails with the last item: only the end can say so.
  gstreamer_sink late("appsrc name=in ! identity error-after=3 ! fakesink");
  for (int i = 0; i < 3; ++i) late(bytes(1));
  for (int again = 0; again < 2; ++again) EXPECT_EQ(thrown_by([&] { late.finish(); }).code, troupe::errc::io_failed);
  // It ends of its own accord, before it has taken all.
  gstreamer_sink early("appsrc name=in ! identity eos-after=3 ! fakesink");
  const thrown t = thrown_by([&] {
    for (int i = 0; i < 1000; ++i) early(bytes(1));
  });
  EXPECT_EQ(t.code, troupe::errc::io_failed);
  EXPECT_NE(t.text.find("ended by itself"), std::string::npos) << t.text;
  EXPECT_EQ(thrown_by([&] { early.finish(); }).code, troupe::errc::io_failed);
}

TEST_F(gstreamer, a_sink_that_waits_ends_with_its_stream) {
  troupe::runtime rt(troupe::options{.threads = 2});
  pipe to(O_NONBLOCK);
  std::atomic<int> calls{0};
  const auto begin = std::chrono::steady_clock::now();
  {
    gstreamer_sink out("appsrc name=in ! " + to.sink(), "", {.bytes_max = 50'000, .finish_max = 60s});
    auto p = st::from("blocks", std::vector<bytes>(100, bytes(50'000))) | st::async({.items = 2}) |
             st::sink("out", [&calls, out = std::move(out)](const bytes& b) mutable {
               ++calls;
               out(b);
             });
    auto r = p.start(rt);
    // One is in the pipe, one partly, one in the appsrc: the fourth waits.
    EXPECT_TRUE(comes_true([&] { return calls == 4 && to.waiting() > 50'000; }));
    r.cancel();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);
  EXPECT_EQ(calls, 4);
}

TEST_F(gstreamer, an_end_that_does_not_come_is_not_waited_for_for_ever) {
  pipe to(O_NONBLOCK);
  gstreamer_sink out("appsrc name=in ! " + to.sink(), "", {.finish_max = 50ms});
  for (int i = 0; i < 10; ++i) out(bytes(50'000));
  const auto begin = std::chrono::steady_clock::now();
  for (int again = 0; again < 2; ++again) {
    const thrown t = thrown_by([&] { out.finish(); });
    EXPECT_EQ(t.code, troupe::errc::io_failed);
    EXPECT_NE(t.text.find("has not ended after 50 ms"), std::string::npos) << t.text;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);
  // Nor by the destructor.
  pipe other(O_NONBLOCK);
  const auto later = std::chrono::steady_clock::now();
  {
    gstreamer_sink unfinished("appsrc name=in ! " + other.sink(), "", {.finish_max = 50ms});
    for (int i = 0; i < 10; ++i) unfinished(bytes(50'000));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - later, 50ms);
  EXPECT_LT(std::chrono::steady_clock::now() - later, 4s);
}

TEST_F(slow_gstreamer, an_element_that_hangs_is_left_behind_until_it_goes_on) {
  pipe to(0);  // a write waits, whatever GStreamer wants
  {
    gstreamer_sink out("appsrc name=in ! " + to.sink(), "", {.finish_max = 50ms});
    for (int i = 0; i < 10; ++i) out(bytes(50'000));
    EXPECT_TRUE(comes_true([&] { return to.waiting() > 50'000; }));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(thrown_by([&] { out.finish(); }).code, troupe::errc::io_failed);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took, 5s);
    EXPECT_LT(took, 10s);
  }
  // What it was about to write comes, and nothing more.
  EXPECT_EQ(to.take(100'000), 100'000u);
  to.close_in();
  EXPECT_EQ(to.take(1), 0u);
}

}  // namespace
