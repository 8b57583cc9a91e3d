# Several test files compiled as one: most of what a compiler does for a small test file is the same for all of them.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
include_guard(GLOBAL)

set(TROUPE_TEST_BATCH 1 CACHE STRING
  "Test files that are compiled as one: 1 is best for work on a test, 6 takes half the time for all of them")

# troupe_batches(<variable> <program> <source>...)
# Replaces most *_test.cpp of the list by batches of up to TROUPE_TEST_BATCH files of one folder. Files with directives other than #include,
# with properties of their own, or with namespaces that others know are left as they are.
function(troupe_batches out program)
  if(TROUPE_TEST_BATCH LESS 2)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(all "")
  set(number 0)
  set(folders "")
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" special REGEX "^ *#(define|if|pragma|undef)|^namespace [a-z]|^extern|^int main")
    get_source_file_property(definitions "${source}" COMPILE_DEFINITIONS)
    if(source MATCHES "_test\\.cpp$" AND NOT special AND NOT definitions)
      get_filename_component(folder "${source}" DIRECTORY)
      list(APPEND folders "${folder}")
      string(MAKE_C_IDENTIFIER "${folder}" name)
      list(APPEND files_${name} "${source}")
    else()
      list(APPEND all "${source}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    string(MAKE_C_IDENTIFIER "${folder}" name)
    set(rest ${files_${name}})
    while(rest)
      list(SUBLIST rest 0 ${TROUPE_TEST_BATCH} batch)
      list(REMOVE_ITEM rest ${batch})
      math(EXPR number "${number} + 1")
      set(file "${CMAKE_CURRENT_BINARY_DIR}/batches/${program}_${number}.cpp")
      add_custom_command(OUTPUT "${file}"
        COMMAND "${CMAKE_COMMAND}" "-DOUT=${file}" "-DSOURCES=${batch}" -P "${PROJECT_SOURCE_DIR}/cmake/batch.cmake"
        DEPENDS ${batch} "${PROJECT_SOURCE_DIR}/cmake/batch.cmake" VERBATIM)
      list(APPEND all "${file}")
    endwhile()
  endforeach()
  set(${out} ${all} PARENT_SCOPE)
endfunction()
