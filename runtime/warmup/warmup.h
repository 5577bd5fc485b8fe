// What a warm-up does: plans and machine code of signatures are made and kept on disk. Nothing is run and nothing is
// loaded, so neither the device nor the processor that they are for has to be there.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/disk/disk_cache.h"
#include "runtime/warmup/signature.h"

namespace fusejit::runtime {

struct WarmPlan {
  int plans = 0;                     // one, or one for each piece of a graph that has none as a whole
  int plans_made = 0;                // of those: the rest was there
  int kernels = 0;                   // different ones
  std::vector<std::string> missing;  // of those: texts of the ones that have no machine code
  int library_calls = 0;             // made on the device when it first runs
  std::string not_there;             // why a plan is missing, where none was to be made
};

// The plan of a signature for `target`. `make`: else only what is there is looked at. Throws what scheduling throws.
WarmPlan warm_plan(const Signature& signature, const Target& target, const std::shared_ptr<disk::DiskCache>& cache,
                   bool make);

// The keys of everything that a warm-up of it made or found.
std::vector<disk::CacheKey> warm_keys(const Signature& signature, const Target& target,
                                      const std::shared_ptr<disk::DiskCache>& cache);

// Plan and kernels: a sentence each, "… is there", or what the nearest entry differs in.
std::vector<std::string> explain_warm(const Signature& signature, const Target& target,
                                      const std::shared_ptr<disk::DiskCache>& cache);

// How missing kernels are divided into pieces of work: each by itself, or as many as a program of CUDA holds.
std::vector<std::vector<std::string>> divide_kernels(std::vector<std::string> texts, const Target& target);

// Machine code of kernels, for `target`. Throws what their compiler throws.
void warm_kernels(std::span<const std::string> texts, const Target& target, disk::DiskCache& cache);

}  // namespace fusejit::runtime
