// What this file is for: encoding and decoding of what nodes say about recorded graphs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/graph_messages.hpp"

#include <algorithm>
#include <string_view>

namespace troupe::detail::wire {

namespace {

constexpr std::size_t frame_bytes = 48u << 10;

enum class item : std::uint8_t { end_of_frame, end, members, array, bound, step, bound_box };

[[noreturn]] void refuse(const char* what) { throw error(errc::protocol_error, std::string(what) + " in a frame"); }

void put(net::writer& to, const graph_step& s) {
  to.fixed(s.kind);
  if (s.kind == graph_step::what::call) wire::put(to, s.call);
  if (s.kind == graph_step::what::send || s.kind == graph_step::what::take) {
    to.varint(s.crossing);
    to.varint(s.other);
    to.varint(s.array == graph_step::no_array ? 0 : std::uint64_t{s.array} + 1);
    if (s.array != graph_step::no_array) {
      to.varint(s.tile);
      put_box(to, s.where);
    }
  }
  if (s.kind == graph_step::what::fill || s.kind == graph_step::what::merge) {
    to.varint(s.array);
    to.varint(s.tile);
    put_box(to, s.where);
  }
  if (s.kind == graph_step::what::fill) to.raw(s.element.data(), s.element.size());
  if (s.kind == graph_step::what::merge) {
    to.varint(s.into);
    to.fixed(s.op);
  }
  to.varint(s.after.size());
  for (const graph_step::link& l : s.after) to.varint(std::uint64_t{l.step} << 1 | (l.data ? 1 : 0));
}

std::uint32_t take_32(net::reader& from, const char* what) {
  return static_cast<std::uint32_t>(from.at_most(0xfffffffe, what));
}

graph_step take_step(net::reader& from) {
  graph_step s;
  s.kind = from.fixed<graph_step::what>();
  if (s.kind > graph_step::what::merge) refuse("an unknown step");
  if (s.kind == graph_step::what::call) s.call = take_task(from);
  if (s.kind == graph_step::what::send || s.kind == graph_step::what::take) {
    s.crossing = take_32(from, "a crossing");
    s.other = take_32(from, "a part");
    const std::uint32_t array = take_32(from, "an array");
    if (array != 0) {
      s.array = array - 1;
      s.tile = take_32(from, "a tile");
      s.where = take_box(from);
    }
  }
  if (s.kind == graph_step::what::fill || s.kind == graph_step::what::merge) {
    s.array = take_32(from, "an array");
    s.tile = take_32(from, "a tile");
    s.where = take_box(from);
  }
  if (s.kind == graph_step::what::fill) {
    const auto bytes = from.raw(s.element.size());
    std::copy(bytes.begin(), bytes.end(), s.element.begin());
  }
  if (s.kind == graph_step::what::merge) {
    s.into = take_32(from, "an array");
    s.op = from.fixed<std::uint16_t>();
  }
  for (std::size_t left = from.count(1, "a number of links"); left != 0; --left) {
    const std::uint64_t l = from.at_most(graph_steps_max << 1, "a link");
    s.after.push_back({static_cast<std::uint32_t>(l >> 1), (l & 1) != 0});
  }
  return s;
}

}  // namespace

std::vector<net::writer> frames_of(const graph_definition& d) {
  std::vector<net::writer> all;
  const auto begin = [&] {
    net::writer& w = all.emplace_back();
    w.fixed(kind::graph_define);
    w.varint(d.graph);
  };
  const auto next = [&](item what) -> net::writer& {
    if (all.back().size() > frame_bytes) {
      all.back().fixed(item::end_of_frame);
      begin();
    }
    all.back().fixed(what);
    return all.back();
  };
  begin();
  net::writer& first = next(item::members);
  first.varint(d.part);
  first.varint(d.members.size());
  for (const node_id& n : d.members) put(first, n);
  for (const array_descriptor& a : d.arrays) put(next(item::array), a);
  for (const graph_tile& b : d.bound) {
    net::writer& w = next(b.box ? item::bound_box : item::bound);
    w.varint(b.array);
    w.varint(b.tile);
    if (b.box) put_box(w, *b.box);
  }
  for (const graph_step& s : d.steps) put(next(item::step), s);
  next(item::end);
  return all;
}

std::uint64_t graph_of(net::reader from) { return from.varint(); }

bool take_definition(net::reader& from, graph_definition& d) {
  d.graph = from.varint();
  for (;;) {
    const item what = from.fixed<item>();
    switch (what) {
      case item::end_of_frame:
        from.end();
        return false;
      case item::end:
        from.end();
        return true;
      case item::members:
        if (!d.members.empty()) refuse("members that were named before");
        d.part = take_32(from, "a part");
        for (std::uint64_t left = from.at_most(graph_members_max, "a number of members"); left != 0; --left)
          d.members.push_back(take_node(from));
        if (d.part >= d.members.size()) refuse("a part of nobody");
        break;
      case item::array:
        d.arrays.push_back(take_array(from));
        break;
      case item::bound:
      case item::bound_box: {
        graph_tile b;
        b.array = take_32(from, "an array");
        b.tile = take_32(from, "a tile");
        if (what == item::bound_box) b.box = take_box(from);
        d.bound.push_back(b);
        break;
      }
      case item::step:
        if (d.steps.size() == graph_steps_max) refuse("more steps than a part may have");
        d.steps.push_back(take_step(from));
        break;
      default:
        refuse("an unknown item of a graph");
    }
  }
}

void put(net::writer& to, const graph_answer& a) {
  to.fixed(kind::graph_ready);
  to.varint(a.graph);
  to.varint(a.is_ready ? 1 : 0);
  if (a.is_ready) return to.varint(a.edges);
  to.varint(static_cast<std::uint64_t>(a.code));
  to.text(std::string_view(a.text).substr(0, text_max));
}

graph_answer take_graph_answer(net::reader& from) {
  graph_answer a;
  a.graph = from.varint();
  a.is_ready = from.at_most(1, "a truth value") != 0;
  if (a.is_ready) {
    a.edges = from.varint();
  } else {
    a.code = take_code(from);
    a.text = from.text(text_max);
  }
  from.end();
  return a;
}

void put(net::writer& to, const crossing_head& h) {
  to.fixed(kind::crossing);
  put(to, h.owner);
  to.varint(h.graph);
  to.varint(h.run);
  to.varint(h.crossing);
}

crossing_head take_crossing(net::reader& from) {
  crossing_head h;
  h.owner = take_node(from);
  h.graph = from.varint();
  h.run = from.varint();
  h.crossing = take_32(from, "a crossing");
  return h;
}

void put(net::writer& to, const graph_failure& f) {
  to.fixed(kind::graph_failed);
  put(to, f.owner);
  to.varint(f.graph);
  to.varint(f.run);
  to.varint(f.whole_part ? 1 : 0);
  to.varint(f.number);
  to.varint(static_cast<std::uint64_t>(f.code));
  for (const std::string* s : {&f.task, &f.executor}) to.text(std::string_view(*s).substr(0, name_max));
  to.text(std::string_view(f.text).substr(0, text_max));
  to.varint(f.attempts);
}

graph_failure take_graph_failure(net::reader& from) {
  graph_failure f;
  f.owner = take_node(from);
  f.graph = from.varint();
  f.run = from.varint();
  f.whole_part = from.at_most(1, "a truth value") != 0;
  f.number = take_32(from, "a crossing");
  f.code = take_code(from);
  f.task = from.text(name_max);
  f.executor = from.text(name_max);
  f.text = from.text(text_max);
  f.attempts = static_cast<std::uint32_t>(from.at_most(1u << 30, "a number of attempts"));
  from.end();
  return f;
}

void describe(graph_failure& f, const std::exception_ptr& why) {
  try {
    if (why) std::rethrow_exception(why);
  } catch (const task_failed& x) {
    f.code = x.code();
    f.task = x.task();
    f.executor = x.executor();
    f.text = x.what();
    f.attempts = static_cast<std::uint32_t>(std::max(0, x.attempts()));
    if (x.root_task() != x.task())
      f.task.clear();  // of what came before, whose text says more
    else if (x.cause())
      try {
        std::rethrow_exception(x.cause());
      } catch (const std::exception& cause) {
        f.text = cause.what();
      } catch (...) {
        f.text = "an exception of another type";
      }
  } catch (const error& x) {
    f.code = x.code();
    f.text = x.what();
  } catch (const std::exception& x) {
    f.text = x.what();
  } catch (...) {
    f.text = "an exception of another type";
  }
}

std::exception_ptr error_of(const graph_failure& f) {
  const auto cause = std::make_exception_ptr(error(f.code, f.text));
  if (f.task.empty()) return cause;
  return std::make_exception_ptr(
      task_failed(f.code, f.text, f.task, f.executor, f.task, static_cast<int>(f.attempts), cause));
}

}  // namespace troupe::detail::wire
