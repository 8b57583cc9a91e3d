// What this file is for: scopes, the sets of executors that a task may use.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

namespace troupe {

/// The kinds of device that bodies are written for.
enum class device_kind : unsigned char { cpu, cuda, hip, opencl, sim, node };
/// Number of the kinds that bodies are written for; a node is none of them, and runs the kernels that it has bodies
/// for.
inline constexpr int device_kind_count = 5;

/// A scope is a set of executors, as `task_options::where` takes it. A small immutable value: cheap to copy, safe to
/// share between threads. The runtime resolves it when a task is spawned; a scope that no executor fits is an error at
/// spawn, never a silent move to another executor.
class scope {
 public:
  /// Every executor. The default.
  scope() = default;
  /// Every executor.
  static scope any() { return {}; }
  /// Every executor of one kind of device.
  static scope kind(device_kind k);
  /// Every core group.
  static scope cpu() { return kind(device_kind::cpu); }
  /// Every GPU, whatever its vendor.
  static scope gpu();
  /// The executor with this name, as `runtime::executors()` lists them, for instance `"cpu:0"`.
  static scope executor(std::string name);
  /// Every executor of this process: no other node.
  static scope here();
  /// The other node with this name (its `cluster_options::node_name`), not the name of the cluster.
  static scope at(std::string node);

  /// Union: executors that are in one of the two.
  friend scope operator|(const scope& a, const scope& b);
  /// Intersection: executors that are in both.
  friend scope operator&(const scope& a, const scope& b);

  /// True for the scope of every executor.
  bool is_any() const { return node_ == nullptr; }

  /// One node of the expression; read by the runtime.
  struct node;
  /// Used by the library: the expression; null for the scope of every executor.
  const node* root() const { return node_.get(); }

 private:
  explicit scope(std::shared_ptr<const node> n) : node_(std::move(n)) {}
  std::shared_ptr<const node> node_;
};

struct scope::node {
  enum class op : unsigned char { kind, gpu, executor, here, at, either, both } what;
  device_kind kind = device_kind::cpu;
  std::string name;
  std::shared_ptr<const node> a, b;  // null: any
};

}  // namespace troupe
