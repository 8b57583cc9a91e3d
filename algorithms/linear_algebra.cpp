// What this file is for: the tile kernels of the linear algebra, on OpenBLAS, and the loops that spawn them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/linear_algebra.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <string>

#include "algorithms/linear_algebra_text.hpp"
#include "algorithms/tile_order.hpp"
#include "algorithms/triangular_solve.hpp"

#include <troupe/offer.hpp>

#if defined(TROUPE_HAVE_BLAS)
#include <cblas.h>
#include <lapacke.h>
#endif

extern "C" const char troupe_offers_linear_algebra = 0;  // algorithms/CMakeLists.txt names it

namespace troupe::algorithms {

not_positive_definite::not_positive_definite(index_t block, index_t row)
    : error(errc::bad_argument, "the matrix is not positive definite: diagonal block " + std::to_string(block) +
                                    " has no Cholesky factor (row " + std::to_string(row) + ")"),
      block_(block),
      row_(row) {}

#if defined(TROUPE_HAVE_BLAS)

namespace {

using matrix = array<double, 2>;
using tile_in = view<const double, 2>;
using tile_inout = view<double, 2>;

struct blas_setting {
  std::mutex lock;
  int guards = 0;
  int threads = 1;
};

blas_setting& setting() {
  static blas_setting s;
  return s;
}

int rows(const tile_in& t) { return static_cast<int>(t.size(0)); }
int columns(const tile_in& t) { return static_cast<int>(t.size(1)); }
int leading(const tile_in& t) { return static_cast<int>(t.stride(0)); }

// ---- kernels --------------------------------------------------------------------------------------------------------
// Each body holds a guard of its own: on another node there is no other one.

// LAPACK's own layout is column-major, in which a row-major lower triangle is an upper one. LAPACKE's row-major entry
// would transpose through a copy instead.
void factor_tile(tile_inout a, tile_inout inverses, index_t block, index_t row, index_t later) {
  const single_threaded_blas guard;
  const int info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', rows(a), a.data(), leading(a));
  if (info > 0 && later == 0) throw not_positive_definite(block, row + info - 1);
  if (info > 0) a(a.lo(0) + info - 1, a.lo(1) + info - 1) = std::numeric_limits<double>::quiet_NaN();
  invert_diagonal_blocks(layout::row_major, rows(a), a.data(), leading(a), inverses.data());
}

// `later`: 1 where `check_diagonal` looks for what is not positive definite. Bodies on devices cannot throw.
constexpr auto potrf = kernel<inout<double, 2>, out<double, 2>, index_t, index_t, index_t>("potrf")
                           .requiring(same_size(0, 0, 0, 1), same_size(1, 0, 0, 0), has_size(1, 1, triangular_block))
                           .on(cpu, factor_tile)
                           .on(gpu, texts::potrf);

void check_diagonal(tile_inout a, index_t block, index_t row) {
  for (index_t i = 0; i < a.size(0); ++i)
    if (!(a(a.lo(0) + i, a.lo(1) + i) > 0)) throw not_positive_definite(block, row + i);
}

// a = a l^-T
constexpr auto trsm = kernel<in<double, 2>, in<double, 2>, inout<double, 2>>("trsm")
                          .requiring(same_size(0, 0, 0, 1), same_size(2, 1, 0, 0), same_size(1, 0, 0, 0),
                                     has_size(1, 1, triangular_block))
                          .on(cpu,
                              [](tile_in l, tile_in inverses, tile_inout a) {
                                const single_threaded_blas guard;
                                solve_with_inverses(layout::row_major, rows(a), columns(a), l.data(), leading(l),
                                                    inverses.data(), a.data(), leading(a));
                              })
                          .on(gpu, texts::trsm);

// c = c - a a^T, lower triangle
constexpr auto syrk = kernel<in<double, 2>, inout<double, 2>>("syrk")
                          .requiring(same_size(1, 0, 1, 1), same_size(0, 0, 1, 0))
                          .on(cpu,
                              [](tile_in a, tile_inout c) {
                                const single_threaded_blas guard;
                                cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, rows(c), columns(a), -1.0,
                                            a.data(), leading(a), 1.0, c.data(), leading(c));
                              })
                          .on(gpu, texts::syrk);

// c = c - a b^T
constexpr auto gemm_nt =
    kernel<in<double, 2>, in<double, 2>, inout<double, 2>>("gemm_nt")
        .requiring(same_size(0, 0, 2, 0), same_size(1, 0, 2, 1), same_size(0, 1, 1, 1))
        .on(cpu,
            [](tile_in a, tile_in b, tile_inout c) {
              const single_threaded_blas guard;
              cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows(c), columns(c), columns(a), -1.0, a.data(),
                          leading(a), b.data(), leading(b), 1.0, c.data(), leading(c));
            })
        .on(gpu, texts::gemm_nt);

void multiply(tile_in a, tile_in b, double alpha, double beta, tile_inout c) {
  const single_threaded_blas guard;
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows(c), columns(c), columns(a), alpha, a.data(), leading(a),
              b.data(), leading(b), beta, c.data(), leading(c));
}

// c = alpha a b + beta c
constexpr auto gemm_nn = kernel<in<double, 2>, in<double, 2>, double, double, inout<double, 2>>("gemm")
                             .requiring(same_size(0, 0, 4, 0), same_size(1, 1, 4, 1), same_size(0, 1, 1, 0))
                             .on(cpu, multiply)
                             .on(gpu, texts::gemm);

// c = alpha a b, whatever c was
constexpr auto gemm_nn_first =
    kernel<in<double, 2>, in<double, 2>, double, out<double, 2>>("gemm_first")
        .requiring(same_size(0, 0, 3, 0), same_size(1, 1, 3, 1), same_size(0, 1, 1, 0))
        .on(cpu, [](tile_in a, tile_in b, double alpha, tile_inout c) { multiply(a, b, alpha, 0.0, c); })
        .on(gpu, texts::gemm_first);

// Done when the tile is, wherever that is.
constexpr auto touch = kernel<in<double, 2>>("gemm done").on(cpu, [](tile_in) {}).on(gpu, texts::touch);

const offer offered{potrf, trsm, syrk, gemm_nt, gemm_nn, gemm_nn_first, touch};

// ---- tiles ----------------------------------------------------------------------------------------------------------

index_t tile_count(const matrix& a, int d) { return (a.size(d) + a.tile(d) - 1) / a.tile(d); }

box<2> tile_box(const matrix& a, index_t i, index_t j) {
  const index_t h = a.tile(0), w = a.tile(1);
  return {{i * h, j * w}, {std::min((i + 1) * h, a.size(0)), std::min((j + 1) * w, a.size(1))}};
}

matrix tile_of(const matrix& a, index_t i, index_t j) { return a.sub(tile_box(a, i, j)); }

std::string shape(const matrix& a) {
  return "'" + a.name() + "' (" + std::to_string(a.size(0)) + " x " + std::to_string(a.size(1)) + ", tiles " +
         std::to_string(a.tile(0)) + " x " + std::to_string(a.tile(1)) + ")";
}

void require(bool condition, const std::string& text) {
  if (!condition) throw error(errc::bad_argument, text);
}

bool overlap(const matrix& a, const matrix& b) {
  return a.core() == b.core() && !intersect(a.limit(), b.limit()).empty();
}

// ---- algorithms -----------------------------------------------------------------------------------------------------

// Or nodes, which may come at any time: an error of theirs is a text.
bool has_devices(const runtime& rt) {
  const auto all = rt.executors();
  return !rt.addresses().empty() ||
         std::any_of(all.begin(), all.end(), [](const auto& e) { return e.kind != device_kind::cpu; });
}
bool has_devices(const recorder&) { return false; }  // a run stays on cores

// Tiles that fit into the smallest accelerator of the scope, where it cannot hold `tiles` of them; else 0.
index_t scarce_room(const runtime& rt, const scope& where, const matrix& a, index_t tiles) {
  const auto tile = static_cast<std::uint64_t>(a.tile(0) * a.tile(1)) * sizeof(double);
  return static_cast<index_t>(scarce_memory(rt, where, static_cast<std::uint64_t>(tiles) * tile) / tile);
}
index_t scarce_room(const recorder&, const scope&, const matrix&, index_t) { return 0; }

// Options take memory in every task, so only where there is something to say.
template <class Submitter, class... A>
void spawn_in(const scope& where, Submitter& to, const A&... call) {
  if (where.is_any())
    to.spawn(call...);
  else
    to.spawn(task_options{.where = where}, call...);
}

template <class Submitter>
future<void> factor(Submitter& to, const matrix& a, const scope& where) {
  require(static_cast<bool>(a), "cholesky: the array handle is empty");
  require(a.size(0) == a.size(1) && a.tile(0) == a.tile(1) && a.size(0) > 0,
          "cholesky: the matrix must be square with square tiles and not empty, but is " + shape(a));
  auto guard = std::make_shared<single_threaded_blas>();
  // The panel is the critical path: everything to its right waits for it.
  const task_options first{.where = where, .priority = 2}, second{.where = where, .priority = 1};
  const index_t n = tile_count(a, 0), t = a.tile(0);
  const index_t later = has_devices(to) ? 1 : 0;
  const auto inverses =
      to.template array<double>({a.size(0), index_t{triangular_block}}, tiles(t, index_t{triangular_block}),
                                a.name() + ": inverted diagonal blocks");
  future<void> last;
  const auto eliminate = [&](const task_options& how, index_t k) {
    last = to.spawn(how, potrf, update(tile_of(a, k, k)), write(tile_of(inverses, k, 0)), k, k * t, later);
  };
  const auto solve = [&](const task_options& how, index_t i, index_t k) {
    to.spawn(how, trsm, read(tile_of(a, k, k)), read(tile_of(inverses, k, 0)), update(tile_of(a, i, k)));
  };
  const auto subtract = [&](index_t i, index_t j, index_t k) {
    if (i == j)
      spawn_in(where, to, syrk, read(tile_of(a, j, k)), update(tile_of(a, j, j)));
    else
      spawn_in(where, to, gemm_nt, read(tile_of(a, i, k)), read(tile_of(a, j, k)), update(tile_of(a, i, j)));
  };
  if (const index_t room = scarce_room(to, where, a, n * (n + 1) / 2 + n); room != 0) {
    // By block rows, each block left-looking: it stays while what is subtracted from it passes by. Without priorities:
    // they would bring tasks forward for which something has to leave.
    const task_options any{.where = where};
    const index_t p = cholesky_block_for(n, room);
    for (index_t i0 = 0; i0 < n; i0 += p)
      for (index_t j0 = 0; j0 <= i0; j0 += p) {
        const index_t i1 = std::min(i0 + p, n), j1 = std::min(j0 + p, n);
        for (index_t k = 0; k < j1; ++k) {
          if (i0 <= k) eliminate(any, k);
          const index_t below = std::max(i0, k + 1);
          for (index_t i = below; i < i1 && k >= j0; ++i) solve(any, i, k);
          for (index_t i = below; i < i1; ++i)
            for (index_t j = std::max(j0, k + 1); j < std::min(j1, i + 1); ++j) subtract(i, j, k);
        }
      }
  } else {
    for (index_t k = 0; k < n; ++k) {
      eliminate(first, k);
      for (index_t i = k + 1; i < n; ++i) solve(second, i, k);
      for (index_t j = k + 1; j < n; ++j)
        for (index_t i = j; i < n; ++i) subtract(i, j, k);
    }
  }
  // Diagonal tiles are checked on cores, once nobody else needs them. One after the other, so that the first failure is
  // told.
  if (later != 0) {
    const task_options check{.name = "potrf check"};
    for (index_t k = 0; k < n; ++k)
      last = to.spawn(
          check, [k, t](tile_inout d) { check_diagonal(d, k, k * t); }, update(tile_of(a, k, k)), last);
  }
  // Every other task is an ancestor of the last potrf, so this one ends the whole.
  return to.spawn(
      task_options{.name = "cholesky"}, [guard] {}, last);
}

template <class Submitter>
future<void> multiply_all(Submitter& to, double alpha, const matrix& a, const matrix& b, double beta, const matrix& c,
                          const scope& where) {
  require(a && b && c, "gemm: an array handle is empty");
  require(a.size(1) == b.size(0) && a.size(0) == c.size(0) && b.size(1) == c.size(1) && a.tile(1) == b.tile(0) &&
              a.tile(0) == c.tile(0) && b.tile(1) == c.tile(1) && a.volume() > 0 && b.volume() > 0,
          "gemm: sizes and tiles of A " + shape(a) + ", B " + shape(b) + " and C " + shape(c) + " do not fit");
  require(!overlap(a, c) && !overlap(b, c), "gemm: C " + shape(c) + " overlaps A or B");
  auto guard = std::make_shared<single_threaded_blas>();
  const index_t height = tile_count(c, 0), width = tile_count(c, 1), depth = tile_count(a, 1);
  const auto add = [&](index_t i, index_t j, index_t k) {
    const matrix from_a = tile_of(a, i, k), from_b = tile_of(b, k, j), into = tile_of(c, i, j);
    if (k == 0 && beta == 0.0)
      spawn_in(where, to, gemm_nn_first, read(from_a), read(from_b), alpha, write(into));
    else
      spawn_in(where, to, gemm_nn, read(from_a), read(from_b), alpha, k == 0 ? beta : 1.0, update(into));
  };
  const index_t room = scarce_room(to, where, c, height * width + (height + width) * depth);
  const product_block block = room != 0 ? product_block_for(height, width, depth, room) : product_block{height, width};
  future<void> done;
  for (index_t i0 = 0; i0 < height; i0 += block.height)
    for (index_t j0 = 0; j0 < width; j0 += block.width) {
      const index_t i1 = std::min(i0 + block.height, height), j1 = std::min(j0 + block.width, width);
      // The sums of different tiles of C take turns, so that the first ready tasks are all independent.
      for (index_t k = 0; k < depth; ++k)
        for (index_t i = i0; i < i1; ++i)
          for (index_t j = j0; j < j1; ++j) add(i, j, k);
      const auto one_tile = [i0, j0, h = c.tile(0), w = c.tile(1)](const box<2>& chunk, const extent<2>& size) {
        return box<2>{{(i0 + chunk.lo[0]) * h, (j0 + chunk.lo[1]) * w},
                      {std::min((i0 + chunk.hi[0]) * h, size[0]), std::min((j0 + chunk.hi[1]) * w, size[1])}};
      };
      // At once: later these tiles may have left.
      const auto block_done =
          to.for_each(task_options{.where = where}, grid(i1 - i0, j1 - j0).chunks(1, 1), touch, read(c, one_tile));
      done = i0 + j0 == 0 ? block_done
                          : to.spawn(
                                task_options{.name = "gemm"}, [](auto&&...) {}, done, block_done);
    }
  return to.spawn(
      task_options{.name = "gemm"}, [guard] {}, done);
}

}  // namespace

single_threaded_blas::single_threaded_blas() {
  blas_setting& s = setting();
  const std::lock_guard hold(s.lock);
  if (s.guards++ == 0) {
    s.threads = openblas_get_num_threads();
    openblas_set_num_threads(1);
  }
}

single_threaded_blas::~single_threaded_blas() {
  blas_setting& s = setting();
  const std::lock_guard hold(s.lock);
  if (--s.guards == 0) openblas_set_num_threads(s.threads);
}

future<void> cholesky(runtime& rt, const matrix& a, const scope& where) { return factor(rt, a, where); }
future<void> cholesky(recorder& calls, const matrix& a) { return factor(calls, a, {}); }
future<void> gemm(runtime& rt, double alpha, const matrix& a, const matrix& b, double beta, const matrix& c,
                  const scope& where) {
  return multiply_all(rt, alpha, a, b, beta, c, where);
}
future<void> gemm(recorder& calls, double alpha, const matrix& a, const matrix& b, double beta, const matrix& c) {
  return multiply_all(calls, alpha, a, b, beta, c, {});
}

#else

namespace {
[[noreturn]] void refuse() {
  throw error(errc::not_supported, "this build of troupe has no OpenBLAS, which the linear algebra needs");
}
}  // namespace

single_threaded_blas::single_threaded_blas() = default;
single_threaded_blas::~single_threaded_blas() = default;
future<void> cholesky(runtime&, const array<double, 2>&, const scope&) { refuse(); }
future<void> cholesky(recorder&, const array<double, 2>&) { refuse(); }
future<void> gemm(runtime&, double, const array<double, 2>&, const array<double, 2>&, double, const array<double, 2>&,
                  const scope&) {
  refuse();
}
future<void> gemm(recorder&, double, const array<double, 2>&, const array<double, 2>&, double,
                  const array<double, 2>&) {
  refuse();
}

#endif

}  // namespace troupe::algorithms
