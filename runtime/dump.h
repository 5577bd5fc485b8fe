// FUSEJIT_DUMP=graph,plan,kernel: every new graph on stderr, its plan and its kernels.
#pragma once

#include "ir/graph.h"
#include "scheduler/plan.h"

namespace fusejit::runtime {

void dump(const ir::Graph& graph);
void dump(const scheduler::Plan& plan);
// The graph that made an error, unless it was shown before.
void dump_failed(const ir::Graph& graph);

}  // namespace fusejit::runtime
