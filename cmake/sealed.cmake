# Sealing: many objects become one, in which all symbols are local but those of cmake/public_symbols.map.
#
# Hidden symbols are not enough for a static library: they keep out of other shared objects, but inside the program that
# links the archive they meet the program's own. Two versions of Asio in one program then share their inline functions,
# whichever comes first, over different layouts.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
include_guard(GLOBAL)

set(TROUPE_PUBLIC_SYMBOLS "${PROJECT_SOURCE_DIR}/cmake/public_symbols.map")

# Sets TROUPE_SEALED: whether the static library is sealed. Not under sanitizers, which look at symbols by name.
function(troupe_can_seal)
  set(TROUPE_SEALED OFF PARENT_SCOPE)
  if(BUILD_SHARED_LIBS OR TROUPE_SANITIZE)
    return()
  endif()
  set(folder "${PROJECT_BINARY_DIR}/CMakeFiles/sealed")
  file(WRITE "${folder}/probe.cpp" "int probe() { return 0; }\n")
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
  execute_process(WORKING_DIRECTORY "${folder}" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET
    COMMAND "${CMAKE_CXX_COMPILER}" ${flags} -r -nostdlib -Wl,--force-group-allocation -o probe.o probe.cpp)
  if(failed OR NOT CMAKE_OBJCOPY)
    message(WARNING "troupe: libtroupe.a is a plain archive, whose inside may clash with a program's own Boost: sealing it "
                    "takes GNU ld and objcopy")
    return()
  endif()
  set(TROUPE_SEALED ON PARENT_SCOPE)
endfunction()
troupe_can_seal()

# troupe_sealed(<variable> <object>...)
# The object to put into the archive; the objects themselves where they cannot be sealed.
function(troupe_sealed variable)
  set(${variable} "${ARGN}" PARENT_SCOPE)
  if(NOT TROUPE_SEALED)
    return()
  endif()
  file(STRINGS "${TROUPE_PUBLIC_SYMBOLS}" names REGEX "^ *_Z[A-Za-z0-9_]+;$")
  list(TRANSFORM names REPLACE "^ *(.*);$" "\\1")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/sealed")
  list(JOIN names "\n" names)
  file(CONFIGURE OUTPUT "${folder}/public_symbols" CONTENT "${names}\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${TROUPE_PUBLIC_SYMBOLS}")
  # Groups of sections are dissolved: a program must not take its copy of one for the library's.
  set(options -r -nostdlib -Wl,--force-group-allocation)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND options -flinker-output=nolto-rel) # with -flto: code, since objcopy knows no other
  endif()
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
  add_custom_command(OUTPUT "${folder}/troupe.o" DEPENDS ${ARGN} "${folder}/public_symbols"
    COMMENT "Sealing the objects of the library" COMMAND_EXPAND_LISTS VERBATIM
    COMMAND "${CMAKE_CXX_COMPILER}" ${flags} ${options} -o "${folder}/whole.o" ${ARGN}
    COMMAND "${CMAKE_OBJCOPY}" "--keep-global-symbols=${folder}/public_symbols" "${folder}/whole.o" "${folder}/troupe.o"
    COMMAND "${CMAKE_COMMAND}" -E rm "${folder}/whole.o")
  set_source_files_properties("${folder}/troupe.o" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${variable} "${folder}/troupe.o" PARENT_SCOPE)
endfunction()
