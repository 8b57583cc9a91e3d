// What this file is for: asking OpenCL's platforms for devices, and the plugin's entry.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/opencl/source.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <troupe/error.hpp>

#include "devices/opencl/codes.hpp"
#include "devices/opencl/device.hpp"
#include "devices/opencl/plugin.hpp"

namespace troupe::devices::opencl {

namespace {

template <class T>
T flag(cl_device_id device, cl_device_info what) {
  T value{};
  return clGetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : T{};
}

// "OpenCL 1.2 ...", of which later ones run the kernels too.
bool is_new_enough(const std::string& version) {
  return version.starts_with("OpenCL ") && !version.starts_with("OpenCL 1.0") && !version.starts_with("OpenCL 1.1");
}

class opencl_source final : public accelerator_source {
 public:
  opencl_source() {
    cl_uint n = 0;
    cl_int code = clGetPlatformIDs(0, nullptr, &n);
    std::vector<cl_platform_id> platforms(code == CL_SUCCESS ? n : 0);
    if (!platforms.empty()) code = clGetPlatformIDs(n, platforms.data(), nullptr);
    if (code != CL_SUCCESS || platforms.empty()) {
      remark_ = "no driver (" + (code == CL_SUCCESS ? std::string("no platform") : code_text(code)) + ")";
      return;
    }
    for (cl_platform_id p : platforms) look_into(p);
    if (devices_.empty() && remark_.empty()) remark_ = "no device";
  }

  device_kind kind() const override { return device_kind::opencl; }
  int count() const override { return static_cast<int>(devices_.size()); }
  std::string remark() const override { return remark_; }
  std::unique_ptr<accelerator> open(int index, int lanes, std::uint64_t memory_limit) override {
    if (index < 0 || index >= count())
      throw error(errc::bad_argument, "there is no device opencl:" + std::to_string(index) + " among " +
                                          std::to_string(count()) + (remark_.empty() ? "" : ": " + remark_));
    if (lanes < 1) throw error(errc::bad_argument, "opencl: a device has at least one lane");
    return open_device(devices_[static_cast<std::size_t>(index)], index, lanes, memory_limit);
  }

 private:
  void look_into(cl_platform_id platform) {
    cl_uint n = 0;
    cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &n);
    std::vector<cl_device_id> found(code == CL_SUCCESS ? n : 0);
    if (!found.empty()) code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, found.data(), nullptr);
    if (code != CL_SUCCESS)
      return remark(platform_text(platform, CL_PLATFORM_NAME) + ": no device (" + code_text(code) + ")");
    for (cl_device_id device : found) {
      const auto name = device_text(device, CL_DEVICE_NAME), version = device_text(device, CL_DEVICE_VERSION);
      if (!is_new_enough(version))
        remark(name + " is too old: " + version);
      else if (!flag<cl_bool>(device, CL_DEVICE_AVAILABLE))
        remark(name + " is not available");
      else if (!flag<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE))
        remark(name + " has no compiler");
      else if (!flag<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE))
        remark(name + " has another byte order");
      else
        devices_.push_back(device);
    }
  }
  void remark(const std::string& text) { remark_ += (remark_.empty() ? "" : "; ") + text; }

  std::vector<cl_device_id> devices_;
  std::string remark_;
};

}  // namespace

std::unique_ptr<accelerator_source> make_source() { return std::make_unique<opencl_source>(); }

}  // namespace troupe::devices::opencl

extern "C" __attribute__((visibility("default"))) troupe::devices::accelerator_source* troupe_open_accelerators(
    const char* version) {
  using namespace troupe::devices;
  try {
    return std::string_view(version) == opencl::plugin_version ? opencl::make_source().release() : nullptr;
  } catch (...) {
    return nullptr;
  }
}
