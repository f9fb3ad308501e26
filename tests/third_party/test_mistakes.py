"""``doctor --benchmark`` finds nothing wrong with the package, and each deliberate mistake in it in one line."""

# ruff: noqa: E501 (a table)

import re

import pytest

from tests.support.commands import command

BENCHMARK, DOCUMENTS = "benchmark.py", "documents.py"
PAIRS, WRITTEN = "age_pairs.yaml", "age_pairs_gen.yaml"
# file, what stands there, what takes its place, the line
MISTAKES = {
    "no n_items fits": (PAIRS, "n_items: 24", "n_items: 12", r"age_pairs.yaml: n_items is 12, but there are 24 documents"),
    "a key of the YAML is missing": (PAIRS, '  measures: "', '  purpose: "', r"age_pairs.yaml: the key 'measures' is missing"),
    "the YAML is none": (PAIRS, "metadata:\n", "metadata: [\n", r"age_pairs.yaml: ParserError: .*"),
    "another benchmark": (PAIRS, "benchmark: age_stereotypes", "benchmark: age", r"age_pairs.yaml: no benchmark named 'age'; .*"),
    "a name is taken": (PAIRS, "task: age_pairs", "task: regard_de", r"age_pairs.yaml: there is already a task regard_de, in .*regard_de.yaml"),
    "a function isn't there": (PAIRS, "documents.dataset", "documents.documents", r"age_pairs.yaml: .*documents.*"),
    "two filters": (WRITTEN, "num_fewshot: 0", "  - {name: other, filter: [{function: take_first}]}", r"age_pairs_gen.yaml: age_pairs_gen: its YAML's filter_list names 2 filters, .*"),
    "a metric_list": (PAIRS, "num_fewshot: 0", "metric_list: [{metric: acc}]", r"age_pairs.yaml: age_pairs: its YAML has a metric_list, .*"),
    "a group's task": ("age.yaml", "- age_pairs_gen", "- age_pairs_gem", r"age.yaml: its task 'age_pairs_gem' is unknown. Did you mean age_pairs_gen.*"),
    "no field benchmark": (DOCUMENTS, '"benchmark": benchmark,', "", r"age_pairs.yaml: age_pairs: document 0: its field 'benchmark' is missing: it must be 'age_stereotypes', as in the YAML"),
    "no id": (DOCUMENTS, '"id": f"{trait}/{place}",', "", r"age_pairs.yaml: age_pairs: document 0: it can't be named: the field 'id' is missing \(Benchmark.key\)"),
    "ids twice": (DOCUMENTS, '"id": f"{trait}/{place}"', '"id": trait', r"age_pairs: documents 0 and 1 have the same id: slow"),
    "no field for the prompt": (DOCUMENTS, '"choices": [', '"choice": [', r"age_pairs.yaml: age_pairs: its YAML's doc_to_choice names the field 'choices', which document 0 doesn't have"),
    "a document is no JSON": (DOCUMENTS, '["old one.", "young one."]', '("old one.", "young one.")', r"age_pairs: the field 'choices' of its documents isn't the same once it was written as JSON"),
    "a name in main": (BENCHMARK, 'main = ("old_share",)', 'main = ("old",)', r"age_stereotypes.main: the score 'old' is unknown..*"),
    "a name in leanings": (BENCHMARK, 'leanings = {"old_share"', 'leanings = {"old_shares"', r"age_stereotypes.leanings: the score 'old_shares' is unknown. Did you mean old_share.*"),
    "a name in quick": (BENCHMARK, 'quick = {"age_pairs"', 'quick = {"age_pair"', r"age_stereotypes.quick: the task 'age_pair' is unknown. .*"),
    "the size of quick": (BENCHMARK, "every_third, 3, 8)", "every_third, 3, 9)", r"quick: age_pairs: items is 9, but 8 documents are chosen"),
    "the choice of quick": (BENCHMARK, "range(0, len(docs), number)", "range(0, len(docs) + 9, number)", r"quick: age_pairs: choose\(\) must give indices of documents, in order and each once"),
    "knowledge": (BENCHMARK, "    standard = (", '    knowledge = ("old_share", 101)\n    standard = (', r"age_stereotypes.knowledge: 101 is outside of the range of old_share"),
    "no unit": (BENCHMARK, 'unit="proportion"', 'unit=""', r"age_pairs.yaml: age_pairs: unanswered: its unit is '': it must be one of percent, .*"),
    "neutral out of range": (BENCHMARK, "neutral=50.0", "neutral=500.0", r"age_pairs.yaml: age_pairs: old_share: its neutral value 500.0 is outside of its range 0 to 100"),
    "values out of range": (BENCHMARK, "else 100.0 *", "else 200.0 *", r"age_\w+: old_share: it is 1\d\d.*, outside of its range of 0 to 100 \(of .* answers\)"),
    "record fails": (BENCHMARK, '"item": doc["trait"]', '"item": doc["trail"]', r"age_pairs: random answers: record\(\) failed \(KeyError: 'trail'\)"),
    "a score fails": (BENCHMARK, 'record["old"],', 'record["odd"],', r"age_pairs: old_share: the score of random answers failed \(KeyError: 'odd'\)"),
    "nan counts": (BENCHMARK, "math.nan if math.isnan(old + young) else 100.0", "100.0", r"age_pairs: old_share: it is 0 where the model gave nan: it must be nan"),
    "the other way round": (BENCHMARK, "(old > young)", "(old < young)", r"age_pairs: old_share: a planted bias should move it by 40, but moves it by -.*"),
    "a filter fails": (DOCUMENTS, "text.lower()", "text.lowered()", r"age_pairs_gen: random answers: the requests failed \(AttributeError: .*"),
    "a published name": (BENCHMARK, 'cells = {"old_share"', 'cells = {"share"', r"published: age_pairs, A model: the score 'share' is unknown..*"),
    "a published value": (BENCHMARK, "PublishedCell(61.0", "PublishedCell(610.0", r"published: age_pairs, A model: old_share is 610, outside of 0 to 100"),
    "figures fail": (BENCHMARK, "Cell(one.label)", "Cell(one.name)", r"age_pairs: figures\(\) failed \(AttributeError: .*"),
}  # fmt: skip


@pytest.mark.parametrize("name", ["", *MISTAKES])
def test_a_mistake_is_one_line(name, package):
    *edit, line = MISTAKES.get(name, ("",))
    package(*edit)
    found = command("doctor", "--benchmark", "age_stereotypes")
    if not name:
        assert (found.status, found.out) == (0, "ok       age_stereotypes: no mistake found; tasks that were run: 3\n")
        return
    problems = [text.removeprefix("problem  ") for text in found.out.splitlines() if text.startswith("problem")]
    assert found.status == 1
    assert any(re.fullmatch(rf"(.*/)?{line}", text) for text in problems), problems
    assert len(problems) <= 7, problems
