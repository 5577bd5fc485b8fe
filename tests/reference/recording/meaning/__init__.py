"""What each op means, in PyTorch: `MEANING[op](*tensors, **attributes)`.

Float tensors are f64 whatever dtype the graph declares. Where docs/ops.md says that fusejit **differs** from PyTorch,
the function here computes what docs/ops.md says, without PyTorch if need be.
"""

from . import anchors, composite, elementwise, integers, losses, norms, pools, random, reductions, views

MEANING = {}
for _family in (elementwise, composite, norms, losses, reductions, views, anchors, pools, random):
    MEANING.update(_family.MEANING)
for _op, _of_integers in integers.MEANING.items():
    MEANING[_op] = integers.dispatch(_of_integers, MEANING[_op])

# The result has the dtype of the first operand even if another float operand is wider.
SAME_DTYPE_AS_FIRST = frozenset(["bias_add", "dropout", *norms.MEANING, *losses.MEANING]) - {
    "batch_norm_train_weight_grad"
}

# These take the declared dtype of the first operand as well, `source`: what they round to depends on it.
ROUNDED_AS_DECLARED = frozenset(["cast", "dropout"])
