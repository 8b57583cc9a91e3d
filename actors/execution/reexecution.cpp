// What this file is for: running the steps of a plan on arrays that stand in for those of the program.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A stand-in has the shape of an array, and its tiles are where the plan says: those read are in host memory, in a kept
// copy or in a buffer that an earlier step wrote; those written are fresh buffers. So bodies see views, windows and
// borders as in the first run.
#include "actors/execution/reexecution.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>

#include "actors/execution/run_context.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/wire/kernel_registry.hpp"
#include "actors/wire/task_messages.hpp"

namespace troupe::detail {

namespace {

using logic::reexecution_plan;
using logic::value;
using origin = reexecution_plan::origin;

/// Memory for one tile, allocated like the host's tiles.
class buffer {
 public:
  buffer() = default;
  buffer(runtime_state& rt, std::size_t bytes)
      : rt_(&rt), data_(rt.host->allocate(bytes, element_align_max)), bytes_(bytes) {}
  buffer(buffer&& b) noexcept : rt_(b.rt_), data_(std::exchange(b.data_, nullptr)), bytes_(b.bytes_) {}
  buffer& operator=(buffer&& b) noexcept {
    std::swap(rt_, b.rt_);
    std::swap(data_, b.data_);
    std::swap(bytes_, b.bytes_);
    return *this;
  }
  ~buffer() {
    if (data_) rt_->host->deallocate(data_, bytes_, element_align_max);
  }
  std::byte* data() const { return data_; }

 private:
  runtime_state* rt_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

struct by_name {
  bool operator()(const value& a, const value& b) const {
    return std::tie(a.array, a.tile, a.version) < std::tie(b.array, b.tile, b.version);
  }
};

std::unique_ptr<array_core> make_stand_in(runtime_state& rt, const wire::array_descriptor& c) {
  auto a = std::make_unique<array_core>();
  a->spec.rank = c.rank;
  a->spec.size = c.size;
  a->spec.tile = c.tile;
  a->spec.element = static_cast<std::size_t>(c.element);
  a->spec.align = static_cast<std::size_t>(c.align);
  a->spec.name = c.name;
  a->rt = &rt;
  a->id = c.id;
  a->tile_bytes_max = a->spec.element;
  for (int d = 0; d < rank_max; ++d) {
    a->grid[d] = std::max<index_t>(1, (c.size[d] + c.tile[d] - 1) / c.tile[d]);
    a->tile_count *= static_cast<std::uint32_t>(a->grid[d]);
    a->tile_bytes_max *= static_cast<std::size_t>(c.tile[d]);
  }
  a->states = &a->single;
  if (a->tile_count > 1) a->many_bytes = std::make_unique<tile_bytes[]>(a->tile_count);
  a->bytes = a->many_bytes ? a->many_bytes.get() : &a->single_bytes;
  return a;
}

region region_of(const wire::access_descriptor& x) {
  region r;
  r.lo = x.where.lo;
  r.hi = x.where.hi;
  r.limit_lo = x.limit.lo;
  r.limit_hi = x.limit.hi;
  r.edge = x.edge;
  r.fill = x.fill;
  return r;
}

void copy_tile(runtime_state& rt, const array_core& to, std::byte* to_bytes, const array_core& from,
               const std::byte* from_bytes, std::uint32_t tile) {
  const logic::box4 b = to.tile_box(tile);
  std::array<index_t, rank_max> count;
  for (int d = 0; d < rank_max; ++d) count[d] = b.size(d);
  rt.host->copy(to_bytes, host_strides(to, tile), from_bytes, host_strides(from, tile), count, to.spec.element);
}

class reexecutor {
 public:
  reexecutor(const reexecution_plan& p, const kept_copies& kept, runtime_state& rt)
      : plan_(p), kept_(kept), rt_(rt), errors_(p.steps.size()), context_(*rt.host, rt, scratch_, "here", no_) {}

  const reexecuted_bodies& bodies() const { return bodies_; }

  std::vector<reexecuted_value> all() {
    for (std::size_t n = 0; n < plan_.steps.size(); ++n) {
      const reexecution_plan::step& s = plan_.steps[n];
      try {
        run_step(s);
      } catch (...) {
        errors_[n] = std::current_exception();
      }
      end_step();
      for (const value& v : s.done_with) made_.erase(v);
    }
    std::vector<reexecuted_value> how;
    for (const reexecution_plan::source& r : plan_.reexecuted) {
      how.push_back({r.what, nullptr});
      try {
        if (r.where != origin::home) put_in_place(r);
      } catch (...) {
        how.back().error = std::current_exception();
      }
    }
    return how;
  }

 private:
  /// The accesses of a step to a tile.
  struct use {
    array_core* stand_in;
    array_core* array;
    bool reads = false, writes = false, as_a_whole = false;
    std::vector<logic::box4> read = {};  // where `reads`
  };
  using uses = std::map<std::pair<std::uint64_t, std::uint32_t>, use>;  // by array and tile

  struct record {
    explicit record(runtime_state& rt) : task(*take_record(rt)) {}
    record(const record&) = delete;
    record& operator=(const record&) = delete;
    ~record() { recycle(&task); }
    task_record& task;
  };

  void run_step(const reexecution_plan::step& s) {
    const auto& call = *static_cast<const repeatable_call*>(s.what.get());
    net::reader sent(call.descriptor);
    const wire::task_descriptor descriptor = wire::take_task(sent);
    for (const reexecution_plan::source& r : s.reads)
      if (r.where == origin::step && errors_[r.step]) std::rethrow_exception(errors_[r.step]);
    const offered_kernel* const k = find_offer(descriptor.kernel);
    if (!k)
      throw error(errc::no_executor,
                  "task '" + descriptor.name + "' cannot be repeated: its kernel is not offered here (troupe::offer)");
    if (!(k->info.kinds & 1u << static_cast<int>(device_kind::cpu)))
      throw error(errc::no_executor, std::string("task '") + name_of(descriptor, *k) +
                                         "' cannot be repeated: its kernel has no body for CPUs; add one");
    record r(rt_);
    uses touched;
    fill_in(r.task, call, descriptor, *k, touched);
    for (auto& [at, u] : touched) provide(s, at.first, at.second, u);
    run(r.task, descriptor.retries);
    for (const value& v : s.writes) {
      const auto b = written_.find({v.array, v.tile});
      if (b == written_.end()) throw error(errc::bad_argument, "a call of the log does not write what it is said to");
      made_[v] = std::move(b->second);
    }
  }

  static std::string name_of(const wire::task_descriptor& c, const offered_kernel& k) {
    return c.name.empty() ? k.info.name : c.name;
  }

  void fill_in(task_record& t, const repeatable_call& call, const wire::task_descriptor& c, const offered_kernel& k,
               uses& touched) {
    std::vector<std::span<const std::byte>> values;
    std::size_t arrays = 0, value = 0;
    bool fits = true;
    for (const parameter_facts& p : k.parameters) {
      if (!p.is_array || p.is_list) {
        fits = fits && value < c.values.size() && is_size_of(p, c.values[value].size());
        if (!fits) break;
        values.emplace_back(c.values[value++]);
      }
      if (p.is_array) arrays += p.is_list ? length_of(values.back()) : 1;
    }
    if (!fits || arrays != c.accesses.size() || value != c.values.size() || call.shapes.size() != arrays ||
        call.arrays.size() != arrays)
      throw error(errc::bad_argument, "task '" + name_of(c, k) + "' is logged with other arguments than it has");

    t.kernel = &k.info;
    task_options& o = extra_of(t).options;
    o.name = name_of(c, k);
    o.retries = static_cast<int>(c.retries);
    if (arrays > task_record::inline_accesses) size_accesses(t, arrays);
    for (std::size_t i = 0; i < arrays; ++i) {
      const wire::access_descriptor& x = c.accesses[i];
      array_core& a = x.fresh ? fresh_stand_in(*call.shapes[i], x) : stand_in(*call.shapes[i]);
      access& to = t.accesses[i];
      to = {};
      to.array = &a;
      to.mode = x.fresh ? access_mode::update : x.mode;
      to.where = rt_.regions.take();
      *to.where = region_of(x);
      ++t.access_count;
      if (x.fresh) continue;
      arrays_[a.id] = call.arrays[i];
      logic::each_touched(*to.where, [&](const logic::box4& b) {
        a.each_tile(b, [&](std::uint32_t tile, const logic::box4& all) {
          use& u = touched.try_emplace({a.id, tile}, use{&a, call.arrays[i]}).first->second;
          u.reads = u.reads || x.mode != access_mode::write;
          if (x.mode != access_mode::write) u.read.push_back(intersect(all, b));
          u.writes = u.writes || x.mode != access_mode::read;
          u.as_a_whole = u.as_a_whole || (x.mode == access_mode::write && b.contains(all));
        });
      });
    }
    k.fill(t, k.body.get(), values);
  }

  array_core& stand_in(const wire::array_descriptor& c) {
    auto& a = stand_ins_[c.id];
    if (!a) a = make_stand_in(rt_, c);
    return *a;
  }

  // Makes a stand-in for a partial of a reduction, which is not read afterwards: the array got its result from the
  // node.
  array_core& fresh_stand_in(const wire::array_descriptor& c, const wire::access_descriptor& x) {
    array_core& a = *fresh_.emplace_back(make_stand_in(rt_, c));
    logic::each_touched(region_of(x), [&](const logic::box4& b) {
      a.each_tile(b, [&](std::uint32_t tile, const logic::box4& all) {
        if (a.bytes[tile].data.load(std::memory_order_relaxed)) return;
        const buffer& to = old_bytes_.emplace_back(rt_, a.bytes_of(tile));
        rt_.host->fill(to.data(), x.fill.data(), a.spec.element, static_cast<std::size_t>(all.volume()));
        a.bytes[tile].data.store(to.data(), std::memory_order_relaxed);
      });
    });
    return a;
  }

  // Points the stand-in's tile at its bytes for the step.
  void provide(const reexecution_plan::step& s, std::uint64_t array, std::uint32_t tile, const use& u) {
    std::byte* from = nullptr;
    if (u.reads || !u.as_a_whole) from = source(s, array, tile, u);
    if (u.reads && !from)
      throw error(errc::data_lost, "a call of the log reads what it is not said to: tile " + std::to_string(tile) +
                                       " of array '" + u.stand_in->spec.name + "'");
    std::atomic<std::byte*>& slot = u.stand_in->bytes[tile].data;
    lent_.push_back(&slot);
    if (!u.writes) {
      slot.store(from, std::memory_order_relaxed);
      return;
    }
    const std::size_t bytes = u.stand_in->bytes_of(tile);
    const buffer& to = written_[{array, tile}] = buffer(rt_, bytes);
    if (from)
      std::memcpy(to.data(), from, bytes);
    else if (!u.as_a_whole)
      std::memset(to.data(), 0, bytes);
    slot.store(to.data(), std::memory_order_relaxed);
  }

  // Returns the packed bytes that a step reads of a tile; null: the plan names none.
  std::byte* source(const reexecution_plan::step& s, std::uint64_t array, std::uint32_t tile, const use& u) {
    for (const reexecution_plan::source& r : s.reads) {
      if (r.what.array != array || r.what.tile != tile) continue;
      if (r.where == origin::step) return made_.at(r.what).data();
      if (r.where == origin::kept) return const_cast<std::byte*>(kept_(r.what, u.read));
      std::byte* const home = host_tile(rt_, *u.array, tile, false);
      if (host_strides(*u.array, tile) == host_strides(*u.stand_in, tile)) return home;
      const buffer& packed = old_bytes_.emplace_back(rt_, u.stand_in->bytes_of(tile));
      copy_tile(rt_, *u.stand_in, packed.data(), *u.array, home, tile);
      return packed.data();
    }
    return nullptr;
  }

  void run(task_record& t, std::uint32_t retries) {
    context_.bind(t);
    for (std::uint32_t attempt = 1;; ++attempt) {
      ++bodies_.run;
      try {
        t.ops->run(t, context_);
        context_.commit();
        return;
      } catch (...) {
        ++bodies_.threw;
        context_.roll_back();
        if (attempt > retries)
          throw_again(task_error(t, context_.executor(), static_cast<int>(attempt), std::current_exception()));
      }
      context_.next_attempt();
    }
  }
  [[noreturn]] static void throw_again(const std::exception_ptr& e) { std::rethrow_exception(e); }

  // Takes all buffers out of the stand-ins, so that none points to memory of the program afterwards.
  void end_step() {
    for (std::atomic<std::byte*>* slot : lent_) slot->store(nullptr, std::memory_order_relaxed);
    lent_.clear();
    written_.clear();
    fresh_.clear();
    old_bytes_.clear();
  }

  void put_in_place(const reexecution_plan::source& r) {
    if (r.where == origin::step && errors_[r.step]) std::rethrow_exception(errors_[r.step]);
    const auto array = arrays_.find(r.what.array);
    if (array == arrays_.end()) throw error(errc::data_lost, "no call that was repeated knows the array that was lost");
    array_core& a = *array->second;
    const std::byte* const from = r.where == origin::kept ? kept_(r.what, {}) : made_.at(r.what).data();
    if (!from) throw error(errc::data_lost, "only a part of it was kept");
    copy_tile(rt_, a, host_tile(rt_, a, r.what.tile, true), *stand_ins_.at(r.what.array), from, r.what.tile);
  }

  const reexecution_plan& plan_;
  const kept_copies& kept_;
  runtime_state& rt_;
  std::vector<std::exception_ptr> errors_;  // by step
  std::map<value, buffer, by_name> made_;   // buffers of earlier steps that are still needed
  std::unordered_map<std::uint64_t, std::unique_ptr<array_core>> stand_ins_;
  std::unordered_map<std::uint64_t, array_core*> arrays_;  // arrays of the program, by id
  // State of the step that is running.
  std::vector<std::atomic<std::byte*>*> lent_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, buffer> written_;
  std::vector<std::unique_ptr<array_core>> fresh_;
  std::vector<buffer> old_bytes_;
  const std::atomic<bool> no_{false};
  scratch scratch_;
  run_context context_;
  reexecuted_bodies bodies_;
};

}  // namespace

std::vector<reexecuted_value> reexecute(const reexecution_plan& p, const kept_copies& kept, runtime_state& rt,
                                        reexecuted_bodies* bodies) {
  reexecutor all(p, kept, rt);
  std::vector<reexecuted_value> how = all.all();
  if (bodies) *bodies = all.bodies();
  return how;
}

}  // namespace troupe::detail
