"""The wordings of KoBBQ's prompts."""

from lm_eval_bias.tasks.shared.bbq_like import PromptWordings

NUMBERS = PromptWordings("prompt", 1, "kobbq_prompts")
