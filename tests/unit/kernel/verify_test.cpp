// Kernels with exactly one broken rule: the error names the rule and the place.
#include <gtest/gtest.h>

#include "ir/kernel/kernel.h"

namespace fusejit::ir {
namespace {

std::string verify_error(const std::string& text) {
  try {
    verify(parse_kernel(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A kernel on avx512 with buffers %x, %y of f32[64], %i of i32[64], %u of u32[64]; `body` is a phase's.
std::string on_x86(const std::string& body, const std::string& isa = "x86:avx512") {
  return "kernel @t(%x: f32[64] read align 64, %n: i32[64] read, %u: u32[64] read, %h: bf16[64] read, %y: f32[64] "
         "write align 64,\n"
         "%m: b1[64] write, %s: f32 param) on " +
         isa + " {\nphase {\n" + body + "\n} }";
}
std::string on_cuda(const std::string& body, const std::string& phase = "phase") {
  return "kernel @t(%x: f32[64] read align 16, %y: f32[64] write align 16) on cuda {\n" + phase + " {\n" + body +
         "\n} }";
}
// Blocks of so many threads.
std::string with_registers(int threads, const std::string& registers) {
  return on_cuda("for %g in 0..1 grid.x { for %b in 0.." + std::to_string(threads) +
                     " block.x { if %b < 64 { store %y[%b], 1 } } }",
                 "phase registers " + registers);
}

// One load of %x a round.
std::string reads(const std::string& loop, const std::string& index) {
  return "local %e: f32[1] register for " + loop + " { %a = load %x[" + index +
         "] : f32 store %e[0], %a } store %y[0], 1";
}

struct VerifyCase {
  const char* name;
  const char* rule;  // empty: verifies
  std::string text;
};
void PrintTo(const VerifyCase& c, std::ostream* out) { *out << c.name; }

class Verify : public ::testing::TestWithParam<VerifyCase> {};

TEST_P(Verify, NamesTheRule) {
  const std::string error = verify_error(GetParam().text);
  const std::string rule = GetParam().rule;
  if (rule.empty()) {
    EXPECT_EQ(error, "") << GetParam().text;
  } else {
    EXPECT_NE(error.find(" " + rule + ": "), std::string::npos) << "error: '" << error << "'\n" << GetParam().text;
    EXPECT_TRUE(std::isdigit(static_cast<unsigned char>(error[0]))) << error;
  }
}

const VerifyCase kVerifyCases[] = {
    // V1
    {"store_of_own_element", "", on_x86("for %i in 0..64 threads { store %y[%i], 1 }")},
    {"threads_share_an_element", "V1", on_x86("for %i in 0..8 threads { store %y[%i / 2], 1 }")},
    {"lanes_share_an_element", "V1", on_x86("for %l in 0..16 vector { store %y[3], 1 }")},
    {"overlapping_tiles", "V1",
     on_x86("for %t in 0..4 threads { for %i in 0..17 { if %t*16 + %i < 64 { store %y[%t*16 + %i], 1 } } }")},
    {"tiles_side_by_side", "", on_x86("for %t in 0..4 threads { for %i in 0..16 { store %y[%t*16 + %i], 1 } }")},
    {"tiles_with_variable_bounds", "",
     on_x86("for %t in 0..4 threads { for %i in %t*16..min(64, %t*16 + 16) { store %y[%i], 1 } }")},
    {"tiles_with_wide_bounds", "V1",
     on_x86("for %t in 0..4 threads { for %i in %t*16..min(64, %t*16 + 17) { store %y[%i], 1 } }")},
    {"fixed_by_a_condition", "", on_x86("for %t in 0..4 threads { if %t == 3 { store %y[5], 1 } }")},
    {"fixed_at_two_places", "V1",
     on_x86("for %t in 0..4 threads { if %t == 3 { store %y[5], 1 } if %t == 2 { store %y[5], 1 } }")},
    {"fixed_variable_of_a_shifted_loop", "V1",
     on_x86("for %t in 0..4 threads { for %i in %t..%t + 2 { if %i == 2 { store %y[%i], 1 } } }")},
    {"two_sites_overlap", "V1", on_x86("for %t in 0..4 threads { store %y[%t], 1 store %y[%t + 1], 1 }")},
    {"two_sites_interleave", "", on_x86("for %t in 0..4 threads { store %y[%t*2], 1 store %y[%t*2 + 1], 1 }")},
    {"two_sites_in_disjoint_boxes", "", on_x86("for %t in 0..4 threads { store %y[%t], 1 store %y[7 - %t], 1 }")},
    {"two_sites_cross", "V1", on_x86("for %t in 0..4 threads { store %y[%t], 1 store %y[3 - %t], 1 }")},
    {"own_loops_at_other_places", "V1",
     on_x86("for %t in 0..4 threads { for %i in 0..4 { store %y[%t*4 + %i], 1 } for %j in 4..8 { store %y[%t*4 + %j], "
            "1 } }")},
    {"quotient_and_remainder", "",
     "kernel @t(%y: f32[8,7,5] write) on x86:v2 { phase { for %t in 0..280 threads { store %y[%t / 35, %t / 5 % 7, %t "
     "% 5], 1 } } }"},
    {"quotient_and_part_of_the_remainder", "V1",
     "kernel @t(%y: f32[8,7,5] write) on x86:v2 { phase { for %t in 0..280 threads { store %y[%t / 35, %t / 5 % 7, %t "
     "% 4], 1 } } }"},
    {"scratch_shared_by_lanes", "V1",
     on_x86("local %e: f32[4] scratch for %l in 0..8 vector { store %e[%l / 2], 1 } store %y[0], 1")},
    {"read_buffer_stored", "V1", on_x86("store %x[0], 1")},
    {"bits_outside_lanes", "V1", on_x86("for %i in 0..64 { %c = lt(%s, 0) : bool store %m[%i], %c }")},
    {"bits_of_few_lanes", "V1",
     on_x86("for %i in 0..16 { for %l in 0..4 vector { %c = lt(%s, 0) : bool store %m[%i*4 + %l], %c } }")},
    {"bits_in_whole_bytes", "",
     on_x86("for %i in 0..8 { for %l in 0..8 vector { %c = lt(%s, 0) : bool store %m[%i*8 + %l], %c } }")},
    // V2
    {"reads_its_own", "",
     on_x86("for %t in 0..64 threads { store %y[%t], 1 %a = load %y[%t] : f32 store %y[%t], %a }")},
    {"reads_a_neighbour", "V2",
     on_x86("for %t in 0..32 threads { store %y[%t*2 + 1], 1 %a = load %y[%t + 1] : f32 store %y[%t*2], %a }")},
    {"reads_its_own_in_the_first_round", "",
     on_x86("for %t in 0..16 threads { local %e: f32[1] register for %i in 0..4 {"
            " if %i == 0 { %a = load %y[%t*4 + %i] : f32 store %e[0], %a } store %y[%t*4 + %i], 1 } }")},
    {"reads_beyond_its_own_in_the_first_round", "V2",
     on_x86("for %t in 0..15 threads { local %e: f32[1] register for %i in 0..4 {"
            " if %i == 3 { %a = load %y[%t*4 + %i + 1] : f32 store %e[0], %a } store %y[%t*4 + %i], 1 } }")},
    {"reads_more_than_its_own", "V2",
     on_x86("for %t in 0..15 threads { local %e: f32[1] register for %j in 0..6 { %a = load %y[%t*4 + %j] : f32"
            " store %e[0], %a } for %i in 0..4 { store %y[%t*4 + %i], 1 } }")},
    {"lanes_meet_in_scratch", "",
     on_x86("local %e: f32[16] scratch for %l in 0..16 vector { store %e[%l], 1 }"
            " for %l in 0..16 vector { %a = load %e[15 - %l] : f32 store %y[%l], %a }")},
    {"lanes_meet_too_early", "V2",
     on_x86("local %e: f32[16] scratch for %l in 0..16 vector { store %e[%l], 1"
            " %a = load %e[15 - %l] : f32 store %y[%l], %a }")},
    // V11
    {"stored_twice", "V11", on_x86("store %y[3], 1 store %y[3], 2")},
    {"stored_once_a_round", "V11", on_x86("for %i in 0..4 { store %y[0], 1 }")},
    {"stored_once_every_other_round", "V11", on_x86("for %i in 0..128 { store %y[%i / 2], 1 }")},
    {"read_and_stored_again", "", on_x86("store %y[3], 1 %a = load %y[3] : f32 store %y[3], %a")},
    {"stored_again_and_read_after", "V11",
     on_x86("store %y[3], 1 store %y[3], 2 %a = load %y[3] : f32 local %e: f32[1] register store %e[0], %a")},
    {"stored_each_round_and_read_after", "V11",
     on_x86("local %e: f32[1] register for %i in 0..4 { store %y[0], 1 %a = load %y[0] : f32 store %e[0], %a }")},
    {"added_to_each_round", "",
     on_x86("store %y[0], 0 for %i in 0..4 { %a = load %y[0] : f32 %b = add(%a, 1) : f32 store %y[0], %b }")},
    {"read_before_the_loop_only", "V11",
     on_x86("store %y[0], 0 %a = load %y[0] : f32 for %i in 0..4 { %b = add(%a, 1) : f32 store %y[0], %b }")},
    {"read_at_another_element", "V11", on_x86("store %y[0], 0 %a = load %y[1] : f32 store %y[0], %a")},
    {"on_either_side", "", on_x86("for %i in 0..4 { if %i < 2 { store %y[%i], 1 } else { store %y[%i], 2 } }")},
    {"on_either_side_again", "V11",
     on_x86("for %i in 0..4 { for %j in 0..2 { if %j < 1 { store %y[%i], 1 } else { store %y[%i], 2 } } }")},
    {"stored_in_the_first_round_only", "", on_x86("for %i in 0..4 { if %i < 1 { store %y[0], 1 } }")},
    {"stored_in_the_last_round_only", "", on_x86("for %i in 0..4 { if %i >= 3 { store %y[0], 1 } }")},
    // A condition bounds what a variable adds to the place, below and above.
    {"a_part_of_the_rounds_each", "",
     on_x86("for %i in 0..4 { for %j in 0..16 { if %j < 14 { store %y[%i*14 + %j], 1 } } }")},
    {"a_part_of_the_rounds_each_one_too_many", "V11",
     on_x86("for %i in 0..4 { for %j in 0..16 { if %j < 15 { store %y[%i*14 + %j], 1 } } }")},
    {"the_last_of_the_rounds_each", "",
     on_x86("for %i in 0..4 { for %j in 0..16 { if %j >= 2 { store %y[%i*14 + %j - 2], 1 } } }")},
    {"the_other_part_of_the_rounds_each", "V11",
     on_x86("local %e: f32[1] register for %i in 0..4 { for %j in 0..18 { if %j < 4 { store %e[0], 1 } else { "
            "store %y[%i*12 + %j], 1 } } }")},
    {"stored_in_two_rounds", "V11", on_x86("for %i in 0..4 { if %i < 2 { store %y[0], 1 } }")},
    {"tiles_and_their_rest", "",
     on_x86("for %t in 0..4 threads { for %i in 0..3 { for %j in 0..4 unroll { store %y[%t*14 + %i*4 + %j], 1 } } "
            "for %j in 0..2 unroll { store %y[%t*14 + %j + 12], 1 } }")},
    {"tiles_and_a_rest_that_overlaps", "V11",
     on_x86("for %t in 0..4 threads { for %i in 0..3 { for %j in 0..4 unroll { store %y[%t*14 + %i*4 + %j], 1 } } "
            "for %j in 0..2 unroll { store %y[%t*14 + %j + 11], 1 } }")},
    {"phases_of_even_and_odd", "",
     on_x86(
         "for %t in 0..32 threads { store %y[%t*2], 1 } } phase { for %t in 0..32 threads { store %y[%t*2 + 1], 1 }")},
    {"a_phase_over_another", "V11",
     on_x86("for %t in 0..32 threads { store %y[%t*2], 1 } } phase { for %t in 0..16 threads { store %y[%t*4], 1 }")},
    {"a_phase_that_adds_to_another", "",
     on_x86(
         "for %t in 0..32 threads { store %y[%t], 1 } } phase { for %t in 0..32 threads { %a = load %y[%t] : f32 %b = "
         "add(%a, 1) : f32 store %y[%t], %b }")},
    {"read_by_a_phase_before", "V11",
     on_x86("store %y[3], 1 } phase { %a = load %y[3] : f32 local %e: f32[1] register store %e[0], %a } phase { store "
            "%y[3], 2")},
    {"digits_and_their_rest", "",
     "kernel @t(%y: f32[1,3,4,1,5] write) on x86:v2 { phase { for %i in 0..48 { store %y[0, %i / 20, %i / 5 % 4, 0, %i "
     "% "
     "5], 1 } for %i in 0..12 { store %y[0, (%i + 48) / 20, (%i + 48) / 5 % 4, 0, (%i + 48) % 5], 1 } } }"},
    {"digits_in_another_order", "",
     "kernel @t(%y: f32[5,3,4] write) on x86:v2 { phase { for %i in 0..48 { store %y[%i % 5, %i / 20, %i / 5 % 4], 1 } "
     "for %i in 0..12 { store %y[(%i + 48) % 5, (%i + 48) / 20, (%i + 48) / 5 % 4], 1 } } }"},
    {"digits_and_a_rest_that_overlaps", "V11",
     "kernel @t(%y: f32[3,4,5] write) on x86:v2 { phase { for %i in 0..49 { store %y[%i / 20, %i / 5 % 4, %i % 5], 1 } "
     "for %i in 0..12 { store %y[(%i + 48) / 20, (%i + 48) / 5 % 4, (%i + 48) % 5], 1 } } }"},
    {"digits_in_part_made_simpler", "",
     "kernel @t(%y: f32[40,10,10] write) on x86:v2 { phase { for %i in 0..62 { for %j in 0..4 { for %l in 0..16 { "
     "store "
     "%y[(%i*64 + %j*16 + %l) % 40, (%i*4 + %j) / 25, (%i*64 + %j*16 + %l) / 40 % 10], 1 } } } for %r in 0..32 { store "
     "%y[%r + 8, 9, 9], 1 } } }"},
    {"digits_in_part_made_simpler_that_overlap", "V11",
     "kernel @t(%y: f32[40,10,10] write) on x86:v2 { phase { for %i in 0..62 { for %j in 0..4 { for %l in 0..16 { "
     "store "
     "%y[(%i*64 + %j*16 + %l) % 40, (%i*4 + %j) / 25, (%i*64 + %j*16 + %l) / 40 % 10], 1 } } } for %r in 0..33 { store "
     "%y[%r + 7, 9, 9], 1 } } }"},
    {"many_digits_in_part_made_simpler", "",
     "kernel @t(%y: f32[2,4,4,3,3] write) on x86:v2 { phase { for %i in 0..64 { for %l in 0..4 { store %y[%i / 36, %i "
     "/ 9 % 4, "
     "(%i*4 + %l) / 9 % 4, (%i*4 + %l) / 3 % 3, (%i*4 + %l) % 3], 1 } } for %r in 0..32 { store %y[1, 3, (%r + 4) / 9, "
     "((%r + 1) / 3 + 1) % 3, (%r + 1) % 3], 1 } } }"},
    {"many_digits_in_part_made_simpler_that_overlap", "V11",
     "kernel @t(%y: f32[2,4,4,3,3] write) on x86:v2 { phase { for %i in 0..65 { for %l in 0..4 { store %y[%i / 36, %i "
     "/ 9 % 4, "
     "(%i*4 + %l) / 9 % 4, (%i*4 + %l) / 3 % 3, (%i*4 + %l) % 3], 1 } } for %r in 0..32 { store %y[1, 3, (%r + 4) / 9, "
     "((%r + 1) / 3 + 1) % 3, (%r + 1) % 3], 1 } } }"},
    {"lanes_beside_a_digit", "",
     "kernel @t(%y: f32[10,10] write) on x86:v2 { phase { for %i in 0..48 { for %l in 0..2 { store %y[%i / 5, %l + %i "
     "% "
     "5 * 2], 1 } } for %i in 0..2 { for %l in 0..2 { store %y[9, %l + %i*2 + 6], 1 } } } }"},
    {"digits_of_two_numbers", "",
     "kernel @t(%y: f32[2,4,2,5,7] write) on x86:v2 { phase { for %t in 0..8 threads { for %i in 0..64 { store %y[%t / "
     "4, %t % 4, %i / 35, %i / 7 % 5, %i % 7], 1 } "
     "for %r in 0..6 { store %y[%t / 4, %t % 4, (%r + 29) / 35 + 1, ((%r + 1) / 7 + 4) % 5, (%r + 1) % 7], 1 } } } }"},
    {"digits_of_two_numbers_that_overlap", "V11",
     "kernel @t(%y: f32[2,4,2,5,7] write) on x86:v2 { phase { for %t in 0..8 threads { for %i in 0..65 { store %y[%t / "
     "4, %t % 4, %i / 35, %i / 7 % 5, %i % 7], 1 } "
     "for %r in 0..6 { store %y[%t / 4, %t % 4, (%r + 29) / 35 + 1, ((%r + 1) / 7 + 4) % 5, (%r + 1) % 7], 1 } } } }"},
    {"a_rest_in_the_same_task", "",
     "kernel @t(%y: f32[1152] write) on x86:v2 { phase { for %t in 0..8 threads { for %s in 0..16 threads { for %i in "
     "0..8 "
     "{ store %y[%t*144 + %i*16 + %s], 1 } store %y[%t*144 + %s + 128], 1 } } } }"},
    {"a_rest_in_the_next_task", "V1",
     "kernel @t(%y: f32[1152] write) on x86:v2 { phase { for %t in 0..8 threads { for %s in 0..16 threads { for %i in "
     "0..8 "
     "{ store %y[%t*143 + %i*16 + %s], 1 } store %y[%t*143 + %s + 128], 1 } } } }"},
    {"a_rest_among_others", "V1",
     "kernel @t(%y: f32[1152] write) on x86:v2 { phase { for %t in 0..8 threads { for %s in 0..16 threads { for %i in "
     "0..8 "
     "{ store %y[%t*144 + %i*16 + %s], 1 } store %y[%t*144 + %s + 127], 1 } } } }"},
    {"lanes_beside_a_digit_of_a_task", "",
     "kernel @t(%y: f32[2,4,5,7,8] write) on x86:v2 { phase { for %t in 0..8 threads { for %i in 0..32 { for %l in "
     "0..2 { store %y[%t / 4, %t % 4, %i / 28, %i / 4 % 7, %l + %i % 4 * 2], 1 } } "
     "for %r in 0..108 { for %l in 0..2 { store %y[%t / 4, %t % 4, (%r + 4) / 28 + 1, (%r / 4 + 1) % 7, %l + %r % 4 * "
     "2], 1 } } } } }"},
    {"lanes_beside_a_digit_of_a_task_that_overlap", "V11",
     "kernel @t(%y: f32[2,4,5,7,8] write) on x86:v2 { phase { for %t in 0..8 threads { for %i in 0..33 { for %l in "
     "0..2 { store %y[%t / 4, %t % 4, %i / 28, %i / 4 % 7, %l + %i % 4 * 2], 1 } } "
     "for %r in 0..108 { for %l in 0..2 { store %y[%t / 4, %t % 4, (%r + 4) / 28 + 1, (%r / 4 + 1) % 7, %l + %r % 4 * "
     "2], 1 } } } } }"},
    {"sums_of_two_phases_in_one_place", "V11",
     "kernel @t(%x: f32[2,4] read, %y: f32[1] write) on x86:v2 { work %w: f32[4]\n"
     "phase { for %t in 0..4 threads { %a = load %x[0, %t] : f32 store %w[%t], %a } }\n"
     "phase { for %t in 0..4 threads { %a = load %x[1, %t] : f32 store %w[%t], %a } }\n"
     "phase { %s = for %t in 0..4 reduce add : f32 { %a = load %w[%t] : f32 yield %a } store %y[0], %s } }"},
    {"sums_of_two_phases_side_by_side", "",
     "kernel @t(%x: f32[2,4] read, %y: f32[1] write) on x86:v2 { work %w: f32[8]\n"
     "phase { for %t in 0..4 threads { %a = load %x[0, %t] : f32 store %w[%t], %a } }\n"
     "phase { for %t in 0..4 threads { %a = load %x[1, %t] : f32 store %w[%t + 4], %a } }\n"
     "phase { %s = for %t in 0..8 reduce add : f32 { %a = load %w[%t] : f32 yield %a } store %y[0], %s } }"},
    // V3
    {"one_too_far", "V3", on_x86("for %i in 0..65 { store %y[%i], 1 }")},
    {"one_too_early", "V3", on_x86("for %i in 0..64 { store %y[%i - 1], 1 }")},
    {"bounded_by_a_condition", "", on_x86("for %i in 0..80 { if %i < 64 { store %y[%i], 1 } }")},
    {"bounded_in_else", "",
     on_x86("local %e: f32[1] register for %i in 0..80 { if %i >= 64 { store %e[0], 2 } else { store %y[%i], 1 } }")},
    {"not_bounded_in_else_of_two", "V3",
     on_x86("for %i in 0..80 { if %i >= 64 and %i < 70 { store %y[0], 2 } else { store %y[%i], 1 } }")},
    {"bounded_by_max_min", "",
     on_x86("for %b in 0..9 { for %i in max(0, 1 - %b*8)..min(8, 65 - %b*8) { store %y[%b*8 + %i - 1], 1 } }")},
    {"quotient", "", on_x86(reads("%i in 0..640", "%i / 10"))},
    {"quotient_too_far", "V3", on_x86(reads("%i in 0..641", "%i / 10"))},
    {"remainder", "", on_x86(reads("%i in 0..1000", "%i % 64"))},
    {"remainder_too_far", "V3", on_x86(reads("%i in 0..1000", "%i % 65"))},
    {"loaded_index_bounded", "",
     on_x86("%k = load %n[0] : i32 if %k >= 0 and %k < 64 { %a = load %x[%k] : f32 store %y[0], %a }")},
    {"loaded_index_free", "V3", on_x86("%k = load %n[0] : i32 if %k >= 0 { %a = load %x[%k] : f32 store %y[0], %a }")},
    {"prefetch_is_free", "", on_x86("prefetch %x[1000] l1 store %y[0], 1")},
    {"empty_dim", "V3", "kernel @t(%y: f32[0] write) on x86:v2 { phase { store %y[0], 1 } }"},
    // V4
    {"threads_inside_serial", "V4", on_x86("for %i in 0..2 { for %t in 0..4 threads { store %y[%i*4 + %t], 1 } }")},
    {"threads_beside_a_statement", "V4", on_x86("for %t in 0..4 threads { store %y[%t], 1 } store %y[9], 1")},
    {"threads_from_one", "V4", on_x86("for %t in 1..4 threads { store %y[%t], 1 }")},
    {"four_threads_loops", "V4",
     on_x86("for %a in 0..2 threads { for %b in 0..2 threads { for %c in 0..2 threads { for %d in 0..2 threads {"
            " store %y[%a*8 + %b*4 + %c*2 + %d], 1 } } } }")},
    {"lanes_of_three", "V4", on_x86("for %l in 0..3 vector { store %y[%l], 1 }")},
    {"nested_lanes", "V4", on_x86("for %l in 0..4 vector { for %k in 0..4 vector { store %y[%l*4 + %k], 1 } }")},
    {"bounds_name_the_lane", "V4", on_x86("for %l in 0..4 vector { for %k in 0..%l { store %y[%l*8 + %k], 1 } }")},
    {"unroll_of_65", "V4", on_x86("for %i in 0..65 unroll { if %i < 64 { store %y[%i], 1 } }")},
    {"unroll_by_four", "", on_cuda("for %g in 0..1 grid.x { for %i in 0..64 unroll 4 { store %y[%i], 1 } }")},
    {"unroll_by_four_on_x86", "V4", on_x86("for %i in 0..64 unroll 4 { store %y[%i], 1 }")},
    {"unroll_by_65", "V4", on_cuda("for %g in 0..1 grid.x { for %i in 0..64 unroll 65 { store %y[%i], 1 } }")},
    {"unroll_to_a_variable", "V4", on_x86("for %i in 0..4 { for %j in 0..%i unroll { store %y[%j], 1 } }")},
    {"threads_reduce", "V4", on_x86("%a = for %t in 0..4 threads reduce add : f32 { yield 1 } store %y[0], %a")},
    {"lanes_on_any", "V4", on_x86("for %l in 0..4 vector { store %y[%l], 1 }", "any")},
    {"threads_on_any", "V4", on_x86("for %t in 0..4 threads { store %y[%t], 1 }", "any")},
    {"threads_on_cuda", "V4", on_cuda("for %t in 0..4 threads { store %y[%t], 1 }")},
    {"no_grid_on_cuda", "V4", on_cuda("store %y[0], 1")},
    {"grid_on_x86", "V4", on_x86("for %g in 0..4 grid.x { store %y[%g], 1 }")},
    {"grid_order", "V4", on_cuda("for %a in 0..2 grid.x { for %b in 0..2 grid.y { store %y[%a*2 + %b], 1 } }")},
    {"grid_z_y_x", "",
     on_cuda("for %a in 0..2 grid.z { for %b in 0..2 grid.y { for %c in 0..2 grid.x { store %y[%a*4 + %b*2 + %c], 1 } "
             "} }")},
    {"block_without_grid", "V4", on_cuda("for %b in 0..4 block.x { store %y[%b], 1 }")},
    {"block_of_two_sizes", "V4",
     on_cuda("for %g in 0..1 grid.x { for %b in 0..32 block.x { store %y[%b], 1 } for %c in 0..16 block.x { store "
             "%y[%c + 32], 1 } }")},
    {"block_too_large", "V4",
     on_cuda("for %g in 0..1 grid.x { for %b in 0..64 block.x { for %c in 0..32 block.y { if %c == 0 { store %y[%b], 1 "
             "} } } }")},
    {"block_under_lane_if", "V4",
     on_cuda("for %g in 0..1 grid.x { for %b in 0..8 block.x { if %b < 3 { for %c in 0..8 block.y { store %y[%b*8 + "
             "%c], 1 } } } }")},
    {"block_under_a_choice_kept_in_a_local", "V4",
     on_cuda("for %g in 0..1 grid.x { for %b in 0..2 block.y { %0 = load %x[%b] : f32  %1 = lt(%0, 0) : bool\n"
             "local %a: f32[1] register = 0  if %1 { store %a[0], 1 }  %2 = load %a[0] : f32  %3 = gt(%2, 0) : bool\n"
             "if %3 { for %t in 0..32 block.x { store %y[%b*32 + %t], 1 } } } }")},
    {"block_under_a_tree_of_a_few_threads", "V4",
     on_cuda("for %g in 0..1 grid.x { for %b in 0..2 block.y { %s = for %t in 0..32 block.x reduce add : f32 {\n"
             "%0 = load %x[%b*32 + %t] : f32  yield %0 }  %1 = gt(%s, 0) : bool\n"
             "if %1 { for %t in 0..32 block.x { store %y[%b*32 + %t], 1 } } } }")},
    {"block_under_a_tree_of_all_threads", "",
     on_cuda("for %g in 0..1 grid.x { %s = for %t in 0..64 block.x reduce add : f32 { %0 = load %x[%t] : f32\n"
             "yield %0 }  %1 = gt(%s, 0) : bool  if %1 { for %t in 0..64 block.x { store %y[%t], 1 } } }")},
    {"block_reduce_of_three", "V4",
     on_cuda("for %g in 0..64 grid.x { %a = for %b in 0..3 block.x reduce add : f32 { yield 1 } store %y[%g], %a }")},
    {"registers", "", with_registers(256, "128")},
    {"registers_of_a_warp", "", with_registers(1024, "64")},
    {"registers_of_part_of_a_warp", "V4", with_registers(1000, "65")},
    {"registers_that_are_few", "V4", with_registers(64, "15")},
    {"registers_that_are_many", "V4", with_registers(64, "256")},
    {"registers_beyond_int", "V4", with_registers(64, "4294967424")},
    {"registers_on_x86", "V4",
     "kernel @t(%y: f32[64] write) on x86:avx2 { phase registers 128 { for %i in 0..64 { store %y[%i], 1 } } }"},
    {"nt_on_cuda", "V4", on_cuda("for %g in 0..16 grid.x { for %l in 0..4 vector { store %y[%g*4 + %l], 1 nt } }")},
    // V5
    {"register_by_serial_loop", "V5",
     on_x86("local %a: f32[4] register for %i in 0..4 { store %a[%i], 1 } store %y[0], 1")},
    {"register_by_unroll_loop", "",
     on_x86("local %a: f32[4] register for %i in 0..4 unroll { store %a[%i], 1 } store %y[0], 1")},
    {"register_by_lane", "",
     on_x86("local %a: f32[16] register for %l in 0..16 vector { store %a[%l], 1 } store %y[0], 1")},
    {"register_by_twice_the_lane", "V5",
     on_x86("local %a: f32[32] register for %l in 0..16 vector { store %a[%l*2], 1 } store %y[0], 1")},
    {"register_row_of_other_width", "V5",
     on_x86("local %a: f32[32] register for %l in 0..16 vector { store %a[%l], 1 } store %y[0], 1")},
    {"register_too_large", "V5", on_x86("local %a: f32[65] register store %y[0], 1")},
    {"scratch_too_large", "V5", on_x86("local %a: f32[8388608] scratch store %y[0], 1")},
    {"scratch_in_lanes", "V5", on_x86("for %l in 0..4 vector { local %a: f32[4] scratch store %y[%l], 1 }")},
    {"scratch_in_block", "V5",
     on_cuda("for %g in 0..1 grid.x { for %b in 0..32 block.x { local %a: f32[4] scratch store %y[%b], 1 } }")},
    {"registers_of_threads", "",
     on_cuda("for %g in 0..1 grid.x { local %a: f32[16,2] register for %b in 0..16 block.x { for %i in 0..2 unroll {"
             " store %a[%b, %i], 1 } } for %b in 0..16 block.x { %v = load %a[%b, 1] : f32 store %y[%b], %v } }")},
    {"registers_of_more_threads_than_elements", "",
     on_cuda("for %g in 0..1 grid.x { local %a: f32[32,64] register for %b in 0..32 block.x { store %a[%b, 3], 1"
             " %v = load %a[%b, 3] : f32 store %y[%b], %v } }")},
    {"registers_of_another_thread", "V5",
     on_cuda("for %g in 0..1 grid.x { local %a: f32[16] register for %b in 0..16 block.x { store %a[%b], 1 }"
             " for %b in 0..16 block.x { %v = load %a[15 - %b] : f32 store %y[%b], %v } }")},
    {"registers_of_threads_on_another_axis", "V5",
     on_cuda("for %g in 0..1 grid.x { local %a: f32[4,4] register for %b in 0..4 block.y { for %c in 0..4 block.x {"
             " store %a[%b, %c], 1 } } for %b in 0..4 block.y { for %c in 0..4 block.x { %v = load %a[%c, %b] : f32"
             " store %y[%b*4 + %c], %v } } }")},
    {"registers_of_threads_by_a_constant", "V5",
     on_cuda("for %g in 0..1 grid.x { local %a: f32[16] register for %b in 0..16 block.x { store %a[%b], 1 }"
             " for %b in 0..16 block.x { %v = load %a[0] : f32 store %y[%b], %v } }")},
    {"registers_of_fewer_threads", "V5",
     on_cuda("for %g in 0..1 grid.x { local %a: f32[32] register for %b in 0..16 block.x { store %a[%b], 1"
             " store %y[%b], 1 } }")},
    {"registers_of_one_thread_read_by_others", "V5",
     on_cuda(
         "for %g in 0..1 grid.x { local %a: f32[1] register for %b in 0..16 block.x { if %b == 0 { store %a[0], 1 } }"
         " for %b in 0..16 block.x { %v = load %a[0] : f32 store %y[%b], %v } }")},
    {"registers_that_all_threads_have", "",
     on_cuda("for %g in 0..1 grid.x { local %a: f32[1] register store %a[0], 1 for %b in 0..16 block.x {"
             " %v = load %a[0] : f32 store %y[%b], %v } }")},
    {"registers_of_threads_are_each_ones", "V5",
     on_cuda("for %g in 0..1 grid.x { local %a: f32[2] register for %b in 0..16 block.x { store %a[1], 1"
             " store %y[%b], 1 } }")},
    {"registers_of_a_thread_too_many", "V5",
     on_cuda("for %g in 0..1 grid.x { local %a: f32[16,65] register for %b in 0..16 block.x { store %a[%b, 0], 1"
             " store %y[%b], 1 } }")},
    // V6
    {"mixed_operands", "V6",
     on_x86("%a = load %x[0] : f32 %k = load %n[0] : i32 %b = add(%a, %k) : f32 store %y[0], %b")},
    {"wrong_result", "V6", on_x86("%a = load %x[0] : f32 %b = add(%a, 1) : f64 store %y[0], %a")},
    {"arithmetic_on_bf16", "V6", on_x86("%a = load %h[0] : bf16 %b = add(%a, %a) : bf16 store %y[0], 1")},
    {"arithmetic_on_bytes", "V6", on_x86("%a = cast(%s) : u8 %b = add(%a, %a) : u8 store %y[0], 1")},
    {"comparison_of_bytes", "V6", on_x86("%a = cast(%s) : i8 %b = lt(%a, 3) : bool store %y[0], 1")},
    {"reduction_of_bytes", "V6", on_x86("%a = for %i in 0..4 reduce maximum : u8 { yield 1 } store %y[0], 1")},
    {"literal_does_not_fit_a_byte", "V6", on_x86("local %a: u8[1] register = 256 store %y[0], 1")},
    {"index_of_a_byte", "V8",
     on_x86("%a = cast(%s) : u8 if %a >= 0 and %a < 64 { %b = load %x[%a] : f32 store %y[0], %b }")},
    {"bytes_are_chosen_and_converted", "",
     on_x86("%a = cast(%s) : u8 %c = lt(%s, 1) : bool %d = where(%c, %a, 255) : u8 %e = cast(%d) : i32\n"
            "%f = cast(%e) : f32 store %y[0], %f")},
    {"load_converts", "V6", on_x86("%a = load %h[0] : f32 store %y[0], %a")},
    {"store_converts", "V6", on_x86("%a = load %n[0] : i32 store %y[0], %a")},
    {"compare_gives_bool", "V6", on_x86("%a = lt(%s, 1) : f32 store %y[0], %a")},
    {"if_of_a_float", "V6", on_x86("if %s { store %y[0], 1 }")},
    {"value_of_b1", "V6", on_x86("%a = load %m[0] : b1 store %y[0], 1")},
    {"rank", "V6", on_x86("store %y[0, 0], 1")},
    {"shift_by_a_value", "V6", on_x86("%a = load %u[0] : u32 %b = shl(%a, %a) : u32 store %y[0], 1")},
    {"shift_too_far", "V6", on_x86("%a = load %u[0] : u32 %b = shl(%a, 32) : u32 store %y[0], 1")},
    {"unsigned_sqrt", "V6", on_x86("%a = load %u[0] : u32 %b = sqrt(%a) : u32 store %y[0], 1")},
    {"integer_div", "V6", on_x86("%a = load %n[0] : i32 %b = div(%a, 2) : i32 store %y[0], 1")},
    {"welford_of_mixed", "V6",
     on_x86("%a, %b, %c = for %i in 0..4 reduce welford : f32, f64, f32 { yield 1, 2, 3 } store %y[0], %a")},
    {"reduce_components", "V6",
     on_x86("%a, %b = for %i in 0..4 reduce welford : f32, f32 { yield 1, 2 } store %y[0], %a")},
    {"logical_and_of_floats", "V6", on_x86("%a = for %i in 0..4 reduce logical_and : f32 { yield 1 } store %y[0], %a")},
    {"yield_of_other_type", "V6",
     on_x86("%k = load %n[0] : i32 for %i in 0..2 { %a = if %i < 1 : f32 { yield 1 } else { yield %k } store %y[%i], "
            "%a }")},
    {"composite_op", "V6", on_x86("%a = relu(%s) : f32 store %y[0], %a")},
    {"literal_does_not_fit", "V6", on_x86("%a = load %n[0] : i32 %b = add(%a, 2147483648) : i32 store %y[0], 1")},
    {"local_of_b1", "V6", on_x86("local %a: b1[8] scratch store %y[0], 1")},
    {"no_store", "V6", on_x86("%a = load %x[0] : f32")},
    // V7
    {"nt_aligned", "", on_x86("for %i in 0..4 { for %l in 0..16 vector { store %y[%i*16 + %l], 1 nt } }")},
    {"nt_off_by_one", "V7", on_x86("for %i in 0..3 { for %l in 0..16 vector { store %y[%i*16 + %l + 1], 1 nt } }")},
    {"nt_of_one_element", "V7", on_x86("store %y[0], 1 nt")},
    {"cuda_vector_aligned", "", on_cuda("for %g in 0..16 grid.x { for %l in 0..4 vector { store %y[%g*4 + %l], 1 } }")},
    {"cuda_vector_off_by_one", "V7",
     on_cuda("for %g in 0..15 grid.x { for %l in 0..4 vector { store %y[%g*4 + %l + 1], 1 } }")},
    // V8
    {"not_defined", "V8", on_x86("store %y[0], %q")},
    {"defined_later", "V8", on_x86("store %y[0], %q %q = load %x[0] : f32")},
    {"outside_its_block", "V8", on_x86("for %i in 0..1 { %q = load %x[0] : f32 } store %y[0], %q")},
    {"defined_twice", "V8", on_x86("%q = load %x[0] : f32 %q = load %x[1] : f32 store %y[0], %q")},
    {"shadowed", "V8", on_x86("%q = load %x[0] : f32 for %q in 0..2 { store %y[%q], 1 }")},
    {"disjoint_scopes", "", on_x86("for %q in 0..2 { store %y[%q], 1 } for %q in 2..4 { store %y[%q], 1 }")},
    {"variable_as_value", "V8", on_x86("for %q in 0..2 { store %y[0], %q }")},
    {"float_in_an_index", "V8", on_x86("if %s + 1 < 3 { store %y[0], 1 }")},
    {"own_result_in_its_body", "V8", on_x86("%a = for %i in 0..4 reduce add : f32 { yield %a } store %y[0], %a")},
    // V9
    {"fma_on_v2", "V9", on_x86("%a = fma(%s, %s, %s) : f32 store %y[0], %a", "x86:v2")},
    {"fma_on_avx2", "", on_x86("%a = fma(%s, %s, %s) : f32 store %y[0], %a", "x86:avx2")},
    {"dot2_on_avx512", "V9", on_x86("%a = load %u[0] : u32 %b = dot2(%a, %a, %s) : f32 store %y[0], %b")},
    {"round_bf16_on_avx512", "V9", on_x86("%a = round_bf16(%s) : bf16 %b = cast(%a) : f32 store %y[0], %b")},
    {"round_bf16_on_bf16", "",
     on_x86("%a = round_bf16(%s) : bf16 %b = cast(%a) : f32 store %y[0], %b", "x86:avx512bf16")},
    {"dot2_on_bf16", "", on_x86("%a = load %u[0] : u32 %b = dot2(%a, %a, %s) : f32 store %y[0], %b", "x86:avx512bf16")},
};

INSTANTIATE_TEST_SUITE_P(Rules, Verify, ::testing::ValuesIn(kVerifyCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Such as one that stores nothing and so has no parameters, which its text must have.
TEST(VerifyBuilt, AKernelWhoseTextIsRefusedIsOurMistakeNotTheUsers) {
  Kernel kernel;
  kernel.name = "k";
  kernel.phases.resize(1);
  EXPECT_THROW(verify(kernel), InternalError);
}

}  // namespace
}  // namespace fusejit::ir
