# ddp_options: what every file of the book is compiled with.
find_package(Threads REQUIRED)
add_library(ddp_options INTERFACE)
set(installed_headers include/ddp_by_hand)
target_include_directories(ddp_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/chapters>
  $<INSTALL_INTERFACE:${installed_headers}> $<INSTALL_INTERFACE:${installed_headers}/chapters>)
target_link_libraries(ddp_options INTERFACE Threads::Threads)
target_compile_options(ddp_options INTERFACE
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wall>> $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wextra>>
  $<$<COMPILE_LANGUAGE:CXX>:-fopenmp-simd>
  # No fused multiply-add behind our back: the bits of a sum must not depend on the compiler's mood.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  # sqrtf need not set errno, so loops with it are vectorised.
  $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno>
  # Messages name files as the reader knows them: from the root of the book.
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>>)
target_compile_features(ddp_options INTERFACE cxx_std_20)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # it then seldom collects its garbage, which took a tenth of its time
  target_compile_options(ddp_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=524288>")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(ddp_options INTERFACE  # false alarms in the library's strings
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict -Wno-stringop-overflow -Wno-array-bounds>)
endif()
# A target with the property DDP_FAST_COMPILE only calls, prints or tests: it need not be fast, and takes three fifths of the time to compile.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(ddp_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:$<IF:$<BOOL:$<TARGET_PROPERTY:DDP_FAST_COMPILE>>,-Og,-O3>>)
endif()
if(DDP_NATIVE)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native DDP_HAS_MARCH_NATIVE)
  if(DDP_HAS_MARCH_NATIVE)
    target_compile_options(ddp_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
  endif()
endif()
if(DDP_CONTRACT)
  target_compile_definitions(ddp_options INTERFACE CUDA_ON_CPU_CONTRACT)
endif()
if(cuda_build)
  target_compile_options(ddp_options INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr --extended-lambda -lineinfo>)
  target_compile_definitions(ddp_options INTERFACE DDP_CUDA)
  target_link_libraries(ddp_options INTERFACE CUDA::cudart CUDA::cublas)
endif()
# The book has 300 programs. gold, where it is, links one in a quarter of the time that the usual linker takes.
include(CheckLinkerFlag)
if(NOT cuda_build)
  check_linker_flag(CXX -fuse-ld=gold DDP_HAS_GOLD)
  if(DDP_HAS_GOLD)
    target_link_options(ddp_options INTERFACE -fuse-ld=gold)
  endif()
endif()
if(DDP_SANITIZE STREQUAL "races")  # common/cuda_on_cpu/races is in the place of ThreadSanitizer's library
  target_compile_options(ddp_options INTERFACE -fsanitize=thread)
  target_compile_definitions(ddp_options INTERFACE DDP_SEES_RACES)  # __SANITIZE_THREAD__ is defined all the same
  target_link_libraries(ddp_options INTERFACE cuda_on_cpu_races)
elseif(DDP_SANITIZE)
  target_compile_options(ddp_options INTERFACE -fsanitize=${DDP_SANITIZE} -fno-omit-frame-pointer
                                               -fno-sanitize-recover=all)
  target_link_options(ddp_options INTERFACE -fsanitize=${DDP_SANITIZE})
endif()
