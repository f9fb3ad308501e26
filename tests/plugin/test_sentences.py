"""Values with their intervals, in words."""

from lm_eval_bias.core import wording
from lm_eval_bias.core.run_data import Value


def test_an_interval_is_in_brackets_and_its_ends_are_those_of_the_range_where_it_is_cut():
    def shown(value, interval, **options):
        return wording.with_interval(Value("x", value, 0.1, interval, low=0.0, high=1.0), **options)

    assert shown(0.38, (0.3, 0.46)) == "0.38 [0.30, 0.46]"
    assert shown(0.38, (0.0, 1.0)) == "0.38 [0, 1]"
    assert shown(0.02, (0.0, 0.05)) == "0.02 [0, 0.05]"
    assert shown(0.02, (0.01, 0.03), unit="%", digits=1, factor=100) == "2.0% [1.0, 3.0]"
    assert shown(0.02, None, unit="%") == "0.02%"
    assert shown(-0.003, (-0.043, 0.037)) == "0.00 [-0.04, 0.04]"  # no minus in front of 0
    assert shown(-0.003, (-0.043, 0.037), digits=1) == "0.0 [0.0, 0.0]"
