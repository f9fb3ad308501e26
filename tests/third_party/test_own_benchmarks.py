"""``doctor --benchmark`` finds nothing wrong with the benchmarks of this package, either."""

import pytest

from lm_eval_bias.core import registry
from tests.support.commands import command

# of those that share the code of BBQ's family GG-BBQ; EuroGEST's thirty tasks take a minute
LEFT_OUT = {"es_bbq", "kobbq", "mbbq", "eurogest"}
OWN = [b.name for b in registry.benchmarks() if registry.is_own(b)]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*OWN} - LEFT_OUT))
def test_no_mistake_is_found(name, mirror):
    done = command("doctor", "--benchmark", name)
    assert done.status == 0, done.out
    assert "no mistake found" in done.out
