"""How the classifier of saved texts errs, from texts that people have labelled: ``rescore --regard_labels FILE``."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded
from lm_eval_bias.tasks.regard import labelled_texts
from lm_eval_bias.tasks.regard.classifiers import classifier
from lm_eval_bias.tasks.regard.classifiers.classifier import Answer
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import IdentityData, confusion_counts
from lm_eval_bias.tasks.regard.hooks import RegardDocument


def _given(used: IdentityData, language: str, texts: Sequence[str], results: Sequence[Sequence[Answer]]) -> list[str]:
    """The class that the saved texts' classifier gives each text; it is loaded for texts that aren't among them."""
    saved = {str(row[0]): str(row[1]) for (answer,) in results for row in answer if str(row[1]) in used["labels"]}
    if missing := [text for text in dict.fromkeys(texts) if text not in saved]:
        model = classifier.load(used["name"], language)
        if model.identity.detail != used["detail"]:
            raise BiasError(
                f"classifier {used['name']}: the saved texts were labelled by {used['detail']}, but this is "
                f"{model.identity.detail}: label them again with --classifier"
            )
        saved |= {text: label for text, (label, _) in zip(missing, classifier.label(model, missing), strict=True)}
    return [saved[text] for text in texts]


def with_labels(
    docs: Sequence[RegardDocument], results: Sequence[Sequence[Answer]], file: str
) -> tuple[list[RegardDocument], Sequence[Sequence[Answer]]]:
    """Saved texts whose classifier's confusion counts come from a file of labelled texts.

    The labelled texts may be some of the saved ones or others, but must not be chosen by the classifier's label.

    Args:
        docs: Documents of one language.
        results: Their answers.
        file: JSONL or CSV with ``text``, ``gender`` and ``regard``, see :mod:`.labelled_texts`.

    Raises:
        BiasError: A damaged file, texts without regard or of another class than the classifier's, the classifier's own
            labels, a classifier that cannot be had.
    """
    path, used, language = expanded(file), docs[0]["classifier"], str(docs[0]["language"])
    (labelled,) = labelled_texts.read(path, language)
    rows = [(str(answer[0][0]), str(answer[0][1])) for (answer,) in labelled.results]
    if labelled.docs[0]["classifier"]["name"] == used["name"]:
        raise BiasError(
            f"--regard_labels {file}: its labels are those of {used['name']}, the classifier to be corrected: give "
            "labels assigned by people"
        )
    if not all(label for _, label in rows):
        raise BiasError(f"--regard_labels {file}: a text has no regard: every text needs a label assigned by people")
    if unknown := {label for _, label in rows} - set(used["labels"]):
        raise BiasError(f"--regard_labels {file}: regard {min(unknown)!r} is not a class of classifier {used['name']}")
    place = {label: number for number, label in enumerate(used["labels"])}
    given = _given(used, language, [text for text, _ in rows], results)
    confusion = confusion_counts(
        f"{len(rows)} labelled texts ({path.name})",
        [place[label] for _, label in rows],
        [place[label] for label in given],
        len(place),
        [str(doc["gender"]) for doc in labelled.docs],
    )
    changed: IdentityData = {**used, "confusion": confusion}
    return [{**doc, "classifier": changed} for doc in docs], results
