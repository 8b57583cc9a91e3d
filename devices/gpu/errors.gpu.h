// What this file is for: the vendor's error codes in troupe's words. Included after a vendor's header; see backend.gpu.cpp.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <troupe/error.hpp>

namespace troupe::devices::gpu::GPU_NS {

/// "35 cudaErrorInsufficientDriver".
inline std::string code_text(GPU(Error_t) code) {
  return std::to_string(static_cast<int>(code)) + ' ' + GPU(GetErrorName)(code);
}

inline errc meaning(GPU(Error_t) code) {
  // CUDA's numbers, which HIP and sim share.
  switch (static_cast<int>(code)) {
    case 2:  // MemoryAllocation
      return errc::out_of_memory;
    case 46:   // DevicesUnavailable
    case 100:  // NoDevice
    case 101:  // InvalidDevice
      return errc::device_lost;
    case 1:    // InvalidValue
    case 9:    // InvalidConfiguration
    case 12:   // InvalidPitchValue
    case 98:   // InvalidDeviceFunction
    case 701:  // LaunchOutOfResources
      return errc::bad_argument;
    case 200:  // InvalidKernelImage
    case 209:  // NoKernelImageForDevice
    case 218:  // InvalidPtx
    case 222:  // UnsupportedPtxVersion
    case 500:  // SymbolNotFound
      return errc::compile_failed;
    case 801:  // NotSupported
      return errc::not_supported;
    default:
      return errc::device_failed;
  }
}

}  // namespace troupe::devices::gpu::GPU_NS
