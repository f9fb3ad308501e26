"""Which prompt wordings GG-BBQ has; :mod:`.hooks` has their texts."""

from lm_eval_bias.tasks.kinds.bbq_like import PromptWordings

WORDINGS = PromptWordings(
    "wording", 2, "gg_bbq_prompts", "this task runs all wordings; choose one with the task without _prompts"
)
