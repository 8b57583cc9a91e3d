// What this file is for: the texts of the kernel dialect, compiled in.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/kernels/kernels.hpp"

namespace troupe::devices::kernels {

// clang-format off
const std::string_view prelude_common =
#include "devices/kernels/prelude_common.inc"
;
const std::string_view prelude_cuda_hip =
#include "devices/kernels/prelude_cuda_hip.inc"
;
const std::string_view prelude_opencl =
#include "devices/kernels/prelude_opencl.inc"
;
const std::string_view prelude_sim =
#include "devices/kernels/prelude_sim.inc"
;
const std::string_view core =
#include "devices/kernels/core.kernels.inc"
;
const std::string_view fill =
#include "devices/kernels/fill.kernels.inc"
;
const std::string_view gather =
#include "devices/kernels/gather_body.inc"
#include "devices/kernels/gather.kernels.inc"
;
const std::string_view gathers =
#include "devices/kernels/gather_body.inc"
#include "devices/kernels/gathers.kernels.inc"
;
// clang-format on

}  // namespace troupe::devices::kernels
