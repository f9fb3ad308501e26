"""Models that tell whether a sentence follows another: ``--model hf-nsp``, and ``nsp train``, which makes them."""
