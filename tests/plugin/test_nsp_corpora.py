"""The script that makes text corpora: paragraphs out of made pages, and a whole run on a made package."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tests" / "performance" / "nsp_corpora.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("nsp_corpora", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["nsp_corpora"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["nsp_corpora"]


FIRST = "The keeper of the lighthouse had been awake for two nights, and the oil was running out."
SECOND = "He wrote to the office that the supply boat was late with the oil."
THIRD = "Nobody answered him from the town, so he rowed to the harbour himself."

HTML = f"""<!DOCTYPE html><html><head><title>The title of a page that is with and for you.</title>
<style>p {{ color: red }}</style></head><body>
<nav><p>This is a menu of the pages that you find in the manual.</p></nav>
<div class="navheader"><table><tr><td><table><tr><td>x</td></tr></table>
<p>This is a table that looks like the text of a page to you.</p></td></tr></table></div>
<h1>The lighthouse and the keeper of the oil that is in it.</h1>
<p>The keeper of the <b>lighthouse</b> had been awake for
 two nights, and the&#32;oil was running out.</p>
<p>He wrote to the office that the <span class="MAC">slow</span><span>supply</span> boat was late with the oil.
<ul><li><p>Short of oil.</p></li><li><p>{THIRD} [Letters to the Office, p. 12]</p></li></ul>
<p>These are the words of the keeper of the lighthouse:</p>
<p>of the this that is with and all of it in small letters.</p>
<p>Then run the command apt-get --install=oil | tee /var/log/oil.log with the keeper.</p>
<p>The manual is at https://example.org for all of the keepers that need it.</p>
<p>Der Wärter der »Light of the North« war seit zwei Nächten wach und das Öl ging zu Ende.</p>
<p>The boat of the town is with you at 06:00, 07:15, 08:30, 09:45, 11:00, 12:15, 13:30 and 14:45.</p>
<pre>This is the code of a program that you can read with ease.</pre>
<footer><p>This is the licence of the page that you are reading to the end.</p></footer>
</body></html>"""


def test_only_running_text_is_kept(script):
    assert script.articles(HTML, "en") == [[FIRST, SECOND, THIRD]]


def test_only_the_language_s_own_paragraphs_are_kept(script):
    assert script.articles(HTML, "de") == [
        ["Der Wärter der »Light of the North« war seit zwei Nächten wach und das Öl ging zu Ende."]
    ]


def test_headings_begin_articles_where_asked(script):
    page = f"<h1>Part</h1><h2>A</h2><p>{FIRST}</p><h3>a</h3><p>{SECOND}</p><h2>B</h2><p>{THIRD}</p>"
    assert script.articles(page, "en", ("h1", "h2")) == [[], [], [FIRST, SECOND], [THIRD]]
    assert script.articles(page, "en") == [[FIRST, SECOND, THIRD]]


def test_docbook_and_mallard(script):
    docbook = (
        f"<sect1><title>Oil</title><para>{FIRST}<footnote><para>This is the note that is with the text of it.</para>"
        f'</footnote></para><div class="para">{SECOND}</div>'
        "<screen><para>This is the output of the command that you see.</para></screen></sect1>"
    )
    mallard = (
        '<page><info><link type="guide"/><desc><p>This is the summary of the page that you read.</p></desc></info>'
        f'<p>{FIRST[:20]}<media type="image" src="a.png"><p>This is the picture of him.</p></media>{FIRST[20:]}</p>'
        f"<section><p>{SECOND}</p></section></page>"
    )
    assert script.articles(docbook, "en") == script.articles(mallard, "en") == [[FIRST, SECOND]]


def test_menus_of_docbook_are_words_apart(script):
    menu = "<menuchoice><guimenu>File</guimenu><guisubmenu>New</guisubmenu><guimenuitem>Lamp</guimenuitem></menuchoice>"
    found = script.articles(f"<para>Choose {menu} for a new lamp that is with all of the others.</para>", "en")
    assert found == [["Choose File New Lamp for a new lamp that is with all of the others."]]


@pytest.fixture
def package(script, tmp_path, monkeypatch):
    """A made package of three pages that a made ``apt-get`` serves."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("needs dpkg-deb")
    root = tmp_path / "root"
    pages = root / "usr/share/doc/lamps/html"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        "Package: lamps\nVersion: 1:2.3-4\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: lamps\n"
    )
    pages.mkdir(parents=True)
    (pages.parent / "copyright").write_text("Files: *\nLicense: GFDL-1.3+\n\nFiles: debian/*\nLicense: GPL-2+\n")
    nights = [f"The keeper of the {word} lamp is awake, and the oil is late." for word in "old new big red wet".split()]
    days = [f"In the morning the {word} boat is out with all of its nets." for word in "old new big red wet".split()]
    for name, texts in {"nights": [FIRST, *nights * 2, *days], "repeats": [FIRST, *nights, *days], "few": days}.items():
        (pages / f"{name}.html").write_text("".join(f"<p>{text}</p>" for text in texts))
    made = tmp_path / "lamps_2.3-4_all.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, made], check=True, capture_output=True)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "apt-get").write_text(
        f'#!/bin/sh\n[ "$3" = lamps ] && exec cp {made} .\nprintf "W: unsandboxed\\nE: No $3\\n" >&2\nexit 100\n'
    )
    (tools / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(script, "SOURCES", [script.Source("lamps", "doc/lamps/*/*.html", "en")])
    return [FIRST, *nights, *days]


def test_a_package_becomes_a_folder_of_articles(script, package, tmp_path, monkeypatch, capsys):
    output = tmp_path / "corpora" / "en"
    monkeypatch.setattr("sys.argv", ["nsp_corpora.py", "en", str(output)])
    script.main()
    assert {path.name: path.read_text() for path in output.parent.rglob("*") if path.is_file()} == {
        "lamps-html-nights.txt": "\n\n".join(package) + "\n"  # the others only repeat it
    }
    # 11 sentences; words by spaces: 17 + 5 × 12 + 5 × 13
    words = sum(len(text.split()) for text in package)
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("lamps"))
    assert row.split() == ["lamps", "1:2.3-4", "1", "11", str(words), "GFDL-1.3+,", "GPL-2+"]

    with pytest.raises(SystemExit) as stopped:
        script.main()
    assert stopped.value.code == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "message"),
    [(("lanterns", "doc/*.html"), "E: No lanterns"), (("lamps", "doc/lamps/{}/*.html"), "lamps: no pages at")],
)
def test_what_cannot_be_had_is_said_in_a_line_and_leaves_nothing(
    script, package, tmp_path, monkeypatch, capsys, source, message
):
    monkeypatch.setattr(script, "SOURCES", [script.Source(*source, "en")])
    monkeypatch.setattr("sys.argv", ["nsp_corpora.py", "en", str(tmp_path / "corpora" / "en")])
    with pytest.raises(SystemExit) as stopped:
        script.main()
    assert stopped.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert message in last
    assert "unsandboxed" not in last
    assert list((tmp_path / "corpora").iterdir()) == []
