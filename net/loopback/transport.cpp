// What this file is for: the seam of transports over a loopback network.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <mutex>
#include <string>

#include "net/loopback/process.hpp"

namespace troupe::net::loopback {

namespace {

class attached final : public transport {
 public:
  attached(network::state& n, process& p) : network_(n), process_(p) {}
  ~attached() override { stop(); }

  void start(transport_events& e) override {
    const std::lock_guard hold(network_.lock);
    process& p = process_;
    const transport_options& o = p.options;
    if (p.started) throw error(errc::bad_argument, "a transport can be started once");
    const bool proves = !o.proof.secrets.empty() || !o.proof.authority.empty();
    if (!proves && !o.insecure_loopback)
      throw error(errc::bad_argument,
                  "a transport needs a secret or certificates; or insecure_loopback, on one machine");
    for (const endpoint& wanted : o.listen) {
      endpoint at = wanted;
      while (at.port == 0 || (wanted.port == 0 && is_taken(at))) at.port = ++network_.ports;
      if (is_taken(at)) {
        listening_.clear();
        throw error(errc::io_failed, at.host + ":" + std::to_string(at.port) + " is in use; choose another port");
      }
      listening_.push_back(at);
    }
    for (const endpoint& at : listening_) network_.listeners[at] = &p;
    if (p.self.listens_on.empty()) p.self.listens_on = listening_;
    process*& last = network_.latest[p.self.id];
    if (!last || last->self.incarnation <= p.self.incarnation) last = &p;
    p.events = &e;
    p.started = true;
  }

  std::vector<endpoint> listening() const override { return listening_; }
  using transport::dial;
  void dial(const endpoint& e, std::shared_ptr<session> instead) override {
    const std::lock_guard hold(network_.lock);
    if (process_.lives && process_.started) network_.dial(process_, e, std::move(instead));
  }
  void at(time_point t, std::function<void()> f) override {
    const std::lock_guard hold(network_.lock);
    network_.post(t, &process_, [&n = network_, f = std::move(f)] { n.tell([&] { f(); }); });
  }
  time_point now() const override {
    const std::lock_guard hold(network_.lock);
    return network_.now;
  }
  void stop() override {
    const std::scoped_lock hold(network_.running, network_.lock);
    network_.stop(process_, std::make_exception_ptr(error(errc::runtime_stopped, "the transport has been stopped")),
                  false);
  }

 private:
  bool is_taken(const endpoint& e) const {
    const auto found = network_.listeners.find(e);
    return found != network_.listeners.end() && found->second->lives;
  }

  network::state& network_;
  process& process_;
  std::vector<endpoint> listening_;
};

}  // namespace

std::unique_ptr<transport> network::attach(transport_options o) {
  auto p = std::make_unique<process>();
  p->self = o.self;
  p->options = std::move(o);
  state_->processes.push_back(std::move(p));
  return std::make_unique<attached>(*state_, *state_->processes.back());
}

}  // namespace troupe::net::loopback
