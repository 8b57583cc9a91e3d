// What this file is for: opens UCX for shared memory and RDMA, and passes what arrives to the path of its token.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/fabric.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "net/ucx/path.hpp"
#include "net/ucx/plugin.hpp"
#include "net/ucx/quiet.hpp"

namespace troupe::net::ucx {

namespace {

/// Steps of one turn, each of which may copy 512 KiB.
constexpr int steps_a_turn = 2;

std::string text_of(const char* what, ucs_status_t status) {
  const std::string more = last_complaint();
  return std::string("UCX: ") + what + ": " + ucs_status_string(status) + (more.empty() ? "" : " (" + more + ")");
}

}  // namespace

std::unique_ptr<fabric> fabric::make(std::string& why) {
  std::unique_ptr<fabric> f(new fabric);
  if (!f->begin(why)) return nullptr;
  return f;
}

fabric::~fabric() {
  if (worker_) ucp_worker_destroy(worker_);
  if (context_) ucp_cleanup(context_);
}

bool fabric::begin(std::string& why) {
  const auto ok = [&](const char* what, ucs_status_t status) {
    if (status != UCS_OK) why = text_of(what, status);
    return status == UCS_OK;
  };
  unsigned major = 0, minor = 0, patch = 0;
  ucp_get_version(&major, &minor, &patch);
  kind_ = "ucx " + std::to_string(major) + "." + std::to_string(minor) + " parts 1";

  ucp_config_t* read = nullptr;
  if (!ok("its configuration", ucp_config_read(nullptr, nullptr, &read))) return false;
  const std::unique_ptr<ucp_config_t, void (*)(ucp_config_t*)> config(read, ucp_config_release);
  const auto set = [&](const char* name, const char* value) { ucp_config_modify(config.get(), name, value); };
  // No sockets: UCX's listen on every address and believe what anybody sends.
  if (!std::getenv("UCX_TLS")) set("TLS", "sm,ib");
  // An endpoint whose peer dies is to say so, instead of ending this process. UCX's shared memory can do that but does
  // not claim to, since what it reads of a peer may have been given back by then; bodies here count only once the peer
  // has confirmed that they were kept in place.
  set("MM_ERROR_HANDLING", "y");
  set("MEMORY_INVALIDATE", "y");
  set("KEEPALIVE_INTERVAL", "inf");  // the session has a heartbeat

  ucp_params_t wants{};
  wants.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  wants.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  wants.name = "troupe";
  if (!ok("there is nothing it could use here", ucp_init(&wants, config.get(), &context_))) return false;
  ucp_worker_params_t how{};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  how.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (!ok("a worker", ucp_worker_create(context_, &how, &worker_))) return false;
  if (!ok("its descriptor", ucp_worker_get_efd(worker_, &descriptor_))) return false;
  if (!hear<&fabric::greeted>(greeting, why) || !hear<&fabric::arriving>(part, why)) return false;

  ucp_address_t* where = nullptr;
  std::size_t bytes = 0;
  if (!ok("its address", ucp_worker_get_address(worker_, &where, &bytes))) return false;
  const auto* from = reinterpret_cast<const std::byte*>(where);
  address_.assign(from, from + bytes);
  ucp_worker_release_address(worker_, where);
  return true;
}

template <ucs_status_t (fabric::*Heard)(const head&, void*, std::size_t, const ucp_am_recv_param_t&)>
bool fabric::hear(message which, std::string& why) {
  ucp_am_handler_param_t to{};
  to.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  to.id = which;
  to.arg = this;
  to.cb = [](void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
             const ucp_am_recv_param_t* how) {
    head h;
    if (header_bytes != sizeof h) return UCS_OK;
    std::memcpy(&h, header, sizeof h);
    return (static_cast<fabric*>(self)->*Heard)(h, data, bytes, *how);
  };
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_, &to);
  if (status != UCS_OK) why = text_of("a message", status);
  return status == UCS_OK;
}

std::unique_ptr<fabric_path> fabric::open(const fabric_token& expected, fabric_told& told) {
  class held final : public fabric_path {
   public:
    explicit held(std::shared_ptr<way> w) : way_(std::move(w)) {}
    std::optional<std::string> connect(std::span<const std::byte> address, const fabric_token& carried) override {
      return way_->connect(address, carried);
    }
    void greet() override { way_->greet(); }
    void send(std::uint64_t transfer, std::uint64_t offset, std::span<const std::byte> body) override {
      way_->send(transfer, offset, body);
    }
    void close(std::function<void()> closed) override { way_->close(std::move(closed)); }

   private:
    const std::shared_ptr<way> way_;
  };
  auto w = std::make_shared<way>(*this, expected, told);
  ways_[expected] = w;
  return std::make_unique<held>(std::move(w));
}

bool fabric::work() {
  bool did = false;
  while (!later_.empty()) {
    const auto f = std::move(later_.front());
    later_.pop_front();
    f();
    did = true;
  }
  for (int i = 0; i < steps_a_turn && ucp_worker_progress(worker_) != 0; ++i) did = true;
  return did;
}

bool fabric::rest() { return later_.empty() && ucp_worker_arm(worker_) != UCS_ERR_BUSY; }

// A stranger's, or of a session that has ended: nobody else can have the token.
std::shared_ptr<way> fabric::way_of(const head& h) const {
  const auto found = ways_.find(h.token);
  return found == ways_.end() ? nullptr : found->second;
}

ucs_status_t fabric::greeted(const head& h, void*, std::size_t, const ucp_am_recv_param_t&) {
  if (const auto w = way_of(h)) w->greeted();
  return UCS_OK;
}

ucs_status_t fabric::arriving(const head& h, void* data, std::size_t bytes, const ucp_am_recv_param_t& how) {
  const auto w = way_of(h);
  return w ? w->arriving(h, data, bytes, (how.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) : UCS_OK;
}

}  // namespace troupe::net::ucx

extern "C" __attribute__((visibility("default"))) troupe::net::bulk_fabric* troupe_open_fabric(const char* version,
                                                                                               bool first,
                                                                                               std::string* why) {
  using namespace troupe::net;
  try {
    if (first) ucx::keep_to_itself();  // a program that has UCX already has it as it wants it
    return std::string_view(version) == ucx::plugin_version ? ucx::fabric::make(*why).release() : nullptr;
  } catch (...) {
    return nullptr;
  }
}
