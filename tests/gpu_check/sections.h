// The sections of the check, in the order in which they run. Each stands alone: what one needs of a machine it asks for
// itself, and what goes wrong is its own.
#pragma once

#include <span>
#include <string_view>

#include "tests/gpu_check/machine.h"
#include "tests/gpu_check/report.h"

namespace fusejit::gpu_check {

struct Section {
  std::string_view name;
  std::string_view meaning;
  void (*run)(Machine& machine, Report& report);  // throws Skipped, Error
};

std::span<const Section> sections();
// nullptr if there is none of that name.
const Section* find_section(std::string_view name);
// Runs one; whatever it throws becomes one sentence of its report.
void run(const Section& section, Machine& machine, Report& report);

void describe_machine(Machine& machine, Report& report);
void check_errors(Machine& machine, Report& report);
void check_conformance(Machine& machine, Report& report);
void check_random_graphs(Machine& machine, Report& report);
void check_kernels(Machine& machine, Report& report);
void check_carried(Machine& machine, Report& report);
void check_cudnn_device(Machine& machine, Report& report);
void check_cudnn_numbers(Machine& machine, Report& report);
void check_background(Machine& machine, Report& report);
void check_training(Machine& machine, Report& report);
void time_bandwidth(Machine& machine, Report& report);
void time_tiers(Machine& machine, Report& report);
void time_steps(Machine& machine, Report& report);
void profile_steps(Machine& machine, Report& report);
void time_peers(Machine& machine, Report& report);

}  // namespace fusejit::gpu_check
