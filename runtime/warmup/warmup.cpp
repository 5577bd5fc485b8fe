#include "runtime/warmup/warmup.h"

#include <algorithm>
#include <set>

#include "ir/base/check.h"
#include "ir/kernel/kernel.h"
#include "runtime/cuda/kernels.h"
#include "runtime/cuda/programs.h"
#include "runtime/cudnn/step.h"
#include "runtime/disk/entries/cuda_entry.h"
#include "runtime/disk/explain.h"
#include "runtime/disk/plan_store.h"
#include "runtime/pieces.h"

#ifdef FUSEJIT_X86
#include "runtime/disk/entries/kernel_entry.h"
#endif

namespace fusejit::runtime {
namespace {

disk::CacheKey key_of(std::string kernel_key_text, const Target& target) {
#ifdef FUSEJIT_X86
  if (target.isa != Isa::cuda) return disk::kernel_key(std::move(kernel_key_text), target.isa);
#endif
  return disk::cuda_kernel_key(std::move(kernel_key_text), target.compute_capability);
}

struct Walk {
  const Target& target;
  const std::shared_ptr<disk::DiskCache>& cache;
  const bool make;
  WarmPlan found = {};
  std::set<std::string> known = {};  // kernel texts
  std::set<std::shared_ptr<const ir::Kernel>> seen = {};
  std::vector<disk::CacheKey> keys = {};

  bool has_code(const disk::CacheKey& key) const {
    return target.isa == Isa::cuda ? disk::contains_cuda_kernel(*cache, key) : cache->contains(key);
  }

  void note(const scheduler::Plan& plan) {
    for (const scheduler::PlanStep& step : plan.steps) {
      if (step.library) {
        ++found.library_calls;
        continue;
      }
      if (!seen.insert(step.kernel).second) continue;
      std::string text = ir::kernel_key_text(*step.kernel);
      if (!known.insert(text).second) continue;
      ++found.kernels;
      keys.push_back(key_of(text, target));
      if (!has_code(keys.back())) found.missing.push_back(ir::print(*step.kernel));
    }
  }

  void plan(const Signature& signature) {
    scheduler::PlanOptions wanted{target, signature.rules, signature.donated, cudnn::supports_step,
                                  target.isa == Isa::cuda ? std::vector<bool>() : signature.fixed};
    wanted.memory_limit = signature.memory_limit;
    plan(signature.graph, std::move(wanted));
  }

  void plan(const ir::Graph& graph, scheduler::PlanOptions wanted) {
    const disk::PlanStore store(cache, /*frozen=*/!make);
    const std::string library = target.cudnn != CudnnMode::off ? cudnn::caller_identity({}) : "";
    ++found.plans;
    try {
      keys.push_back(
          disk::plan_key(graph, {target, wanted.rules, wanted.memory_limit, wanted.donated, wanted.fixed, library}));
      const disk::PlanStore::Planned planned = store.schedule(graph, wanted, {library});
      if (!planned.was_kept) {
        ++found.plans_made;
        store.put(graph, wanted, planned.plan, {library});
      }
      note(planned.plan);
    } catch (const scheduler::NoKernel& no_kernel) {
      --found.plans;
      wanted.donated.clear(), wanted.fixed.clear();
      for (const Piece& piece : cut(no_kernel.graph(), no_kernel.nodes()).list) {
        if (!piece.interpreted) plan(piece.graph, wanted);
      }
    } catch (const UserError& error) {
      if (make) throw;
      found.not_there = error.what();
    }
  }
};

}  // namespace

WarmPlan warm_plan(const Signature& signature, const Target& target, const std::shared_ptr<disk::DiskCache>& cache,
                   bool make) {
  Walk walk{target, cache, make};
  walk.plan(signature);
  return std::move(walk.found);
}

std::vector<disk::CacheKey> warm_keys(const Signature& signature, const Target& target,
                                      const std::shared_ptr<disk::DiskCache>& cache) {
  Walk walk{target, cache, /*make=*/false};
  walk.plan(signature);
  std::vector<disk::CacheKey> keys;
  for (disk::CacheKey& key : walk.keys) {
    if (target.isa == Isa::cuda && key.kind() != "plan") {
      if (const auto entry = disk::find_cuda_kernel(*cache, key))
        keys.push_back(disk::program_key(key, entry->program));
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<std::string> explain_warm(const Signature& signature, const Target& target,
                                      const std::shared_ptr<disk::DiskCache>& cache) {
  const WarmPlan plan = warm_plan(signature, target, cache, /*make=*/false);
  constexpr std::string_view kFrozen = "; ";
  if (!plan.not_there.empty()) return {plan.not_there.substr(plan.not_there.find(kFrozen) + kFrozen.size())};
  std::vector<std::string> lines = {fmt::format("{} plans and {} of {} kernels are there", plan.plans,
                                                static_cast<std::size_t>(plan.kernels) - plan.missing.size(),
                                                plan.kernels)};
  for (const std::string& text : plan.missing) {
    const ir::Kernel kernel = ir::parse_kernel(text);
    lines.push_back(
        fmt::format("@{}: {}", kernel.name, explain(*cache, key_of(ir::kernel_key_text(kernel), target)).text));
  }
  return lines;
}

std::vector<std::vector<std::string>> divide_kernels(std::vector<std::string> texts, const Target& target) {
  // Long ones take long, so they come first.
  std::sort(texts.begin(), texts.end(), [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  constexpr std::size_t kInProgram = 8;
  const std::size_t items = target.isa == Isa::cuda ? (texts.size() + kInProgram - 1) / kInProgram : texts.size();
  std::vector<std::vector<std::string>> divided(items);
  for (std::size_t i = 0; i < texts.size(); ++i) divided[i % items].push_back(std::move(texts[i]));
  return divided;
}

void warm_kernels(std::span<const std::string> texts, const Target& target, disk::DiskCache& cache) {
  if (target.isa == Isa::cuda) {
    std::vector<disk::CacheKey> keys;
    std::vector<codegen::cuda::CudaSource> sources;
    for (const std::string& text : texts) {
      const ir::Kernel kernel = ir::parse_kernel(text);
      keys.push_back(disk::cuda_kernel_key(ir::kernel_key_text(kernel), target.compute_capability));
      sources.push_back(codegen::cuda::emit(kernel, cuda::entry_name(kernel)));
    }
    disk::put_program(cache, keys, sources,
                      codegen::cuda::compile(codegen::cuda::program(sources), target.compute_capability));
    return;
  }
#ifdef FUSEJIT_X86
  for (const std::string& text : texts) {
    const ir::Kernel kernel = ir::parse_kernel(text);
    cache.put(disk::kernel_key(ir::kernel_key_text(kernel), target.isa),
              disk::kernel_sections(codegen::x86::generate_object(kernel, target)));
  }
#else
  throw UnsupportedError("this build has no x86 code generator (FUSEJIT_X86=OFF); target " + target.str());
#endif
}

}  // namespace fusejit::runtime
