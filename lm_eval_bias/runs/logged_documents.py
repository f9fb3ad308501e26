"""A sample log's documents against the hash that its run's results file has of those that were scored."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from lm_eval_bias import catalog, content_hashes


def requests(sample: Mapping[str, Any]) -> list[list[Any]]:
    """The arguments of each request of a logged document."""
    arguments = sample.get("arguments")
    given = list(arguments.values()) if isinstance(arguments, dict) else []
    return [list(one.values()) if isinstance(one, dict) else [one] for one in given]


def _part(content: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """An object within others; empty where there is none."""
    for name in names:
        inside = content.get(name)
        content = inside if isinstance(inside, dict) else {}
    return content


def _as_read(value: Any) -> Any:
    """What people see of a field: no spaces around texts, accents however they are written."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip()
    if isinstance(value, dict):
        return {key: _as_read(part) for key, part in value.items()}
    return [_as_read(part) for part in value] if isinstance(value, list) else value


class LoggedDocuments:
    """The documents and prompts of a log, by their hashes.

    Nothing is known of them where the results file has no hash; nor where prompts have examples, a chat template or a
    system instruction, with which logs have them and the hash hasn't.
    """

    def __init__(self, task: str, results: Mapping[str, Any]) -> None:
        """Of a task's log, beside the content of its results file; empty where there is none."""
        self._hashes: list[str] = []
        self._seen: set[bytes] = set()
        entry = catalog.entries().get(task)
        self._config = _part(results, "configs", task)
        inputs, counts = _part(self._config, "metadata", "inputs"), _part(results, "n-samples", task)
        self._expected = inputs.get("scored")
        if self._expected is None and counts.get("effective") == counts.get("original"):
            self._expected = inputs.get("documents")
        around = (inputs.get("chat_template"), inputs.get("num_fewshot"), results.get("system_instruction"))
        if any(around) or (entry is not None and entry.path is None):  # a task of the harness's own has no hash
            self._expected = None

    def add(self, sample: Mapping[str, Any]) -> None:
        """Take note of a line of the log.

        Raises:
            IndexError, TypeError, ValueError: Its requests aren't such.
        """
        if self._expected is not None:
            doc = sample["doc"]
            self._hashes.append(content_hashes.of_document(doc, self._asked(doc, requests(sample))))

    def is_repeated(self, doc: Mapping[str, Any]) -> bool:
        """Whether a document was logged before; where the results file has a hash, that tells it of all of them."""
        if self._expected is not None:
            return False
        item = bytes.fromhex(content_hashes.of_document(_as_read(doc)))[:16]
        is_repeated = item in self._seen
        self._seen.add(item)
        return is_repeated

    def _asked(self, doc: Mapping[str, Any], asked: list[list[Any]]) -> list[Any]:
        """What was asked, as it is hashed: a log has a task's description and the answer's beginning too."""
        description = self._config.get("description") or ""
        prefix = doc.get(str(self._config.get("gen_prefix")))
        texts = slice(1) if self._config.get("output_type") == "generate_until" else slice(None)
        asked = [arguments[texts] for arguments in asked]
        if description or isinstance(prefix, str):
            asked = [[prompt.removeprefix(description).removesuffix(f" {prefix}"), *more] for prompt, *more in asked]
        return [description, *asked]

    @property
    def are_others(self) -> bool:
        """Whether they are known to be others than were scored."""
        return self._expected is not None and content_hashes.of_all(self._hashes) != self._expected
