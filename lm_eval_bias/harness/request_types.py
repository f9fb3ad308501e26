"""The request types that this package adds to the harness's models: the names of methods."""

EXACT = "exact_loglikelihood"
WITH_LENGTH = "loglikelihood_with_length"
GENERATED = "generated_text"
