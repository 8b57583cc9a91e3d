# Writes a source file that compiles several test files as one (cmake/batches.cmake):
#   cmake -DOUT=<file> -DSOURCES=<list> -DNOT=<regex> -P batch.cmake
# NOT: what no line of a file may match; a file that does now has to be built alone.
# Each file lies in a namespace of its own, so that names in their anonymous namespaces do not meet. All headers come
# first, outside of these: where the files include them again, they are there already.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set(headers "")
set(bodies "")
set(number 0)
foreach(source IN LISTS SOURCES)
  get_filename_component(folder "${source}" DIRECTORY)
  file(STRINGS "${source}" special REGEX "${NOT}")
  if(special)
    message(FATAL_ERROR "${source} cannot be compiled together with others any more: configure the build again (cmake .)")
  endif()
  file(STRINGS "${source}" lines REGEX "^#include ")
  foreach(line IN LISTS lines)
    if(line MATCHES "^#include \"([^\"]+)\"")
      set(near "${folder}/${CMAKE_MATCH_1}")
      if(EXISTS "${near}")
        set(line "#include \"${near}\"")
      endif()
    endif()
    list(APPEND headers "${line}\n")
  endforeach()
  math(EXPR number "${number} + 1")
  string(APPEND bodies "namespace file_${number} {\n#include \"${source}\"\n}\n")
endforeach()
list(REMOVE_DUPLICATES headers)
list(JOIN headers "" headers)
file(CONFIGURE OUTPUT "${OUT}" CONTENT "${headers}\n${bodies}" @ONLY)
