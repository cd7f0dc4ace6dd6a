#include "kernel_name.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace cuda_on_cpu {
namespace {

// The program's own file, mapped for reading.
class ProgramFile {
  public:
    ProgramFile() {
        const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        struct stat status {};
        if (file < 0)
            return;
        fstat(file, &status);
        void* begin = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ,
                           MAP_PRIVATE, file, 0);
        close(file);
        if (begin == MAP_FAILED)
            return;
        begin_ = static_cast<const char*>(begin);
        bytes_ = static_cast<std::size_t>(status.st_size);
    }
    ~ProgramFile() {
        if (begin_ != nullptr)
            munmap(const_cast<char*>(begin_), bytes_);
    }
    ProgramFile(const ProgramFile&) = delete;
    ProgramFile& operator=(const ProgramFile&) = delete;

    // `count` objects from `offset` on; nullptr if the file ends before.
    template <class T>
    const T* at(std::size_t offset, std::size_t count = 1) const {
        const bool fits = offset <= bytes_ && count <= (bytes_ - offset) / sizeof(T);
        return fits ? reinterpret_cast<const T*>(begin_ + offset) : nullptr;
    }

  private:
    const char* begin_ = nullptr;
    std::size_t bytes_ = 0;
};

std::string demangled(const char* name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
    std::string result = status == 0 ? text.get() : name;
    const std::string anonymous = "(anonymous namespace)::";
    for (std::size_t at; (at = result.find(anonymous)) != std::string::npos;)
        result.erase(at, anonymous.size());
    return result;
}

// The function at `address` in one section's symbols; nullptr if it is not among them.
const char* name_in(const ProgramFile& program, const ElfW(Shdr) & symbols,
                    const ElfW(Shdr) & names, std::uintptr_t address) {
    const std::size_t count = symbols.sh_size / sizeof(ElfW(Sym));
    const auto* symbol = program.at<ElfW(Sym)>(symbols.sh_offset, count);
    for (std::size_t i = 0; symbol != nullptr && i < count; i++, symbol++)
        if (symbol->st_value == address && (symbol->st_info & 0xf) == STT_FUNC)
            return program.at<char>(names.sh_offset + symbol->st_name);
    return nullptr;
}

}  // namespace

std::uintptr_t load_address() {
    std::uintptr_t address = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            *static_cast<std::uintptr_t*>(out) = info->dlpi_addr;
            return 1;  // the program itself comes first
        },
        &address);
    return address;
}

std::string kernel_name(const void* address) {
    const ProgramFile program;
    const auto* header = program.at<ElfW(Ehdr)>(0);
    if (header == nullptr)
        return "";
    const auto value = reinterpret_cast<std::uintptr_t>(address) - load_address();
    const auto* sections = program.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
    for (int i = 0; sections != nullptr && i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= header->e_shnum)
            continue;
        if (const char* name = name_in(program, sections[i], sections[sections[i].sh_link], value))
            return demangled(name);
    }
    return "";
}

}  // namespace cuda_on_cpu
