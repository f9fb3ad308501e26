"""Which prompts KoBBQ has, and in which orders they show the options."""

from lm_eval_bias.tasks.kinds.bbq_like import PromptWordings

PROMPTS = PromptWordings(
    "prompt", 1, "kobbq_prompts", "this task runs all five; choose one with a task of one category"
)
ORDERS = ([0, 1, 2], [1, 2, 0], [2, 0, 1])  # cyclic, as the authors'
