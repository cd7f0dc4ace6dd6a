#include "kernel_name.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

namespace cuda_on_cpu {
namespace {

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

}  // namespace

std::string kernel_name(const void* address) {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::vector<char> program((std::istreambuf_iterator<char>(file)), {});
    const auto at = [&]<class T>(std::size_t offset, const T*) {
        return offset + sizeof(T) <= program.size()
                   ? reinterpret_cast<const T*>(program.data() + offset)
                   : nullptr;
    };
    const auto* header = at(0, static_cast<const ElfW(Ehdr)*>(nullptr));
    if (header == nullptr)
        return "";
    const auto value = reinterpret_cast<std::uintptr_t>(address) - load_address();
    for (int i = 0; i < header->e_shnum; i++) {
        const auto* section =
            at(header->e_shoff + static_cast<std::size_t>(i) * header->e_shentsize,
               static_cast<const ElfW(Shdr)*>(nullptr));
        if (section == nullptr || section->sh_type != SHT_SYMTAB)
            continue;
        const auto* names =
            at(header->e_shoff + section->sh_link * std::size_t{header->e_shentsize},
               static_cast<const ElfW(Shdr)*>(nullptr));
        for (std::size_t offset = 0; names != nullptr && offset < section->sh_size;
             offset += sizeof(ElfW(Sym))) {
            const auto* symbol =
                at(section->sh_offset + offset, static_cast<const ElfW(Sym)*>(nullptr));
            if (symbol != nullptr && symbol->st_value == value &&
                (symbol->st_info & 0xf) == STT_FUNC &&
                names->sh_offset + symbol->st_name < program.size())
                return demangled(program.data() + names->sh_offset + symbol->st_name);
        }
    }
    return "";
}

}  // namespace cuda_on_cpu
