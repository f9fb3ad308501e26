"""What an OpenAI-compatible server answered is looked at before it is believed.

The harness's clients (``TemplateAPI``, 0.4.13) take what they find. Log-probabilities of a server that doesn't echo
the prompt sum to 0, a probability of 1; a list that is one short leaves out the last token; one answer to two prompts
goes to the first of them, into the cache of ``--use_cache`` too; no text (null) is an empty one. All of these are
errors here, before anything is kept, and looked at where the harness tries again: retrying stays its own.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from lm_eval_bias.errors import printable
from lm_eval_bias.harness import api_calls, api_order, api_replies, response_cache
from lm_eval_bias.harness.api_calls import Fault
from lm_eval_bias.harness.internals import shadowed

logger = logging.getLogger("lm_eval.bias")
_CUT = -9999.0  # what servers write for minus infinity
_ROUNDING = 1e-3  # nats by which a sum of probabilities may exceed 1
_FEWEST = 5  # different tokens that have the same log-probability by no chance
_MANY = 20  # different tokens to each log-probability that there is, which rounding leaves no server with
_APART = 0.1  # nats by which a log-probability may be above the largest, where servers round one of them
_PLACEHOLDER = "LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER"  # the harness's variable for what null counts as
# the modules of lm_eval.models whose methods are looked at, not another protocol's own
_OWNERS = {
    "model_call": "api_models",
    "amodel_call": "api_models",
    "batch_loglikelihood_requests": "api_models",
    "parse_logprobs": "openai_completions",
    "parse_generations": "openai_completions",
}
# what is said at length of every try, of requests that failed beside the one whose error ends the run, and with the key
_REPEATED = {
    "asyncio": ("never retrieved", "asyncio.run() shutdown"),
    "lm_eval.models.api_models": ("Exception:", "Retry attempt"),
}


@contextlib.contextmanager
def asking(model: Any) -> Iterator[None]:
    """While a model is asked: look at a server's answers, and have those that came on disk however it ends.

    Requests go out in the order of :mod:`.api_order`.
    """
    checks = _Checks(model)
    with contextlib.ExitStack() as stack:
        stack.enter_context(api_order.by_beginning(model))
        for name, owner in _OWNERS.items():
            method = getattr(model, name, None)
            if getattr(method, "__module__", "") == f"lm_eval.models.{owner}":
                stack.enter_context(shadowed(model, name, functools.partial(getattr(checks, name), method)))
        for name in _REPEATED:
            logging.getLogger(name).addFilter(_of_interest)
        try:
            yield
        finally:
            response_cache.commit(model)


def _of_interest(record: logging.LogRecord) -> bool:
    return not any(phrase in record.getMessage() for phrase in _REPEATED[record.name])


class _Checks:
    """In place of a client's methods while it is asked; each takes the method that it looks at first."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._noted: set[str] = set()
        self._texts: dict[int, str] = {}
        self._starts: Sequence[int] = ()

    def batch_loglikelihood_requests(self, batch: Any, chunks: Any) -> Any:
        """The harness's, which is called before every ``model_call``: where the continuations of its prompts start."""
        inputs, self._starts, keys = batch(chunks)
        return inputs, self._starts, keys

    def model_call(self, _: Any, messages: Sequence[Any], *, generate: bool = True, **kwargs: Any) -> Any:
        """One request at a time.

        Raises:
            Fault: No answers came, or other ones than were asked for.
        """
        with self._noting():
            reply = api_calls.post(self._model, messages, generate=generate, **kwargs)
            if generate:
                _check_texts(reply, len(messages))
            else:
                self._check_logprobs(reply, messages, self._starts)
            api_replies.check(self._model, messages, reply, kwargs.get("gen_kwargs") if generate else None)
            return reply

    async def amodel_call(self, call: Any, session: Any, *, messages: Sequence[Any], **kwargs: Any) -> Any:
        """Several requests at a time (``num_concurrent``).

        Raises:
            Fault: The same.
        """
        with self._noting(session):
            gen_kwargs = kwargs.get("gen_kwargs") if kwargs.get("generate") else None
            check = functools.partial(api_replies.check, self._model, messages, gen_kwargs=gen_kwargs)
            answers = await call(session=api_calls.Session(session, self._model, check), messages=messages, **kwargs)
            if len(answers) != len(messages):
                raise Fault(f"{len(answers)} answers to {len(messages)} prompts")
            return answers

    def parse_logprobs(self, parse: Any, outputs: Any, tokens: Any = None, ctxlens: Any = None, **kwargs: Any) -> Any:
        """The harness's, of log-probabilities that are complete and can be ones.

        Raises:
            Fault: They aren't.
        """
        self._check_logprobs(outputs, tokens, ctxlens)
        return parse(outputs=outputs, tokens=tokens, ctxlens=ctxlens, **kwargs)

    def _check_logprobs(self, outputs: Any, tokens: Sequence[Sequence[int]], starts: Sequence[int]) -> None:
        values_by_token: dict[int, Any] = {}
        largest: list[tuple[float, float]] = []
        for choice, ids, start in zip(_choices(outputs, len(starts)), tokens, starts, strict=True):
            fields = _lists(choice, ids)
            self._check_tokens(fields.get("tokens"), ids)
            values, top = (fields[name][start:-1] for name in ("token_logprobs", "top_logprobs"))
            wrong = [value for value in values if not _is_logprob(value)]
            if wrong:
                raise Fault(f"{_excerpt(wrong[0])} in place of a log-probability")
            if not all(isinstance(best, dict) and best and all(map(_is_number, best.values())) for best in top):
                raise Fault("a log-probability without the most probable tokens ('top_logprobs')")
            largest += [(value, max(best.values())) for value, best in zip(values, top, strict=True)]
            values_by_token.update(zip(ids[1:], fields["token_logprobs"][1:-1], strict=True))
        different = set(map(repr, values_by_token.values()))
        if len(values_by_token) >= _FEWEST and len(different) == 1:
            problem = f"the log-probability {different.pop()} for each of {len(values_by_token)} different tokens"
            raise Fault(f"{problem}: no language model gives such values", False)
        if different and len(values_by_token) >= _MANY * len(different):
            problem = f"only {len(different)} log-probabilities for {len(values_by_token)} different tokens"
            raise Fault(f"{problem}: no language model gives such values", False)
        if above := next((pair for pair in largest if pair[0] > pair[1] + _APART), None):
            raise Fault(
                f"a token with the log-probability {above[0]}, while that of the most probable one is {above[1]}: the "
                "server's 'token_logprobs' and 'top_logprobs' don't match",
                False,
            )

    def parse_generations(self, parse: Any, outputs: Any, contexts: Sequence[Any] | None = None, **kwargs: Any) -> Any:
        """The harness's, of one text a prompt.

        Raises:
            Fault: Something else.
        """
        _check_texts(outputs, None if contexts is None else len(contexts))
        return parse(outputs=outputs, contexts=contexts, **kwargs)

    def _check_tokens(self, names: Any, ids: Sequence[int]) -> None:
        """Refuse log-probabilities of other tokens, where a server names them.

        Servers write spaces, bytes and special tokens in ways of their own: only plain words are compared.
        """
        if not isinstance(names, list) or self._model.tokenizer_backend != "huggingface":
            return
        for number, name in zip(ids, names, strict=False):
            if number not in self._texts:
                text = str(self._model.decode_batch([[number]])[0]).strip()
                self._texts[number] = text if text.isascii() and text.isalnum() else ""
            text = self._texts[number]
            theirs = str(name).strip(" \t\n▁Ġ")
            if theirs.startswith("token_id:"):
                wrong = theirs != f"token_id:{number}"
            else:
                wrong = bool(text) and theirs.isalnum() and theirs.casefold() != text.casefold()
            if wrong:
                raise Fault(
                    f"the log-probability of {_excerpt(name)} instead of {text or number!r}: the server has to read "
                    "and split prompts as the tokenizer named here does",
                    False,
                )

    @contextlib.contextmanager
    def _noting(self, session: Any = None) -> Iterator[None]:
        """Say what went wrong when a request is going to be sent again, once of all that fail alike."""
        try:
            yield
        except Fault as fault:
            message = printable(api_calls.without_keys(str(fault), self._model))
            kind = re.sub(r"'.*|\d+", "", message)  # without what the server says
            # once a session is closed another request's fault has ended the run
            if kind not in self._noted and self._model.max_retries > 1 and not getattr(session, "closed", False):
                self._noted.add(kind)
                logger.warning("sending a request again (max_retries=%s): %s", self._model.max_retries, message)
            raise


def _choices(outputs: Any, prompts: int | None) -> list[Any]:
    """The answers in a reply, in order.

    Args:
        outputs: The reply, alone or as a list of one.
        prompts: The number of prompts that were sent, where it is known.

    Raises:
        Fault: Not one answer a prompt.
    """
    reply = outputs[0] if isinstance(outputs, list) and len(outputs) == 1 else outputs
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise Fault(f"a reply without answers ('choices'): {_excerpt(reply)}")
    indices = [choice.get("index") for choice in choices]
    if prompts is not None and len(choices) != prompts:
        raise Fault(f"{len(choices)} answers to {prompts} prompts")
    if not choices or any(isinstance(i, bool) or not isinstance(i, int) for i in indices):
        raise Fault(f"answers without a number ('index'): {_excerpt(reply)}")
    if sorted(indices) != list(range(len(choices))):
        raise Fault(f"answers to the prompts {indices}, not to 0 to {len(choices) - 1}")
    return sorted(choices, key=lambda choice: int(choice["index"]))


def _lists(choice: dict[str, Any], ids: Sequence[int]) -> dict[str, Any]:
    """What an answer says of a prompt's tokens: lists, each as long as they are and one more.

    Raises:
        Fault: Something is missing.
    """
    logprobs = choice.get("logprobs")
    fields: dict[str, Any] = logprobs if isinstance(logprobs, dict) else {}
    lists = [fields.get(name) for name in ("token_logprobs", "top_logprobs")]
    lengths = {len(values) if isinstance(values, list) else -1 for values in lists}
    if -1 in lengths:
        raise Fault(f"an answer without log-probabilities for the prompt's tokens: {_excerpt(choice)}", False)
    if lengths != {len(ids) + 1}:
        raise Fault(
            f"log-probabilities of {' and '.join(map(str, sorted(lengths)))} tokens instead of the {len(ids)} of the "
            "prompt and one more: the server has to echo prompts (echo=true with logprobs) and split them as the "
            "tokenizer named here does",
            False,
        )
    return fields


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def _is_logprob(value: Any) -> bool:
    return _is_number(value) and _CUT < value <= _ROUNDING


def _check_texts(outputs: Any, prompts: int | None) -> None:
    """Refuse answers that have no text: an empty one is a model's, none is a server's.

    Raises:
        Fault: One has none.
    """
    for choice in _choices(outputs, prompts):
        message = choice.get("message") if "message" in choice else choice
        text = message.get("text" if message is choice else "content") if isinstance(message, dict) else None
        if isinstance(text, str) or (text is None and _PLACEHOLDER in os.environ):  # the user's own choice
            continue
        problem = f"an answer without a text: {_excerpt(choice)}"
        if text is None:
            if choice.get("finish_reason") == "length":
                problem += "; raise the number of tokens (--gen_kwargs max_gen_toks=...)"
            problem += f"; set {_PLACEHOLDER}= to count such answers as empty texts"
        raise Fault(problem)


def _excerpt(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
