# Accelerators: which vendors' toolkits are there. Found, not required: every option is AUTO, ON or OFF.
#
#   TROUPE_HAVE_CUDA   CUDA::cudart_static; compiled by the C++ compiler, since kernels come from NVRTC at run time
#   TROUPE_HAVE_HIP    the plugin libtroupe_hip.so is built
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
include_guard(GLOBAL)

# troupe_accelerator(<name> <description>)
# Makes the option TROUPE_<name>.
function(troupe_accelerator name description)
  set(TROUPE_${name} AUTO CACHE STRING "${description}: AUTO, ON or OFF")
  set_property(CACHE TROUPE_${name} PROPERTY STRINGS AUTO ON OFF)
endfunction()

# troupe_accelerator_missing(<name> <reason>)
# Says why it is not built; fatal where it was asked for.
function(troupe_accelerator_missing name reason)
  if(TROUPE_${name} STREQUAL "AUTO")
    message(STATUS "troupe: without ${name}: ${reason}")
  else()
    message(FATAL_ERROR "TROUPE_${name} is ${TROUPE_${name}}, but ${reason}")
  endif()
endfunction()

# troupe_accelerator_libraries(<target>...)
# What the objects of a backend need; linked to the library at the end, when it has been made of them.
function(troupe_accelerator_libraries)
  set_property(GLOBAL APPEND PROPERTY TROUPE_ACCELERATOR_LIBRARIES ${ARGN})
endfunction()
function(troupe_link_accelerators)
  get_property(libraries GLOBAL PROPERTY TROUPE_ACCELERATOR_LIBRARIES)
  foreach(target IN ITEMS troupe troupe_archive)
    if(TARGET ${target})
      target_link_libraries(${target} PRIVATE ${libraries})
    endif()
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY "${PROJECT_SOURCE_DIR}" CALL troupe_link_accelerators)

troupe_accelerator(CUDA "GPUs of NVIDIA")
troupe_accelerator(HIP "GPUs of AMD")

set(TROUPE_HAVE_CUDA OFF)
if(TROUPE_CUDA)
  find_package(CUDAToolkit 12.8 QUIET GLOBAL) # 12.8: the runtime loads compiled kernels by itself
  if(TARGET CUDA::cudart_static)
    set(TROUPE_HAVE_CUDA ON)
    troupe_accelerator_libraries(CUDA::cudart_static)
    set_property(GLOBAL PROPERTY TROUPE_PACKAGE_NEEDS_CUDA ON)
  elseif(CUDAToolkit_FOUND)
    troupe_accelerator_missing(CUDA "the toolkit ${CUDAToolkit_VERSION} has no libcudart_static.a")
  else()
    troupe_accelerator_missing(CUDA "no toolkit of version 12.8 or newer is found")
  endif()
endif()

# HIP's calls on NVIDIA's GPUs: a way to run the words of devices/gpu/vendors/hip.h; says nothing about AMD's runtime.
option(TROUPE_HIP_ON_NVIDIA "Build the HIP plugin for NVIDIA's GPUs instead, for tests" OFF)

set(TROUPE_HAVE_HIP OFF)
if(TROUPE_HIP_ON_NVIDIA)
  find_path(TROUPE_HIP_INCLUDE_DIR hip/nvidia_detail/nvidia_hip_runtime_api.h HINTS /opt/rocm/include
    DOC "HIP's headers with those for NVIDIA")
  if(NOT TROUPE_HAVE_CUDA OR NOT CUDAToolkit_NVCC_EXECUTABLE OR NOT TARGET CUDA::cuda_driver)
    message(FATAL_ERROR "TROUPE_HIP_ON_NVIDIA needs CUDA with nvcc and the driver's stub, libcuda.so")
  elseif(NOT TROUPE_HIP_INCLUDE_DIR)
    message(FATAL_ERROR "TROUPE_HIP_ON_NVIDIA needs HIP's headers (on Debian: libamdhip64-dev)")
  endif()
  set(TROUPE_HAVE_HIP ON)
elseif(TROUPE_HIP)
  find_package(hip CONFIG QUIET HINTS /opt/rocm)
  if(TARGET hip::host)
    set(TROUPE_HAVE_HIP ON)
  else()
    troupe_accelerator_missing(HIP "no package 'hip' is found (on Debian: libamdhip64-dev hipcc)")
  endif()
endif()

if(CMAKE_DL_LIBS)
  troupe_accelerator_libraries(${CMAKE_DL_LIBS}) # plugins and kernels are opened at run time
endif()
