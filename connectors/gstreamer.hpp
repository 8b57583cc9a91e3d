// What this file is for: what comes out of GStreamer pipelines as a stream, and items that go into one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   st::from("camera", gstreamer_source("v4l2src ! videoconvert ! video/x-raw,format=GRAY8 ! appsink name=out"))
//
// Pipelines are written as for gst-launch-1.0. The first one initialises GStreamer in the process, unless that has been
// done; its threads are its own. Errors of a pipeline are `error(io_failed)` with GStreamer's text; the first one
// counts. A pipeline that no one needs any more is stopped; that is waited for, 5 s at most: what then still runs, in
// an element that hangs, is left behind with what it uses.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <troupe/stream.hpp>

namespace troupe::connectors {

/// Bytes that came out of a pipeline, where GStreamer has them: nothing is copied. A handle: copies are the same bytes,
/// which stay while one of them lives, also when the pipeline is gone. An element that has few buffers (a camera) waits
/// while items hold all of them. Any thread.
class gstreamer_buffer {
 public:
  gstreamer_buffer() = default;
  std::span<const unsigned char> bytes() const noexcept;
  /// When it is to be presented, as GStreamer says (PTS), and for how long.
  std::optional<std::chrono::nanoseconds> time() const noexcept;
  std::optional<std::chrono::nanoseconds> duration() const noexcept;
  /// The caps say what the bytes are: "video/x-raw, format=(string)GRAY8, width=(int)320, ...". Empty if no element has
  /// said so.
  const std::string& caps() const noexcept;

  /// Used by the library.
  struct state;
  explicit gstreamer_buffer(std::shared_ptr<const state> of) : of_(std::move(of)) {}
  const state* of() const noexcept { return of_.get(); }

 private:
  std::shared_ptr<const state> of_;
};

struct gstreamer_source_options {
  std::string appsink = "out";  ///< the name of the appsink
  unsigned buffers_max = 4;     ///< that wait in the appsink, 1 to 65536; the pipeline then waits
  bool in_real_time = false;    ///< buffers come at their times by the pipeline's clock, not as soon as there is room
};

/// The buffers that reach an appsink. Its properties `max-buffers`, `drop` and `sync` are set from here: nothing is
/// dropped, and the pipeline waits where the stream has no room. No thread waits for buffers.
///
/// The pipeline is made and paused at once, so files and devices are opened, and plays from the first item on that the
/// stream asks for. The stream ends when the pipeline has: when all its sinks are at their end. If an element fails
/// while it plays, the sources of the pipeline are told to end, what is on its way to the appsink is delivered (that is
/// waited for, half a second at most), and the stream fails. If the stream ends first, the pipeline is stopped where it
/// is. It cannot replay.
///
/// Throws at once: `error(bad_argument)` for a description that GStreamer does not understand, with its text, for
/// options that make no sense and where there is no such appsink; `error(io_failed)` if the pipeline cannot be opened.
stream::source<gstreamer_buffer> gstreamer_source(const std::string& pipeline, const gstreamer_source_options& o = {});

struct gstreamer_sink_options {
  std::string appsrc = "in";  ///< the name of the appsrc
  /// Bounds of what waits in the appsrc for the pipeline, at least 1 each; a call waits while there is as much.
  std::size_t bytes_max = 4u << 20;
  std::size_t buffers_max = 64;
  /// How long `finish` and the destructor wait for the end of the pipeline, at least 1 ms.
  std::chrono::milliseconds finish_max{10'000};
};

/// Sends each item into a pipeline that begins with an appsrc: the function of a sink. Keep a copy, for `finish`:
///
///   gstreamer_sink out("appsrc name=in ! videoconvert ! theoraenc ! oggmux ! filesink location=a.ogg", caps);
///   auto p = st::from(...) | st::sink("out", out);
///   p.start(rt).wait();
///   out.finish();
///
/// A handle: copies are the same pipeline. One call at a time. The destructor of the last one does what `finish` does,
/// but tells nobody what went wrong; it stops the pipeline at once if a call has failed or was cut off.
///
/// The appsrc's properties `format` (time), `block`, `max-bytes`, `max-buffers` and `min-percent` are set from here.
class gstreamer_sink {
 public:
  /// Makes the pipeline and starts it. `caps`: what the bytes are, as GStreamer writes it; empty for none. Throws as
  /// `gstreamer_source` does.
  explicit gstreamer_sink(const std::string& pipeline, const std::string& caps = "",
                          const gstreamer_sink_options& o = {});
  /// Copies the bytes into a buffer that is to be presented at that time, at least 0. While it waits for room its
  /// worker does other things. Throws `error(io_failed)` if the pipeline has failed or has ended by itself,
  /// `error(cancelled)` if the stream ends while it waits; the item has then not been sent. How far the items have come
  /// that were sent before a failure is not known.
  void operator()(std::span<const unsigned char> bytes, std::optional<std::chrono::nanoseconds> time = {});
  /// The same without a copy, with the times that it has, and with its caps if the constructor was given none.
  void operator()(const gstreamer_buffer& b);
  /// Says that nothing more will come, and waits until the pipeline has worked off what it has. Throws
  /// `error(io_failed)` if an element has failed, if the pipeline has ended by itself, or has not ended in time;
  /// `error(cancelled)` in a stage whose stream ends meanwhile. Items sent later are `error(bad_argument)`. Called
  /// again it says the same again.
  void finish();

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace troupe::connectors

/// A buffer counts with its bytes.
template <>
struct troupe::stream::item_bytes<troupe::connectors::gstreamer_buffer> {
  static std::size_t of(const troupe::connectors::gstreamer_buffer& b) noexcept { return sizeof b + b.bytes().size(); }
};
