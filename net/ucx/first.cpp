// What this file is for: libtroupe_ucx_first.so, loaded before UCX, so that UCX leaves the C library's code alone.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// While it is loaded UCX writes jumps over the beginnings of mmap, munmap, madvise and others, to learn of memory that
// is given back; its own source says that this has to happen before there are threads. What does it is a library of its
// own, libucm, which does so once, when it is first told what it may do. Told here that it may not, it never does.
#include <ucm/api/ucm.h>

extern "C" __attribute__((visibility("default"))) void troupe_before_ucx() {
  ucm_global_config_t what = ucm_global_opts;
  what.enable_events = what.enable_malloc_hooks = what.enable_malloc_reloc = what.enable_dynamic_mmap_thresh = 0;
  what.mmap_hook_mode = UCM_MMAP_HOOK_NONE;
  ucm_set_global_opts(&what);
}
