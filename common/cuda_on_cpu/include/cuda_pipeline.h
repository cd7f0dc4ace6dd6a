#pragma once
#error \
    "<cuda_pipeline.h> is not in the CPU subset of CUDA: see common/cuda_on_cpu/README.md for what is"
