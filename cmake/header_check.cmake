# troupe_header_check: every header of a room compiled alone, by a generated file that includes it and nothing else,
# seeing what the room sees.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
include_guard(GLOBAL)
add_custom_target(troupe_header_check)

# troupe_header_check(<name> SEES <target>... HEADERS <path>... [LIBRARIES <target>...])
# Paths are relative to the repository root; those below include/ are included as users do.
function(troupe_header_check name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SEES;HEADERS;LIBRARIES")
  set(sources "")
  foreach(header IN LISTS arg_HEADERS)
    string(REGEX REPLACE "^include/(.*)$" "<\\1>" include "${header}")
    if(include STREQUAL header)
      set(include "\"${header}\"")
    endif()
    string(REGEX REPLACE "[^A-Za-z0-9]" "_" stem "${header}")
    set(source "${PROJECT_BINARY_DIR}/header_check/${name}/${stem}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include ${include}\n#include ${include} // twice: it is guarded\n")
    list(APPEND sources "${source}")
  endforeach()
  if(sources)
    add_library(troupe_header_check_${name} OBJECT EXCLUDE_FROM_ALL ${sources})
    target_compile_options(troupe_header_check_${name} PRIVATE -O0 -g0)
    target_link_libraries(troupe_header_check_${name} PRIVATE ${arg_SEES} ${arg_LIBRARIES} troupe_build_flags)
    add_dependencies(troupe_header_check troupe_header_check_${name})
  endif()
endfunction()
