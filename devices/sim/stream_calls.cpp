// What this file is for: the calls about streams, events and graphs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/sim/engine.hpp"

namespace troupe::soft_gpu {

namespace {

simError_t refuse(capture& c, simError_t e) {
  c.invalidate();
  return e;
}

// `f(device&, event&)` of the event.
template <class F>
simError_t on_event(const char* call, simEvent_t e, F&& f) {
  return guarded([&]() -> simError_t {
    const auto w = current_world();
    const auto found = handles().events.find(e);
    if (!found) return simErrorInvalidResourceHandle;
    return on_device(call, found->on, [&](world&, device& d) { return f(d, *found); });
  });
}

simError_t wait_for_captured(stream& s, event& e) {
  if (e.captured->over()) return simErrorStreamCaptureIsolation;
  const auto now = s.capturing();
  if (now && now != e.captured) return refuse(*now, simErrorStreamCaptureMerge);
  e.captured->join(s.shared_from_this(), e.captured_after);
  if (!now) s.set_capture(e.captured);
  return simSuccess;
}

}  // namespace

simError_t simStreamCreateWithFlags(simStream_t* to, unsigned flags) {
  return on_this_device("StreamCreateWithFlags", [&](world&, device& d) {
    if (flags > simStreamNonBlocking) return simErrorInvalidValue;
    *to = handles().streams.add(d.open_stream());
    return simSuccess;
  });
}

simError_t simStreamSynchronize(simStream_t in) {
  return on_stream("StreamSynchronize", in, [](device& d, stream& s) {
    if (const auto c = s.capturing()) return refuse(*c, simErrorStreamCaptureUnsupported);
    s.wait();
    return d.error.load();
  });
}

simError_t simStreamQuery(simStream_t in) {
  return on_stream("StreamQuery", in, [](device& d, stream& s) {
    if (const auto c = s.capturing()) return refuse(*c, simErrorStreamCaptureUnsupported);
    if (!s.idle()) return simErrorNotReady;
    return d.error.load();
  });
}

simError_t simStreamDestroy(simStream_t in) {
  return guarded([&] {
    const auto s = handles().streams.take(in);
    if (!s) return simErrorInvalidResourceHandle;
    if (const auto c = s->capturing()) c->invalidate();
    s->set_capture(nullptr);
    s->close();
    return simSuccess;
  });
}

simError_t simStreamWaitEvent(simStream_t in, simEvent_t e, unsigned flags) {
  return on_stream("StreamWaitEvent", in, [&](device& d, stream& s) {
    const auto found = handles().events.find(e);
    if (!found) return simErrorInvalidResourceHandle;
    if (flags != 0) return simErrorInvalidValue;
    const std::lock_guard lock(found->mutex);
    if (found->captured) return wait_for_captured(s, *found);
    if (!found->last) return simSuccess;
    if (const auto c = s.capturing()) return refuse(*c, simErrorStreamCaptureIsolation);
    if (found->last->fired()) return simSuccess;
    return pushed(s, {&d, true, [for_what = found->last](stream& on) { on.wait_for(for_what); }});
  });
}

simError_t simLaunchHostFunc(simStream_t in, simHostFn_t f, void* argument) {
  return on_stream("LaunchHostFunc", in, [&](device& d, stream& s) {
    if (!f) return simErrorInvalidValue;
    return pushed(s, {&d, true, [f, argument](stream&) {
                        this_thread().in_callback = true;
                        f(argument);
                        this_thread().in_callback = false;
                      }});
  });
}

simError_t simEventCreateWithFlags(simEvent_t* to, unsigned flags) {
  return on_this_device("EventCreateWithFlags", [&](world&, device& d) {
    if (flags & ~(simEventBlockingSync | simEventDisableTiming)) return simErrorInvalidValue;
    *to = handles().events.add(std::make_shared<event>(d, flags));
    return simSuccess;
  });
}

simError_t simEventRecord(simEvent_t e, simStream_t in) {
  return on_stream("EventRecord", in, [&](device& d, stream& s) {
    const auto found = handles().events.find(e);
    if (!found || &found->on != &d) return simErrorInvalidResourceHandle;
    const std::lock_guard lock(found->mutex);
    if (auto c = s.capturing()) {
      found->captured_after = c->known_to(s);
      found->captured = std::move(c);
      return simSuccess;
    }
    auto reached = std::make_shared<signal>();
    found->captured.reset();
    found->last = reached;
    const simError_t result = pushed(s, {&d, true, [reached](stream&) { reached->fire(); }});
    if (result != simSuccess) reached->fire();
    return result;
  });
}

simError_t simEventQuery(simEvent_t e) {
  return on_event("EventQuery", e, [](device& d, event& found) {
    const std::lock_guard lock(found.mutex);
    if (found.captured) return simErrorCapturedEvent;
    if (found.last && !found.last->fired()) return simErrorNotReady;
    return d.error.load();
  });
}

simError_t simEventSynchronize(simEvent_t e) {
  return on_event("EventSynchronize", e, [](device& d, event& found) {
    std::shared_ptr<signal> last;
    {
      const std::lock_guard lock(found.mutex);
      if (found.captured) return simErrorCapturedEvent;
      last = found.last;
    }
    if (last) last->wait();
    return d.error.load();
  });
}

simError_t simEventElapsedTime(float* ms, simEvent_t from, simEvent_t to) {
  return on_event("EventElapsedTime", to, [&](device& d, event& last) {
    const auto first = handles().events.find(from);
    if (!first || &first->on != &d) return simErrorInvalidResourceHandle;
    steady::time_point times[2];
    event* both[] = {first.get(), &last};
    for (int i = 0; i < 2; ++i) {
      const std::lock_guard lock(both[i]->mutex);
      if (both[i]->flags & simEventDisableTiming || !both[i]->last) return simErrorInvalidResourceHandle;
      if (both[i]->captured) return simErrorCapturedEvent;
      if (!both[i]->last->fired()) return simErrorNotReady;
      times[i] = both[i]->last->time();
    }
    *ms = std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
    return simSuccess;
  });
}

simError_t simEventDestroy(simEvent_t e) {
  return guarded([&] { return handles().events.take(e) ? simSuccess : simErrorInvalidResourceHandle; });
}

simError_t simStreamBeginCapture(simStream_t in, simStreamCaptureMode) {
  return on_stream("StreamBeginCapture", in, [&](device&, stream& s) {
    if (!in) return simErrorStreamCaptureUnsupported;
    if (s.capturing()) return simErrorIllegalState;
    auto c = std::make_shared<capture>(s.shared_from_this());
    s.set_capture(std::move(c));
    return simSuccess;
  });
}

simError_t simStreamEndCapture(simStream_t in, simGraph_t* to) {
  return on_stream("StreamEndCapture", in, [&](device& d, stream& s) {
    *to = nullptr;
    const auto c = s.capturing();
    if (!c) return simErrorIllegalState;
    if (c->origin() != &s) return refuse(*c, simErrorStreamCaptureUnmatched);
    std::vector<operation> operations;
    const simError_t result = c->end(operations);
    if (result != simSuccess) return result;
    *to = handles().graphs.add(
        std::make_shared<graph>(d, std::make_shared<const std::vector<operation>>(std::move(operations))));
    return simSuccess;
  });
}

simError_t simGraphInstantiateWithFlags(simGraphExec_t* to, simGraph_t g, unsigned long long flags) {
  return guarded([&] {
    if (flags != 0) return simErrorNotSupported;
    const auto from = handles().graphs.find(g);
    if (!from) return simErrorInvalidResourceHandle;
    return on_device("GraphInstantiateWithFlags", from->on, [&](world&, device& d) {
      *to = handles().executables.add(std::make_shared<graph>(d, from->operations));
      return simSuccess;
    });
  });
}

simError_t simGraphLaunch(simGraphExec_t e, simStream_t in) {
  return on_stream("GraphLaunch", in, [&](device& d, stream& s) {
    const auto g = handles().executables.find(e);
    if (!g) return simErrorInvalidResourceHandle;
    const auto run_all = [operations = g->operations](stream& on) {
      for (const auto& o : *operations) on.run(o);
    };
    if (s.capturing()) return pushed(s, {&d, true, run_all});
    // Launches of one graph run one after another, whatever their streams.
    const std::lock_guard lock(g->mutex);
    auto before = std::exchange(g->last, std::make_shared<signal>());
    const simError_t result = pushed(s, {&d, true, [before, run_all, done = g->last](stream& on) {
                                           if (before) on.wait_for(before);
                                           run_all(on);
                                           done->fire();
                                         }});
    if (result != simSuccess) g->last->fire();
    return result;
  });
}

simError_t simGraphDestroy(simGraph_t g) {
  return guarded([&] { return handles().graphs.take(g) ? simSuccess : simErrorInvalidResourceHandle; });
}

simError_t simGraphExecDestroy(simGraphExec_t e) {
  return guarded([&] { return handles().executables.take(e) ? simSuccess : simErrorInvalidResourceHandle; });
}

}  // namespace troupe::soft_gpu
