"""What ``train-regard`` and ``classify`` do."""

from __future__ import annotations

import os
import sys

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded, write_whole


def train(
    language: str,
    encoder: str | None,
    embeddings: str | None,
    light: bool,
    seeds: int,
    recipe: str,
    output: str | None,
) -> int:
    """Train and print the model card; status 1 where the bias check fails.

    Raises:
        BiasError: Bad arguments, or data or encoder that cannot be had.
    """
    from lm_eval_bias.tasks.regard.classifiers import classifier_card, head_training, regard_corpus, sbert_classifier

    if seeds < 1:
        raise BiasError(f"--seeds {seeds}: must be 1 or more")
    if output is not None and os.path.exists(expanded(output)) and not os.path.isdir(expanded(output)):
        raise BiasError(f"--output {output}: is a file; a folder is needed")
    if light:
        from lm_eval_bias.tasks.regard.classifiers import light_classifier

        if encoder or embeddings:
            raise BiasError("--light takes neither --encoder nor --embeddings")
        if output:
            raise BiasError("--light is trained anew at every use: there is nothing to save, leave out --output")
        made = light_classifier.evaluate(language)
        print(classifier_card.markdown(made))
        return 0 if made["bias_check"]["passed"] else 1
    if embeddings:
        path = expanded(embeddings)
        trained = head_training.train_on(head_training.from_file(path), seeds, encoder or "", recipe)
    else:
        found = sbert_classifier.encoder(encoder or sbert_classifier.ENCODERS[language])
        trained = head_training.train(
            regard_corpus.load(language, second=True), found.encode, seeds, found.name, recipe
        )
    if output:
        head_training.save(expanded(output), trained)
    print(classifier_card.markdown(trained.card))
    if output and trained.card["encoder"]:
        print(f'Saved in {output}; use it with --metadata \'{{"classifier": "head:{output}"}}\'')
    elif output:
        print(f"Saved in {output}; to classify texts with it, its head.json has to name the encoder (--encoder)")
    if trained.passed is False:
        print("lm-eval-bias: the bias check failed: this classifier must not compare women and men", file=sys.stderr)
        return 1
    return 0


def classify(file: str, named: str | None, language: str | None, column: str, output: str | None) -> int:
    """Label texts; a warning about the classifier goes to standard error.

    Raises:
        BiasError: A file or classifier that cannot be had.
    """
    from lm_eval_bias.tasks.regard.classifiers import text_files as labelling

    target = None if output is None else expanded(output)
    if target is not None and target.suffix not in (".jsonl", ".csv"):
        raise BiasError(f"--output {output}: must end in .jsonl or .csv")
    rows, identity = labelling.label(labelling.read(expanded(file), column), named, language)
    text = labelling.as_text(rows, target.suffix if target else ".jsonl")
    if target is None:
        sys.stdout.write(text)
    else:
        try:
            write_whole(target, text.encode())
        except OSError as error:
            raise BiasError(f"--output {output} cannot be written: {error.strerror}") from error
    print(f"lm-eval-bias: {len(rows):,} texts labelled by {identity.name} ({identity.detail})", file=sys.stderr)
    if identity.warning:
        print(f"lm-eval-bias: warning: {identity.warning}", file=sys.stderr)
    return 0
