// What this file is for: what made a task fail, as the error of its future tells it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>

#include <troupe/error.hpp>

namespace test {

/// Calls `f` and returns the code of the error below what it throws: of a task's cause, if that is an error of troupe.
/// `text` is set to what() of the error that was thrown. Throws what is no error; errc::bad_argument: nothing was
/// thrown.
template <class F>
troupe::errc cause_of(F&& f, std::string& text) {
  try {
    std::forward<F>(f)();
  } catch (const troupe::task_failed& e) {
    text = e.what();
    try {
      e.rethrow_cause();
    } catch (const troupe::error& inner) {
      return inner.code();
    }
    return e.code();
  } catch (const troupe::error& e) {
    text = e.what();
    return e.code();
  }
  return troupe::errc::bad_argument;
}

}  // namespace test
