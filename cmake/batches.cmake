# Several test files compiled as one: most of what a compiler does for a small test file is the same for all of them.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
include_guard(GLOBAL)

set(TROUPE_TEST_BATCH 1 CACHE STRING
  "Test files that are compiled as one: 1 is best for work on a test, 6 takes half the time for all of them")

# A line that keeps a file out of batches.
set(TROUPE_NOT_IN_BATCHES "^ *#(define|if|pragma|undef)|^namespace [a-z]|^extern|^int main|operator new")

# troupe_batches(<variable> <program> <source>...)
# Replaces most *_test.cpp of the list by batches of up to TROUPE_TEST_BATCH files of one folder. Files with directives
# other than #include, with namespaces that others know, or with definitions set for them are left as they are.
function(troupe_batches out program)
  if(TROUPE_TEST_BATCH LESS 2)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(all "")
  set(number 0)
  set(folders "")
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" special REGEX "${TROUPE_NOT_IN_BATCHES}")
    get_source_file_property(definitions "${source}" COMPILE_DEFINITIONS)
    if(source MATCHES "_test\\.cpp$" AND NOT special AND NOT definitions)
      get_filename_component(folder "${source}" DIRECTORY)
      list(FIND folders "${folder}" at)
      if(at LESS 0)
        list(LENGTH folders at)
        list(APPEND folders "${folder}")
        set(files_${at} "")
      endif()
      list(APPEND files_${at} "${source}")
    else()
      list(APPEND all "${source}")
    endif()
  endforeach()
  list(LENGTH folders count)
  set(at 0)
  while(at LESS count)
    set(rest ${files_${at}})
    math(EXPR at "${at} + 1")
    while(rest)
      list(SUBLIST rest 0 ${TROUPE_TEST_BATCH} batch)
      list(REMOVE_ITEM rest ${batch})
      math(EXPR number "${number} + 1")
      set(file "${CMAKE_CURRENT_BINARY_DIR}/batches/${program}_${number}.cpp")
      add_custom_command(OUTPUT "${file}"
        COMMAND "${CMAKE_COMMAND}" "-DOUT=${file}" "-DSOURCES=${batch}" "-DNOT=${TROUPE_NOT_IN_BATCHES}"
          -P "${PROJECT_SOURCE_DIR}/cmake/batch.cmake"
        DEPENDS ${batch} "${PROJECT_SOURCE_DIR}/cmake/batch.cmake" VERBATIM)
      list(APPEND all "${file}")
    endwhile()
  endwhile()
  set(${out} ${all} PARENT_SCOPE)
endfunction()
