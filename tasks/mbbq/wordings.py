"""The wordings of MBBQ's prompts."""

from lm_eval_bias.tasks.shared.bbq_like import PromptWordings

NUMBERS = PromptWordings("prompt", 1, "mbbq_<language>_prompts")
