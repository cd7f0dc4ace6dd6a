# Sourced by grade.sh: what the object file of an answer may hold. An answer computes, and calls the book; it needs no
# system calls, no files and no code that runs before the test, and without these a forged run is much harder.
# shellcheck shell=bash

# Sections, imports and C++ names beyond these are let pass if the solution has them, too.
usual_sections='^(\.rela?)?\.(text|rodata|data|bss|tdata|tbss|eh_frame|gcc_except_table|note|debug_[a-z_]+)(\.|$)'
usual_sections+='|^(\.rela?)?\.init_array$|^\.(comment|group|symtab|symtab_shndx|strtab|shstrtab|llvm_addrsig)$'
# Of C: memory and text, mathematics, the heap, printing, time, threads and what the compiler itself calls.
usual_names='^(bcmp|(mem|str|wmem|wcs|is|to)[a-z]+|__(mem|str)[a-z]+_chk|__[sv]?[nf]?printf_chk|__vs?n?printf_chk'
usual_names+='|(a?(cos|sin|tan)h?|atan2|sincos|exp|exp2|exp10|expm1|frexp|ldexp|log|log10|log1p|log2|logb|ilogb|modf|scalbl?n|cbrt|fabs|hypot|pow'
usual_names+='|sqrt|erfc?|[lt]gamma|ceil|floor|nearbyint|l?l?rint|l?l?round|trunc|fmod|remainder|remquo|copysign|nan|nextafter|fdim|fmax|fmin|fma)[fl]?'
usual_names+='|l?l?abs|l?l?div|ato[ifl]|atoll|qsort|bsearch|s?rand|rand_r|s?random|[de]rand48|malloc|calloc|realloc|free|aligned_alloc|posix_memalign'
usual_names+='|v?[fs]?printf|v?snprintf|puts|putchar|fputs|fputc|fwrite|fflush|perror|stdout|stderr|(__isoc[0-9]+_)?(sscanf|strto[a-z]+)'
usual_names+='|time|clock|clock_gettime|gettimeofday|nanosleep|clock_nanosleep|usleep|sleep|sched_yield|abort|__assert_fail|__errno_location'
usual_names+='|pthread_(mutex|mutexattr|cond|condattr|rwlock|spin|barrier|key)_[a-z]+|pthread_(once|self|equal|create|join|detach|[gs]etspecific)|__pthread_key_create'
usual_names+='|__cxa_[a-z_]+|__dynamic_cast|__once_proxy|__gxx_personality_v0|_Unwind_Resume|_GLOBAL_OFFSET_TABLE_|__dso_handle|__tls_get_addr|__stack_chk_fail|__libc_single_threaded'
usual_names+='|__u?(div|mod|divmod|mul|ash[lr]|lshr)[a-z]*[sdt]i[34]|__(mul|div)[sdxt]c3|__powi[sdxt]f2|__(popcount|parity|clz|ctz|ffs)[sdt]i2|__(trunc|extend|fix|float)[a-z0-9]+'
usual_names+='|__tsan_[a-z0-9_]+|ddp_futex|(thread|block)Idx|(block|grid)Dim|warpSize|cblas_[a-z]+|_Z.*)$'
# Of C++ and the book: the tests themselves, what reads files or standard input, and the book's sockets.
barred_names='^_ZSt(3cin|4wcin)$|basic_[a-z_]*file|basic_[io]?fstream|stdio_filebuf|10filesystem|3ddp10(Connection|Descriptor)'
# Numbers in the code whose bytes are an instruction that calls the system (0f 05, 0f 34 and cd 80): a jump to the middle of
# such an instruction does it. Such bytes also occur by chance where one instruction ends and the next begins; these are let pass.
barred_numbers='0x(([0-9a-f]*0)?50f|[0-9a-f]*(340f|80cd))([0-9a-f]{2})*\b'

# has_only_usual OBJECT SOLUTION'S_OBJECT TAKEN: fails, and says why, if an answer has what no answer needs ("Refused: ..."), or
# what belongs to others, whose names are in the file TAKEN. Beside the object lies the compiler's assembly.
has_only_usual() {
    local found
    found=$(unusual_section "$1" "$2")
    [[ -z $found ]] || { echo "Refused: your file has the section $found, which no answer needs." && return 1; }
    found=$(global_symbols "$1" | awk '
        FNR == NR { imported[$1] = $2 == "U"; taken[$1] = 1; next }
        $1 ~ /3ddp4test/ || $2 == "i" || ($2 !~ /[UwvWVu]/ && taken[$1]) || ($2 ~ /[WVu]/ && imported[$1]) { print $1; exit }
    ' "$3" -)
    [[ -z $found ]] || {
        echo "Your file has \`$(c++filt "$found")\`, which belongs to the tests, the book or the system:" \
            "define what the contract declares, and helpers in an unnamed namespace."
        return 1
    }
    found=$(imports "$1" | usual=$usual_names barred=$barred_names awk '
        FILENAME == ARGV[1] { known[$1] = 1; next }
        !($1 in known) && ($1 !~ ENVIRON["usual"] || $1 ~ ENVIRON["barred"]) { print $1; exit }
    ' <(imports "$2") -)
    [[ -z $found ]] || { echo "Refused: your file uses \`$(c++filt "$found")\`, which no answer needs." && return 1; }
    ! grep -qE '^\s*#APP' "${1%.o}.s" || { echo "Refused: your file has \`asm\`, which no answer needs." && return 1; }
    found=$(comm -23 <(numbers "$1") <(numbers "$2") | head -n 1)
    [[ -z $found ]] || { echo "Refused: your code has the number $found, whose bytes are a call of the system." && return 1; }
}

# What an answer may not define: all that the solution's program has or takes from the system, but not from the solution; and
# all functions of C in the libraries of the system that it uses.
taken_symbols() {  # PROGRAM OBJECT, the solution's
    {
        global_symbols "$1" | awk 'FNR == NR { if ($2 ~ /[TDBR]/) own[$1] = 1; next } !($1 in own)' <(global_symbols "$2") -
        ldd "$1" | awk '$3 ~ /^\// { print $3 }' | xargs -r nm -DP --defined-only 2>/dev/null |
            sed 's/@[^ ]*//' | awk '$1 !~ /^_Z/ && $2 ~ /[TWi]/ { print $1, "U" }'
    }
}

global_symbols() { nm -P "$1" | sed 's/@[^ ]*//' | awk '$2 ~ /[A-Zuvwi]/'; }
numbers() { objdump -d --no-show-raw-insn "$1" | grep -oE "$barred_numbers" | sort -u || true; }
imports() { global_symbols "$1" | awk '$2 ~ /[Uvw]/ { print $1 }'; }
sections() { readelf -SW "$1" | sed 's/\[ */[/' | awk '$1 ~ /^\[[1-9][0-9]*\]$/'; }  # [number] name type ... flags ...

# unusual_section OBJECT SOLUTION'S_OBJECT: the first section that has another name, is both code and writable, or is code by
# another name than .text; or data in one that is code.
unusual_section() {
    usual=$usual_sections awk '
        FILENAME == ARGV[1] { known[$2] = 1; next }
        FILENAME == ARGV[2] {
            code[substr($1, 2, length($1) - 2)] = $8 ~ /X/
            if (NF > 11 || !($2 in known || $2 ~ ENVIRON["usual"]) || ($8 ~ /X/ && ($8 ~ /W/ || $2 !~ /^\.text/))) { print $2; exit }
            next
        }
        $4 == "OBJECT" && code[$7] { print ".text with data (" $8 ")"; exit }
    ' <(sections "$2") <(sections "$1") <(readelf -sW "$1")
}
