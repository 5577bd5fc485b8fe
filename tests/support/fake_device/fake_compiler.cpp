#include "tests/support/fake_device/fake_compiler.h"

#include <fmt/format.h>

#include <mutex>
#include <set>

#include "fusejit/error.h"

namespace fusejit::test {

std::vector<std::string> kernel_texts(std::string_view program) {
  std::vector<std::string> texts;
  bool inside = false;
  for (std::size_t start = 0; start < program.size();) {
    const std::size_t end = std::min(program.find('\n', start), program.size());
    const std::string_view line = program.substr(start, end - start);
    start = end + 1;
    if (line.starts_with("// kernel @")) texts.emplace_back(), inside = true;
    if (!inside) continue;
    texts.back().append(line.substr(3)).append("\n");
    inside = line != "// }";
  }
  return texts;
}

runtime::cuda::CompileProgram fake_compiler(FakeDriver& fake, std::function<std::string(std::string)> rewrite) {
  // Programs are compiled by several threads; what is known may be running.
  struct Known {
    std::mutex mutex;
    std::set<std::string> entries;
  };
  return [&fake, rewrite, known = std::make_shared<Known>()](std::string_view program, int compute_capability) {
    const std::lock_guard lock(known->mutex);
    for (const std::string& text : kernel_texts(program)) {
      const auto kernel = std::make_shared<const ir::Kernel>(ir::parse_kernel(text));
      const std::string entry = runtime::cuda::entry_name(*kernel);
      if (program.find(entry) == std::string_view::npos) {
        throw DeviceError(fmt::format("the program has no entry {} of\n{}", entry, text));
      }
      if (!known->entries.insert(entry).second) continue;
      const auto done = rewrite ? std::make_shared<const ir::Kernel>(ir::parse_kernel(rewrite(text))) : kernel;
      define_kernel(fake, done, codegen::cuda::emit(*kernel, entry));
    }
    return codegen::cuda::CudaBinary{compute_capability, kFakeImage, {}, 0};
  };
}

}  // namespace fusejit::test
