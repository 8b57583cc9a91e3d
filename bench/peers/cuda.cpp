// NVIDIA's own libraries with the work of accelerators: cudaMemcpyAsync, cuBLAS, cublasXt. No runtime.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "../contender.hpp"
#include "../cublas.hpp"
#include "../gemm_work.hpp"

#include <cublasXt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

namespace bench {

namespace {

void check(cudaError_t e, const char* what) {
  if (e != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(e));
}

/// The functions that are used here, out of the library that the machine has.
struct library {
  void* opened = nullptr;
  std::string why;
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSgemm_v2) sgemm = nullptr;
  decltype(&cublasGetStatusString) words = nullptr;
  decltype(&cublasXtCreate) xt_create = nullptr;
  decltype(&cublasXtDestroy) xt_destroy = nullptr;
  decltype(&cublasXtDeviceSelect) xt_select = nullptr;
  decltype(&cublasXtSetBlockDim) xt_block = nullptr;
  decltype(&cublasXtSgemm) xt_sgemm = nullptr;

  library() {
    // Opens the release that was compiled against: others have other layouts of what is passed.
    const std::string name = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
    for (const auto& file : {name, "/usr/local/cuda/lib64/" + name}) {
      opened = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (opened) break;
      const char* said = ::dlerror();
      if (why.empty()) why = said ? said : name + " cannot be opened";
    }
    if (!opened) return;
    why.clear();
    find(create, "cublasCreate_v2");
    find(destroy, "cublasDestroy_v2");
    find(set_stream, "cublasSetStream_v2");
    find(sgemm, "cublasSgemm_v2");
    find(words, "cublasGetStatusString");
    find(xt_create, "cublasXtCreate");
    find(xt_destroy, "cublasXtDestroy");
    find(xt_select, "cublasXtDeviceSelect");
    find(xt_block, "cublasXtSetBlockDim");
    find(xt_sgemm, "cublasXtSgemm");
  }
  void check(cublasStatus_t s, const char* what) const {
    if (s != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(what) + ": " + words(s));
  }

 private:
  template <class F>
  void find(F& to, const char* symbol) {
    to = reinterpret_cast<F>(::dlsym(opened, symbol));
    if (!to) why = std::string(symbol) + " is not in it";
  }
};
const library& blas() {
  static const library one;  // never closed: it keeps threads
  return one;
}
const library& blas_or_missing() {
  if (!blas().why.empty()) throw missing("no cuBLAS: " + blas().why);
  return blas();
}

/// Memory of the device, or pinned memory of the host.
template <class T>
class memory {
 public:
  memory(std::size_t count, bool on_host) : on_host_(on_host) {
    void* p = nullptr;
    check(on_host ? cudaMallocHost(&p, count * sizeof(T)) : cudaMalloc(&p, count * sizeof(T)), "room");
    data_ = static_cast<T*>(p);
  }
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() { (void)(on_host_ ? cudaFreeHost(data_) : cudaFree(data_)); }
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
  bool on_host_;
};

template <class F>
void fill(float* to, std::size_t n, F element) {
  std::vector<std::thread> threads;
  const std::size_t count = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t t = 0; t < count; ++t)
    threads.emplace_back([=] {
      for (std::size_t i = t; i < n; i += count)
        for (std::size_t j = 0; j < n; ++j) to[i * n + j] = element(i, j);
    });
  for (auto& each : threads) each.join();
}

class nvidia final : public contender {
 public:
  std::string name() const override { return "cuda"; }
  std::string description() const override {
    return "cudaMemcpyAsync from pinned memory; one tile's cuBLAS time x tasks; cublasXt at its best block size" +
           (blas().why.empty() ? std::string() : " (no cuBLAS: " + blas().why + ")");
  }

  void start(unsigned, purpose) override {}
  void stop() override {
    if (stream_) (void)cudaStreamDestroy(stream_);
    stream_ = nullptr;
  }
  bool start_on(const std::string& device, unsigned, std::uint64_t) override {
    if (!device.starts_with("cuda:")) return false;
    index_ = std::stoi(device.substr(device.find(':') + 1));
    check(cudaSetDevice(index_), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    return true;
  }

  std::optional<transfer_cost> device_transfer(std::size_t bytes) override {
    const memory<std::byte> host(bytes, true), there(bytes, false);
    std::memset(host.get(), 1, bytes);
    transfer_cost spent;
    for (int pass = 0; pass < 3; ++pass) {
      spent.in_ns = timed([&] {
        check(cudaMemcpyAsync(there.get(), host.get(), bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
      });
      spent.out_ns = timed([&] {
        check(cudaMemcpyAsync(host.get(), there.get(), bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
      });
    }
    return spent;
  }

  std::optional<double> device_gemm(const gemm_problem& problem) override {
    (void)blas_or_missing();
    const std::size_t t = problem.tile;
    const memory<float> a(t * t, false), b(t * t, false), c(t * t, false), host(t * t, true);
    const auto bring = [&](float* to, auto element) {
      for (std::size_t i = 0; i < t; ++i)
        for (std::size_t j = 0; j < t; ++j) host.get()[i * t + j] = element(i, j);
      check(cudaMemcpy(to, host.get(), t * t * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
    };
    bring(a.get(), element_of_a);
    bring(b.get(), element_of_b);
    bring(c.get(), [](std::size_t, std::size_t) { return 0.0F; });
    const cublas handle;
    const auto side = static_cast<int>(t);
    const auto once = [&](float beta) {
      handle.multiply(stream_, side, side, side, a.get(), side, b.get(), side, beta, c.get(), side);
    };
    // As many as one product has for one tile of C, on one stream; the first ones warm it up.
    const auto calls = static_cast<int>(std::max<std::size_t>(8, problem.n / t));
    double spent = 0;
    for (int pass = 0; pass < 2; ++pass)
      spent = timed([&] {
        for (int i = 0; i < calls; ++i) once(i == 0 ? 0.0F : 1.0F);
      });
    once(0);
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    check(cudaMemcpy(host.get(), c.get(), t * t * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
    check_product(t, [&](std::size_t i, std::size_t j) { return host.get()[i * t + j]; });
    return spent / calls * static_cast<double>(problem.tasks());
  }

  // The first call tries block sizes; later ones use the best.
  std::optional<out_of_core_cost> out_of_core(const out_of_core_problem& problem) override {
    const library& xt = blas_or_missing();
    const std::size_t n = problem.n();
    const memory<float> a(n * n, true), b(n * n, true), c(n * n, true);
    fill(a.get(), n, element_of_a);
    fill(b.get(), n, element_of_b);
    cublasXtHandle_t handle = nullptr;
    xt.check(xt.xt_create(&handle), "cublasXtCreate");
    struct closing {
      const library& in;
      cublasXtHandle_t handle;
      ~closing() { (void)in.xt_destroy(handle); }
    } const close{xt, handle};
    xt.check(xt.xt_select(handle, 1, &index_), "cublasXtDeviceSelect");
    const auto run = [&](int block) {
      xt.check(xt.xt_block(handle, block), "cublasXtSetBlockDim");
      const float one = 1, zero = 0;
      const meter clock;
      xt.check(xt.xt_sgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b.get(), n, a.get(), n, &zero, c.get(), n),
               "cublasXtSgemm");
      check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      return clock.stop().nanoseconds;
    };
    if (block_ == 0) {
      double best = std::numeric_limits<double>::infinity();
      for (const int block : {1024, 2048, 4096, 8192}) {
        if (static_cast<std::size_t>(block) > n) break;
        const double took = run(block);
        if (took < best) block_ = block;
        best = std::min(best, took);
      }
      if (block_ == 0) block_ = static_cast<int>(n);
    }
    out_of_core_cost spent;
    spent.nanoseconds = run(block_);
    spent.block = block_;
    check_product(n, [&](std::size_t i, std::size_t j) { return c.get()[i * n + j]; });
    return spent;
  }

 private:
  template <class F>
  double timed(F&& enqueue) {
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    const meter clock;
    enqueue();
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return clock.stop().nanoseconds;
  }

  int index_ = 0, block_ = 0;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

std::string cublas_missing() { return blas().why; }

cublas::cublas() {
  cublasHandle_t h = nullptr;
  blas_or_missing().check(blas().create(&h), "cublasCreate");
  handle_ = h;
}

cublas::~cublas() { (void)blas().destroy(static_cast<cublasHandle_t>(handle_)); }

// cuBLAS counts column by column, so it is given the transposed product.
void cublas::multiply(void* stream, int rows, int columns, int depth, const float* a, int a_pitch, const float* b,
                      int b_pitch, float beta, float* c, int c_pitch) const {
  auto* const h = static_cast<cublasHandle_t>(handle_);
  const float one = 1;
  blas().check(blas().set_stream(h, static_cast<cudaStream_t>(stream)), "cublasSetStream");
  blas().check(
      blas().sgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, columns, rows, depth, &one, b, b_pitch, a, a_pitch, &beta, c, c_pitch),
      "cublasSgemm");
}

std::unique_ptr<contender> make_cuda() { return std::make_unique<nvidia>(); }

}  // namespace bench
