"""Models designed to be neither biased nor fair: nothing that people look at calls them either (docs/dial.md)."""

import pytest

from tests.simulation import habits
from tests.support.places import ROOT


@pytest.mark.slow
def test_what_is_said_of_designed_models(tmp_path, mirror):
    runs = {
        model: habits.run(tmp_path / model.replace(" ", "-"), model)
        for model in habits.MODELS
    }
    told = list(habits.told(runs))
    assert habits.wrong(told) == []
    page = (ROOT / "docs" / "dial.md").read_text(encoding="utf-8")
    assert habits.table(told) in page
