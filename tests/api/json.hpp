// What this file is for: a small strict JSON reader, so that tests can judge the files that troupe writes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cctype>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace test {

/// A JSON value (RFC 8259). What a value is not is empty.
struct json {
  enum class kind { null, boolean, number, string, list, object } what = kind::null;
  bool boolean = false;
  double number = 0;
  std::string string;
  std::vector<json> list;
  std::map<std::string, json> object;

  bool has(const std::string& key) const { return object.count(key) != 0; }
  const json& operator[](const std::string& key) const {
    static const json none;
    const auto found = object.find(key);
    return found == object.end() ? none : found->second;
  }
};

/// Reads one JSON text; throws std::runtime_error with the position of the first mistake.
class json_reader {
 public:
  static json read(std::string_view text) {
    json_reader r(text);
    json v = r.value(0);
    r.space();
    if (r.at_ != text.size()) r.fail("something after the end");
    return v;
  }

 private:
  explicit json_reader(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error("JSON: " + why + " at byte " + std::to_string(at_));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() {
    while (at_ < text_.size() && (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')) ++at_;
  }
  void expect(char c) {
    if (at_ >= text_.size() || peek() != c) fail(std::string("expected '") + c + "'");
    ++at_;
  }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  json value(int depth) {
    if (depth > 100) fail("too deep");
    space();
    json v;
    if (peek() == '{') {
      v.what = json::kind::object;
      members('{', '}', [&] {
        std::string key = string();
        space();
        expect(':');
        if (!v.object.emplace(std::move(key), value(depth + 1)).second) fail("a key twice");
      });
    } else if (peek() == '[') {
      v.what = json::kind::list;
      members('[', ']', [&] { v.list.push_back(value(depth + 1)); });
    } else if (peek() == '"') {
      v.what = json::kind::string;
      v.string = string();
    } else if (take("true")) {
      v.what = json::kind::boolean;
      v.boolean = true;
    } else if (take("false")) {
      v.what = json::kind::boolean;
    } else if (!take("null")) {
      v.what = json::kind::number;
      v.number = number();
    }
    return v;
  }

  template <class F>
  void members(char open, char close, const F& one) {
    expect(open);
    space();
    if (peek() == close) {
      ++at_;
      return;
    }
    for (;;) {
      space();
      one();
      space();
      if (peek() == close) break;
      expect(',');
    }
    ++at_;
  }

  std::string string() {
    expect('"');
    std::string s;
    while (peek() != '"') {
      if (at_ >= text_.size()) fail("a string without end");
      char c = text_[at_++];
      if (static_cast<unsigned char>(c) < 0x20) fail("a control character in a string");
      if (c == '\\') {
        c = peek();
        ++at_;
        if (c == 'u') {
          for (int i = 0; i < 4; ++i, ++at_)
            if (!std::isxdigit(static_cast<unsigned char>(peek()))) fail("a wrong \\u");
          c = '?';
        } else if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) {
          fail("a wrong escape");
        }
      }
      s += c;
    }
    ++at_;
    return s;
  }

  double number() {
    const std::size_t start = at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      if (at_ == first) fail("expected a digit");
    };
    if (peek() == '-') ++at_;
    if (peek() == '0')
      ++at_;
    else
      digits();
    if (peek() == '.') {
      ++at_;
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      digits();
    }
    return std::strtod(std::string(text_.substr(start, at_ - start)).c_str(), nullptr);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace test
