// cuBLAS of this machine, opened when it is first needed: a program that needs it would not start on others.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace bench {

/// Why there is none; empty where there is. It is asked of a machine, not of a device.
std::string cublas_missing();

/// A handle of cuBLAS, for the current device. Throws std::runtime_error with cuBLAS's own words.
class cublas {
 public:
  cublas();
  cublas(const cublas&) = delete;
  cublas& operator=(const cublas&) = delete;
  ~cublas();

  /// C = A B + beta C, row by row, enqueued on a stream of CUDA's.
  void multiply(void* stream, int rows, int columns, int depth, const float* a, int a_pitch, const float* b,
                int b_pitch, float beta, float* c, int c_pitch) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace bench
