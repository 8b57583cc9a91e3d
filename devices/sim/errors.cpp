// What this file is for: the names of error codes, and the last error of a thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/sim/engine.hpp"

namespace troupe::soft_gpu {

namespace {

struct entry {
  simError_t code;
  const char *name, *text;
};

constexpr entry entries[] = {
    {simSuccess, "simSuccess", "no error"},
    {simErrorInvalidValue, "simErrorInvalidValue", "invalid argument"},
    {simErrorMemoryAllocation, "simErrorMemoryAllocation", "out of memory"},
    {simErrorInvalidConfiguration, "simErrorInvalidConfiguration", "invalid shape of a launch"},
    {simErrorInvalidPitchValue, "simErrorInvalidPitchValue", "a pitch is less than the width"},
    {simErrorInsufficientDriver, "simErrorInsufficientDriver", "no driver, or one that is too old"},
    {simErrorDevicesUnavailable, "simErrorDevicesUnavailable", "the device is lost"},
    {simErrorInvalidDeviceFunction, "simErrorInvalidDeviceFunction", "not a kernel"},
    {simErrorNoDevice, "simErrorNoDevice", "no device"},
    {simErrorInvalidDevice, "simErrorInvalidDevice", "no device of this number"},
    {simErrorPeerAccessUnsupported, "simErrorPeerAccessUnsupported", "the devices cannot reach each other's memory"},
    {simErrorInvalidResourceHandle, "simErrorInvalidResourceHandle", "a handle is dead or of another device"},
    {simErrorIllegalState, "simErrorIllegalState", "the stream is not captured"},
    {simErrorNotReady, "simErrorNotReady", "not finished yet"},
    {simErrorIllegalAddress, "simErrorIllegalAddress", "memory was used that the device may not use"},
    {simErrorPeerAccessAlreadyEnabled, "simErrorPeerAccessAlreadyEnabled", "peer access is enabled already"},
    {simErrorHostMemoryAlreadyRegistered, "simErrorHostMemoryAlreadyRegistered", "the host's memory is pinned already"},
    {simErrorHostMemoryNotRegistered, "simErrorHostMemoryNotRegistered", "the host's memory was not pinned"},
    {simErrorLaunchFailure, "simErrorLaunchFailure", "a kernel failed"},
    {simErrorNotPermitted, "simErrorNotPermitted", "not permitted here"},
    {simErrorNotSupported, "simErrorNotSupported", "not supported"},
    {simErrorStreamCaptureUnsupported, "simErrorStreamCaptureUnsupported", "not while a stream is captured"},
    {simErrorStreamCaptureInvalidated, "simErrorStreamCaptureInvalidated", "an earlier error broke the capture"},
    {simErrorStreamCaptureMerge, "simErrorStreamCaptureMerge", "two captures would become one"},
    {simErrorStreamCaptureUnmatched, "simErrorStreamCaptureUnmatched", "the capture began in another stream"},
    {simErrorStreamCaptureUnjoined, "simErrorStreamCaptureUnjoined", "a forked stream was not joined"},
    {simErrorStreamCaptureIsolation, "simErrorStreamCaptureIsolation", "captured and other work would depend"},
    {simErrorCapturedEvent, "simErrorCapturedEvent", "the event belongs to a capture"},
};

simError_t sticky_error() {
  const auto w = current_world();
  const auto index = static_cast<std::size_t>(this_thread().device);
  return index < w->devices.size() ? w->devices[index]->error.load() : simSuccess;
}

}  // namespace

const char* simGetErrorName(simError_t e) {
  for (const auto& x : entries)
    if (x.code == e) return x.name;
  return "unrecognized error code";
}

const char* simGetErrorString(simError_t e) {
  for (const auto& x : entries)
    if (x.code == e) return x.text;
  return "unrecognized error code";
}

simError_t simGetLastError() {
  const simError_t e = simPeekAtLastError();
  this_thread().last_error = simSuccess;
  return e;
}

simError_t simPeekAtLastError() {
  const simError_t sticky = sticky_error();
  return sticky != simSuccess ? sticky : this_thread().last_error;
}

}  // namespace troupe::soft_gpu
