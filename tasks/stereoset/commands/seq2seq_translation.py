"""``hf:``: any encoder-decoder checkpoint that translates, through transformers, without sampling."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Any

from lm_eval_bias.core.content_hashes import of_checkpoint
from lm_eval_bias.core.errors import BiasError, did_you_mean, extras, how_to_install, one_line
from lm_eval_bias.core.files import expanded

_OPTIONS = ("source", "target", "prefix", "beams", "revision")


class Checkpoint:
    """An encoder-decoder model: NLLB, M2M100, mBART-50, MarianMT, MADLAD, T5 and their like.

    How the languages are told follows from the tokenizer: as language tokens of source and target (NLLB, M2M100,
    mBART), or as a token before the text (``>>deu<<`` of MarianMT for several languages, ``<2de>`` of MADLAD).
    """

    def __init__(self, spec: str, languages: tuple[str, str], batch: int) -> None:
        """Read the options; the model is loaded when the first text needs it.

        Raises:
            BiasError: An unknown option, or a checkpoint that cannot be had.
        """
        name, *parts = spec.split(",")
        self._spec, self._languages, self.batch = spec, languages, batch
        self._options = options = dict(part.partition("=")[::2] for part in parts)
        if unknown := [key for key in options if key not in _OPTIONS]:
            hint = did_you_mean(unknown[0], _OPTIONS)
            raise self._error(f"unknown option {unknown[0]!r}.{hint} Known: {', '.join(_OPTIONS)}, each with =VALUE")
        self._beams = options.get("beams", "1")
        if not self._beams.isdecimal() or not 1 <= int(self._beams) <= 100:
            raise self._error(f"beams={self._beams}: must be a number from 1 to 100")
        if os.path.isdir(folder := expanded(name)):
            digest = hashlib.sha256(json.dumps(of_checkpoint(folder), sort_keys=True).encode()).hexdigest()
            self._where, revision = str(folder), f"files {digest[:16]}"
            name = folder.resolve().name  # the same model wherever it lies
        else:
            self._where = name
            revision = str(getattr(self._loaded("AutoConfig"), "_commit_hash", None) or options.get("revision", "main"))
        suffixes = [f", {key}={value}" for key, value in sorted(options.items()) if key != "revision"]
        self.identity = f"hf:{name} at {revision}{''.join(suffixes)}"
        self.about = {
            "engine": "hf",
            "model": name,
            "revision": revision,
            "options": options,
            "transformers": version("transformers"),
            "torch": version("torch"),
        }

    def _error(self, why: object) -> BiasError:
        return BiasError(f"--engine hf:{self._spec}: {why}")

    def _loaded(self, kind: str, **more: Any) -> Any:
        """Load with a class of transformers; say in one line what is wrong, or which package it needs."""
        import transformers

        try:
            revision = self._options.get("revision", "main")
            return getattr(transformers, kind).from_pretrained(self._where, revision=revision, **more)
        except Exception as error:  # a checkpoint can be damaged in many ways, each with an error of its own
            is_missing = any(package in str(error).lower() for package in extras().get("translate", []))
            hint = f"; {how_to_install('translate')}" if is_missing else ""
            raise self._error(f"cannot be loaded: {one_line(error)[:300]}{hint}") from error

    @cached_property
    def _translator(self) -> tuple[Any, Any, dict[str, Any], str]:
        """Model, tokenizer, arguments of its generation, and what stands before each text."""
        import torch

        tokenizer = self._loaded("AutoTokenizer")
        model = self._loaded("AutoModelForSeq2SeqLM", dtype=torch.float32)
        model = model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
        arguments, prefix = self.languages_for(tokenizer)
        if not prefix and "prefix" not in self._options and "t5" in model.config.model_type:
            raise self._error(
                "this kind of model needs an instruction: add prefix=translate English to German: (or the prefix it "
                "was trained with; prefix= for none)"
            )
        return model, tokenizer, arguments, prefix

    def languages_for(self, tokenizer: Any) -> tuple[dict[str, Any], str]:
        """Find what tells the model its languages: arguments of its generation, and what stands before each text."""
        prefix = self._options.get("prefix", "")
        if hasattr(tokenizer, "src_lang"):
            source, target = (self._token(tokenizer, side) for side in ("source", "target"))
            tokenizer.src_lang = source.strip("_") if source.startswith("__") else source
            return {"forced_bos_token_id": tokenizer.convert_tokens_to_ids(target)}, prefix
        codes = {token for token in tokenizer.get_vocab() if re.fullmatch(r">>\w+<<|<2\w+>", token)}
        target = self._options.get("target", self._languages[1])
        matching = codes & {f">>{target}<<", f"<2{target}>"}
        if "source" in self._options or ("target" in self._options and not codes):
            raise self._error("its tokenizer has no language codes: leave out source= and target=")
        if codes and not matching and not prefix:
            raise self._error(f"translates into several languages, but not {target!r}: add target={_some(codes)}")
        return {}, prefix or "".join(f"{token} " for token in matching)

    def _token(self, tokenizer: Any, side: str) -> str:
        """Find the token of a language: its code as it is, ``__de__``, or the only one like ``de_DE``."""
        codes = {*map(str, tokenizer.all_special_tokens), *tokenizer.get_added_vocab()}
        code = self._options.get(side, self._languages[side == "target"])
        tokens = [token for token in (code, f"__{code}__") if token in codes]
        tokens = tokens or [token for token in codes if re.fullmatch(rf"{re.escape(code)}_[A-Z]{{2}}", token)]
        if len(tokens) == 1:
            return tokens[0]
        near = {token for token in codes if token.strip("_")[:2] == code[:2]}
        raise self._error(f"no language {code!r} in its tokenizer: add {side}={_some(near or codes)}")

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate by greedy or beam search.

        Raises:
            BiasError: The model cannot be loaded, or cannot take a text.
        """
        import torch

        model, tokenizer, arguments, prefix = self._translator
        positions = getattr(model.config, "max_position_embeddings", None) or 1 << 20
        try:
            encoded = tokenizer([prefix + text for text in texts], padding=True, return_tensors="pt")
            if encoded["input_ids"].shape[1] > positions:
                raise ValueError(f"{max(texts, key=len)[:60]!r}… has more tokens than the model's {positions:,}")
            inputs = {key: encoded[key].to(model.device) for key in ("input_ids", "attention_mask")}
            with torch.inference_mode():
                generated = model.generate(
                    **inputs, **arguments, do_sample=False, num_beams=int(self._beams),
                    max_new_tokens=min(256, positions - 2),
                )  # fmt: skip
            decoded = tokenizer.batch_decode(generated, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        except (RuntimeError, ValueError, IndexError, KeyError) as error:
            raise self._error(f"{one_line(error)[:300]}; the translations so far are kept") from error
        return [" ".join(text.split()) for text in decoded]


def _some(tokens: Collection[str]) -> str:
    codes = sorted(token.strip("<>_").removeprefix("2") for token in tokens)
    return "|".join(codes[:12]) + ("|…" if len(codes) > 12 else "")
