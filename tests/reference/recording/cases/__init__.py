"""The cases, one module a family. `all_cases()` yields every case, not yet written."""

from . import (
    anchors,
    blocks,
    composite,
    edges,
    elementwise,
    half,
    losses,
    norms,
    pools,
    random,
    reductions,
    resizes,
    views,
)

_FAMILIES = (
    edges,
    elementwise,
    composite,
    reductions,
    views,
    anchors,
    pools,
    resizes,
    norms,
    losses,
    half,
    random,
    blocks,
)


def all_cases():
    for family in _FAMILIES:
        yield from family.cases()
