// What this file is for: encoding and decoding of what nodes say about tasks and data.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/task_messages.hpp"

#include <algorithm>

#include <troupe/view.hpp>

namespace troupe::detail::wire {

namespace {

// Coordinates of boxes: windows reach outside their arrays, but not beyond this.
constexpr index_t far = index_t{1} << 48;
constexpr std::uint64_t element_max = 1u << 20, align_max = element_align_max;

[[noreturn]] void refuse(const char* what) { throw error(errc::protocol_error, std::string(what) + " in a frame"); }

// An element is decoded before there is room for the next: what is not there costs nothing.
template <class T, class F>
void take_list(net::reader& from, std::vector<T>& to, std::uint64_t most, const char* what, F&& take) {
  for (std::uint64_t left = from.at_most(std::min<std::uint64_t>(most, from.left()), what); left != 0; --left)
    to.push_back(take(from));
}

void check_inside(std::span<const gap> all, std::size_t& sum) {
  for (const gap& g : all) sum += g.bytes.size();
  if (sum > inline_task_max) refuse("more bytes of boxes than belong into a message");
}

std::vector<std::byte> take_inline(net::reader& from) {
  const auto bytes = from.bytes();
  if (bytes.size() > inline_max) refuse("a box that is too large for its message");
  return {bytes.begin(), bytes.end()};
}

gap take_gap(net::reader& from) {
  gap g;
  g.tile = static_cast<std::uint32_t>(from.at_most(0xffffffff, "a tile"));
  g.where = take_box(from);
  g.lent = from.varint();
  if (g.lent != 0) g.from = take_node(from);
  g.pushed = from.varint();
  g.bytes = take_inline(from);
  if ((g.lent != 0) + (g.pushed != 0) + !g.bytes.empty() > 1) refuse("bytes that come by two ways");
  return g;
}

void put(net::writer& to, const access_descriptor& x) {
  to.varint(x.array);
  to.fixed(static_cast<std::uint8_t>(static_cast<unsigned>(x.mode) | (x.returns ? 0x10u : 0u) | (x.fresh ? 0x20u : 0u) |
                                     (x.copied ? 0x40u : 0u)));
  to.fixed(x.edge);
  put_box(to, x.where);
  put_box(to, x.limit);
  if (x.fresh || x.edge == border::fill) to.raw(x.fill.data(), x.fill.size());
  if (x.fresh) to.varint(x.group);
  if (x.fresh && x.group != 0) to.fixed(x.op);
  to.varint(x.gaps.size());
  for (const gap& g : x.gaps) wire::put(to, g);
}

access_descriptor take_access(net::reader& from) {
  access_descriptor x;
  x.array = from.varint();
  const auto bits = from.fixed<std::uint8_t>();
  if ((bits & 0x80) != 0 || (bits & 0x0f) > static_cast<unsigned>(access_mode::reduce)) refuse("an unknown access");
  x.mode = static_cast<access_mode>(bits & 0x0f);
  x.returns = (bits & 0x10) != 0;
  x.fresh = (bits & 0x20) != 0;
  x.copied = (bits & 0x40) != 0;
  x.edge = from.fixed<border>();
  if (x.edge > border::fill) refuse("an unknown border");
  x.where = take_box(from);
  x.limit = take_box(from);
  if (x.fresh || x.edge == border::fill) {
    const auto bytes = from.raw(x.fill.size());
    std::copy(bytes.begin(), bytes.end(), x.fill.begin());
  }
  if (x.fresh) x.group = from.varint();
  if (x.group != 0) x.op = from.fixed<std::uint16_t>();
  take_list(from, x.gaps, gaps_max, "a number of boxes", take_gap);
  return x;
}

std::int32_t take_int(net::reader& from, const char* what) {
  const std::int64_t v = from.signed_varint();
  if (v < INT32_MIN || v > INT32_MAX) refuse(what);
  return static_cast<std::int32_t>(v);
}

void put(net::writer& to, const resource& r) {
  to.text(std::string_view(r.name).substr(0, name_max));
  to.fixed(r.amount);
}

resource take_resource(net::reader& from) {
  resource r;
  r.name = from.text(name_max);
  r.amount = from.fixed<double>();
  // A task may ask for all of a kind.
  if (r.name.empty() || !(r.amount >= 0) || (r.amount > amount_max && r.amount != resource::all))
    refuse("a malformed quantity");
  return r;
}

void put(net::writer& to, std::span<const resource> all) {
  all = all.first(std::min(all.size(), resources_max));
  to.varint(all.size());
  for (const resource& r : all) put(to, r);
}

void take_into(net::reader& from, task_descriptor& t) {
  clear(t);
  t.id = from.varint();
  t.kernel = from.fixed<std::uint64_t>();
  t.name = from.text(name_max);
  t.priority = take_int(from, "a priority");
  t.retries = static_cast<std::uint32_t>(from.at_most(1u << 30, "a number of retries"));
  t.watched = from.at_most(1, "a yes or no") != 0;
  take_list(from, t.resources, resources_max, "a number of quantities", take_resource);
  std::size_t inside = 0;
  take_list(from, t.accesses, accesses_max, "a number of accesses", [&](net::reader& r) {
    access_descriptor x = take_access(r);
    check_inside(x.gaps, inside);
    return x;
  });
  take_list(from, t.values, values_max, "a number of values", [](net::reader& r) {
    const auto bytes = r.bytes();
    if (bytes.size() > value_max) refuse("a value that is too large");
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  });
}

}  // namespace

void put(net::writer& to, const gap& g) {
  to.varint(g.tile);
  put_box(to, g.where);
  to.varint(g.lent);
  if (g.lent != 0) put(to, g.from);
  to.varint(g.pushed);
  to.bytes(g.bytes);
}

gaps take_gaps(net::reader& from) {
  gaps g;
  g.array = from.varint();
  while (from.left() != 0) g.all.push_back(take_gap(from));
  std::size_t inside = 0;
  check_inside(g.all, inside);
  return g;
}

void put(net::writer& to, const node_id& n) { to.raw(n.bytes.data(), n.bytes.size()); }

node_id take_node(net::reader& from) {
  node_id n;
  const auto bytes = from.raw(n.bytes.size());
  std::transform(bytes.begin(), bytes.end(), n.bytes.begin(),
                 [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return n;
}

errc take_code(net::reader& from) {
  return static_cast<errc>(from.at_most(static_cast<std::uint64_t>(errc::overrun), "an error"));
}

void put_box(net::writer& to, const logic::box4& b) {
  for (int d = 0; d < rank_max; ++d) {
    to.signed_varint(b.lo[d]);
    to.signed_varint(b.hi[d]);
  }
}

logic::box4 take_box(net::reader& from) {
  logic::box4 b;
  for (int d = 0; d < rank_max; ++d) {
    b.lo[d] = from.signed_varint();
    b.hi[d] = from.signed_varint();
    if (b.lo[d] < -far || b.hi[d] > far || b.lo[d] > b.hi[d]) refuse("a malformed box");
  }
  return b;
}

array_descriptor take_array(net::reader& from) {
  array_descriptor a;
  a.id = from.varint();
  a.rank = static_cast<int>(from.at_most(rank_max, "a rank"));
  if (a.rank == 0) refuse("a rank of zero");
  for (int d = 0; d < rank_max; ++d) {
    a.size[d] = static_cast<index_t>(from.at_most(static_cast<std::uint64_t>(far), "the size of an array"));
    a.tile[d] = static_cast<index_t>(from.at_most(static_cast<std::uint64_t>(far), "the size of a tile"));
    if (a.tile[d] == 0 || (d >= a.rank && (a.size[d] != 1 || a.tile[d] != 1))) refuse("a malformed array");
  }
  a.element = from.at_most(element_max, "the size of an element");
  a.align = from.at_most(align_max, "an alignment");
  if (a.element == 0 || a.align == 0 || (a.align & (a.align - 1)) != 0) refuse("a malformed array");
  double tiles = 1;
  for (int d = 0; d < rank_max; ++d) {
    const index_t tile = std::clamp<index_t>(a.tile[d], 1, std::max<index_t>(a.size[d], 1));
    tiles *= static_cast<double>(std::max<index_t>(1, (a.size[d] + tile - 1) / tile));
  }
  if (tiles > tiles_max) refuse("an array of too many tiles");
  a.name = from.text(name_max);
  return a;
}

kind kind_of(std::span<const std::byte> frame) {
  if (frame.empty()) refuse("nothing");
  return static_cast<kind>(frame[0]);
}

void put(net::writer& to, const node_descriptor& c) {
  to.fixed(kind::node_descriptor);
  to.varint(c.threads);
  to.varint(c.memory_bytes);
  to.fixed(static_cast<std::uint8_t>(c.lends));
  put(to, c.resources);
  const std::size_t kernels = std::min(c.kernels.size(), kernels_max);
  to.varint(kernels);
  for (std::size_t i = 0; i < kernels; ++i) to.fixed(c.kernels[i]);
}

node_descriptor take_node_descriptor(net::reader& from) {
  node_descriptor c;
  c.threads = static_cast<std::uint32_t>(from.at_most(1u << 20, "a number of threads"));
  c.memory_bytes = from.varint();
  c.lends = from.fixed<std::uint8_t>() != 0;
  take_list(from, c.resources, resources_max, "a number of quantities", take_resource);
  for (const resource& r : c.resources) {
    const auto same = [&](const resource& other) { return other.name == r.name; };
    if (r.name == "cpu" || r.name == "gpu" || r.amount > amount_max || std::ranges::count_if(c.resources, same) > 1)
      refuse("a wrong quantity");
  }
  c.kernels.resize(std::min(from.count(8, "a number of kernels"), kernels_max));
  for (std::uint64_t& k : c.kernels) k = from.fixed<std::uint64_t>();
  from.end();
  return c;
}

void put(net::writer& to, const array_descriptor& a) {
  to.varint(a.id);
  to.varint(static_cast<std::uint64_t>(a.rank));
  for (int d = 0; d < rank_max; ++d) {
    to.varint(static_cast<std::uint64_t>(a.size[d]));
    to.varint(static_cast<std::uint64_t>(a.tile[d]));
  }
  to.varint(a.element);
  to.varint(a.align);
  to.text(std::string_view(a.name).substr(0, name_max));
}

void put(net::writer& to, const task_descriptor& t) {
  to.varint(t.id);
  to.fixed(t.kernel);
  to.text(std::string_view(t.name).substr(0, name_max));
  to.signed_varint(t.priority);
  to.varint(t.retries);
  to.varint(t.watched ? 1 : 0);
  put(to, t.resources);
  to.varint(t.accesses.size());
  for (const access_descriptor& x : t.accesses) put(to, x);
  to.varint(t.values.size());
  for (const auto& v : t.values) to.bytes(v);
}

void put(net::writer& to, const tasks& t) {
  to.fixed(kind::tasks);
  to.varint(t.arrays.size());
  for (const array_descriptor& a : t.arrays) put(to, a);
  to.varint(t.all.size());
  for (const task_descriptor& one : t.all) put(to, one);
}

void clear(task_descriptor& t) {
  t.id = t.kernel = 0;
  t.name.clear();
  t.priority = 0;
  t.retries = 0;
  t.watched = false;
  t.resources.clear();
  t.accesses.clear();
  t.values.clear();
}

task_descriptor take_task(net::reader& from) {
  task_descriptor t;
  take_into(from, t);
  return t;
}

void each_of_tasks(net::reader& from, const std::function<void(array_descriptor&)>& array,
                   const std::function<void(task_descriptor&)>& task) {
  for (std::uint64_t left = from.at_most(from.left(), "a number of arrays"); left != 0; --left) {
    array_descriptor a = take_array(from);
    array(a);
  }
  task_descriptor t;
  for (std::uint64_t left = from.at_most(from.left(), "a number of tasks"); left != 0; --left) {
    take_into(from, t);
    task(t);
  }
  from.end();
}

tasks take_tasks(net::reader& from) {
  tasks t;
  each_of_tasks(
      from, [&](array_descriptor& a) { t.arrays.push_back(std::move(a)); },
      [&](task_descriptor& one) { t.all.push_back(std::move(one)); });
  return t;
}

void put(net::writer& to, const task_end& e) {
  to.varint(e.id);
  to.fixed(e.how);
  to.signed_varint(e.attempts);
  if (e.how == outcome::ran) {
    to.fixed(e.measured_ns);
    to.varint(e.written.size());
    for (const written_box& w : e.written) {
      to.varint(w.access);
      to.bytes(w.bytes);
    }
    to.fixed(static_cast<std::uint8_t>(e.in_sum));
    return;
  }
  to.varint(static_cast<std::uint64_t>(e.code));
  to.text(std::string_view(e.text).substr(0, text_max));
  to.text(std::string_view(e.root).substr(0, name_max));
}

std::vector<task_end> take_done(net::reader& from) {
  std::vector<task_end> all;
  while (from.left() != 0) {
    task_end& e = all.emplace_back();
    e.id = from.varint();
    e.how = from.fixed<outcome>();
    if (e.how > outcome::unfilled) refuse("an unknown outcome");
    e.attempts = take_int(from, "a number of attempts");
    if (e.attempts < 0) refuse("a negative number of attempts");
    if (e.how == outcome::ran) {
      if (e.attempts == 0) refuse("a task that ran without an attempt");
      e.measured_ns = from.fixed<float>();
      if (!(e.measured_ns >= 0 && e.measured_ns <= time_max_ns)) refuse("a malformed time");
      std::size_t inside = 0;
      take_list(from, e.written, accesses_max, "a number of boxes", [&](net::reader& r) {
        written_box w;
        w.access = static_cast<std::uint32_t>(r.at_most(accesses_max, "an access"));
        w.bytes = take_inline(r);
        if (!e.written.empty() && e.written.back().access >= w.access) refuse("boxes in no order");
        inside += w.bytes.size();
        if (w.bytes.empty() || inside > inline_task_max) refuse("boxes of another size than belongs into a message");
        return w;
      });
      e.in_sum = from.at_most(1, "a truth") != 0;
      continue;
    }
    e.code = take_code(from);
    e.text = from.text(text_max);
    e.root = from.text(name_max);
  }
  return all;
}

void put(net::writer& to, const box_request& r) {
  to.varint(r.number);
  to.varint(r.array);
  put(to, r.what);
}

std::vector<box_request> take_requests(net::reader& from) {
  std::vector<box_request> all;
  while (from.left() != 0) {
    box_request& r = all.emplace_back();
    r.number = from.varint();
    r.array = from.varint();
    r.what = take_gap(from);
    if (r.what.pushed != 0 || !r.what.bytes.empty()) refuse("a request for what has been sent");
  }
  return all;
}

void put(net::writer& to, const pull_request& r) {
  to.fixed(kind::pull);
  put(to, r.owner);
  to.varint(r.lent);
  to.varint(r.number);
  put_box(to, r.where);
}

pull_request take_pull(net::reader& from) {
  pull_request r;
  r.owner = take_node(from);
  r.lent = from.varint();
  r.number = from.varint();
  r.where = take_box(from);
  from.end();
  return r;
}

void put(net::writer& to, const pull_refusal& r) {
  to.fixed(kind::cannot_pull);
  put(to, r.owner);
  to.varint(r.lent);
  to.varint(r.number);
  to.text(std::string_view(r.text).substr(0, text_max));
}

pull_refusal take_pull_refusal(net::reader& from) {
  pull_refusal r;
  r.owner = take_node(from);
  r.lent = from.varint();
  r.number = from.varint();
  r.text = from.text(text_max);
  from.end();
  return r;
}

void put(net::writer& to, const pulled_head& h) {
  to.fixed(kind::bytes_pulled);
  to.varint(h.number);
  put(to, h.owner);
  to.varint(h.lent);
}

pulled_head take_pulled_head(std::span<const std::byte> head) {
  net::reader from(head);
  (void)from.fixed<kind>();
  pulled_head h;
  h.number = from.varint();
  h.owner = take_node(from);
  h.lent = from.varint();
  from.end();
  return h;
}

std::vector<std::uint64_t> take_numbers(net::reader& from) {
  std::vector<std::uint64_t> all;
  while (from.left() != 0) all.push_back(from.varint());
  return all;
}

}  // namespace troupe::detail::wire
