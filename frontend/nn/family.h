// Families: modules that are joined by adding, and their parameters. A parameter that reaches the loss of a step, while
// nobody trains it or anything of its family, belongs to a layer that was made and never added, or to a network that
// is to stay as it is and does not say so.
//
// A family is told from another by its representative; where two are joined, one names the other. A parameter that no
// module made is a family of its own. All under Context::graph_mutex.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fusejit/module.h"

namespace fusejit::nn {

struct Family {
  std::shared_ptr<Family> joined;  // the one that it is part of; null: it stands for itself
  bool trained = false;            // a parameter of it was given to an optimiser, or a module of it to train_step
};

void join(const std::shared_ptr<Family>& one, const std::shared_ptr<Family>& other);
void mark_trained(const std::vector<Parameter>& parameters);

// Notes on a parameter's value whose it is, for the check below.
void note_owner(const Parameter& parameter);

// UserError that begins with `caller` and names the parameters, if the gradient of the loss reaches some of a family
// that is not trained. trained: of the optimiser.
void check_families(const Tensor& loss, const std::vector<Parameter>& trained, const std::string& caller);

}  // namespace fusejit::nn
