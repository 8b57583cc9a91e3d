// What this file is for: members that have been admitted and do not keep to the protocol: they cost this node no memory.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/detail/make.hpp>
#include <troupe/detail/submit.hpp>

#include "actors/cluster.hpp"
#include "actors/node_messages.hpp"
#include "actors/offers.hpp"
#include "imagined_kernels.hpp"
#include "imagined_world.hpp"
#include "net/lasting.hpp"

namespace {

using namespace std::chrono_literals;
namespace kernels = test::kernels;
namespace net = troupe::net;
namespace wire = troupe::detail::wire;
using test::word;
using troupe::detail::node_id;
using grid = troupe::array<word, 2>;

inline constexpr auto fail_at_length =
    troupe::kernel<troupe::inout<word, 2>>("imagined.fail_at_length").on(troupe::cpu, [](troupe::view<word, 2>) {
      throw std::runtime_error(std::string(8000, 'x'));
    });

/// A process that is admitted and says what the test wants it to say. It asks for nothing by itself.
class false_member final : private troupe::cluster_events, private net::lasting_events {
 public:
  explicit false_member(test::imagined_world& w) : world_(w) {
    net::transport_options t;
    t.self.id.bytes.fill(0xee);
    t.self.incarnation = 1;
    t.self.name = "false";
    t.self.cluster = "imagined";
    t.self.listens_on = t.listen = {test::imagined_world::endpoint_of(99)};
    t.insecure_loopback = true;
    t.chunk_bytes = 256;
    const net::identity self = t.self;
    transport_ = w.network.attach(std::move(t));
    troupe::cluster_events& events = *this;
    cluster_ = std::make_unique<troupe::cluster>(*transport_, self, troupe::logic::membership_options{}, events);
    cluster_->start();
    cluster_->add_candidates({test::imagined_world::endpoint_of(0)});
    // What it sends in bulk takes its time: a byte a microsecond.
    w.network.set_link(self.id, w.nodes[0]->id(), {.bytes_per_s = 1'000'000});
  }
  ~false_member() { transport_->stop(); }

  void say(const net::writer& frame) { line_->send(frame.view()); }
  void say(wire::kind what, std::uint64_t number) {
    net::writer w;
    w.fixed(what);
    w.varint(number);
    say(w);
  }
  /// The body stays as long as this.
  void send(wire::kind what, const std::vector<std::uint64_t>& numbers, std::size_t bytes) {
    net::writer head;
    head.fixed(what);
    for (const std::uint64_t n : numbers) head.varint(n);
    body_.resize(std::max(body_.size(), bytes), std::byte{1});
    line_->send_bulk(head.view(), {std::span(body_).first(bytes)}, [](bool) {});
  }

  bool is_member = false;
  int losses = 0;
  std::map<wire::kind, std::vector<std::vector<std::byte>>> heard;  // frames, without their kinds

 private:
  void joined(const node_id&, const std::shared_ptr<net::session>& s) override {
    line_ = std::make_shared<net::lasting_session>(s, [this] { return transport_->now(); });
    is_member = true;
    net::writer w;
    wire::put(w, wire::card{1, 0, true, {}, troupe::detail::offered_keys()});
    say(w);
  }
  void resumed(const node_id&, const std::shared_ptr<net::session>& s) override { line_->attach(s); }
  void suspected(const node_id&) override {}
  void refuted(const node_id&) override {}
  void lost(const node_id&, troupe::logic::node_end) override {
    is_member = false;
    ++losses;
    line_->end();
  }
  void frame(net::session& s, std::span<const std::byte> f) override { line_->take(s, f, *this); }
  net::pieces arriving(net::session&, std::span<const std::byte>, std::uint64_t) override { return {}; }
  void arrived(net::session& s, std::span<const std::byte> head, bool whole) override {
    line_->arrived(s, head, whole, *this);
  }
  void frame(std::span<const std::byte> f) override { heard[wire::kind_of(f)].emplace_back(f.begin() + 1, f.end()); }
  net::pieces arriving(std::span<const std::byte>, std::uint64_t) override { return {}; }
  void arrived(std::span<const std::byte>, bool) override {}

  test::imagined_world& world_;
  std::unique_ptr<net::transport> transport_;
  std::unique_ptr<troupe::cluster> cluster_;
  std::shared_ptr<net::lasting_session> line_;
  std::vector<std::byte> body_ = std::vector<std::byte>(1u << 20, std::byte{1});
};

/// A runtime, whose program is the test, and a false member.
class false_members : public testing::Test,
                      public troupe::array_maker<false_members>,
                      public troupe::submitter<false_members> {
 protected:
  false_members() : w(1) {
    w.start(0, 1);
    other.emplace(w);
    EXPECT_TRUE(until([&] { return other->is_member && nodes() == 1; }));
  }
  bool until(const std::function<bool()>& f) { return w.network.run_until(f, 60s); }
  std::size_t nodes() const { return w.nodes[0]->house().others()->report().size(); }
  template <class K, class... A>
  troupe::future<void> there(const K& kernel, const A&... all) {
    return spawn({.where = troupe::scope::at("false")}, kernel, all...);
  }
  /// What it has been sent to do, one at a time.
  wire::task_card next_task() {
    auto& frames = other->heard[wire::kind::tasks];
    EXPECT_TRUE(until([&] { return !frames.empty(); }));
    net::reader from(frames.front());
    const wire::tasks t = wire::take_tasks(from);
    frames.erase(frames.begin());
    EXPECT_EQ(t.all.size(), 1u);
    return t.all.at(0);
  }
  /// The next number that it has been told in a request of that kind.
  std::uint64_t next_number(wire::kind what) {
    auto& frames = other->heard[what];
    EXPECT_TRUE(until([&] { return !frames.empty(); }));
    net::reader from(frames.front());
    const std::uint64_t number = wire::take_requests(from).at(0).number;
    frames.erase(frames.begin());
    return number;
  }
  void ended(std::uint64_t task, wire::outcome how) {
    net::writer f;
    f.fixed(wire::kind::done);
    wire::put(f, wire::task_end{.id = task, .how = how, .text = "as it says"});
    other->say(f);
  }
  void cannot(std::uint64_t number) {
    net::writer f;
    f.fixed(wire::kind::cannot);
    f.varint(number);
    f.varint(static_cast<std::uint64_t>(troupe::errc::out_of_memory));
    f.text("as it says");
    other->say(f);
  }
  /// It names an array of so many rows of three words, in tiles as large, and a task that runs the kernel on all of it.
  void give_task(std::uint64_t id, std::uint64_t kernel, troupe::index_t rows, bool with_array, bool asks,
                 std::vector<std::vector<std::byte>> values) {
    wire::tasks t;
    wire::array_card a;
    a.id = 1;
    a.rank = 2;
    a.size = a.tile = {rows, 3, 1, 1};
    a.element = a.align = sizeof(word);
    a.name = "theirs";
    if (with_array) t.arrays.push_back(a);
    wire::task_card& c = t.all.emplace_back();
    c.id = id;
    c.kernel = kernel;
    c.values = std::move(values);
    wire::access_card& x = c.accesses.emplace_back();
    x.array = a.id;
    x.mode = troupe::access_mode::update;
    x.where.hi = x.limit.hi = a.size;
    if (asks) x.gaps.push_back({0, x.where});
    net::writer f;
    wire::put(f, t);
    other->say(f);
  }
  static std::vector<std::byte> one_word() { return std::vector<std::byte>(sizeof(word)); }

  test::imagined_world w;
  std::optional<false_member> other;

 public:
  troupe::detail::target submission_target() const { return {&w.nodes[0]->house(), nullptr}; }
};

constexpr troupe::index_t rows = 1000;
constexpr std::size_t half_bytes = rows / 2 * 3 * sizeof(word);  // takes 12 ms

TEST_F(false_members, a_task_that_is_said_to_have_failed_ends_when_nothing_of_it_is_written_here_any_more) {
  const grid x = array<word>({rows, 3}, troupe::tiles(rows, 3), "x");
  const auto f = there(kernels::two, troupe::read(filled<word>({1, 3}, troupe::tiles(1, 3), word{7}, "from")),
                       troupe::write(x.sub({{0, 0}, {rows / 2, 3}})),
                       troupe::update(filled<word>({1, 3}, troupe::tiles(1, 3), word{7}, "to")), word{1});
  const wire::task_card t = next_task();
  other->send(wire::kind::bytes_back, {t.id, 1}, half_bytes);
  w.run_for(6ms);
  ended(t.id, wire::outcome::failed);
  w.run_for(3ms);
  EXPECT_FALSE(f.is_ready()) << "its memory would be another's, and is still written to";
  ASSERT_TRUE(until([&] { return f.is_ready(); }));
  EXPECT_THROW(f.get(), troupe::task_failed);
  EXPECT_EQ(nodes(), 1u);
}

TEST_F(false_members, what_a_task_wrote_may_be_sent_once_at_a_time) {
  const grid x = array<word>({rows, 3}, troupe::tiles(rows, 3), "x");
  const auto f = there(kernels::write, troupe::write(x.sub({{0, 0}, {rows / 2, 3}})), word{1});
  const wire::task_card t = next_task();
  other->send(wire::kind::bytes_back, {t.id, 0}, half_bytes);
  other->send(wire::kind::bytes_back, {t.id, 0}, half_bytes);
  EXPECT_TRUE(until([&] { return nodes() == 0; })) << "it was not given up";
}

TEST_F(false_members, a_tile_that_is_coming_home_cannot_be_refused_any_more) {
  const grid x = filled<word>({rows, 3}, troupe::tiles(rows, 3), word{7}, "x");
  const auto f = there(kernels::change, troupe::update(x), word{1});
  const wire::task_card t = next_task();
  ended(t.id, wire::outcome::ran);
  ASSERT_TRUE(until([&] { return f.is_ready(); }));
  const auto here = spawn({.where = troupe::scope::here()}, kernels::change, troupe::update(x), word{2});
  const std::uint64_t number = next_number(wire::kind::give);
  other->send(wire::kind::bytes_home, {number}, 2 * half_bytes);
  w.run_for(6ms);
  cannot(number);
  EXPECT_TRUE(until([&] { return other->losses == 1; })) << "it was not given up";
}

TEST_F(false_members, a_copy_that_comes_under_a_wrong_title_is_none) {
  const grid x = filled<word>({rows, 3}, troupe::tiles(rows, 3), word{7}, "x", {.replicas = 2});
  const auto f = there(kernels::change, troupe::update(x), word{1});
  ended(next_task().id, wire::outcome::ran);
  const std::uint64_t number = next_number(wire::kind::copy);
  other->send(wire::kind::bytes_back, {number, 0}, 2 * half_bytes);
  w.run_for(100ms);
  EXPECT_EQ(nodes(), 1u) << "it was for nobody";
  other->send(wire::kind::bytes_home, {number}, 2 * half_bytes);
  w.run_for(100ms);
  other.reset();
  const auto seen = x.try_read_for(1h);
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ((*seen)(0, 0), 0x0101010101010101u);
  EXPECT_EQ((*seen)(rows - 1, 2), 0x0101010101010101u);
}

TEST_F(false_members, a_copy_that_is_coming_cannot_be_refused_and_does_not_come_twice_at_once) {
  for (const bool refuses : {true, false}) {
    const grid x = filled<word>({rows, 3}, troupe::tiles(rows, 3), word{7}, "x", {.replicas = 2});
    const auto f = there(kernels::change, troupe::update(x), word{1});
    ended(next_task().id, wire::outcome::ran);
    const std::uint64_t number = next_number(wire::kind::copy);
    other->send(wire::kind::bytes_home, {number}, 2 * half_bytes);
    w.run_for(6ms);
    if (refuses)
      cannot(number);
    else
      other->send(wire::kind::bytes_home, {number}, 2 * half_bytes);
    EXPECT_TRUE(until([&] { return nodes() == 0; })) << "it was not given up";
    other->heard.clear();
    EXPECT_TRUE(until([&] { return other->is_member && nodes() == 1; }));
  }
}

TEST_F(false_members, what_this_node_has_asked_for_may_come_once_at_a_time) {
  give_task(1, kernels::change.info().key, rows, true, true, {one_word()});
  const std::uint64_t number = next_number(wire::kind::want);
  other->send(wire::kind::bytes_in, {number}, 2 * half_bytes);
  other->send(wire::kind::bytes_in, {number}, 2 * half_bytes);
  EXPECT_TRUE(until([&] { return other->losses == 1; })) << "it was not given up";
}

TEST_F(false_members, thousands_of_tasks_that_end_with_long_texts_are_all_told_of) {
  // Not before: what is offered is in the cards of the simulations of this program, whose seeds it would change.
  static const troupe::offer offered{fail_at_length};
  constexpr std::uint64_t count = 6000;  // 24 MB of texts, a frame has 16
  for (std::uint64_t i = 1; i <= count; ++i) give_task(i, fail_at_length.info().key, 1, i == 1, i == 1, {});
  const std::uint64_t number = next_number(wire::kind::want);
  other->send(wire::kind::bytes_in, {number}, 3 * sizeof(word));
  std::uint64_t told = 0;
  std::size_t largest = 0;
  EXPECT_TRUE(until([&] {
    for (const auto& f : std::exchange(other->heard[wire::kind::done], {})) {
      net::reader from(f);
      told += wire::take_done(from).size();
      largest = std::max(largest, f.size());
    }
    return told == count || other->losses != 0;
  }));
  EXPECT_EQ(told, count);
  EXPECT_LE(largest, 64u << 10) << "and would not go into one frame";
  EXPECT_EQ(other->losses, 0);
}

TEST_F(false_members, arrays_of_nothing_may_not_be_so_large_that_their_sizes_cannot_be_multiplied) {
  wire::tasks t;
  wire::array_card& a = t.arrays.emplace_back();
  a.id = 1;
  a.rank = 3;
  a.size = a.tile = {troupe::index_t{1} << 47, troupe::index_t{1} << 47, 1, 1};
  a.size[2] = 0;
  net::writer f;
  wire::put(f, t);
  other->say(f);
  EXPECT_TRUE(until([&] { return other->losses == 1; })) << "it was not given up";
}

}  // namespace
