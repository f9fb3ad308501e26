"""Named sets of tasks for ``lm-eval-bias run --suite``, the items of each, and what they will cost."""
