"""The benchmark object: BBQ's scores and synthetic bias, over documents of our own."""

from lm_eval_bias.tasks.shared.bbq_like import BBQLike, Questions


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
