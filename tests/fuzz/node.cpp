// What this file is for: a whole node, its runtime and all that a member may say to it: frames and transfers that fit
// what was said before, each with some of its bytes changed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The node lives on an imagined network in imagined time, so an input does the same each time. An input is a row of
// steps: what the member says next, two arguments, and up to three changes of the bytes that it sends. Whatever it
// says, the node goes on: once the member has gone, all that the node's own program has spawned ends, and it runs a
// task of its own. No body sees a view that has elements and no memory.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <troupe/array_maker.hpp>
#include <troupe/submitter.hpp>

#include "actors/execution/graph_part.hpp"
#include "actors/wire/graph_messages.hpp"
#include "actors/wire/membership_messages.hpp"
#include "actors/wire/node_names.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/runtime/nodes/false_member.hpp"
#include "tests/runtime/nodes/imagined_kernels.hpp"

namespace {

using namespace troupe::detail;
namespace detail = troupe::detail;
namespace logic = troupe::logic;
namespace net = troupe::net;
using test::word;
using troupe::access_mode;
using troupe::border;
using troupe::index_t;
using troupe::view;

// ---- kernels that look at all they are given ------------------------------------------------------------------------

template <class T, int N>
word look_at(const view<T, N>& v) {
  word sum = 0;
  fuzz::must(v.volume() == 0 || v.data() != nullptr);
  std::array<index_t, 4> size{1, 1, 1, 1}, stride{};
  for (int d = 0; d < N; ++d) {
    size[static_cast<std::size_t>(d)] = std::min<index_t>(v.size(d), 64);
    stride[static_cast<std::size_t>(d)] = v.stride(d);
  }
  for (index_t a = 0; a < size[0]; ++a)
    for (index_t b = 0; b < size[1]; ++b)
      for (index_t c = 0; c < size[2]; ++c)
        for (index_t d = 0; d < size[3]; ++d) {
          T& x = v.data()[a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3]];
          if constexpr (!std::is_const_v<T>) x = static_cast<T>(x + 1);
          sum += static_cast<word>(x);
        }
  if (v.volume() != 0) {  // and the last of it
    index_t last = 0;
    for (int d = 0; d < N; ++d) last += (v.size(d) - 1) * v.stride(d);
    sum += static_cast<word>(v.data()[last]);
  }
  return sum;
}

inline word seen = 0;
inline constexpr auto line =
    troupe::kernel<troupe::in<word, 1>, troupe::out<word, 1>>("fuzz.line")
        .on(troupe::cpu, [](view<const word, 1> a, view<word, 1> b) { seen += look_at(a) + look_at(b); });
inline constexpr auto space =
    troupe::kernel<troupe::in<std::uint8_t, 3>, troupe::inout<std::uint32_t, 4>, bool>("fuzz.space")
        .on(troupe::cpu,
            [](view<const std::uint8_t, 3> a, view<std::uint32_t, 4> b, bool) { seen += look_at(a) + look_at(b); });
inline constexpr auto sum =
    troupe::kernel<troupe::in<word, 2>, troupe::red<word, 2>>("fuzz.sum")
        .on(troupe::cpu, [](view<const word, 2> a, view<word, 2> b) { seen += look_at(a) + look_at(b); });
inline constexpr auto pair = troupe::kernel<troupe::in<word, 2>, troupe::inout<word, 2>>("fuzz.pair")
                                 .requiring(troupe::same_shape(0, 1), troupe::not_empty(0))
                                 .on(troupe::cpu, [](view<const word, 2> a, view<word, 2> b) {
                                   fuzz::must(a.size(0) == b.size(0) && a.size(1) == b.size(1) && a.volume() != 0);
                                   for (index_t y = 0; y < b.size(0); ++y) {
                                     word* const to = b.data() + y * b.stride(0);
                                     const word* const from = a.data() + y * a.stride(0);
                                     for (index_t x = 0; x < b.size(1); ++x) to[x] += from[x];
                                   }
                                 });
struct large {
  std::array<std::uint8_t, 64> bytes;
};
inline constexpr auto wide = troupe::kernel<troupe::in<large, 2>, troupe::inout<word, 2>>("fuzz.wide")
                                 .on(troupe::cpu, [](view<const large, 2> a, view<word, 2> b) {
                                   fuzz::must(a.volume() == 0 || a.data() != nullptr);
                                   for (index_t y = 0; y < std::min<index_t>(a.size(0), 64); ++y)
                                     for (index_t x = 0; x < std::min<index_t>(a.size(1), 64); ++x)
                                       seen += a.data()[y * a.stride(0) + x * a.stride(1)].bytes[63];
                                   seen += look_at(b);
                                 });
inline constexpr auto several =
    troupe::kernel<troupe::in_all<word, 2>, std::span<const bool>, troupe::inout_all<word, 2>, word>("fuzz.several")
        .requiring(troupe::not_empty(0))
        .on(troupe::cpu, [](std::span<const view<const word, 2>> a, std::span<const bool> truths,
                            std::span<const view<word, 2>> b, word) {
          for (const auto& v : a) {
            fuzz::must(v.volume() != 0);
            seen += look_at(v);
          }
          for (const bool& t : truths) fuzz::must(reinterpret_cast<const unsigned char&>(t) < 2);
          for (const auto& v : b) seen += look_at(v);
        });
const troupe::offer offered{line, space, sum, pair, wide, several};

// ---- what a member says ---------------------------------------------------------------------------------------------

/// Bytes of an input, zeros when it has ended.
class script {
 public:
  explicit script(std::span<const std::uint8_t> all) : left_(all) {}
  bool is_over() const { return left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t b = left_.front();
    left_ = left_.subspan(1);
    return b;
  }

 private:
  std::span<const std::uint8_t> left_;
};

class conversation : public troupe::array_maker<conversation>, public troupe::submitter<conversation> {
 public:
  conversation() : w_(1) {
    w_.body = std::chrono::microseconds(100);
    w_.start(0, 1);
    meet();
  }
  void run(std::span<const std::uint8_t> input) {
    script from(input);
    for (int steps = 0; steps < 256 && !from.is_over(); ++steps) {
      if (!other_ || !other_->is_member || losses_ != other_->losses) begin_anew();
      step(from);
    }
    end();
  }
  troupe::detail::target submission_target() const { return {&w_.nodes[0]->the_engine(), nullptr}; }

 private:
  struct theirs {  // a task that the member was given
    std::uint64_t id;
    wire::task_descriptor card;
  };

  bool until(const std::function<bool()>& f, std::chrono::seconds limit = std::chrono::seconds(60)) {
    return w_.network.run_until(f, limit);
  }
  void meet() {
    other_.emplace(w_);
    fuzz::must(until([&] { return other_->is_member; }));
    losses_ = other_->losses;
  }
  // Begins anew: the node was given up, and what was said does not hold any more.
  void begin_anew() {
    other_->heard.clear();
    arrays_.clear();
    tasks_.clear();
    own_arrays_.clear();
    graphs_.clear();
    if (!until([&] { return other_->is_member; }, std::chrono::seconds(20))) {
      other_.reset();  // it is out of the cluster for good: another process takes its place
      w_.run_for(std::chrono::seconds(5));
      meet();
    }
    losses_ = other_->losses;
    next_id_ = 1;
    pushed_ = 0;
  }
  void end() {
    other_.reset();
    for (const auto& f : futures_) fuzz::must(until([&] { return f.is_ready(); }, std::chrono::seconds(600)));
    const auto x = filled<word>({4, 3}, troupe::tiles(4, 3), word{7}, "last");
    const auto f = spawn({.where = troupe::scope::here()}, test::kernels::change, troupe::update(x), word{1});
    fuzz::must(until([&] { return f.is_ready(); }, std::chrono::seconds(600)));
    f.get();
  }

  // ---- changed and sent
  static void change(std::vector<std::byte>& frame, script& from, std::uint8_t times) {
    for (; times != 0 && !frame.empty(); --times) {
      const std::size_t at = (from.byte() | std::size_t{from.byte()} << 8) % frame.size();
      const std::uint8_t how = from.byte(), what = from.byte();
      switch (how % 4) {
        case 0:
          frame[at] = std::byte{what};
          break;
        case 1:
          frame[at] ^= std::byte{what};
          break;
        case 2:
          frame.insert(frame.begin() + static_cast<std::ptrdiff_t>(at), std::byte{what});
          break;
        default:
          frame.resize(at);
      }
    }
  }
  void say(net::writer& frame) {
    std::vector<std::byte> bytes = frame.take();
    change(bytes, *now_, changes_);
    other_->say(bytes);
  }
  void send(net::writer& head, std::size_t bytes) {
    std::vector<std::byte> title = head.take();
    change(title, *now_, changes_);
    other_->send(title, std::min<std::size_t>(bytes, 1u << 20));
  }
  void say(const membership_message& m) {
    std::vector<std::byte> bytes = encode(m);
    change(bytes, *now_, changes_);
    other_->say_raw(bytes);
  }

  // ---- as an owner
  const wire::array_descriptor* array(std::size_t n) const {
    return arrays_.empty() ? nullptr : &arrays_[n % arrays_.size()];
  }
  const wire::array_descriptor* array_of(int rank, std::uint64_t element, std::size_t n) const {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const wire::array_descriptor& a = arrays_[(i + n) % arrays_.size()];
      if (a.rank == rank && a.element == element) return &a;
    }
    return nullptr;
  }
  void name_array(std::uint8_t a, std::uint8_t b) {
    struct kind {
      int rank;
      std::uint64_t element;
    };
    constexpr kind kinds[] = {{2, 8}, {1, 8}, {3, 1}, {4, 4}, {2, 8}, {2, 64}};
    const kind& k = kinds[a % std::size(kinds)];
    wire::tasks t;
    wire::array_descriptor& c = t.arrays.emplace_back();
    c.id = next_id_++;
    c.rank = k.rank;
    c.element = c.align = k.element;
    for (int d = 0; d < k.rank; ++d) {
      c.size[static_cast<std::size_t>(d)] = 1 + (b >> d) % 7;
      c.tile[static_cast<std::size_t>(d)] = 1 + (b >> (d + 2)) % 5;
    }
    c.name = "theirs";
    arrays_.push_back(c);
    net::writer f;
    wire::put(f, t);
    say(f);
  }
  static logic::box4 tile_of(const wire::array_descriptor& a, std::size_t n) {
    logic::box4 b;
    b.hi = a.size;
    for (std::size_t d = 0; d < 4; ++d) {
      const index_t tiles = (a.size[d] + a.tile[d] - 1) / a.tile[d];
      const index_t i = static_cast<index_t>(n) % tiles;
      n /= static_cast<std::size_t>(tiles);
      b.lo[d] = i * a.tile[d];
      b.hi[d] = std::min(b.lo[d] + a.tile[d], a.size[d]);
    }
    return b;
  }
  static std::uint32_t number_of(const wire::array_descriptor& a, const logic::box4& tile) {
    index_t t = 0;
    for (std::size_t d = 0; d < 4; ++d) t = t * ((a.size[d] + a.tile[d] - 1) / a.tile[d]) + tile.lo[d] / a.tile[d];
    return static_cast<std::uint32_t>(t);
  }
  static std::size_t tiles_of(const wire::array_descriptor& a) {
    std::size_t n = 1;
    for (std::size_t d = 0; d < 4; ++d) n *= static_cast<std::size_t>((a.size[d] + a.tile[d] - 1) / a.tile[d]);
    return n;
  }
  wire::access_descriptor access(const wire::array_descriptor& a, access_mode mode, std::uint8_t how, bool fills) {
    wire::access_descriptor x;
    x.array = a.id;
    x.mode = mode;
    x.limit.hi = a.size;
    x.where = how % 3 == 0 ? tile_of(a, how / 3u) : x.limit;
    if (how % 3 == 2 && mode == access_mode::read) {  // a window
      constexpr border edges[] = {border::clip, border::clamp, border::wrap, border::fill};
      x.edge = edges[how / 3 % 4];  // of what is too large for a constant, too: then it is refused
      for (std::size_t d = 0; d < static_cast<std::size_t>(a.rank); ++d) {
        x.where.lo[d] -= how / 12 % 5;
        x.where.hi[d] += how / 12 % 5;
      }
    }
    x.fresh = mode == access_mode::reduce;
    if (x.fresh && (how & 128)) {
      x.group = 1 + how % 3u;
      x.op = a.element == 4 ? operator_code<std::int32_t, std::plus<>>() : operator_code<double, std::plus<>>();
    }
    x.returns = x.fresh || (mode != access_mode::read && how % 2 == 0);
    if (mode == access_mode::write || x.fresh || !fills) return x;
    for (std::size_t i = 0; i < tiles_of(a); ++i) {
      const logic::box4 tile = tile_of(a, i);
      wire::gap g{.tile = number_of(a, tile), .where = tile};
      if (how & 64) {
        g.pushed = ++pushed_;
        pushes_.emplace_back(g.pushed, static_cast<std::size_t>(tile.volume()) * a.element);
      } else if (how & 128) {
        g.lent = 7;
        g.from = id_of(how);
      }
      x.gaps.push_back(g);
    }
    return x;
  }
  void give_task(std::uint8_t a, std::uint8_t b) {
    wire::tasks t;
    wire::task_descriptor& c = t.all.emplace_back();
    c.id = next_id_++;
    const auto calls = [&](const auto& k, std::initializer_list<std::pair<int, std::uint64_t>> arrays) {
      c.kernel = k.info().key;
      const offered_kernel* const o = find_offer(c.kernel);
      std::size_t n = 0;
      for (const parameter_facts& p : o->parameters) {
        if (!p.is_array) {
          c.values.emplace_back(p.is_list ? b % 5 * p.bytes : p.bytes, std::byte{1});
          continue;
        }
        const auto& [rank, element] = arrays.begin()[n++];
        const list_length count = p.is_list ? (b + n) % 4 : 1;
        if (p.is_list) {
          const auto bytes = std::as_bytes(std::span(&count, 1));
          c.values.emplace_back(bytes.begin(), bytes.end());
        }
        for (list_length i = 0; i < count; ++i) {
          const wire::array_descriptor* const x = array_of(rank, element, b + n + i);
          if (!x) return false;
          c.accesses.push_back(access(*x, p.mode, static_cast<std::uint8_t>(b + 7 * n + i), (a & 128) == 0));
        }
      }
      return true;
    };
    bool is = false;
    switch (a % 9) {
      case 8:
        is = a & 64 ? calls(several, {{2, 8}, {2, 8}}) : calls(wide, {{2, 64}, {2, 8}});
        break;
      case 0:
        is = calls(line, {{1, 8}, {1, 8}});
        break;
      case 1:
        is = calls(space, {{3, 1}, {4, 4}});
        break;
      case 2:
        is = calls(sum, {{2, 8}, {2, 8}});
        break;
      case 3:
        is = calls(pair, {{2, 8}, {2, 8}});
        break;
      case 4:
        is = calls(test::kernels::fail, {{2, 8}});
        break;
      case 5:
        is = calls(test::kernels::two, {{2, 8}, {2, 8}, {2, 8}});
        break;
      case 6:
        is = calls(test::kernels::once, {{2, 8}});
        break;
      default:
        is = calls(test::kernels::change, {{2, 8}});
    }
    if (!is) return;
    if (b % 16 == 0) c.resources = {{"cpu", 1}};
    if (b % 16 == 1) c.retries = 2;
    c.watched = b % 16 == 2;
    net::writer f;
    wire::put(f, t);
    say(f);
  }
  void request(wire::kind what, std::uint8_t a, std::uint8_t b) {
    const wire::array_descriptor* const x = array(a);
    if (!x) return;
    const logic::box4 tile = tile_of(*x, b);
    net::writer f;
    f.fixed(what);
    if (what == wire::kind::gaps) {
      f.varint(x->id);
      wire::put(f, wire::gap{.tile = number_of(*x, tile), .where = tile});
    } else {
      wire::put(f, wire::box_request{b % 8u, x->id, {.tile = number_of(*x, tile), .where = tile}});
    }
    say(f);
  }
  void answer_wants(std::uint8_t a) {
    for (const auto& frame : std::exchange(other_->heard[wire::kind::fetch_in], {})) {
      net::reader from(frame);
      for (const wire::box_request& r : wire::take_requests(from)) {
        std::uint64_t element = 8;
        for (const auto& x : arrays_)
          if (x.id == r.array) element = x.element;
        net::writer head;
        head.fixed(wire::kind::bytes_in);
        head.varint(r.number);
        send(head, static_cast<std::size_t>(r.what.where.volume()) * element + a % 2);
      }
    }
  }

  // ---- as the node that runs
  void spawn_there(std::uint8_t a, std::uint8_t b) {
    if (futures_.size() > 64) return;
    const auto there = troupe::scope::at("false");
    troupe::task_options how{.where = a & 32 ? troupe::scope() : there};
    const auto fresh = [&] {
      const index_t rows = 1 + b % 5, tile = 1 + b / 5 % 3;
      return filled<word>({rows, 3}, troupe::tiles(tile, 2), word{7}, "own", {.replicas = 1 + a / 64 % 2});
    };
    if (own_arrays_.size() < 4) own_arrays_.push_back(fresh());
    const auto& x = own_arrays_[b % own_arrays_.size()];
    const auto& y = own_arrays_[(b / 4u) % own_arrays_.size()];
    try {
      switch (a % 6) {
        case 0:
          futures_.push_back(spawn(how, test::kernels::change, troupe::update(x), word{1}));
          break;
        case 1:
          futures_.push_back(spawn(how, test::kernels::write, troupe::write(x.sub({{0, 0}, {1, 1}})), word{1}));
          break;
        case 2:
          futures_.push_back(spawn(how, sum, troupe::read(x), troupe::reduce(y)));
          break;
        case 3:
          futures_.push_back(
              for_each(how, troupe::grid(x.size(0), x.size(1)), test::kernels::change, troupe::update(x), word{2}));
          break;
        case 4:
          futures_.push_back(spawn(how, test::kernels::once, troupe::update(x), word{3}));
          break;
        default:
          own_arrays_.erase(own_arrays_.begin());
      }
    } catch (const troupe::error&) {  // nobody there, or the two are one array
    }
  }
  void hear_tasks() {
    for (const auto& frame : std::exchange(other_->heard[wire::kind::tasks], {})) {
      net::reader from(frame);
      for (wire::task_descriptor& c : wire::take_tasks(from).all) tasks_.push_back({c.id, std::move(c)});
    }
  }
  void tell_end(std::uint8_t a, std::uint8_t b) {
    if (tasks_.empty()) return;
    const std::size_t at = a % tasks_.size();
    net::writer f;
    f.varint(static_cast<std::uint64_t>(wire::kind::done));
    wire::put(f, wire::task_end{.id = tasks_[at].id,
                                .how = static_cast<wire::outcome>(b % 8 < 5 ? b % 8 : 0),
                                .measured_ns = 1000,
                                .attempts = b % 16 == 15 ? b / 16 : 1,
                                .code = static_cast<troupe::errc>(b / 8 % 20),
                                .text = "as it says",
                                .in_sum = b % 3 == 0});
    if (b < 200) tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(at));
    say(f);
  }
  void send_back(std::uint8_t a, std::uint8_t b) {
    if (tasks_.empty()) return;
    const theirs& t = tasks_[a % tasks_.size()];
    for (std::size_t i = 0; i < t.card.accesses.size(); ++i) {
      if (!t.card.accesses[i].returns && b < 128) continue;
      net::writer head;
      head.fixed(wire::kind::bytes_back);
      head.varint(t.id);
      head.varint(i);
      const bool others = (b & 16) != 0;  // in a sum with another task's
      head.varint(others ? 1 : 0);
      if (others) head.varint(tasks_[b % tasks_.size()].id);
      const auto& x = t.card.accesses[i];
      send(head, b % 8 == 7 ? 0 : static_cast<std::size_t>(intersect(x.where, x.limit).volume()) * sizeof(word));
    }
  }
  void answer_requests(wire::kind what, std::uint8_t b) {
    for (const auto& frame : std::exchange(other_->heard[what], {})) {
      net::reader from(frame);
      for (const wire::box_request& r : wire::take_requests(from)) {
        net::writer f;
        if (b % 4 == 0) {
          f.fixed(wire::kind::not_sent);
          f.varint(r.number);
          f.varint(static_cast<std::uint64_t>(troupe::errc::data_lost));
          f.text("as it says");
          say(f);
          continue;
        }
        f.fixed(b % 4 == 1 ? wire::kind::bytes_back : wire::kind::bytes_home);
        f.varint(r.number);
        if (b % 4 == 1) f.varint(0);
        if (b % 4 == 1) f.varint(0);
        send(f, b % 8 == 7 ? 0 : static_cast<std::size_t>(r.what.where.volume()) * sizeof(word));
      }
    }
  }
  void ask_for_gap(wire::kind what, std::uint8_t a) {
    if (tasks_.empty()) return;
    const theirs& t = tasks_[a % tasks_.size()];
    for (const wire::access_descriptor& x : t.card.accesses)
      for (const wire::gap& g : x.gaps) {
        net::writer f;
        f.fixed(what);
        wire::put(f, wire::box_request{a, x.array, {.tile = g.tile, .where = g.where}});
        return say(f);
      }
  }

  // ---- of graphs over several nodes
  struct defined {
    struct held {
      wire::array_descriptor array;
      std::uint32_t tile;
      std::optional<logic::box4> box;  // of the tile
    };
    std::vector<held> tiles;  // of a run
  };
  void define_graph(std::uint8_t a, std::uint8_t b) {
    std::vector<wire::array_descriptor> used;
    for (std::uint8_t i = 0; i < 3; ++i)
      if (const wire::array_descriptor* const x = array_of(2, 8, b + i)) used.push_back(*x);
    if (used.empty()) return;
    wire::graph_definition d;
    d.graph = 1 + b % 3u;
    d.part = 1;
    d.members = {detail::name_of(other_->id()), detail::name_of(w_.nodes[0]->id())};
    defined& mine = graphs_[d.graph];
    mine.tiles.clear();
    for (std::uint32_t i = 0; i < used.size(); ++i) {
      d.arrays.push_back(used[i]);
      d.arrays.back().id = i;
      for (std::uint32_t t = 0; (a >> i & 1) != 0 && t < tiles_of(used[i]); ++t) {
        d.bound.push_back({i, t});
        if ((a >> 6 & 1) != 0) {
          logic::box4& row = d.bound.back().box.emplace(tile_of(used[i], t));
          row.hi[0] = row.lo[0] + 1;
        }
        mine.tiles.push_back({used[i], t, d.bound.back().box});
      }
    }
    for (int n = 1 + a / 8 % 8; n > 0; --n) d.steps.push_back(step_of_graph(d));
    for (net::writer& f : wire::frames_of(d)) say(f);
  }
  wire::graph_step step_of_graph(const wire::graph_definition& d) {
    const std::uint8_t k = now_->byte(), m = now_->byte();
    const auto first = static_cast<std::uint32_t>(m % d.arrays.size()),
               second = static_cast<std::uint32_t>((m + 1u) % d.arrays.size());
    wire::graph_step s;
    if ((k & 64) != 0 && !d.steps.empty()) s.after.push_back({static_cast<std::uint32_t>(d.steps.size() - 1), true});
    s.where = tile_of(d.arrays[first], m / 4u);
    s.array = first;
    s.tile = number_of(d.arrays[first], s.where);
    s.other = 0;
    s.crossing = m % 4u;
    s.into = second;
    s.op = operator_code<word, std::plus<>>();
    switch (k % 8) {
      case 0:
        s.kind = wire::graph_step::what::send;
        return s;
      case 1:
        s.kind = wire::graph_step::what::take;
        return s;
      case 2:
      case 3:
        s.kind = wire::graph_step::what::fill;
        return s;
      case 4:
        s.kind = wire::graph_step::what::merge;
        return s;
      default:
        break;
    }
    const auto takes = [&](const auto& kernel, std::initializer_list<access_mode> modes) {
      s.call.kernel = kernel.info().key;
      s.call.values.emplace_back(sizeof(word), std::byte{1});
      std::uint32_t at = first;
      for (const access_mode mode : modes) {
        wire::access_descriptor& x =
            s.call.accesses.emplace_back(access(d.arrays[std::exchange(at, second)], mode, k / 8 % 4, false));
        if (!x.fresh) x.returns = false;
        if (x.fresh && (m & 128) != 0) {
          x.group = 1;
          x.op = s.op;
        }
      }
    };
    if (k % 8 == 5) takes(test::kernels::change, {access_mode::update});
    if (k % 8 == 6) takes(test::kernels::derive, {access_mode::read, access_mode::write});
    if (k % 8 == 7) takes(test::kernels::add, {access_mode::read, access_mode::reduce});
    return s;
  }
  void say_of_graphs(std::uint8_t a, std::uint8_t b) {
    const std::uint64_t graph = 1 + b % 3u, run = 1 + b / 4u % 4;
    net::writer f;
    switch (a % 8) {
      case 5: {
        wire::put(f, wire::crossing_head{detail::name_of(other_->id()), graph, run, b / 16u % 4});
        const std::vector<std::byte> bytes((a / 8u + 1) * sizeof(word), std::byte{1});
        f.raw(bytes.data(), bytes.size());
        return say(f);
      }
      case 6:
        wire::put(f, wire::graph_failure{detail::name_of(other_->id()), graph, run, (b & 64) != 0, b / 16u % 4});
        return say(f);
      case 7:
        return say_number(wire::kind::graph_drop, graph);
      case 3:
      case 4: {
        wire::tasks t;
        wire::task_descriptor& c = t.all.emplace_back();
        c.id = next_id_++;
        c.kernel = graph_part_kernel.key;
        for (const std::uint64_t v : {graph, run}) {
          const auto bytes = std::as_bytes(std::span(&v, 1));
          c.values.emplace_back(bytes.begin(), bytes.end());
        }
        for (const auto& [array, tile, box] : graphs_[graph].tiles) {
          wire::access_descriptor& x = c.accesses.emplace_back();
          x.array = array.id;
          x.mode = box ? access_mode::read : access_mode::update;
          x.limit.hi = array.size;
          x.where = box ? *box : tile_of(array, tile);
          x.gaps.push_back({.tile = tile, .where = x.where});
        }
        wire::put(f, t);
        return say(f);
      }
      default:
        return define_graph(a, b);
    }
  }

  // ---- of members
  detail::node_id id_of(std::uint8_t a) const {
    if (a % 3 == 0) return detail::name_of(w_.nodes[0]->id());
    if (a % 3 == 1) return detail::name_of(other_->id());
    detail::node_id n;
    n.bytes.fill(a);
    return n;
  }
  detail::node_record record_of(std::uint8_t a, std::uint8_t b) const {
    return {id_of(a), 1, b, static_cast<detail::node_claim>(b % 4), {{"10.0.0." + std::to_string(a % 9), 4711}}};
  }
  void say_of_members(std::uint8_t a, std::uint8_t b) {
    const auto id = id_of(b);
    const detail::view_ballot ballot{b, id};
    const std::uint64_t number = a / 16u;
    const detail::view_change change{{b % 3u}, {id}};
    switch (a % 15) {
      case 0:
        return say(detail::node_hello{record_of(1, b), (b & 1) != 0, record_of(0, b), b, 1, detail::link_use::work});
      case 1:
        return say(detail::node_beat{true, b, b, {record_of(a, b)}, b, b, b});
      case 2:
        return say(detail::node_probe{id});
      case 3:
        return say(detail::node_alive{id});
      case 4:
        return say(detail::node_news{(b & 1) != 0, (b & 2) != 0, {record_of(b, a), record_of(a, b)}});
      case 5:
        return say(detail::view_prepare{number, id, ballot});
      case 6:
        return say(detail::view_promise{number, ballot, ballot, {id}});
      case 7:
        return say(detail::view_accept{number, id, ballot, {id, id_of(a)}});
      case 8:
        return say(detail::view_accepted{number, ballot});
      case 9:
        return say(detail::view_agreed{{number, id, {id, id_of(a)}}});
      case 10:
        return say(detail::node_link{static_cast<detail::link_use>(b % 3)});
      case 11:
        return say(detail::node_rest{});
      case 12:
        return say(detail::node_sums{true, std::vector<std::uint64_t>(64, b)});
      case 13:
        return say(detail::view_poll{number, id, ballot, (b & 1) != 0, ballot, change, {b}});
      default:
        return say(detail::view_step{number, id, change});
    }
  }
  void say_of_itself(std::uint8_t a, std::uint8_t b) {
    net::writer f;
    switch (a % 5) {
      case 0:
        wire::put(f, wire::load_notice{b, b, std::uint64_t{b} << 20});
        break;
      case 1:
        wire::put_numbered(f, wire::kind::ping, b);
        break;
      case 2:
        wire::put_numbered(f, wire::kind::pong, b);
        break;
      case 3:
        wire::put_numbered(f, wire::kind::describe, b);
        break;
      default:
        wire::put(f, wire::self_descriptor{.number = b});
    }
    say(f);
  }
  void say_number(wire::kind what, std::uint64_t number) {
    net::writer f;
    f.fixed(what);
    f.varint(number);
    say(f);
  }
  void say_pull(std::uint8_t a, std::uint8_t b) {
    net::writer f;
    switch (a % 3) {
      case 0:
        wire::put(f, wire::pull_request{id_of(b), b % 8u, a, {}});
        break;
      case 1:
        wire::put(f, wire::pull_refusal{id_of(b), 7, a, "as it says"});
        break;
      default:
        f.fixed(wire::kind::no_pull);
        f.varint(7);
        wire::put(f, id_of(b));
    }
    say(f);
  }

  void step(script& from) {
    const std::uint8_t first = from.byte(), a = from.byte(), b = from.byte();
    changes_ = first >> 6;
    now_ = &from;
    hear_tasks();
    switch (first % 32) {
      case 0:
      case 1:
        return name_array(a, b);
      case 2:
      case 3:
      case 4:
        return give_task(a, b);
      case 5:
        return answer_wants(a);
      case 6:
      case 7:
        return spawn_there(a, b);
      case 8:
      case 9:
        return tell_end(a, b);
      case 10:
        return send_back(a, b);
      case 11:
        return answer_requests(a & 1 ? wire::kind::fetch_home : wire::kind::snapshot, b);
      case 12:
        return ask_for_gap(a & 1 ? wire::kind::fetch_in : wire::kind::unfilled, b);
      case 13:
        return say_number(b % 4 == 3 ? wire::kind::tried : wire::kind::begun,
                          tasks_.empty() ? b : tasks_[a % tasks_.size()].id);
      case 14:
        return request(wire::kind::fetch_home, a, b);
      case 15:
        return request(wire::kind::snapshot, a, b);
      case 16:
        return request(a & 1 ? wire::kind::lend : wire::kind::lend_written, a, b);
      case 17:
        return request(wire::kind::gaps, a, b);
      case 18:
        return say_number(wire::kind::unlend, b % 8u);
      case 19:
        return say_pull(a, b);
      case 20:
        return say_number(a & 1 ? wire::kind::cancel : wire::kind::recall, 1 + b % (next_id_ + 1));
      case 21:
        if (const wire::array_descriptor* const x = array(a)) say_number(wire::kind::forget, x->id);
        return;
      case 22: {
        net::writer f;
        f.fixed(b & 1 ? wire::kind::leaving : wire::kind::released);
        return say(f);
      }
      case 23: {
        net::writer f;
        wire::put(f, wire::node_descriptor{a, b, (b & 1) != 0, {{"licence", 1}}, offered_keys()});
        return say(f);
      }
      case 24:
      case 25:
        return say_of_members(a, b);
      case 26:
        return say_of_itself(a, b);
      case 27: {
        if (pushes_.empty()) return;
        const auto [number, bytes] = pushes_[a % pushes_.size()];
        net::writer head;
        head.fixed(wire::kind::bytes_pushed);
        head.varint(number);
        return send(head, b % 8 == 7 ? 0 : bytes);
      }
      case 28: {
        net::writer head;
        if (b % 4 == 3) {
          wire::put_numbered(head, b & 64 ? wire::kind::check : wire::kind::checked, a);
          return send(head, b & 128 ? 8 : wire::check_bytes);
        }
        wire::put(head, wire::pulled_head{a, id_of(b), 7});
        return send(head, b % 8 == 7 ? 0 : 8);
      }
      case 29: {
        std::vector<std::byte> raw;
        for (int i = b % 16; i >= 0; --i) raw.push_back(std::byte{from.byte()});
        a & 1 ? other_->say(raw) : other_->say_raw(raw);
        return;
      }
      case 30:
        return say_of_graphs(a, b);
      default:
        w_.run_for(std::chrono::microseconds(100) * (1 + a) * (b & 1 ? 20 : 1));
    }
  }

  test::imagined_world w_;
  std::optional<test::false_member> other_;
  int losses_ = 0;
  script* now_ = nullptr;
  std::uint8_t changes_ = 0;
  std::vector<wire::array_descriptor> arrays_;
  std::uint64_t next_id_ = 1, pushed_ = 0;
  std::vector<std::pair<std::uint64_t, std::size_t>> pushes_;
  std::vector<theirs> tasks_;
  std::map<std::uint64_t, defined> graphs_;
  std::vector<troupe::array<word, 2>> own_arrays_;
  std::vector<troupe::future<void>> futures_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  test::begun().clear();
  conversation c;
  c.run({data, size});
  return 0;
}
