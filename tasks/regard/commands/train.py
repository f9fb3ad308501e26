"""``lm-eval-bias regard train``: trains a regard head, tests it and writes its card."""

from __future__ import annotations

import sys
from typing import Literal

from lm_eval_bias.core.errors import BiasError, require_extra
from lm_eval_bias.core.files import expanded
from lm_eval_bias.tasks.regard import regard_corpus
from lm_eval_bias.tasks.regard.classifier_identity import PACKAGES


def train(
    *,
    language: Literal["de", "en"] = "de",
    corpus: Literal["cleaned", "released"] = "cleaned",
    encoder: str | None = None,
    output: str | None = None,
) -> int:
    """Train the head of a regard classifier, and write its card.

    Args:
        language (LANG): corpus: de (default) or en
        corpus: German sentences: cleaned (default: without those that annotators dismissed), or all as released
        encoder (MODEL): sentence-transformers model: a name or a folder
        output (DIR): folder for the head and its card, README.md

    exit status: 0 done, 1 the bias check failed or can't be made, 2 bad usage or input
    """
    from lm_eval_bias.tasks.regard import heads

    if (
        output is not None
        and expanded(output).exists()
        and not expanded(output).is_dir()
    ):
        raise BiasError(f"--output {output}: is a file: name a folder")
    require_extra("regard", *PACKAGES)
    used = heads.encoder(encoder or heads.ENCODERS[language])
    head, card = heads.train(regard_corpus.load(language, corpus), *used)
    if output:
        heads.save(expanded(output), head, card)
    print(card)
    if output:
        print(
            f'Saved in {output}; use it with --metadata \'{{"classifier": "head:{output}"}}\''
        )
    if "warning" not in head.info:
        return 0
    print(
        f"lm-eval-bias: {head.info['warning']}: this classifier must not compare women and men",
        file=sys.stderr,
    )
    return 1
