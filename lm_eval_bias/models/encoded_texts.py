"""Token ids of texts: requests often share a context, and each distinct text is encoded once."""

from __future__ import annotations

from lm_eval_bias.harness.internals import Ids


class EncodesOnce:
    """A mixin for the harness's backends that remembers the token ids of texts."""

    _known: dict[tuple[str, bool | None], Ids] = {}

    def forget(self) -> None:
        """Drop all token ids."""
        self._known = {}

    def tok_encode(
        self,
        string: str | list[str],
        add_special_tokens: bool | None = None,
        **options: object,
    ) -> Ids:
        """Encode a text as the backend does, or look it up."""
        encode = super().tok_encode  # type: ignore[misc]
        if options or not isinstance(string, str):
            return encode(string, add_special_tokens, **options)
        known = self._known = self._known or {}
        key = string, add_special_tokens
        if key not in known:
            known[key] = encode(*key)
        return known[key]
