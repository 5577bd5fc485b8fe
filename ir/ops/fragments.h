// The fragments of the op table: what a function or an op without an instruction means, as a straight-line kernel-IR
// body (kernel-ir.md §7) for f32 and for f64. Rows name them:
//
//   {.op = Op::exp, ..., .fragment_f32 = fragments::kExpF32, .fragment_f64 = fragments::kExpF64, ...}
//
// Operands are %x, or %a and %b, or %a, %b and %c. Interpreter and x86 run the same definitions, for x86:v2 with every
// fma as mul then add. Measured errors: docs/math.md. Each formula names its source; coefficients are minimax fits.
#pragma once

#include "ir/ops/fragments/erf.h"
#include "ir/ops/fragments/exp.h"
#include "ir/ops/fragments/log.h"
#include "ir/ops/fragments/modulo.h"
#include "ir/ops/fragments/modulo_f64.h"
#include "ir/ops/fragments/pow.h"
#include "ir/ops/fragments/simple.h"
#include "ir/ops/fragments/trig.h"
#include "ir/ops/fragments/trig_f64.h"
