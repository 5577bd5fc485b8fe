// What perf and GDB are told of machine code.
#include "runtime/cpu/code_names.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "runtime/cpu/gdb_symbols.h"

// GDB's side of its interface.
extern "C" {
struct CodeEntrySeen {
  CodeEntrySeen* next;
  CodeEntrySeen* previous;
  const char* file;
  std::uint64_t bytes;
};
struct DescriptorSeen {
  std::uint32_t version, action;
  CodeEntrySeen* relevant;
  CodeEntrySeen* first;
};
extern DescriptorSeen __jit_debug_descriptor;
}

namespace fusejit::runtime {
namespace {

const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

std::string map_path(pid_t process) { return "/tmp/perf-" + std::to_string(process) + ".map"; }

std::string contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(PerfMap, HasALineAFunctionAndAForkedChildHasItsOwn) {
  const CodeName first[] = {{"conv1_bn_phase0", at(0x7f0000001000), 0x8d}, {"conv1_bn_phase1", at(0x7f00000010a0), 32}};
  add_to_perf_map(first);
  const std::string lines = "7f0000001000 8d conv1_bn_phase0\n7f00000010a0 20 conv1_bn_phase1\n";
  EXPECT_EQ(contents(map_path(::getpid())), lines);
  const pid_t child = ::fork();
  if (child == 0) {
    const CodeName second[] = {{"fc", at(0x7f0000002000), 16}};
    add_to_perf_map(second);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(contents(map_path(child)), lines + "7f0000002000 10 fc\n");
  EXPECT_EQ(contents(map_path(::getpid())), lines);
  std::filesystem::remove(map_path(child));
  std::filesystem::remove(map_path(::getpid()));
}

TEST(PerfMap, ALinkIsNotFollowed) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string victim = map_path(::getpid()) + ".victim";
    std::ofstream(victim) << "mine\n";
    std::filesystem::create_symlink(victim, map_path(::getpid()));
    const CodeName names[] = {{"fc", at(0x7f0000002000), 16}};
    add_to_perf_map(names);
    const bool kept = contents(victim) == "mine\n";
    std::filesystem::remove(map_path(::getpid()));
    std::filesystem::remove(victim);
    ::_exit(kept ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// Address and size by name, of one object file.
std::map<std::string, std::pair<std::uintptr_t, std::uint64_t>> symbols_of(const CodeEntrySeen& entry) {
  Elf64_Ehdr header;
  EXPECT_GE(entry.bytes, sizeof header);
  std::memcpy(&header, entry.file, sizeof header);
  EXPECT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), entry.file + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  std::map<std::string, std::pair<std::uintptr_t, std::uint64_t>> found;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL) {
      EXPECT_LE(section.sh_offset + section.sh_size, entry.bytes);
    }
    if (section.sh_type != SHT_SYMTAB) continue;
    const char* const strings = entry.file + sections[section.sh_link].sh_offset;
    for (std::size_t i = 1; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, entry.file + section.sh_offset + i * sizeof symbol, sizeof symbol);
      EXPECT_EQ(ELF64_ST_TYPE(symbol.st_info), STT_FUNC);
      found[strings + symbol.st_name] = {sections[symbol.st_shndx].sh_addr + symbol.st_value, symbol.st_size};
    }
  }
  return found;
}

TEST(Gdb, KnowsFunctionsWhileTheyLive) {
  const CodeName one[] = {{"conv1_bn_phase0", at(0x7f00000010a0), 0x8d}, {"conv1_bn_phase1", at(0x7f0000001000), 32}};
  const CodeName other[] = {{"fc", at(0x7f0000002000), 16}};
  const CodeEntrySeen* const before = __jit_debug_descriptor.first;
  std::optional<GdbSymbols> first(one);
  std::optional<GdbSymbols> second(other);
  EXPECT_EQ(__jit_debug_descriptor.action, 1u);
  EXPECT_EQ(__jit_debug_descriptor.relevant, __jit_debug_descriptor.first);
  EXPECT_EQ(symbols_of(*__jit_debug_descriptor.first), (decltype(symbols_of({})){{"fc", {0x7f0000002000, 16}}}));
  EXPECT_EQ(symbols_of(*__jit_debug_descriptor.first->next),
            (decltype(symbols_of({})){{"conv1_bn_phase0", {0x7f00000010a0, 0x8d}},
                                      {"conv1_bn_phase1", {0x7f0000001000, 32}}}));
  first.reset();
  EXPECT_EQ(__jit_debug_descriptor.action, 2u);
  EXPECT_EQ(__jit_debug_descriptor.first->next, before);
  EXPECT_EQ(symbols_of(*__jit_debug_descriptor.first).count("fc"), 1u);
  second.reset();
  EXPECT_EQ(__jit_debug_descriptor.first, before);
}

}  // namespace
}  // namespace fusejit::runtime
