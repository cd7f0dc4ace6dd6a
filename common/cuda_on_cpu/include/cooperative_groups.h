#pragma once
#error \
    "<cooperative_groups.h> is not in the CPU subset of CUDA: see common/cuda_on_cpu/README.md for what is"
