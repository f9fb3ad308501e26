"""The benchmark object: BBQ's scores and planted bias, over documents of our own."""

from lm_eval_bias.tasks.kinds.bbq_like import BBQLike, Questions


class ItalianBBQ(BBQLike):
    """Questions about age in Italian."""

    name = "italian_bbq"
    title = "Italian BBQ"
    identity = ("item",)
    questions = Questions(balanced=None)

    @property
    def hooks(self):
        """The module of its documents and prompts."""
        from italian_bbq import documents

        return documents


BENCHMARK = ItalianBBQ()
