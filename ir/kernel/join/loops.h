// Loops of two kernels that go over the same elements.
#pragma once

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// Its rounds are tasks.
bool is_shared_out(Binding binding);
// Of a loop from 0 without results, serial or shared out; 0 for others.
std::int64_t rounds_of(const ForStmt& loop);
// Where one goes over as many elements as several of the other, it becomes two loops: 1024 rows are those of 16 images'
// 64 channels. `of_a`, `of_b`: their kernels' counts of variables.
void split_alike(ForStmt& a, ForStmt& b, int& of_a, int& of_b);

}  // namespace fusejit::ir
