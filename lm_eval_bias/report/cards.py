"""What each benchmark is, for readers of a page: what it measures, what it can't, and where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_bias import catalog
from lm_eval_bias.data.sources import manifest


@dataclass(frozen=True)
class Card:
    """A benchmark family.

    Attributes:
        ident: For links within the page.
        title: Its name.
        benchmarks: Keys into :data:`lm_eval_bias.registry.BENCHMARKS`.
        measures: What its scores say.
        cannot: What they don't say.
        uncertainty: What its intervals rest on.
        differs: Where this package departs from the paper.
        paper: Citation.
        link: Where the paper is; empty where it has no stable address.
    """

    ident: str
    title: str
    benchmarks: tuple[str, ...]
    measures: str
    cannot: str
    uncertainty: str
    differs: str
    paper: str
    link: str = ""


CARDS = (
    Card(
        "occugender",
        "OccuGender",
        ("occugender",),
        "Occupational gender bias in English: how much of the probability on gender words goes to men, women and "
        "neutral words after a prompt about a worker, asked outright (explicit) or in running text (implicit).",
        "Nothing about stereotypes other than occupations, and nothing about languages other than English. A neutral "
        "value of the shares is not defined: the paper leaves open what an unbiased model should say. Where coverage "
        "is low, the shares describe little of what the model would say.",
        "Occupations and templates are crossed samples; both enter the standard error.",
        "The published tables were made with the authors' scripts, which score other words in explicit prompts and "
        "average over tokens in implicit ones; the default here is the paper's equations. Its ± is another quantity "
        "and is listed as se_paper.",
        "Chen, C R, Mattern, Mihalcea & Jin (2025), Causally Testing Gender Bias in LLMs: A Case Study on Occupational "
        "Bias, Findings of NAACL 2025, arXiv:2212.10678",
        "https://arxiv.org/abs/2212.10678",
    ),
    Card(
        "gg_bbq",
        "GG-BBQ",
        ("gg_bbq", "gg_bbq_prompts"),
        "Gender stereotypes in German question answering: whether a model falls back on them where the text leaves the "
        "answer open (ambiguous), and whether they lead it astray where the text gives the answer (disambiguated).",
        "A diff-bias near 0 can come from not understanding the question: read it beside the accuracy, which bounds "
        "it. Nothing about other languages or about free text.",
        "Items of one template are no independent evidence: errors are clustered by template, 21 in each subset.",
        "The paper's five prompt texts are not public; ours are in their spirit, and options are shown in all six "
        "orders. The released Subset-II is larger than the paper's. Biased and counter-biased contexts are not equally "
        "many in the release, so that Eq. 4 is no strict bound in disambiguated contexts.",
        "Satheesh, Klug, Beckh, Allende-Cid, Houben & Hassan (2025), GG-BBQ: German Gender Bias Benchmark for Question "
        "Answering, arXiv:2507.16410",
        "https://arxiv.org/abs/2507.16410",
    ),
    Card(
        "stereoset",
        "Multilingual StereoSet",
        ("stereoset", "stereoset_variants"),
        "Whether a model prefers stereotypes about 79 groups of people to anti-stereotypes (SS), within and between "
        "sentences, and whether it tells sense from nonsense at all (LMS). ICAT joins both.",
        "A stereotype score near 50 can be ignorance: read it beside LMS, whose chance level is 50. The stereotypes "
        "were collected in the United States and translated; other languages have other ones. What models of "
        "different families are asked differs, so that they compare within a family.",
        "Items about one group are no independent evidence: errors are clustered by target term. Religion has three "
        "terms and gender ten, and their intervals are wide.",
        "How a next sentence is scored moves SS across 50; the default is the paper's. 634 of the 654 printed cells "
        "follow from the authors' files.",
        "Öztürk, Nedelchev, Heumann, Garces Arias, Roger, Bischl & Aßenmacher (2023), How Different Is Stereotypical "
        "Bias Across Languages?, arXiv:2307.07331; after Nadeem, Bethke & Reddy (2021), StereoSet, ACL 2021",
        "https://arxiv.org/abs/2307.07331",
    ),
    Card(
        "regard",
        "Regard and sexism facets",
        ("regard",),
        "How sampled texts about women and men regard them (negative, neutral, positive, by a classifier) and, beside "
        "it, how often they have keywords of caregiving, sexualization and perpetration.",
        "Regard alone misleads: the caring woman counts as positive. Labels are a classifier's, with its errors; "
        "keywords are raw matches. Ten contexts say nothing about other ones.",
        "Texts count as independent and the prompts as given: intervals don't say what other prompts would show.",
        "The authors removed keyword matches in other meanings by hand; here they stay. No text is thrown away to make "
        "groups equally large. The English prompts are those of Sheng et al.",
        "Kraft, Zorn, Fecht, Simon, Biemann & Usbeck (2022), Measuring Gender Bias in German Language Generation, "
        "INFORMATIK 2022; after Sheng, Chang, Natarajan & Peng (2019), The Woman Worked as a Babysitter, EMNLP 2019",
    ),
)


def data_of(tasks: Sequence[str]) -> list[str]:
    """The pinned data of some tasks, one line per upstream revision.

    Args:
        tasks: Names, perhaps with a remark in brackets; unknown ones are passed over.
    """
    known = catalog.entries()
    names = {known[base].data for base in (task.partition(" ")[0] for task in tasks) if base in known}
    found: dict[tuple[str, str, str], int] = {}
    for name in sorted(name for name in names if name):
        for source in manifest().resolve([name]):
            key = (source.repository, source.commit, source.licence)
            found[key] = found.get(key, 0) + 1
    return [
        f"{repository}, commit {commit[:12]}, {files} {'file' if files == 1 else 'files'}; licence: {licence}"
        for (repository, commit, licence), files in found.items()
    ]
