// What this file is for: parts to a peer and from it, each answered for once, and an end that waits for UCX's answers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Parts go by rendezvous: the sender names its memory and the receiver takes the bytes from there to where they belong,
// by one copy of the kernel's between processes of one machine, by RDMA between two.
#include "net/ucx/path.hpp"

#include <cstring>
#include <utility>

#include "net/ucx/quiet.hpp"

namespace troupe::net::ucx {

std::optional<std::string> way::connect(std::span<const std::byte> address, const fabric_token& carried) {
  carried_ = carried;
  ucp_ep_params_t to{};
  to.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  to.address = reinterpret_cast<const ucp_address_t*>(address.data());
  to.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  to.err_handler = {&way::on_failure, this};
  last_complaint();
  const ucs_status_t status = ucp_ep_create(fabric_.worker(), &to, &end_);
  if (status == UCS_OK) return {};
  end_ = nullptr;
  const std::string more = last_complaint();
  return std::string(ucs_status_string(status)) + (more.empty() ? "" : " (" + more + ")");
}

void way::greet() {
  if (!end_ || closing_) return;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_AM_SEND_FLAG_EAGER;
  how.cb.send = [](void* request, ucs_status_t status, void* what) {
    const std::unique_ptr<record> r(static_cast<record*>(what));
    ucp_request_free(request);
    if (status != UCS_OK) r->of->fail(status);
    --r->of->under_way_;
    r->of->tell_if_closed();
  };
  auto* r = new record{shared_from_this(), {carried_}};
  how.user_data = r;
  ++under_way_;
  const ucs_status_ptr_t request = ucp_am_send_nbx(end_, greeting, &r->what, sizeof r->what, nullptr, 0, &how);
  if (UCS_PTR_IS_PTR(request)) return;
  delete r;
  --under_way_;
  if (UCS_PTR_IS_ERR(request))
    fabric_.later([self = shared_from_this(), status = UCS_PTR_STATUS(request)] { self->fail(status); });
}

void way::send(std::uint64_t transfer, std::uint64_t offset, std::span<const std::byte> body) {
  if (!end_ || closing_) return;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_AM_SEND_FLAG_RNDV;
  how.cb.send = &way::on_sent;
  auto r = std::make_unique<record>(record{shared_from_this(), {carried_, transfer, offset}});
  how.user_data = r.get();
  ++under_way_;
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(end_, part, &r->what, sizeof r->what, body.data(), body.size(), &how);
  if (UCS_PTR_IS_PTR(request)) {
    r.release();
  } else {
    fabric_.later([done = *r, status = UCS_PTR_STATUS(request)] { done.of->sent(done, status); });
  }
}

void way::greeted() {
  if (told_) told_->greeted();
}

ucs_status_t way::arriving(const head& h, void* data, std::size_t bytes, bool waits) {
  if (!told_) return UCS_OK;
  const std::span<std::byte> to = told_->destination(h.transfer, h.offset, bytes);
  if (to.empty() || to.size() != bytes) return UCS_OK;
  auto r = std::make_unique<record>(record{shared_from_this(), h});
  ++under_way_;
  if (!waits) {  // it was small enough to come at once
    std::memcpy(to.data(), data, bytes);
    placed(*r, UCS_OK);
    return UCS_OK;
  }
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.recv_am = &way::on_placed;
  how.user_data = r.get();
  const ucs_status_ptr_t request = ucp_am_recv_data_nbx(fabric_.worker(), data, to.data(), bytes, &how);
  if (UCS_PTR_IS_PTR(request)) {
    r.release();
  } else {
    placed(*r, UCS_PTR_STATUS(request));
  }
  return UCS_INPROGRESS;
}

void way::close(std::function<void()> closed) {
  if (std::exchange(closing_, true)) return;
  told_ = nullptr;
  closed_ = std::move(closed);
  const auto self = shared_from_this();
  fabric_.forget(expected_);
  if (end_) {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    how.cb.send = &way::on_closed;
    auto r = std::make_unique<record>(record{self});
    how.user_data = r.get();
    ++under_way_;
    if (UCS_PTR_IS_PTR(ucp_ep_close_nbx(std::exchange(end_, nullptr), &how))) {
      r.release();
    } else {
      --under_way_;
    }
  }
  tell_if_closed();
}

void way::on_sent(void* request, ucs_status_t status, void* what) {
  const std::unique_ptr<record> r(static_cast<record*>(what));
  ucp_request_free(request);
  r->of->sent(*r, status);
}

void way::on_placed(void* request, ucs_status_t status, std::size_t, void* what) {
  const std::unique_ptr<record> r(static_cast<record*>(what));
  ucp_request_free(request);
  r->of->placed(*r, status);
}

void way::on_closed(void* request, ucs_status_t, void* what) {
  const std::unique_ptr<record> r(static_cast<record*>(what));
  ucp_request_free(request);
  --r->of->under_way_;
  r->of->tell_if_closed();
}

void way::on_failure(void* self, ucp_ep_h, ucs_status_t status) { static_cast<way*>(self)->fail(status); }

void way::sent(const record& r, ucs_status_t status) {
  --under_way_;
  if (status != UCS_OK) {
    fail(status);
  } else if (told_) {
    told_->sent(r.what.transfer, r.what.offset);
  }
  tell_if_closed();
}

void way::placed(const record& r, ucs_status_t status) {
  --under_way_;
  if (status != UCS_OK) {
    fail(status);
  } else if (told_) {
    told_->placed(r.what.transfer, r.what.offset);
  }
  tell_if_closed();
}

void way::fail(ucs_status_t status) {
  if (fabric_told* const to = std::exchange(told_, nullptr)) {
    const std::string more = last_complaint();
    to->broken(std::string("UCX says ") + ucs_status_string(status) + (more.empty() ? "" : " (" + more + ")"));
  }
}

void way::tell_if_closed() {
  if (!closing_ || under_way_ != 0) return;
  if (const auto tell = std::exchange(closed_, nullptr)) tell();
}

}  // namespace troupe::net::ucx
