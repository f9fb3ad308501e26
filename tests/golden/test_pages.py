"""Everything that people read is as it was recorded; `make golden` records it anew, and git shows what changed."""

import pytest

from tests.support import golden


@pytest.mark.parametrize("scenario", golden.SCENARIOS)
def test_what_people_read(scenario):
    differences = golden.differences(scenario)
    assert not differences, f"{differences}\n\nif this is what you want: make golden"
