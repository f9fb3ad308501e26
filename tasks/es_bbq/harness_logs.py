"""Records of the harness's own tasks ``esbbq_*`` and ``cabbq_*``, from the documents and answers of their logs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.custom_metrics.question_answering import QuestionRecord
from lm_eval_bias.tasks import question_records
from lm_eval_bias.tasks.es_bbq import hooks, released_rows


def record(doc: Mapping[str, Any], results: Sequence[Any]) -> QuestionRecord:
    """What the answer to one item says, as the harness tells it: of equally likely options the first one is taken.

    Args:
        doc: The document as the harness logs it.
        results: Of each of the eleven options ``(log-likelihood, is greedy)``.
    """
    infos = [doc["answer_info"][f"ans{i}"] for i in range(3)]
    own: Any = {
        **released_rows.question(doc, infos, doc["stereotyped_groups"]),
        "choices": [doc["ans0"], doc["ans1"], question_records.UNKNOWN],
    }
    values = [float(result[0]) for result in results]
    names = hooks.names(own, len(values))
    answer = "nan" if any(map(math.isnan, values)) else names[values.index(max(values))]
    return question_records.record(
        own, answer, shows_options=False, value=own["value"], category=str(doc["category"]), generated=False
    )
