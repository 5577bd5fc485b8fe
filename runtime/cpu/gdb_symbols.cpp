// GDB's interface to code that is made at run time ("JIT Compilation Interface" of its manual): a list of object files
// in memory, and a function that it stops at to hear of changes. The object files here are symbols and nothing else.
#include "runtime/cpu/gdb_symbols.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

// The names and the layout are GDB's. LLVM has the same two, which does not matter: in a library of its own they are
// another list, and GDB looks at each; linked with this one they are one list.
extern "C" {

enum JitAction : std::uint32_t { kJitNothing, kJitRegister, kJitUnregister };

struct JitCodeEntry {
  JitCodeEntry* next;
  JitCodeEntry* previous;
  const char* file;
  std::uint64_t bytes;
};

struct JitDescriptor {
  std::uint32_t version;
  std::uint32_t action;
  JitCodeEntry* relevant;
  JitCodeEntry* first;
};

__attribute__((visibility("default"), weak, used))
JitDescriptor __jit_debug_descriptor = {1, kJitNothing, nullptr, nullptr};

// GDB stops here.
__attribute__((visibility("default"), weak, noinline, used)) void __jit_debug_register_code() {
  asm volatile("" ::: "memory");
}

}  // extern "C"

namespace fusejit::runtime {
namespace {

std::mutex& list_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

class Strings {
 public:
  Elf64_Word add(std::string_view text) {
    const auto at = static_cast<Elf64_Word>(bytes_.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    bytes_.push_back('\0');
    return at;
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  std::vector<char> bytes_ = {'\0'};
};

// A relocatable object whose text is where the code is and has no bytes of its own.
std::vector<char> object_file(std::span<const CodeName> names) {
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
  for (const CodeName& code : names) {
    const auto address = reinterpret_cast<std::uintptr_t>(code.address);
    begin = std::min(begin, address);
    end = std::max(end, address + static_cast<std::uintptr_t>(code.bytes));
  }
  Strings strings;
  enum Section : Elf64_Half { kNull, kText, kSymbols, kStrings, kSections };
  std::vector<Elf64_Sym> symbols(1);
  for (const CodeName& code : names) {
    Elf64_Sym symbol = {};
    symbol.st_name = strings.add(code.name);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = kText;
    symbol.st_value = reinterpret_cast<std::uintptr_t>(code.address) - begin;
    symbol.st_size = static_cast<Elf64_Xword>(code.bytes);
    symbols.push_back(symbol);
  }
  Elf64_Shdr sections[kSections] = {};
  sections[kText].sh_name = strings.add(".text");
  sections[kText].sh_type = SHT_NOBITS;
  sections[kText].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  sections[kText].sh_addr = begin;
  sections[kText].sh_size = end - begin;
  sections[kText].sh_addralign = 16;
  sections[kSymbols].sh_name = strings.add(".symtab");
  sections[kSymbols].sh_type = SHT_SYMTAB;
  sections[kSymbols].sh_offset = sizeof(Elf64_Ehdr) + sizeof sections;
  sections[kSymbols].sh_size = symbols.size() * sizeof(Elf64_Sym);
  sections[kSymbols].sh_link = kStrings;
  sections[kSymbols].sh_info = 1;  // the first that is global
  sections[kSymbols].sh_addralign = 8;
  sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  sections[kStrings].sh_name = strings.add(".strtab");
  sections[kStrings].sh_type = SHT_STRTAB;
  sections[kStrings].sh_offset = sections[kSymbols].sh_offset + sections[kSymbols].sh_size;
  sections[kStrings].sh_size = strings.bytes().size();
  sections[kStrings].sh_addralign = 1;

  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  header.e_shstrndx = kStrings;

  std::vector<char> file;
  const auto append = [&file](const void* bytes, std::size_t count) {
    const char* const first = static_cast<const char*>(bytes);
    file.insert(file.end(), first, first + count);
  };
  append(&header, sizeof header);
  append(sections, sizeof sections);
  append(symbols.data(), symbols.size() * sizeof(Elf64_Sym));
  append(strings.bytes().data(), strings.bytes().size());
  return file;
}

}  // namespace

struct GdbSymbols::Entry {
  std::vector<char> file;
  JitCodeEntry node;
};

GdbSymbols::GdbSymbols(std::span<const CodeName> names) : entry_(std::make_unique<Entry>()) {
  entry_->file = object_file(names);
  JitCodeEntry& node = entry_->node;
  const std::lock_guard lock(list_mutex());
  node = {__jit_debug_descriptor.first, nullptr, entry_->file.data(), entry_->file.size()};
  if (node.next) node.next->previous = &node;
  __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = &node;
  __jit_debug_descriptor.action = kJitRegister;
  __jit_debug_register_code();
}

GdbSymbols::~GdbSymbols() {
  JitCodeEntry& node = entry_->node;
  const std::lock_guard lock(list_mutex());
  (node.previous ? node.previous->next : __jit_debug_descriptor.first) = node.next;
  if (node.next) node.next->previous = node.previous;
  __jit_debug_descriptor.relevant = &node;
  __jit_debug_descriptor.action = kJitUnregister;
  __jit_debug_register_code();
}

}  // namespace fusejit::runtime
