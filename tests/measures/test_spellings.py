"""Parts of the evidence that a context holds in another spelling are counted, with the foldings that find them."""

from __future__ import annotations

import pandas as pd
import pytest

from ragauge.measures.spellings import respelled

MIDI = "Le café de la gare est fermé à midi – d’après l’hôtel."


@pytest.mark.parametrize(
    ("part", "context", "fold"),
    [
        (MIDI, "x " + MIDI.replace("é", "e\u0301") + " y", ("nfkc",)),
        (MIDI, MIDI.replace("’", "'").replace("–", "-"), ("quotes", "dashes")),
        ("The office is beneficial for information.", "The ofﬁce is beneﬁcial for infor-\nmation.",
         ("line_hyphens", "nfkc")),
        ("Tom & Jerry 'run' <fast>", "Tom &amp; Jerry &#39;run&#39; &lt;fast&gt;", ("entities",)),
        ("Tom & Jerry’s", "Tom &amp; Jerry&#39;s", ("entities", "quotes")),
    ],
)  # fmt: skip
def test_what_another_spelling_hides_is_found(part: str, context: str, fold: tuple[str, ...]) -> None:
    parts = pd.DataFrame({"qid": ["a", "b", "c"], "text": [part, part, "never"]})
    assert respelled(parts, {"a": context, "b": part, "c": context}) == (1, fold)
    assert respelled(parts[1:], {"b": part, "c": context}) == (0, ())
    assert respelled(parts, {"a": context, "b": part, "c": context}, fold) == (0, fold)
