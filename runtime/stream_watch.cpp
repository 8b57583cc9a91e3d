// What this file is for: the reports of all streams of a runtime, and the socket at which they can be seen.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/stream/watch.hpp>

#include <utility>

#include <troupe/detail/streams/running.hpp>

#include "actors/actor.hpp"
#include "actors/stage/crew.hpp"
#include "net/text_server.hpp"
#include "runtime/engine.hpp"

namespace troupe::stream {

namespace {

std::vector<report> reports_of(detail::engine& e) {
  using namespace detail;
  std::vector<report> all;
  for (const engine::known_stream& x : e.streams()) {
    const stage::holders::pass here(x.held_by);
    if (const std::shared_ptr<stage::crew> s = x.of.lock()) all.push_back(s->report());
  }
  return all;
}

}  // namespace

std::vector<report> reports(const runtime& rt) { return reports_of(detail::streams::entrance::the_engine(rt)); }

struct report_socket::state {
  net::text_server answers;
};

namespace {

std::string text_of_all(const std::weak_ptr<detail::engine>& of) {
  try {
    const std::shared_ptr<detail::engine> e = of.lock();
    if (!e || e->is_stopping()) return "the runtime has ended\n";
    std::string text;
    for (const report& r : reports_of(*e)) text += r.text() + '\n';
    return text.empty() ? "no streams\n" : text;
  } catch (...) {
    return "no report: " + detail::text_of(std::current_exception()) + '\n';
  }
}

}  // namespace

report_socket::report_socket(const runtime& rt, std::string path)
    : state_(new state{{std::move(path), [of = detail::streams::entrance::the_engine(rt).weak_from_this()] {
                          return text_of_all(of);
                        }}}) {}
report_socket::report_socket(report_socket&&) noexcept = default;
report_socket& report_socket::operator=(report_socket&&) noexcept = default;
report_socket::~report_socket() = default;

}  // namespace troupe::stream
