"""Runs ``nsp train`` in forked children of one process that has everything imported, and kills them.

Reads a list of lists of attempts as JSON: ``arguments``, ``log`` (the numbers of the pairs that were trained on are
appended there) and perhaps ``at``, a function's dotted name and the number of its call, for the moment of SIGKILL.
Answers with each attempt's status.
"""

import json
import os
import sys

import transformers.models.gpt2.modeling_gpt2  # noqa: F401 (what a child would import)

from lm_eval_bias.cli import main as cli
from lm_eval_bias.models.next_sentence import sentence_pairs
from tests.e2e.forked import die_at


def child(attempt):
    get = sentence_pairs.Pairs.__getitem__

    def noted(self, number):
        if len(self) == attempt["pairs"]:
            with open(attempt["log"], "a") as file:
                file.write(f"{number}\n")
        return get(self, number)

    sentence_pairs.Pairs.__getitem__ = noted
    if "at" in attempt:
        die_at(*attempt["at"])
    with open(f"{attempt['log']}.out", "a") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        os._exit(cli.main(attempt["arguments"]))


def main():
    answers = []
    for attempt in json.load(sys.stdin):
        pid = os.fork()
        if pid == 0:
            child(attempt)
        answers.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
