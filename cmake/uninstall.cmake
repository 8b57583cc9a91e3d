# Takes away what the last installation from a build folder has put in place, and folders of ours that are empty then.
# cmake -DMANIFEST=BUILD/install_manifest.txt -P cmake/uninstall.cmake; the target `uninstall` does so. Knows DESTDIR.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "nothing has been installed from here: ${MANIFEST} is missing")
endif()
file(STRINGS "${MANIFEST}" files)
foreach(file IN LISTS files)
  set(file "$ENV{DESTDIR}${file}")
  if(EXISTS "${file}" OR IS_SYMLINK "${file}")
    message(STATUS "Removing: ${file}")
    file(REMOVE "${file}")
  endif()
  cmake_path(GET file PARENT_PATH folder)
  while(folder MATCHES "/troupe(/|$)" AND IS_DIRECTORY "${folder}")
    file(GLOB left LIST_DIRECTORIES true "${folder}/*")
    if(left)
      break()
    endif()
    file(REMOVE_RECURSE "${folder}")
    cmake_path(GET folder PARENT_PATH folder)
  endwhile()
endforeach()
