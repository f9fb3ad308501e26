"""The request types that this package adds to the harness's models: the names of methods."""

EXACT = "exact_loglikelihood"
WITH_LENGTH = "loglikelihood_with_length"
WITH_LENGTH_IF_KNOWN = "loglikelihood_with_length_if_known"
GENERATED = "generated_text"
