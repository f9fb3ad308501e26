"""Reports as tables and data: complete, and a file's text stays text."""

import csv
import io
import itertools
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_bias.core.safe_stream import visible_line
from lm_eval_bias.report import escaping
from tests.support.made_runs import HOSTILE, hostile_run, run_of, write


def test_csv_of_a_hostile_run(tmp_path, said):
    path = write(tmp_path / "h.json", hostile_run())
    rows = list(csv.DictReader(io.StringIO(said("report", path, "--format", "csv"))))
    assert {row["run"] for row in rows} == {HOSTILE}
    assert any(row["task"].startswith("'=1+1") for row in rows)
    assert any(row["score"].startswith("'-2+3") for row in rows)
    assert any(row["note"].startswith("'@note") for row in rows)
    for row in rows:
        for name, cell in row.items():
            if cell and cell[0] in "=+-@\t\r\n":
                assert math.isfinite(float(cell)), (
                    name,
                    cell,
                )  # numbers alone may begin with a sign
    missing = next(row for row in rows if row["score"] == "ss")
    assert (missing["value"], missing["stderr"], missing["interval_low"]) == (
        "",
        "",
        "",
    )


def reader():
    """Markdown as GitHub reads it: tables, strikethrough, HTML let through, links that make themselves."""
    markdown_it = pytest.importorskip(
        "markdown_it", reason="markdown-it-py is not installed"
    )
    return markdown_it.MarkdownIt("commonmark", {"html": True}).enable(
        ["table", "strikethrough"]
    )


def test_markdown_of_a_hostile_run(tmp_path, said):
    text = said("report", write(tmp_path / "h.json", hostile_run()), "--format", "md")
    tokens = reader().parse(text)
    flat = [one for token in tokens for one in (token, *(token.children or ()))]
    kinds = {token.type for token in flat}
    assert not kinds & {
        "html_block",
        "html_inline",
        "link_open",
        "image",
        "em_open",
        "code_inline",
    }
    assert not kinds & {"hr", "blockquote_open", "code_block", "s_open"}
    inline = [
        "".join(child.content for child in token.children)
        for token in tokens
        if token.type == "inline"
    ]
    one = " ".join(HOSTILE.split())
    assert any(
        f"@note {one}" in line or f"Bias report: {one}" in line for line in inline
    )
    # links that make themselves need one of these as they are
    assert not re.search(
        r"https?://|(?i:www)\.|\S@\S", re.sub(r"(?s)````\n.*?\n````", "", text)
    )
    (fence,) = (token.content for token in tokens if token.type == "fence")
    assert "```" in fence
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}


@settings(max_examples=300)
@given(
    st.text(st.sampled_from("ab \\`*_{}[]()<>#+-.!|~&:;/@$^=\"'1\n\twhtp"), max_size=24)
)
def test_markdown_shows_any_text_as_it_is(raw):
    read_again = reader()
    for template in ("{}", "# {}", "- {}", "x {} y"):
        tokens = read_again.parse(template.format(escaping.markdown(raw)))
        shown = [
            child
            for token in tokens
            if token.type == "inline"
            for child in token.children
        ]
        assert {child.type for child in shown} <= {"text", "text_special"}
        expected = (
            template.removeprefix("# ").removeprefix("- ").format(visible_line(raw))
        )
        assert "".join(child.content for child in shown).strip() == expected.strip()


TEX = re.compile(r"\\[a-zA-Z]+|\\.|[^\\]", re.S)
OWN = {
    r"\begin", r"\end", r"\centering", r"\small", r"\toprule", r"\midrule", r"\bottomrule", r"\caption",
    r"\textbackslash", r"\textasciitilde", r"\ensuremath", "\\\\", r"\%", r"\$", r"\#", r"\_", r"\&", r"\{", r"\}",
    r"\^", r"\par", r"\cite", r"\label", r"\footnotesize", r"\allowbreak", r"\linewidth", r"\textheight",
    r"\smallskip", r"\dagger",
    r"\ddagger", r"\S", r"\P", r"\infty", r"\pm", r"\ldots",
}  # fmt: skip


def _plain(latex):
    """What LaTeX would set: a reader of the few commands that the template and the escaping use."""
    text = re.sub(r"\\ensuremath\{([<>])\}", r"\1", latex).replace("$-$", "-")
    text = text.replace(r"\allowbreak{}", "")
    text = (
        text.replace(r"\textbackslash{}", "\0")
        .replace(r"\textasciitilde{}", "~")
        .replace(r"\^{}", "^")
    )
    text = re.sub(r"\\([%$#_&{}])", r"\1", text)
    return text.replace("\0", "\\")


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab \\{}[]%$#_&^~<>|`'\"-"), max_size=24))
def test_latex_shows_any_text_as_it_is(raw):
    made = escaping.latex(raw)
    assert _plain(made) == visible_line(raw)
    commands = [token for token in TEX.findall(made) if token.startswith("\\")]
    assert set(commands) <= OWN - {"\\\\", r"\begin", r"\end"}


def test_latex_of_a_hostile_run(tmp_path, said):
    path = write(tmp_path / "h.json", hostile_run())
    _, _, text = said("report", path, "--format", "latex").partition(
        r"\end{filecontents*}"
    )  # the papers, which no run says anything about
    code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    tokens = TEX.findall(code.replace("$-$", "-"))
    assert {token for token in tokens if token.startswith("\\")} <= OWN
    depths = [*itertools.accumulate((t == "{") - (t == "}") for t in tokens)]
    assert min(depths) == depths[-1] == 0
    assert " ".join(HOSTILE.split()) in _plain(code)
    # a bracket there would be an argument of the line before
    assert not re.search(r"^\s*[\[*]", code, re.MULTILINE)


def test_figures_are_files_with_every_value_and_colours_of_their_own(tmp_path, said):
    paths = [write(tmp_path / n / "run.json", run_of(n)) for n in ("one", "two")]
    said("report", *paths, "--figures", tmp_path / "figures")
    files = {path.name: path.read_bytes() for path in (tmp_path / "figures").iterdir()}
    floats = files.pop("figures.tex").decode()
    stems = {name.partition(".")[0] for name in files}
    assert re.findall(
        r"\\includegraphics\[width=\\linewidth\]\{(.*?)\.pdf\}", floats
    ) == [*dict.fromkeys(s for s in re.findall(r"\\label\{fig:(.*?)\}", floats))]
    assert set(re.findall(r"\\label\{fig:(.*?)\}", floats)) == stems
    assert set(files) == {
        f"{stem}.{ending}" for stem in stems for ending in ("pdf", "svg")
    }
    for name, content in files.items():
        assert content[:5] == (b"%PDF-" if name.endswith("pdf") else b"<?xml")
    assert {"stereoset", "occugender", "regard", "regard-shares"} <= stems
    for stem in stems:
        for text in ("negative",) if "shares" in stem else ("one", "two"):
            assert f">{text}<" in files[f"{stem}.svg"].decode()
    said("report", *paths, "--figures", tmp_path / "again")
    again = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    again.pop("figures.tex")
    assert again == files


def test_figures_fit_a_paper_and_embed_their_fonts(tmp_path, said):
    path = write(tmp_path / "run.json", run_of("one"))
    said("report", path, "--figures", tmp_path / "figures")
    for file in (tmp_path / "figures").glob("*.pdf"):
        content = file.read_bytes()
        (size,) = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", content)
        across, high = map(float, size)
        assert across == pytest.approx(6.7 * 72, abs=0.01)
        assert high <= 9 * 72
        fonts = content.count(b"/Type /FontDescriptor")
        assert content.count(b"/FontFile2") == fonts > 0
        assert b"/Subtype /Type3" not in content
