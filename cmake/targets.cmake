# The functions that make the book's libraries and programs.

# ---- The library's headers, which the C++ compiler reads once and not 200 times: half of a build's time.
# Every file includes what it uses all the same.
if(NOT EXISTS ${PROJECT_BINARY_DIR}/empty.cpp)  # a target needs a source
  file(TOUCH ${PROJECT_BINARY_DIR}/empty.cpp)
endif()
set(DDP_PRECOMPILED <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <filesystem> <fstream> <functional>
    <future> <iostream> <map> <memory> <mutex> <numeric> <optional> <ranges> <set> <sstream> <stdexcept> <string> <thread>
    <vector>)
# Where no nvcc compiles, also what nearly every file includes of the book itself: a tenth of a build's time. (The little books
# of tests/meta have no kernels.)
if(NOT cuda_build AND EXISTS ${PROJECT_SOURCE_DIR}/common/gpu/gpu.hpp)
  target_include_directories(ddp_options BEFORE INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/common/cuda_on_cpu/include>
    $<INSTALL_INTERFACE:${installed_headers}/common/cuda_on_cpu/include>)
  list(APPEND DDP_PRECOMPILED ${PROJECT_SOURCE_DIR}/common/gpu/gpu.hpp)
endif()
# g++ 12 optimizes as the precompiled header was, whatever it is told itself: so there is one of each kind.
foreach(precompiled ddp_precompiled ddp_precompiled_fast_compile)
  add_library(${precompiled} STATIC ${PROJECT_BINARY_DIR}/empty.cpp)
  target_link_libraries(${precompiled} PRIVATE ddp_options)
  target_precompile_headers(${precompiled} PRIVATE ${DDP_PRECOMPILED})
endforeach()
set_target_properties(ddp_precompiled_fast_compile PROPERTIES DDP_FAST_COMPILE ON)

# ---- With DDP_UNITY, as the presets and so ./book have it, files are compiled several at a time, as one unit, which reads the
# headers once: half of a build's time. So names in unnamed namespaces must be unique within a library or a program.
option(DDP_UNITY "Compile several files of a library or a program as one" OFF)
set(CMAKE_UNITY_BUILD ${DDP_UNITY})  # here, and not in a project around the book
# Ten at a time, so that what a reader has changed is soon compiled again. CI, which compiles everything once, takes more.
if(NOT CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)
endif()
# The same for nvcc, which CMake does by itself from 3.31 on.
function(ddp_unite_kernels name sources)
  set(kernels ${${sources}})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  list(LENGTH kernels count)
  if(NOT cuda_build OR NOT DDP_UNITY OR count LESS 2)
    return()
  endif()
  set(others ${${sources}})
  list(REMOVE_ITEM others ${kernels})
  math(EXPR last "${count} - 1")
  foreach(first RANGE 0 ${last} ${CMAKE_UNITY_BUILD_BATCH_SIZE})
    list(SUBLIST kernels ${first} ${CMAKE_UNITY_BUILD_BATCH_SIZE} unit)
    list(TRANSFORM unit REPLACE "^([^/].*)" "${CMAKE_CURRENT_SOURCE_DIR}/\\1")
    list(TRANSFORM unit REPLACE "(.+)" "#include \"\\1\"\n")
    set(file ${CMAKE_CURRENT_BINARY_DIR}/units/${name}_${first}.cu)
    string(JOIN "" text ${unit})
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND others ${file})
  endforeach()
  set(${sources} ${others} PARENT_SCOPE)
endfunction()

# ddp_add_library(NAME sources... [LINK libraries...] [FAST_COMPILE]): a part of the book. Kernels keep the suffix
# .cu in both builds; in a CPU build the C++ compiler takes them. With FAST_COMPILE it has the property DDP_FAST_COMPILE.
function(ddp_kernels_for_this_build)
  foreach(source ${ARGN})
    if(source MATCHES "\\.cu$" AND NOT cuda_build)
      set_source_files_properties(${source} PROPERTIES LANGUAGE CXX)
    endif()
  endforeach()
endfunction()
function(ddp_precompile name fast_compile precompiled)
  set_target_properties(${name} PROPERTIES DDP_FAST_COMPILE "${fast_compile}")
  if(precompiled)
    target_precompile_headers(${name} REUSE_FROM ${precompiled})
  elseif(fast_compile)
    target_precompile_headers(${name} REUSE_FROM ddp_precompiled_fast_compile)
  else()
    target_precompile_headers(${name} REUSE_FROM ddp_precompiled)
  endif()
endfunction()
function(ddp_add_library name)
  cmake_parse_arguments(arg "FAST_COMPILE" "" "LINK" ${ARGN})
  set(files ${arg_UNPARSED_ARGUMENTS})
  ddp_kernels_for_this_build(${files})
  ddp_unite_kernels(${name} files)
  add_library(${name} STATIC ${files})
  target_link_libraries(${name} PUBLIC ddp_options ${arg_LINK})
  ddp_precompile(${name} "${arg_FAST_COMPILE}" "")
endfunction()
# ddp_add_program(NAME sources... [LINK libraries...] [FAST_COMPILE] [PRECOMPILED target]): the same for a program, under
# build/<preset>/bin.
function(ddp_add_program name)
  cmake_parse_arguments(arg "FAST_COMPILE" "PRECOMPILED" "LINK" ${ARGN})
  set(files ${arg_UNPARSED_ARGUMENTS})
  ddp_kernels_for_this_build(${files})
  ddp_unite_kernels(${name} files)
  add_executable(${name} ${files})
  target_link_libraries(${name} PRIVATE ddp_options ${arg_LINK})
  ddp_precompile(${name} "${arg_FAST_COMPILE}" "${arg_PRECOMPILED}")
endfunction()

# ddp_add_python_program(NAME [--or-without] program.py [arguments...]): a program in build/<preset>/bin like the others, which starts program.py by
# an interpreter that has PyTorch.
function(ddp_add_python_program name)
  string(JOIN "' '" command ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name} @ONLY
       CONTENT "#!/bin/sh\nexec bash '@PROJECT_SOURCE_DIR@/tools/with_pytorch.sh' '@command@' \"\$@\"\n")
  file(CHMOD ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                                   WORLD_READ WORLD_EXECUTE)
  add_custom_target(${name})
endfunction()

# Of all tests of a folder that use the GPU one runs at a time, beside whatever else runs: kernels of two tests that wait for
# each other would share it in turns of milliseconds, or wait for room until their time-outs. Host code has its labels.
function(ddp_lock_gpu)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test ${tests})
    get_property(labels TEST ${test} PROPERTY LABELS)
    if(NOT "${labels}" MATCHES "(^|;)(data|common|meta)(;|$)")
      set_tests_properties(${test} PROPERTIES RESOURCE_LOCK gpu)
    endif()
  endforeach()
endfunction()
