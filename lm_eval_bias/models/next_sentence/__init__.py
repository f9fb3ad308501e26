"""Models that tell whether a sentence follows another: ``--model hf-nsp``, and ``train-nsp``, which makes them."""
