"""``python -m lm_eval_bias`` is ``lm-eval-bias`` (which is what ``accelerate launch -m`` needs)."""

from lm_eval_bias.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
