"""Typed metadata of a run. ``comparability.yaml`` says which of these facts count for what.

``runs/harness_results.py`` makes a record of any result file; ``report/origins.py`` turns one into words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lm_eval_bias.core import Facts

UNKNOWN = "not recorded"
SEEDS = (0, 1234, 1234, 1234)  # the harness's own


@dataclass(frozen=True)
class ModelUsed:
    """The model that answered.

    Attributes:
        kind: Model type, as ``--model`` takes it.
        arguments: ``--model_args`` that decide its answers, without keys and tokens.
        placement: ``--model_args`` that say where and how fast it runs.
        weights: What proves which weights it has, by argument and kind of proof: of ``pretrained files`` a hash of
            their SHA-256, of ``pretrained commit`` the commit. Empty where the file proves nothing.
        files: The same one by one: of ``pretrained files`` the SHA-256 of each.
        revision: Branch, tag or commit of its name.
        dtype: Type of its numbers, such as ``float32``.
        parameters: Their number.
        served: What a server calls its model and that one's states, which proves nothing.
    """

    kind: str | None = None
    arguments: Facts = field(default_factory=dict)
    placement: Facts = field(default_factory=dict)
    weights: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    revision: str | None = None
    dtype: str | None = None
    parameters: int | None = None
    served: Sequence[str] = ()


@dataclass(frozen=True)
class PromptUsed:
    """The parts of a prompt around a document.

    Attributes:
        template: SHA-256 of the chat template, :data:`UNKNOWN` of one that isn't known; ``None`` without one.
        template_arguments: ``--model_args`` that the template reads, such as ``enable_thinking``.
        system_instruction: Its text; ``None`` without one.
        tokenization_boundary: What was found at the ends of prompts and options, in sentences.
    """

    template: str | None = None
    template_arguments: Facts = field(default_factory=dict)
    system_instruction: str | None = None
    tokenization_boundary: Sequence[str] = ()


@dataclass(frozen=True)
class SamplingUsed:
    """The sampling of texts.

    Attributes:
        generation: ``--gen_kwargs``.
        sent: What a server was sent beside prompts.
    """

    generation: Facts = field(default_factory=dict)
    sent: Sequence[Facts] = ()

    @property
    def draws(self) -> bool:
        """Whether the arguments ask for random texts."""
        temperature = str(self.generation.get("temperature", 0))
        asked = self.generation.get("do_sample", temperature not in ("0", "0.0"))
        return str(asked).lower() == "true"


@dataclass(frozen=True)
class OptionUsed:
    """An option of a task; two are equal where they hold the same, whatever a file is called.

    Attributes:
        text: Its value on one line.
        content: SHA-256 of the file that it names; else the text.
        departs: Whether it differs from the task's own.
    """

    text: str = field(compare=False)
    content: str
    departs: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TaskUsed:
    """A task with its inputs.

    Attributes:
        version: Of the task.
        options: Those that were set, by ``--metadata`` or by its YAML, with the classifier and the data set of the
            user's that were used.
        changed: Keys of its YAML in which it isn't the packaged task of its name.
        shots: Examples in each prompt.
        code: The benchmark's distribution and the beginning of a hash of its Python files.
        data: SHA-256 of the YAMLs and data files in the benchmark's folder.
        documents: Hash of the documents that were run and of what was asked of each, or :data:`UNKNOWN`.
        items: Which part of the items was run, in words; empty for all.
    """

    version: str = ""
    options: Mapping[str, OptionUsed] = field(default_factory=dict)
    changed: Sequence[str] = ()
    shots: int = 0
    code: str | None = None
    data: str | None = None
    documents: str = UNKNOWN
    items: str = ""


@dataclass(frozen=True)
class Code:
    """Releases of the packages that took part; ``None`` where the file doesn't say.

    Attributes:
        lm_eval_bias: This package.
        lm_eval: The harness.
        transformers: Transformers.
        torch: PyTorch, without the build.
        torch_build: The kind of device that it was built for, such as ``cpu`` or ``cu128``.
        tokenizers: Tokenizers.
        vllm: vLLM.
        numpy: NumPy.
        python: Python.
    """

    lm_eval_bias: str | None = None
    lm_eval: str | None = None
    transformers: str | None = None
    torch: str | None = None
    torch_build: str | None = None
    tokenizers: str | None = None
    vllm: str | None = None
    numpy: str | None = None
    python: str | None = None


@dataclass(frozen=True)
class Machine:
    """The machine of a run.

    Attributes:
        device: As ``--device`` takes it; ``None`` where that isn't known.
        batch_size: As ``--batch_size`` takes it.
        parts: Operating system, instructions of the processor, graphics card.
        threads: Threads of the processor.
    """

    device: str | None = None
    batch_size: str | int | None = None
    parts: Sequence[str] = ()
    threads: int | None = None


@dataclass(frozen=True)
class CacheUsed:
    """Answers that came from a file of ``--use_cache``.

    Attributes:
        answers: Their number, 0 if there was no such file.
        begun: The day on which the file was begun.
    """

    answers: int
    begun: str

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return self.answers > 0


@dataclass(frozen=True)
class RunRecord:
    """The provenance of a task of a run. All fields but ``task`` are the same for all tasks of a file.

    Attributes:
        model: The model.
        prompt: What stands around a document.
        sampling: How texts are drawn.
        seeds: Of Python, NumPy, PyTorch and the choice of examples.
        task: The task, as far as :func:`lm_eval_bias.runs.measurement.of` added it.
        code: The packages.
        machine: The machine.
        cache: Answers from a file; ``None`` where that isn't known.
        limit: ``--limit``.
        files: SHA-256 of the data files that the run read, by place.
        date: Day of the run (UTC), as ``2026-11-27``.
        made: When it was begun (UTC), as ``2026-11-27 23:59:01``.
        command: As it was given, without keys and tokens; empty if the file doesn't have it.
        file: The file that says so.
    """

    model: ModelUsed = ModelUsed()
    prompt: PromptUsed = PromptUsed()
    sampling: SamplingUsed = SamplingUsed()
    seeds: tuple[int | None, ...] = (None,) * 4
    task: TaskUsed = TaskUsed()
    code: Code = Code()
    machine: Machine = Machine()
    cache: CacheUsed | None = None
    limit: float | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    date: str | None = None
    made: str | None = field(default=None, compare=False)
    command: str = ""
    file: str = ""
