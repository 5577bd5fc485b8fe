// KernelSet: kernels that are finished once, however often they are written. The blocks of a network are written as
// equal kernels, and to simplify and verify a kernel takes far longer than to write it.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "ir/kernel/builder.h"

namespace fusejit::ir {

// A kernel as numbers, equal only if the kernels are, with their names and ids.
using KernelWords = std::vector<std::int64_t>;
KernelWords words_of(const Kernel& kernel);

class KernelSet {
 public:
  // builder.finish(attributes), or what that was when the same had been written.
  std::shared_ptr<const Kernel> finish(KernelBuilder&& builder, const std::function<void(Kernel&)>& attributes = {});

 private:
  struct HashOfWords {
    std::size_t operator()(const KernelWords& words) const;
  };
  std::unordered_map<KernelWords, std::shared_ptr<const Kernel>, HashOfWords> finished_;
};

}  // namespace fusejit::ir
