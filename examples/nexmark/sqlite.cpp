// What this file is for: the queries as SQL, for the answers of a database.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include <sqlite3.h>

#include "answers.hpp"

namespace nexmark {

namespace {

constexpr const char* tables = R"(
  CREATE TABLE person (id INTEGER PRIMARY KEY, name INTEGER, city INTEGER, state INTEGER, at INTEGER);
  CREATE TABLE auction (id INTEGER PRIMARY KEY, seller INTEGER, category INTEGER, expires INTEGER, at INTEGER);
  CREATE TABLE bid (auction INTEGER, bidder INTEGER, price INTEGER, at INTEGER);
)";
constexpr const char* closed = R"(
  WITH closed AS (SELECT a.id, a.seller, a.category, a.expires, MAX(b.price) AS price
    FROM auction a JOIN bid b ON b.auction = a.id AND b.at BETWEEN a.at AND a.expires GROUP BY a.id)
)";
constexpr const char* queries[] = {
    "SELECT auction, bidder, price, at FROM bid",
    "SELECT auction, bidder, price * 908 / 1000, 0 FROM bid",
    "SELECT auction, price, 0, 0 FROM bid WHERE auction % 123 = 0",
    "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id "
    "WHERE a.category = 10 AND p.state IN (0, 1, 2)",
    "SELECT category, SUM(price), COUNT(*), 0 FROM closed GROUP BY category",
    // Each bid is in the five windows that end in the 10 s behind it.
    R"(WITH RECURSIVE five(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM five WHERE n < 5),
         counts AS (SELECT (b.at / 2000000000 + n) * 2000000000 AS ends, b.auction, COUNT(*) AS bids
                    FROM bid b, five GROUP BY 1, 2),
         most AS (SELECT ends, MAX(bids) AS bids FROM counts GROUP BY ends)
       SELECT c.ends, c.auction, c.bids, 0 FROM counts c JOIN most m ON c.ends = m.ends AND c.bids = m.bids)",
    R"(SELECT seller, id, SUM(price) OVER last, COUNT(*) OVER last FROM closed
       WINDOW last AS (PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW))",
    R"(SELECT (b.at / 10000000000 + 1) * 10000000000, b.auction, b.bidder, b.price FROM bid b
       JOIN (SELECT at / 10000000000 AS w, MAX(price) AS price FROM bid GROUP BY 1) m
       ON b.at / 10000000000 = m.w AND b.price = m.price)",
    R"(SELECT DISTINCT p.id, p.name, 0, 0 FROM person p
       JOIN auction a ON a.seller = p.id AND a.at / 10000000000 = p.at / 10000000000)",
};

class database {
 public:
  database() {
    if (sqlite3_open(":memory:", &at_) != SQLITE_OK) fail();
  }
  ~database() { sqlite3_close(at_); }
  database(const database&) = delete;
  database& operator=(const database&) = delete;
  void run(const char* text) {
    if (sqlite3_exec(at_, text, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
  }
  [[noreturn]] void fail() const { throw std::runtime_error(std::string("SQLite: ") + sqlite3_errmsg(at_)); }
  sqlite3* at() const { return at_; }

 private:
  sqlite3* at_ = nullptr;
};

class statement {
 public:
  statement(database& of, const std::string& text) : of_(of) {
    if (sqlite3_prepare_v2(of.at(), text.c_str(), -1, &at_, nullptr) != SQLITE_OK) of.fail();
  }
  ~statement() { sqlite3_finalize(at_); }
  statement(const statement&) = delete;
  statement& operator=(const statement&) = delete;
  void insert(std::initializer_list<std::int64_t> values) {
    int n = 0;
    for (const std::int64_t v : values) sqlite3_bind_int64(at_, ++n, v);
    if (sqlite3_step(at_) != SQLITE_DONE) of_.fail();
    sqlite3_reset(at_);
  }
  bool next(row& r) {
    const int got = sqlite3_step(at_);
    if (got == SQLITE_DONE) return false;
    if (got != SQLITE_ROW) of_.fail();
    for (int i = 0; i < 4; ++i) r[static_cast<std::size_t>(i)] = sqlite3_column_int64(at_, i);
    return true;
  }

 private:
  database& of_;
  sqlite3_stmt* at_ = nullptr;
};

void fill(database& db, std::span<const event> all) {
  db.run(tables);
  db.run("BEGIN");
  statement person(db, "INSERT INTO person VALUES (?, ?, ?, ?, ?)"),
      auction(db, "INSERT INTO auction VALUES (?, ?, ?, ?, ?)"), bid(db, "INSERT INTO bid VALUES (?, ?, ?, ?)");
  for (const event& e : all) {
    if (e.what == kind::person)
      person.insert({e.person.id, e.person.name, e.person.city, e.person.state, e.at_ns});
    else if (e.what == kind::auction)
      auction.insert({e.auction.id, e.auction.seller, e.auction.category, e.auction.expires_ns, e.at_ns});
    else
      bid.insert({e.bid.auction, e.bid.bidder, e.bid.price, e.at_ns});
  }
  db.run("COMMIT; CREATE INDEX bids ON bid(auction)");
}

}  // namespace

std::vector<row> by_sqlite(int query, std::span<const event> all) {
  database db;
  fill(db, all);
  const bool needs_closed = query == 4 || query == 6;
  statement s(db, std::string(needs_closed ? closed : "") + queries[query]);
  std::vector<row> rows;
  for (row r{}; s.next(r);) rows.push_back(r);
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace nexmark
