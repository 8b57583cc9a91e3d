# Finds GStreamer with the libraries of its appsink and appsrc, and gives GStreamer::App. pkg-config is asked where to
# look; without it the usual places are searched.
# Sets GStreamer_FOUND and GStreamer_VERSION.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
if(TARGET GStreamer::App)
  set(GStreamer_FOUND TRUE)
  return()
endif()
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_GStreamer QUIET gstreamer-app-1.0)
endif()
set(GStreamer_VERSION "${PC_GStreamer_VERSION}")

set(needed "")
# Where the headers are that include one another, and the libraries that they belong to.
foreach(header IN ITEMS gst/gst.h gst/app/gstappsink.h glib.h glibconfig.h)
  string(MAKE_C_IDENTIFIER "GStreamer_${header}_DIR" variable)
  find_path(${variable} ${header} HINTS ${PC_GStreamer_INCLUDE_DIRS}
    PATHS "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/glib-2.0/include" /usr/lib/glib-2.0/include
    PATH_SUFFIXES gstreamer-1.0 glib-2.0 DOC "Folder that holds ${header}")
  list(APPEND needed ${variable})
endforeach()
foreach(library IN ITEMS gstapp-1.0 gstreamer-1.0 gobject-2.0 glib-2.0)
  string(MAKE_C_IDENTIFIER "GStreamer_${library}_LIBRARY" variable)
  find_library(${variable} ${library} HINTS ${PC_GStreamer_LIBRARY_DIRS} DOC "${library}")
  list(APPEND needed ${variable})
endforeach()
mark_as_advanced(${needed})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GStreamer
  REQUIRED_VARS ${needed}
  VERSION_VAR GStreamer_VERSION
  REASON_FAILURE_MESSAGE "on Debian: libgstreamer1.0-dev and libgstreamer-plugins-base1.0-dev")

if(GStreamer_FOUND)
  add_library(GStreamer::App INTERFACE IMPORTED)
  foreach(variable IN LISTS needed)
    if(variable MATCHES "_DIR$")
      target_include_directories(GStreamer::App INTERFACE "${${variable}}")
    else()
      target_link_libraries(GStreamer::App INTERFACE "${${variable}}")
    endif()
  endforeach()
endif()
