# The libraries that the book is measured against, ddp_mpi and ddp_nccl: empty where there are none.

# ---- MPI: one more way to start ranks, too
add_library(ddp_mpi INTERFACE)
set(mpi_found FALSE)
if(DDP_MPI STREQUAL "ON" OR (DDP_MPI STREQUAL "AUTO" AND NOT DDP_SANITIZE STREQUAL "thread"))
  set(MPI_CXX_SKIP_MPICXX ON)  # MPI's own C++ interface, which the book does not use, takes seconds to compile
  find_package(MPI COMPONENTS CXX)  # ThreadSanitizer reports falsely in it: only if asked for
  set(mpi_found ${MPI_CXX_FOUND})
  if(mpi_found)
    target_link_libraries(ddp_mpi INTERFACE MPI::MPI_CXX)
    target_compile_definitions(ddp_mpi INTERFACE DDP_MPI)
  elseif(DDP_MPI STREQUAL "ON")
    message(FATAL_ERROR "DDP_MPI=ON needs MPI, and none was found: install it (Debian: libopenmpi-dev) "
                        "and put mpicxx on PATH, or use -DDDP_MPI=OFF.")
  endif()
endif()

# ---- NCCL: on several GPUs
add_library(ddp_nccl INTERFACE)
set(nccl_found FALSE)
if(cuda_build AND NOT DDP_NCCL STREQUAL "OFF")
  find_path(DDP_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  # Beside the toolkit's libraries, which may be links to those in a folder of the toolkit.
  find_library(DDP_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_BIN_DIR}/.. ${DDP_NCCL_INCLUDE}/..
               PATH_SUFFIXES lib64 lib)
  if(DDP_NCCL_INCLUDE AND DDP_NCCL_LIBRARY)
    set(nccl_found TRUE)
    target_include_directories(ddp_nccl SYSTEM INTERFACE ${DDP_NCCL_INCLUDE})
    target_link_libraries(ddp_nccl INTERFACE ${DDP_NCCL_LIBRARY})
    target_compile_definitions(ddp_nccl INTERFACE DDP_NCCL)
  endif()
endif()
if(DDP_NCCL STREQUAL "ON" AND NOT nccl_found)
  message(FATAL_ERROR "DDP_NCCL=ON needs a CUDA build, nccl.h and libnccl: install NCCL (Debian: libnccl-dev), "
                      "or use -DDDP_NCCL=OFF.")
endif()
