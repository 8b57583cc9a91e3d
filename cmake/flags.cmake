# Compiler settings shared by everything built here. Nothing in this file reaches a user of the library.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# An embedding program must not see, or clash with, what is inside. What is public is listed (cmake/public_symbols.map):
# of the shared library everything else is local by a version script, of the static one because it is sealed into one
# object (cmake/sealed.cmake). The static library hides the public symbols as well, so that a shared library which it
# becomes a part of does not show them. The shared one cannot: hidden is final, and marking what is public would take a
# macro in every public header.
if(BUILD_SHARED_LIBS)
  set(CMAKE_CXX_VISIBILITY_PRESET default)
  add_compile_options(-fno-semantic-interposition)
else()
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
endif()
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
# The static library may end in somebody's shared one.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# What is installed finds the shared library from wherever the prefix is moved to.
if(BUILD_SHARED_LIBS AND NOT DEFINED CMAKE_INSTALL_RPATH)
  file(RELATIVE_PATH libraries "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/${libraries}")
endif()

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Kind of build" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(TROUPE_CCACHE ccache DOC "Compiler cache, used when found")
    if(TROUPE_CCACHE)
      # It fails every compilation when it cannot write to its folder (a locked-down HOME), so it is tried once.
      file(WRITE "${PROJECT_BINARY_DIR}/CMakeFiles/ccache_probe.cpp" "int main() {}\n")
      execute_process(COMMAND "${TROUPE_CCACHE}" "${CMAKE_CXX_COMPILER}" -c ccache_probe.cpp -o ccache_probe.o
        WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/CMakeFiles" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
      if(failed)
        message(STATUS "ccache is there but does not work here; building without it")
      else()
        # With precompiled headers it caches only if it may take two things on trust. It compares headers as they are
        # (`depend`) and not what the preprocessor makes of them: a precompiled one has more than that, macros say, and
        # the compiler knows its headers again by their whole text (tests/house/cached_headers.sh).
        set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
          CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=true "${TROUPE_CCACHE}")
      endif()
    endif()
  endif()
endif()

# Every target built here links this one, privately.
add_library(troupe_build_flags INTERFACE)
# Programs that nobody measures: what takes long to compile in them is the optimiser.
add_library(troupe_test_flags INTERFACE)
if(NOT TROUPE_SANITIZE)
  target_compile_options(troupe_test_flags INTERFACE $<$<CONFIG:Release>:-Og>)
endif()
# GCC 12 sees overflows at -Og that are not there; the last is about anonymous namespaces of files in batches.
target_compile_options(troupe_test_flags INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-subobject-linkage>)
# The last is for ccache.
target_compile_options(troupe_build_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
if(TROUPE_WERROR)
  target_compile_options(troupe_build_flags INTERFACE -Werror)
endif()
if(TROUPE_SANITIZE)
  target_compile_options(troupe_build_flags INTERFACE -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(troupe_build_flags INTERFACE -fsanitize=${TROUPE_SANITIZE})
  # To check a vptr the sanitizer opens a pipe, and takes objects for broken where there is no descriptor left, which some
  # tests bring about.
  if(TROUPE_SANITIZE MATCHES "undefined")
    target_compile_options(troupe_build_flags INTERFACE -fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
endif()

# Plugins are linked as if nothing else were there: a symbol that no library has is an error here, instead of a plugin that
# never loads. Sanitizers leave theirs to the program.
add_library(troupe_plugin_flags INTERFACE)
if(NOT TROUPE_SANITIZE)
  target_link_options(troupe_plugin_flags INTERFACE LINKER:-z,defs)
endif()

# For the files that include CAF: its headers bind references to null in function-based spawn, by design.
add_library(troupe_caf_flags INTERFACE)
if(TROUPE_SANITIZE MATCHES "undefined")
  target_compile_options(troupe_caf_flags INTERFACE -fno-sanitize=null)
endif()
