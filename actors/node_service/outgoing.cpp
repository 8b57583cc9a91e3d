// What this file is for: messages to the owner are gathered.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/outgoing.hpp"

namespace troupe::detail {

void outgoing::tell_end(const wire::task_end& e) {
  if (ends_.empty()) ends_.fixed(wire::kind::done);
  wire::put(ends_, e);
  if (ends_.size() < gathered_max) return;
  send(unfilled_);
  send(ends_);
}

void outgoing::ask_for(const wire::box_request& r) {
  if (fetches_.empty()) fetches_.fixed(wire::kind::fetch_in);
  wire::put(fetches_, r);
  if (fetches_.size() >= gathered_max) send(fetches_);
}

void outgoing::tell_unfilled(const wire::box_request& r) {
  if (unfilled_.empty()) unfilled_.fixed(wire::kind::unfilled);
  wire::put(unfilled_, r);
  if (unfilled_.size() >= gathered_max) send(unfilled_);
}

void outgoing::flush() {
  send(fetches_);
  send(unfilled_);  // before the ends of those that needed it
  send(ends_);
}

void outgoing::send(net::writer& gathered) {
  if (gathered.empty()) return;
  owner_->send(gathered.view());
  gathered.clear();
}

}  // namespace troupe::detail
