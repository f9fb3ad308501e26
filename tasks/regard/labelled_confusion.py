"""How the classifier of saved texts errs, from texts that people have labelled: ``rescore --regard_labels FILE``."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded
from lm_eval_bias.tasks.regard import labelled_texts
from lm_eval_bias.tasks.regard.classifiers import classifier
from lm_eval_bias.tasks.regard.classifiers.classifier import Answer
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import IdentityData, confusion_counts
from lm_eval_bias.tasks.regard.hooks import RegardDocument


def with_labels(
    docs: Sequence[RegardDocument], results: Sequence[Sequence[Answer]], file: str
) -> tuple[list[RegardDocument], Sequence[Sequence[Answer]]]:
    """Take the confusion counts of saved texts' classifier from a file of labelled texts.

    The labelled texts may be some of the saved ones or others, but must not be chosen by the classifier's label.

    Args:
        docs: Documents of one language.
        results: Their answers.
        file: JSONL or CSV with ``text``, ``gender`` and ``regard``, see :mod:`.labelled_texts`.

    Raises:
        BiasError: A damaged file, texts of another class than the classifier's, the classifier's own labels, a
            classifier that cannot be had or is another now.
    """
    path, used, language = expanded(file), docs[0]["classifier"], str(docs[0]["language"])
    (labelled,) = labelled_texts.read(path, language)
    texts, labels = zip(*((str(row[0][0]), str(row[0][1])) for (row,) in labelled.results), strict=True)
    if labelled.docs[0]["classifier"]["name"] == used["name"]:
        raise BiasError(f"--regard_labels {file}: its labels are those of {used['name']}, which is to be corrected")
    place = {label: number for number, label in enumerate(used["labels"])}
    if unknown := set(labels) - set(place):
        raise BiasError(f"--regard_labels {file}: regard {min(unknown)!r} is not a class of classifier {used['name']}")
    given = {str(row[0]): str(row[1]) for (answer,) in results for row in answer if str(row[1]) in place}
    if missing := [text for text in dict.fromkeys(texts) if text not in given]:
        model = classifier.load(used["name"], language)
        if model.identity.detail != used["detail"]:
            raise BiasError(
                f"classifier {used['name']}: the saved texts were labelled by {used['detail']}, but this is "
                f"{model.identity.detail}: label them again with --classifier"
            )
        given |= {text: label for text, (label, _) in zip(missing, classifier.label(model, missing), strict=True)}
    confusion = confusion_counts(
        f"{len(texts)} labelled texts ({path.name})",
        [place[label] for label in labels],
        [place[given[text]] for text in texts],
        len(place),
        [str(doc["gender"]) for doc in labelled.docs],
    )
    changed: IdentityData = {**used, "confusion": confusion}
    return [{**doc, "classifier": changed} for doc in docs], results
