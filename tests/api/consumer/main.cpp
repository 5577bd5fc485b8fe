// What a user's first program does: tensors, an evaluation, and the machine that it ran on.
#include <fusejit/fusejit.h>
#include <fusejit/target.h>

#include <iostream>

namespace fj = fusejit;

int main() {
  const fj::Tensor x = fj::full({2, 3}, 1.5);
  const auto total = fj::sum(x * 2).item<float>();
  std::cout << fj::Target::host().str() << ": " << total << '\n';
  return total == 18 ? 0 : 1;
}
