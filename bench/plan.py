"""Which rows are planned on which GPU. docs/results says of each what of its plan was never made.

On the GPU that was aimed for, all that there is to run. On another, what tells whether the kernel is right there and
how fast it is: what is the same on all of them, such as how a loop compares with its layers one by one, is not made
again.
"""

import fnmatch
import re

from accuracy import BODIES, DTYPES

ELSEWHERE = (*(f"fixtures/{name}-{dtype}" for name in BODIES for dtype in DTYPES), "quantised/*", "fallbacks/*",
             "passes/*", "pass_times/*", "drafts/*", "sequences/*", "endurance/*",
             "sanitizer/*", "first_answer/*", "serving/*", "clients/*", "library/*", "sizes/*", "bench/*", "drawn/*",
             "contexts/*", "compare/*", "quality/*", "roofline/*")
REFERENCE = "h200"  # the GPU on which everything is planned
is_elsewhere = re.compile("|".join(fnmatch.translate(pattern) for pattern in ELSEWHERE)).match


def planned(name, ids):
    """Those of all ids that are planned for the file of a machine, by its name."""
    if name == REFERENCE:
        return list(ids)
    return [i for i in ids if is_elsewhere(i)]
