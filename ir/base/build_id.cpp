#include "ir/base/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>

namespace fusejit::ir {
namespace {

struct Search {
  std::uintptr_t address;
  std::string id;
};

std::string id_in_notes(const char* notes, std::size_t size) {
  const auto padded = [](std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const char* name = notes + sizeof note;
    const std::size_t whole = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (whole > size) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      std::string id;
      for (std::size_t i = 0; i < note.n_descsz; ++i)
        id += fmt::format("{:02x}", static_cast<unsigned char>(name[padded(note.n_namesz) + i]));
      return id;
    }
    notes += whole, size -= whole;
  }
  return "";
}

// Of each loaded object until one is ours: its segments, then its notes.
int look(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool is_here = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    is_here |= segment.p_type == PT_LOAD && search.address >= begin && search.address < begin + segment.p_memsz;
  }
  if (!is_here) return 0;
  for (int i = 0; i < object->dlpi_phnum && search.id.empty(); ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    search.id = id_in_notes(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string build_id_at(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address), ""};
  dl_iterate_phdr(look, &search);
  return search.id;
}

}  // namespace fusejit::ir
