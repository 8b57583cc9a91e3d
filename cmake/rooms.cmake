# Rooms: who may include whom, enforced by what a target can see.
#
# Includes are written from the repository root ("actors/logic/data/box4.hpp"), so one plain -I<root> would show every
# room to every other. Instead each room compiles against a forest in the build folder that holds links to the
# folders it may include, and nothing else: a forbidden include is a file that does not exist.
# tests/house/includes.sh checks the same rules on the text, which also covers system headers.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
include_guard(GLOBAL)

# What everybody may include.
add_library(troupe_sees_public INTERFACE)
target_include_directories(troupe_sees_public INTERFACE "${PROJECT_SOURCE_DIR}/include")

# troupe_forest(<name> <path>...)
# Makes troupe_sees_<name>: the public headers and the given folders or files (relative to the repository root).
function(troupe_forest name)
  set(forest "${PROJECT_BINARY_DIR}/rooms/${name}")
  file(REMOVE_RECURSE "${forest}") # links only: what they point to stays
  file(MAKE_DIRECTORY "${forest}")
  foreach(path IN LISTS ARGN)
    if(EXISTS "${PROJECT_SOURCE_DIR}/${path}")
      cmake_path(GET path PARENT_PATH parent)
      file(MAKE_DIRECTORY "${forest}/${parent}")
      file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${path}" "${forest}/${path}" SYMBOLIC)
    endif()
  endforeach()
  add_library(troupe_sees_${name} INTERFACE)
  target_include_directories(troupe_sees_${name} INTERFACE "${forest}")
  target_link_libraries(troupe_sees_${name} INTERFACE troupe_sees_public)
  # Debug information and std::source_location name the real file, not the link.
  target_compile_options(troupe_sees_${name} INTERFACE "-ffile-prefix-map=${forest}/=${PROJECT_SOURCE_DIR}/")
endfunction()

# troupe_seams(<variable> <folder>...)
# The headers directly in the folders: what actors may know of devices and wires.
function(troupe_seams variable)
  set(seams "")
  foreach(folder IN LISTS ARGN)
    file(GLOB headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${folder}/*.hpp")
    list(APPEND seams ${headers})
  endforeach()
  set(${variable} "${seams}" PARENT_SCOPE)
endfunction()

# troupe_sources(<variable> <pattern>...)
# Source files by pattern, relative to the repository root; the build notices new ones.
function(troupe_sources variable)
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/")
  file(GLOB sources CONFIGURE_DEPENDS ${ARGN})
  set(${variable} "${sources}" PARENT_SCOPE)
endfunction()

# What nearly every file of the rooms includes, compiled once: half of the time of a small file. Files include what they
# need all the same; the preset `dev` builds without precompiled headers. A target of its own, because the objects of a
# target would include its precompiled header.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cpp" CONTENT "")
add_library(troupe_precompiled OBJECT "${PROJECT_BINARY_DIR}/precompiled.cpp")
target_include_directories(troupe_precompiled PRIVATE "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(troupe_precompiled PRIVATE troupe_build_flags)
target_compile_options(troupe_precompiled PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
target_precompile_headers(troupe_precompiled PRIVATE <algorithm> <array> <atomic> <chrono> <condition_variable> <cstddef>
  <cstdint> <deque> <exception> <functional> <list> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view>
  <thread> <unordered_map> <utility> <vector> <troupe/detail/task.hpp>)

# troupe_room(<name> SEES <forest> SOURCES <file>... [LIBRARIES <target>...])
# Makes troupe_<name>: the room's objects, which become part of the library. A room that has only headers so far
# is an INTERFACE library. Its users see what the room itself may see.
function(troupe_room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SEES" "SOURCES;LIBRARIES")
  if(arg_SOURCES)
    add_library(troupe_${name} OBJECT ${arg_SOURCES})
    target_link_libraries(troupe_${name} PUBLIC troupe_sees_${arg_SEES}
                                         PRIVATE troupe_build_flags ${arg_LIBRARIES})
    target_precompile_headers(troupe_${name} REUSE_FROM troupe_precompiled)
    # Unique symbols would be one in the whole process, whatever else says that they are local.
    target_compile_options(troupe_${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
    set_property(GLOBAL APPEND PROPERTY TROUPE_OBJECTS "$<TARGET_OBJECTS:troupe_${name}>")
    set_property(GLOBAL APPEND PROPERTY TROUPE_ROOMS troupe_${name})
  else()
    add_library(troupe_${name} INTERFACE)
    target_link_libraries(troupe_${name} INTERFACE troupe_sees_${arg_SEES})
  endif()
endfunction()
