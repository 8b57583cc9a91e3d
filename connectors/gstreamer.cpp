// What this file is for: GStreamer pipelines: made, watched, stopped; what comes out of an appsink, into an appsrc.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A pipeline runs on GStreamer's threads. What they tell is in `news`, under a lock; nothing else is shared with them.
#include "connectors/gstreamer.hpp"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>

#include <troupe/error.hpp>
#include <troupe/this_task.hpp>

#include "connectors/detail/descriptor.hpp"

namespace troupe::connectors {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds stop_max{5};
// The time for which buffers on their way are waited for after an error, and how often they are looked for: no element
// says that there are none.
constexpr std::chrono::milliseconds rest_max{500}, rest_slice{2};
// How soon a call that waits sees that its stream has ended.
constexpr std::chrono::milliseconds wait_slice{50};

[[noreturn]] void refuse(const std::string& why) { throw error(errc::bad_argument, "GStreamer: " + why); }
[[noreturn]] void fail(const std::string& why) { throw error(errc::io_failed, "GStreamer: " + why); }

struct unref {
  void operator()(GstObject* o) const { gst_object_unref(o); }
  void operator()(GstElement* o) const { gst_object_unref(o); }
  void operator()(GstBus* o) const { gst_object_unref(o); }
  void operator()(GstSample* o) const { gst_sample_unref(o); }
  void operator()(GstCaps* o) const { gst_caps_unref(o); }
  void operator()(GError* e) const { g_error_free(e); }
  void operator()(gchar* text) const { g_free(text); }
};
template <class T>
using own = std::unique_ptr<T, unref>;

// News of a pipeline: what its threads tell. Their callbacks keep it, for they may run as long as the pipeline does.
class news {
 public:
  explicit news(bool for_source) {
    if (!for_source) return;
    event_ = detail::descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (event_.get() < 0) fail(std::strerror(errno));
  }
  struct told {
    bool is_over = false;  // all sinks are at their end
    bool has_failed = false;
    std::string failure;  // of the first element that failed
  };
  // For the threads of the pipeline.
  template <class F>
  void tell(F change) {
    bool wakes = false;
    {
      std::lock_guard hold(lock_);
      change(told_);
      wakes = std::exchange(is_awaited_, false);
    }
    changed_.notify_all();
    if (wakes) static_cast<void>(::eventfd_write(event_.get(), 1));
  }
  void tell_stopped() {
    {
      std::lock_guard hold(lock_);
      is_stopped_ = true;
    }
    changed_.notify_all();
  }
  told look() {
    std::lock_guard hold(lock_);
    return told_;
  }
  // From now on something new makes the descriptor readable.
  void arm() {
    std::lock_guard hold(lock_);
    eventfd_t old;
    static_cast<void>(::eventfd_read(event_.get(), &old));
    is_awaited_ = true;
  }
  int descriptor() const { return event_.get(); }
  void wait_stopped(std::chrono::milliseconds limit) {
    std::unique_lock hold(lock_);
    changed_.wait_for(hold, limit, [&] { return is_stopped_; });
  }
  // Waits until it holds, or for that long; it is asked when something is told.
  template <class F>
  void wait(std::chrono::milliseconds limit, F holds) {
    std::unique_lock hold(lock_);
    changed_.wait_for(hold, limit, [&] { return holds(told_); });
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  detail::descriptor event_;
  told told_;
  bool is_awaited_ = false, is_stopped_ = false;
};

// A share of the news, which a C callback is given.
using share = std::shared_ptr<news>;
gpointer given(const share& n) { return new share(n); }
void give_back(gpointer n) { delete static_cast<share*>(n); }
news& of(gpointer n) { return **static_cast<share*>(n); }

std::string text_of(GstMessage* m) {
  GError* said = nullptr;
  gchar* more = nullptr;
  gst_message_parse_error(m, &said, &more);
  const own<GError> error_owner(said);
  const own<gchar> more_owner(more);
  std::string text = std::string("'") + GST_MESSAGE_SRC_NAME(m) + "': " + (said ? said->message : "an error");
  if (more) text += std::string(" (") + more + ")";
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Recalculates the latency of the pipeline that the element is in.
void recalculate_latency(GstElement* e, gpointer) {
  own<GstObject> top(GST_OBJECT(gst_object_ref(e)));
  while (GstObject* const above = gst_object_get_parent(top.get())) top.reset(above);
  if (GST_IS_BIN(top.get())) gst_bin_recalculate_latency(GST_BIN(top.get()));
}

// Takes what elements say where they say it: nobody has to empty a queue of messages.
GstBusSyncReply hear(GstBus*, GstMessage* m, gpointer n) {
  switch (GST_MESSAGE_TYPE(m)) {
    case GST_MESSAGE_ERROR:
      of(n).tell([&](news::told& t) {
        if (std::exchange(t.has_failed, true)) return;
        t.failure = text_of(m);
      });
      break;
    case GST_MESSAGE_EOS:
      of(n).tell([](news::told& t) { t.is_over = true; });
      break;
    case GST_MESSAGE_LATENCY:
      // Not on the thread that says so.
      if (GST_IS_ELEMENT(GST_MESSAGE_SRC(m)))
        gst_element_call_async(GST_ELEMENT(GST_MESSAGE_SRC(m)), &recalculate_latency, nullptr, nullptr);
      break;
    default:
      break;
  }
  gst_message_unref(m);
  return GST_BUS_DROP;
}

void initialise() {
  if (gst_is_initialized()) return;
  gst_segtrap_set_enabled(FALSE);  // it would handle SIGSEGV while it loads plugins: signals are the program's
  GError* why = nullptr;
  if (gst_init_check(nullptr, nullptr, &why)) return;
  const own<GError> owner(why);
  fail(std::string("it cannot be initialised: ") + (why ? why->message : "it does not say why"));
}

// A pipeline and what it tells. Stops it with the object.
class pipeline {
 public:
  pipeline(const std::string& description, bool for_source) : news_(std::make_shared<news>(for_source)) {
    initialise();
    GError* why = nullptr;
    own<GstElement> made(gst_parse_launch_full(description.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, &why));
    const own<GError> owner(why);
    if (made) made.reset(GST_ELEMENT(gst_object_ref_sink(made.release())));
    if (why || !made) refuse("'" + description + "': " + (why ? why->message : "it is not understood"));
    if (!GST_IS_PIPELINE(made.get())) {  // a single element, or a bin
      own<GstElement> around(GST_ELEMENT(gst_object_ref_sink(gst_pipeline_new(nullptr))));
      gst_bin_add(GST_BIN(around.get()), made.get());
      made = std::move(around);
    }
    top_ = std::move(made);
    const own<GstBus> bus(gst_element_get_bus(top_.get()));
    gst_bus_set_sync_handler(bus.get(), &hear, given(news_), &give_back);
  }
  pipeline(pipeline&&) noexcept = default;
  pipeline& operator=(pipeline&&) = delete;
  ~pipeline() { stop(); }

  own<GstElement> element(const std::string& name) const {
    return own<GstElement>(gst_bin_get_by_name(GST_BIN(top_.get()), name.c_str()));
  }
  void set(GstState s) {
    if (gst_element_set_state(top_.get(), s) != GST_STATE_CHANGE_FAILURE) return;
    const auto told = news_->look();
    fail(told.has_failed ? told.failure : "the pipeline does not start");
  }
  // An element failed before the pipeline had come to play, so nothing of it ever will.
  bool never_plays(GstElement* sink) const {
    GstState of_sink = GST_STATE_NULL;
    gst_element_get_state(sink, &of_sink, nullptr, 0);
    return of_sink != GST_STATE_PLAYING &&
           gst_element_get_state(top_.get(), nullptr, nullptr, 0) == GST_STATE_CHANGE_FAILURE;
  }
  // Has its sources end. Not on this thread: elements may take long to answer.
  void end_sources() {
    gst_element_call_async(
        top_.get(), [](GstElement* e, gpointer) { gst_element_send_event(e, gst_event_new_eos()); }, nullptr, nullptr);
  }
  void stop() noexcept {
    if (!top_) return;
    // On a thread of GStreamer's, which keeps the pipeline if it takes longer.
    gst_element_call_async(
        top_.get(),
        [](GstElement* e, gpointer n) {
          gst_element_set_state(e, GST_STATE_NULL);
          of(n).tell_stopped();
        },
        given(news_), &give_back);
    news_->wait_stopped(stop_max);
    top_.reset();
  }
  const share& tells() const { return news_; }

 private:
  share news_;
  own<GstElement> top_;
};

std::optional<std::chrono::nanoseconds> time_of(GstClockTime t) {
  if (!GST_CLOCK_TIME_IS_VALID(t)) return {};
  return std::chrono::nanoseconds(static_cast<std::int64_t>(t));
}

}  // namespace

// ---- what comes out
struct gstreamer_buffer::state {
  explicit state(own<GstSample> s, std::shared_ptr<const std::string> caps_text)
      : sample(std::move(s)), caps(std::move(caps_text)) {
    if (!buffer() || !gst_buffer_map(buffer(), &map, GST_MAP_READ)) fail("a buffer whose bytes cannot be read");
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() { gst_buffer_unmap(buffer(), &map); }
  GstBuffer* buffer() const { return gst_sample_get_buffer(sample.get()); }

  const own<GstSample> sample;
  const std::shared_ptr<const std::string> caps;
  mutable GstMapInfo map = GST_MAP_INFO_INIT;
};

std::span<const unsigned char> gstreamer_buffer::bytes() const noexcept {
  if (!of_) return {};
  return {of_->map.data, of_->map.size};
}
std::optional<std::chrono::nanoseconds> gstreamer_buffer::time() const noexcept {
  if (!of_) return {};
  return time_of(GST_BUFFER_PTS(of_->buffer()));
}
std::optional<std::chrono::nanoseconds> gstreamer_buffer::duration() const noexcept {
  if (!of_) return {};
  return time_of(GST_BUFFER_DURATION(of_->buffer()));
}
const std::string& gstreamer_buffer::caps() const noexcept {
  static const std::string none;
  return of_ ? *of_->caps : none;
}

namespace {

// Makes items of samples; the text of their caps is made where these change.
class items {
 public:
  gstreamer_buffer make(own<GstSample> s) {
    GstCaps* const c = gst_sample_get_caps(s.get());
    if (c != caps_.get()) {
      caps_.reset(c ? gst_caps_ref(c) : nullptr);
      const own<gchar> text(c ? gst_caps_to_string(c) : nullptr);
      text_ = std::make_shared<const std::string>(text ? text.get() : "");
    }
    return gstreamer_buffer(std::make_shared<const gstreamer_buffer::state>(std::move(s), text_));
  }

 private:
  own<GstCaps> caps_;
  std::shared_ptr<const std::string> text_ = std::make_shared<const std::string>();
};

stream::source<gstreamer_buffer> buffers_of(pipeline p, own<GstElement> out) {
  items make;
  p.set(GST_STATE_PLAYING);
  bool is_armed = false, is_ending = false;
  std::chrono::milliseconds rest = rest_max;
  for (;;) {
    // Before the look for a sample: what is over then has brought all of them.
    const news::told now = p.tells()->look();
    if (now.has_failed && !std::exchange(is_ending, true)) p.end_sources();
    if (own<GstSample> s{gst_app_sink_try_pull_sample(GST_APP_SINK(out.get()), 0)}) {
      gstreamer_buffer item = make.make(std::move(s));
      co_yield std::move(item);
      continue;
    }
    if (now.has_failed) {
      if (now.is_over || rest <= 0ms || p.never_plays(out.get())) fail(now.failure);
      rest -= rest_slice;
      co_await stream::sleep(rest_slice);
    } else if (now.is_over) {
      co_return;
    } else if (!std::exchange(is_armed, true)) {
      p.tells()->arm();  // and looks once more
    } else {
      co_await stream::readable(p.tells()->descriptor());
      is_armed = false;
    }
  }
}

}  // namespace

stream::source<gstreamer_buffer> gstreamer_source(const std::string& description, const gstreamer_source_options& o) {
  if (o.buffers_max < 1 || o.buffers_max > 65536)
    refuse("buffers_max is " + std::to_string(o.buffers_max) + "; 1 to 65536");
  pipeline p(description, true);
  own<GstElement> out = p.element(o.appsink);
  if (!out || !GST_IS_APP_SINK(out.get()))
    refuse("'" + description + "' has no appsink with the name '" + o.appsink + "'");
  g_object_set(out.get(), "max-buffers", static_cast<guint>(o.buffers_max), "drop", FALSE, "sync",
               static_cast<gboolean>(o.in_real_time), nullptr);
  GstAppSinkCallbacks callbacks{};
  callbacks.new_sample = [](GstAppSink*, gpointer n) {
    of(n).tell([](news::told&) {});
    return GST_FLOW_OK;
  };
  gst_app_sink_set_callbacks(GST_APP_SINK(out.get()), &callbacks, given(p.tells()), &give_back);
  p.set(GST_STATE_PAUSED);
  return buffers_of(std::move(p), std::move(out));
}

// ---- what goes in
struct gstreamer_sink::state {
  state(const std::string& description, const gstreamer_sink_options& o)
      : options(o), to(description, false), in(to.element(o.appsrc)) {}
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    if (is_finished || !goes_on) return;
    try {
      end(false);
    } catch (...) {  // nobody is there who could be told
    }
  }

  GstAppSrc* source() const { return GST_APP_SRC(in.get()); }
  bool has_room() const {
    return gst_app_src_get_current_level_bytes(source()) < options.bytes_max &&
           gst_app_src_get_current_level_buffers(source()) < options.buffers_max;
  }
  void check_runs() {
    if (is_finished) refuse("an item after finish()");
    const news::told now = to.tells()->look();
    if (!now.has_failed && !now.is_over) return;
    goes_on = false;
    fail(now.has_failed ? now.failure : "the pipeline has ended by itself");
  }
  // Waits for a slice of time, or until it holds. With `yields` without a worker, and until the stream ends.
  template <class F>
  void wait(std::chrono::milliseconds limit, bool yields, F holds) {
    std::optional<this_task::core_yielded> away;
    if (yields && this_task::inside()) away.emplace();
    if (yields && this_task::stop_requested()) {
      goes_on = false;
      throw error(errc::cancelled, "the stream has ended");
    }
    to.tells()->wait(std::min(limit, wait_slice), holds);
  }
  void wait_for_room() {
    check_runs();
    while (!has_room()) {
      wait(wait_slice, true, [&](const news::told& t) { return t.has_failed || t.is_over || has_room(); });
      check_runs();
    }
  }
  void push(GstBuffer* b) {
    if (gst_app_src_push_buffer(source(), b) == GST_FLOW_OK) return;
    check_runs();
    goes_on = false;
    fail("the pipeline takes nothing more");
  }
  void take_caps(GstCaps* c) {
    if (!c || c == caps.get()) return;
    caps.reset(gst_caps_ref(c));
    gst_app_src_set_caps(source(), c);
  }
  // Says the end and waits for it. What went wrong is in `failure` then.
  void end(bool yields) {
    const auto until = std::chrono::steady_clock::now() + options.finish_max;
    is_finished = true;
    failure = "the end of the pipeline was not waited for";  // if the wait throws
    news::told now = to.tells()->look();
    const bool was_over = now.is_over;
    if (!now.has_failed && !was_over) gst_app_src_end_of_stream(source());
    while (!now.has_failed && !now.is_over) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      if (left.count() <= 0) break;
      wait(left, yields, [](const news::told& t) { return t.has_failed || t.is_over; });
      now = to.tells()->look();
    }
    if (now.has_failed)
      failure = now.failure;
    else if (!now.is_over)
      failure = "the pipeline has not ended after " + std::to_string(options.finish_max.count()) + " ms";
    else if (was_over || gst_app_src_get_current_level_buffers(source()) != 0)
      failure = "the pipeline has ended by itself";
    else
      failure.clear();
    to.stop();
  }

  const gstreamer_sink_options options;
  pipeline to;
  const own<GstElement> in;
  bool has_caps = false;  // from the constructor
  own<GstCaps> caps;
  bool goes_on = true, is_finished = false;
  std::string failure;  // of the end
};

gstreamer_sink::gstreamer_sink(const std::string& description, const std::string& caps,
                               const gstreamer_sink_options& o) {
  if (o.bytes_max < 1) refuse("bytes_max is 0");
  if (o.buffers_max < 1) refuse("buffers_max is 0");
  if (o.finish_max < 1ms) refuse("finish_max is less than 1 ms");
  state_ = std::make_shared<state>(description, o);
  state& s = *state_;
  s.goes_on = false;  // until it has started
  if (!s.in || !GST_IS_APP_SRC(s.in.get()))
    refuse("'" + description + "' has no appsrc with the name '" + o.appsrc + "'");
  g_object_set(s.in.get(), "format", GST_FORMAT_TIME, "block", FALSE, "max-bytes", static_cast<guint64>(o.bytes_max),
               "max-buffers", static_cast<guint64>(o.buffers_max), "min-percent", guint{50}, nullptr);
  if (!caps.empty()) {
    const own<GstCaps> c(gst_caps_from_string(caps.c_str()));
    if (!c) refuse("'" + caps + "' are no caps");
    s.take_caps(c.get());
    s.has_caps = true;
  }
  GstAppSrcCallbacks callbacks{};
  callbacks.need_data = [](GstAppSrc*, guint, gpointer n) { of(n).tell([](news::told&) {}); };
  gst_app_src_set_callbacks(s.source(), &callbacks, given(s.to.tells()), &give_back);
  s.to.set(GST_STATE_PLAYING);
  s.goes_on = true;
}

void gstreamer_sink::operator()(std::span<const unsigned char> bytes, std::optional<std::chrono::nanoseconds> time) {
  if (time && time->count() < 0) refuse("an item at " + std::to_string(time->count()) + " ns");
  state_->wait_for_room();
  GstBuffer* const b = gst_buffer_new_allocate(nullptr, bytes.size(), nullptr);
  if (!b) throw error(errc::out_of_memory, "GStreamer: a buffer of " + std::to_string(bytes.size()) + " bytes");
  if (!bytes.empty()) gst_buffer_fill(b, 0, bytes.data(), bytes.size());
  if (time) GST_BUFFER_PTS(b) = static_cast<GstClockTime>(time->count());
  state_->push(b);
}

void gstreamer_sink::operator()(const gstreamer_buffer& b) {
  if (!b.of()) return (*this)(std::span<const unsigned char>{});
  state_->wait_for_room();
  if (!state_->has_caps) state_->take_caps(gst_sample_get_caps(b.of()->sample.get()));
  state_->push(gst_buffer_ref(b.of()->buffer()));
}

void gstreamer_sink::finish() {
  if (!state_->is_finished) state_->end(true);
  if (!state_->failure.empty()) fail(state_->failure);
}

}  // namespace troupe::connectors
