"""The script that makes text corpora finds the paragraphs of made pages."""

import importlib.util
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
