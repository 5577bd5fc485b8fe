#include "codegen/x86/orc.h"

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/EPCDynamicLibrarySearchGenerator.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <map>

#include "codegen/x86/llvm_use.h"
#include "ir/base/check.h"

namespace fusejit::codegen::x86 {
namespace {

template <typename T>
T check(llvm::Expected<T> value, const char* what) {
  if (!value) throw DeviceError(fmt::format("LLVM: {}: {}", what, llvm::toString(value.takeError())));
  return std::move(*value);
}
void check(llvm::Error error, const char* what) {
  if (error) throw DeviceError(fmt::format("LLVM: {}: {}", what, llvm::toString(std::move(error))));
}

// Session and layer in the order of their destruction.
struct Session {
  std::unique_ptr<llvm::orc::ExecutionSession> session;
  std::unique_ptr<llvm::orc::ObjectLinkingLayer> layer;

  Session()
      : session(std::make_unique<llvm::orc::ExecutionSession>(
            check(llvm::orc::SelfExecutorProcessControl::Create(), "session"))),
        layer(std::make_unique<llvm::orc::ObjectLinkingLayer>(*session,
                                                              session->getExecutorProcessControl().getMemMgr())) {}
  ~Session() {
    if (!llvm_gave_up()) end();
    static_cast<void>(layer.release()), static_cast<void>(session.release());  // what is still there is left behind
  }
  void end() {
    const LlvmUse use;
    if (!use) return;
    if (llvm::Error error = session->endSession()) llvm::consumeError(std::move(error));
    layer.reset();
    session.reset();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

// Bytes of sections that are loaded and read: instructions and constants.
std::int64_t loaded_bytes(llvm::MemoryBufferRef object) {
  const auto file = check(llvm::object::ObjectFile::createObjectFile(object), "object file");
  std::int64_t bytes = 0;
  for (const llvm::object::SectionRef& section : file->sections()) {
    const bool constants = check(section.getName(), "section name").starts_with(".rodata");
    if (section.isText() || constants) bytes += static_cast<std::int64_t>(section.getSize());
  }
  return bytes;
}

// Of the object's functions, by name.
std::map<std::string, std::int64_t> function_sizes(llvm::MemoryBufferRef object) {
  const auto file = check(llvm::object::ObjectFile::createObjectFile(object), "object file");
  std::map<std::string, std::int64_t> sizes;
  for (const llvm::object::SymbolRef& symbol : file->symbols()) {
    if (llvm::isa<llvm::object::ELFObjectFileBase>(file.get()))
      sizes[check(symbol.getName(), "symbol name").str()] =
          static_cast<std::int64_t>(llvm::object::ELFSymbolRef(symbol).getSize());
  }
  return sizes;
}

void fill(LinkedCode& result, Session& owner, const std::string& object, std::size_t phases) {
  llvm::orc::JITDylib& library = owner.session->createBareJITDylib("kernel");
  // memset and fmod: the few functions that LLVM may call.
  library.addGenerator(
      check(llvm::orc::EPCDynamicLibrarySearchGenerator::GetForTargetProcess(*owner.session), "symbols"));
  std::unique_ptr<llvm::MemoryBuffer> buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "kernel");
  if (!buffer) throw std::bad_alloc();
  result.code_bytes = loaded_bytes(buffer->getMemBufferRef());
  std::map<std::string, std::int64_t> sizes = function_sizes(buffer->getMemBufferRef());
  check(owner.layer->add(library, std::move(buffer)), "link");
  for (std::size_t i = 0; i < phases; ++i) {
    const std::string name = "phase_" + std::to_string(i);
    const auto symbol = check(owner.session->lookup({&library}, name), "lookup");
    result.functions.push_back({symbol.getAddress().toPtr<PhaseEntry>(), sizes[name]});
  }
}

}  // namespace

void describe_machine(llvm::Module& module, const MachineFacts& facts) {
  const LlvmOwner machine(target_machine(facts));
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());
}

std::string generate(llvm::Module& module, const MachineFacts& facts, bool assembly, Effort effort) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  LlvmOwner<llvm::TargetMachine> machine;
  LlvmOwner<llvm::legacy::PassManager> passes;  // code generation only
  calling_llvm([&] {
    machine = LlvmOwner(target_machine(facts, effort));
    module.setTargetTriple(machine->getTargetTriple().str());
    module.setDataLayout(machine->createDataLayout());
    passes = LlvmOwner(std::make_unique<llvm::legacy::PassManager>());
    const auto type = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
    if (machine->addPassesToEmitFile(*passes, stream, nullptr, type, /*DisableVerify=*/true)) {
      throw DeviceError("LLVM cannot write this kind of file");
    }
    passes->run(module);
  });
  return std::string(bytes.begin(), bytes.end());
}

LinkedCode link(const std::string& object, std::size_t phases) {
  auto owner = std::make_shared<Session>();
  LinkedCode result;
  calling_llvm([&] { fill(result, *owner, object, phases); });
  result.owner = owner;
  end_with_process();
  return result;
}

}  // namespace fusejit::codegen::x86
