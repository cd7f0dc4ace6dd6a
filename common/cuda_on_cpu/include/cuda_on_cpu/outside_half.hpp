#pragma once
// The parts of CUDA's <cuda_fp16.h> and <cuda_bf16.h> that the subset leaves out, as far as they
// are often used. Kernels of this book convert to float, compute, and convert the result.
#include <type_traits>

#include "cuda_on_cpu/leaves_out.hpp"

struct __half;
struct __nv_bfloat16;

namespace cuda_on_cpu {

template <class... T>
inline constexpr bool any_has_16_bits =
    ((std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>) || ...);

}  // namespace cuda_on_cpu

// Without these the compiler would convert to float: h + h would be a float here, and 16 bits wide
// on a GPU. (Adding to a float, sum += h, converts on a GPU, too.)
#define CUDA_ON_CPU_LEAVES_OUT_OPERATOR(sign, ...)                                              \
    template <class A, class B>                                                                 \
    requires(cuda_on_cpu::any_has_16_bits<__VA_ARGS__>) int operator sign(const A&, const B&) { \
        static_assert(sizeof(A) == 0,                                                           \
                      "operator " #sign                                                         \
                      " of 16-bit floats is not in the CPU subset of CUDA: convert to float "   \
                      "first; see common/cuda_on_cpu/README.md for what is");                   \
        return 0;                                                                               \
    }

CUDA_ON_CPU_LEAVES_OUT_OPERATOR(+, A, B)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(-, A, B)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(*, A, B)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(/, A, B)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(==, A, B)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(!=, A, B)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(<, A, B)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(>, A, B)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(<=, A, B)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(>=, A, B)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(+=, A)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(-=, A)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(*=, A)
CUDA_ON_CPU_LEAVES_OUT_OPERATOR(/=, A)

#undef CUDA_ON_CPU_LEAVES_OUT_OPERATOR

CUDA_ON_CPU_LEAVES_OUT(__bfloat1622float2)
CUDA_ON_CPU_LEAVES_OUT(__bfloat162bfloat162)
CUDA_ON_CPU_LEAVES_OUT(__bfloat16_as_short)
CUDA_ON_CPU_LEAVES_OUT(__bfloat16_as_ushort)
CUDA_ON_CPU_LEAVES_OUT(__double2bfloat16)
CUDA_ON_CPU_LEAVES_OUT(__double2half)
CUDA_ON_CPU_LEAVES_OUT(__float22bfloat162_rn)
CUDA_ON_CPU_LEAVES_OUT(__float22half2_rn)
CUDA_ON_CPU_LEAVES_OUT(__float2bfloat162_rn)
CUDA_ON_CPU_LEAVES_OUT(__float2bfloat16_rd)
CUDA_ON_CPU_LEAVES_OUT(__float2bfloat16_ru)
CUDA_ON_CPU_LEAVES_OUT(__float2bfloat16_rz)
CUDA_ON_CPU_LEAVES_OUT(__float2half2_rn)
CUDA_ON_CPU_LEAVES_OUT(__float2half_rd)
CUDA_ON_CPU_LEAVES_OUT(__float2half_ru)
CUDA_ON_CPU_LEAVES_OUT(__float2half_rz)
CUDA_ON_CPU_LEAVES_OUT(__floats2bfloat162_rn)
CUDA_ON_CPU_LEAVES_OUT(__floats2half2_rn)
CUDA_ON_CPU_LEAVES_OUT(__h2div)
CUDA_ON_CPU_LEAVES_OUT(__habs)
CUDA_ON_CPU_LEAVES_OUT(__habs2)
CUDA_ON_CPU_LEAVES_OUT(__hadd)
CUDA_ON_CPU_LEAVES_OUT(__hadd2)
CUDA_ON_CPU_LEAVES_OUT(__half22float2)
CUDA_ON_CPU_LEAVES_OUT(__half2half2)
CUDA_ON_CPU_LEAVES_OUT(__half_as_short)
CUDA_ON_CPU_LEAVES_OUT(__half_as_ushort)
CUDA_ON_CPU_LEAVES_OUT(__halves2bfloat162)
CUDA_ON_CPU_LEAVES_OUT(__halves2half2)
CUDA_ON_CPU_LEAVES_OUT(__hbeq2)
CUDA_ON_CPU_LEAVES_OUT(__hbge2)
CUDA_ON_CPU_LEAVES_OUT(__hbgt2)
CUDA_ON_CPU_LEAVES_OUT(__hble2)
CUDA_ON_CPU_LEAVES_OUT(__hblt2)
CUDA_ON_CPU_LEAVES_OUT(__hbne2)
CUDA_ON_CPU_LEAVES_OUT(__hdiv)
CUDA_ON_CPU_LEAVES_OUT(__heq)
CUDA_ON_CPU_LEAVES_OUT(__heq2)
CUDA_ON_CPU_LEAVES_OUT(__hfma)
CUDA_ON_CPU_LEAVES_OUT(__hfma2)
CUDA_ON_CPU_LEAVES_OUT(__hge)
CUDA_ON_CPU_LEAVES_OUT(__hge2)
CUDA_ON_CPU_LEAVES_OUT(__hgt)
CUDA_ON_CPU_LEAVES_OUT(__hgt2)
CUDA_ON_CPU_LEAVES_OUT(__high2bfloat16)
CUDA_ON_CPU_LEAVES_OUT(__high2bfloat162)
CUDA_ON_CPU_LEAVES_OUT(__high2float)
CUDA_ON_CPU_LEAVES_OUT(__high2half)
CUDA_ON_CPU_LEAVES_OUT(__high2half2)
CUDA_ON_CPU_LEAVES_OUT(__highs2bfloat162)
CUDA_ON_CPU_LEAVES_OUT(__highs2half2)
CUDA_ON_CPU_LEAVES_OUT(__hisinf)
CUDA_ON_CPU_LEAVES_OUT(__hisnan)
CUDA_ON_CPU_LEAVES_OUT(__hisnan2)
CUDA_ON_CPU_LEAVES_OUT(__hle)
CUDA_ON_CPU_LEAVES_OUT(__hle2)
CUDA_ON_CPU_LEAVES_OUT(__hlt)
CUDA_ON_CPU_LEAVES_OUT(__hlt2)
CUDA_ON_CPU_LEAVES_OUT(__hmax)
CUDA_ON_CPU_LEAVES_OUT(__hmax2)
CUDA_ON_CPU_LEAVES_OUT(__hmin)
CUDA_ON_CPU_LEAVES_OUT(__hmin2)
CUDA_ON_CPU_LEAVES_OUT(__hmul)
CUDA_ON_CPU_LEAVES_OUT(__hmul2)
CUDA_ON_CPU_LEAVES_OUT(__hne)
CUDA_ON_CPU_LEAVES_OUT(__hne2)
CUDA_ON_CPU_LEAVES_OUT(__hneg)
CUDA_ON_CPU_LEAVES_OUT(__hneg2)
CUDA_ON_CPU_LEAVES_OUT(__hsub)
CUDA_ON_CPU_LEAVES_OUT(__hsub2)
CUDA_ON_CPU_LEAVES_OUT(__ldca)
CUDA_ON_CPU_LEAVES_OUT(__ldcg)
CUDA_ON_CPU_LEAVES_OUT(__ldcs)
CUDA_ON_CPU_LEAVES_OUT(__ldcv)
CUDA_ON_CPU_LEAVES_OUT(__ldlu)
CUDA_ON_CPU_LEAVES_OUT(__low2bfloat16)
CUDA_ON_CPU_LEAVES_OUT(__low2bfloat162)
CUDA_ON_CPU_LEAVES_OUT(__low2float)
CUDA_ON_CPU_LEAVES_OUT(__low2half)
CUDA_ON_CPU_LEAVES_OUT(__low2half2)
CUDA_ON_CPU_LEAVES_OUT(__lowhigh2highlow)
CUDA_ON_CPU_LEAVES_OUT(__lows2bfloat162)
CUDA_ON_CPU_LEAVES_OUT(__lows2half2)
CUDA_ON_CPU_LEAVES_OUT(__short_as_bfloat16)
CUDA_ON_CPU_LEAVES_OUT(__short_as_half)
CUDA_ON_CPU_LEAVES_OUT(__stcg)
CUDA_ON_CPU_LEAVES_OUT(__stcs)
CUDA_ON_CPU_LEAVES_OUT(__stwb)
CUDA_ON_CPU_LEAVES_OUT(__stwt)
CUDA_ON_CPU_LEAVES_OUT(__ushort_as_bfloat16)
CUDA_ON_CPU_LEAVES_OUT(__ushort_as_half)
CUDA_ON_CPU_LEAVES_OUT(h2ceil)
CUDA_ON_CPU_LEAVES_OUT(h2cos)
CUDA_ON_CPU_LEAVES_OUT(h2exp)
CUDA_ON_CPU_LEAVES_OUT(h2exp10)
CUDA_ON_CPU_LEAVES_OUT(h2exp2)
CUDA_ON_CPU_LEAVES_OUT(h2floor)
CUDA_ON_CPU_LEAVES_OUT(h2log)
CUDA_ON_CPU_LEAVES_OUT(h2log10)
CUDA_ON_CPU_LEAVES_OUT(h2log2)
CUDA_ON_CPU_LEAVES_OUT(h2rcp)
CUDA_ON_CPU_LEAVES_OUT(h2rint)
CUDA_ON_CPU_LEAVES_OUT(h2rsqrt)
CUDA_ON_CPU_LEAVES_OUT(h2sin)
CUDA_ON_CPU_LEAVES_OUT(h2sqrt)
CUDA_ON_CPU_LEAVES_OUT(h2tanh)
CUDA_ON_CPU_LEAVES_OUT(h2trunc)
CUDA_ON_CPU_LEAVES_OUT(hceil)
CUDA_ON_CPU_LEAVES_OUT(hcos)
CUDA_ON_CPU_LEAVES_OUT(hexp)
CUDA_ON_CPU_LEAVES_OUT(hexp10)
CUDA_ON_CPU_LEAVES_OUT(hexp2)
CUDA_ON_CPU_LEAVES_OUT(hfloor)
CUDA_ON_CPU_LEAVES_OUT(hlog)
CUDA_ON_CPU_LEAVES_OUT(hlog10)
CUDA_ON_CPU_LEAVES_OUT(hlog2)
CUDA_ON_CPU_LEAVES_OUT(hrcp)
CUDA_ON_CPU_LEAVES_OUT(hrint)
CUDA_ON_CPU_LEAVES_OUT(hrsqrt)
CUDA_ON_CPU_LEAVES_OUT(hsin)
CUDA_ON_CPU_LEAVES_OUT(hsqrt)
CUDA_ON_CPU_LEAVES_OUT(htanh)
CUDA_ON_CPU_LEAVES_OUT(htrunc)

#define __half2 pairs_are_not_in_the_CPU_subset_of_CUDA_see_common_cuda_on_cpu_README_md
#define __nv_bfloat162 pairs_are_not_in_the_CPU_subset_of_CUDA_see_common_cuda_on_cpu_README_md
