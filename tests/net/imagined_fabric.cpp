// What this file is for: parts that are copied by the side that receives them, on its thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "imagined_fabric.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <utility>

#include "conformance.hpp"

namespace wires {

class imagined_space::end final : public bulk_fabric {
 public:
  end(imagined_space& s, std::string kind) : space_(s), kind_(std::move(kind)) {
    const std::lock_guard hold(space_.lock_);
    const std::string name = "end " + std::to_string(reinterpret_cast<std::uintptr_t>(this));
    address_ = as_bytes(name);
    space_.ends_[name] = this;
  }
  ~end() override {
    const std::lock_guard hold(space_.lock_);
    space_.ends_.erase(as_text(address_));
    ::close(event_);
  }
  const std::string& kind() const override { return kind_; }
  std::span<const std::byte> address() const override { return address_; }
  std::unique_ptr<fabric_path> open(const fabric_token&, fabric_told&) override;
  bool work() override;
  bool rest() override {
    const std::lock_guard hold(space_.lock_);
    std::uint64_t n = 0;
    if (inbox.empty()) (void)!::read(event_, &n, sizeof n);
    return inbox.empty();
  }
  int descriptor() const override { return event_; }

  void push(const message& m) {
    inbox.push_back(m);
    const std::uint64_t one = 1;
    (void)!::write(event_, &one, sizeof one);
  }

  imagined_space& space_;
  std::deque<message> inbox;
  std::map<fabric_token, path*> paths;

 private:
  const std::string kind_;
  bytes address_;
  const int event_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
};

class imagined_space::path final : public fabric_path {
 public:
  path(end& e, const fabric_token& expected, fabric_told& t) : told(&t), at(e), expected_(expected) {}

  std::optional<std::string> connect(std::span<const std::byte> address, const fabric_token& token) override {
    if (at.space_.unreachable) return "imagined to be far away";
    far_ = as_text(address);
    carried = token;
    return {};
  }
  void greet() override {
    const std::lock_guard hold(at.space_.lock_);
    if (at.space_.swallows_greetings) return;
    if (at.space_.breaks_with_a_greeting) {
      at.space_.swallows_greetings = true;
      at.push({message::broken_with_a_greeting, {}, this});
    } else {
      deliver({message::greeting, carried, this});
    }
  }
  void send(std::uint64_t transfer, std::uint64_t offset, std::span<const std::byte> body) override {
    deliver({message::part, carried, this, transfer, offset, body});
  }
  void close(std::function<void()> closed) override {
    {
      const std::lock_guard hold(at.space_.lock_);
      told = nullptr;
      at.paths.erase(expected_);
      for (auto& [name, e] : at.space_.ends_) std::erase_if(e->inbox, [&](const message& m) { return m.from == this; });
    }
    closed();
  }

  void deliver(const message& m) {
    const std::lock_guard hold(at.space_.lock_);
    if (const auto to = at.space_.ends_.find(far_); to != at.space_.ends_.end()) to->second->push(m);
  }

  fabric_told* told;
  end& at;
  fabric_token carried{};

 private:
  const fabric_token expected_;
  std::string far_;
};

std::unique_ptr<fabric_path> imagined_space::end::open(const fabric_token& expected, fabric_told& told) {
  const std::lock_guard hold(space_.lock_);
  auto p = std::make_unique<path>(*this, expected, told);
  paths[expected] = p.get();
  return p;
}

bool imagined_space::end::work() {
  const std::lock_guard hold(space_.lock_);
  if (inbox.empty()) return false;
  const message m = inbox.front();
  inbox.pop_front();
  if (m.what == message::sent) {
    if (m.from->told) m.from->told->sent(m.transfer, m.offset);
    return true;
  }
  if (m.what == message::broken || m.what == message::broken_with_a_greeting) {
    if (auto* const told = std::exchange(m.from->told, nullptr)) told->broken("imagined to be broken");
    if (m.what == message::broken_with_a_greeting) m.from->deliver({message::greeting, m.from->carried, m.from});
    return true;
  }
  const auto found = paths.find(m.token);
  fabric_told* const to = found == paths.end() ? nullptr : found->second->told;
  if (m.what == message::greeting) {
    if (to) to->greeted();
    return true;
  }
  if (space_.parts_until_break == 0) {
    message gone = m;
    gone.what = message::broken;
    m.from->at.push(gone);
    return true;
  }
  --space_.parts_until_break;
  const auto room = to ? to->destination(m.transfer, m.offset, m.body.size()) : std::span<std::byte>();
  if (room.size() != m.body.size()) return true;
  std::memcpy(room.data(), m.body.data(), room.size());
  ++space_.parts;
  to->placed(m.transfer, m.offset);
  message answer = m;
  answer.what = message::sent;
  m.from->at.push(answer);
  return true;
}

std::unique_ptr<bulk_fabric> imagined_space::make(std::string kind) {
  return std::make_unique<end>(*this, std::move(kind));
}

}  // namespace wires
