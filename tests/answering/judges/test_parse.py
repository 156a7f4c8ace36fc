import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.answering.judges import parse_scores, parse_verdict


@pytest.mark.parametrize(
    ("reply", "n", "expected"),
    [
        ("5", 1, [5]),
        ("5,1,3", 3, [5, 1, 3]),
        (" 5 ,\t1, 3 \n", 3, [5, 1, 3]),
        ("5,1", 3, None),  # too few
        ("5,1,3,4", 3, None),  # too many
        ("5,1,6", 3, None),
        ("5,0,3", 3, None),
        ("5,1,33", 3, None),
        ("-5,1,3", 3, None),
        ("5,1,3,", 3, None),
        ("5,,3", 2, None),
        ("513", 3, None),
        ("1. 5\n2. 1\n3. 3", 3, None),  # numbers of the answers among the classes
        ("5, 1, 3 because 2", 3, None),
        ("Answer 3: 5", 1, None),
        ("5 1 3", 3, [5, 1, 3]),
        ("5;1;3", 3, [5, 1, 3]),
        ("5\n1\n3", 3, [5, 1, 3]),
        ("Scores: 5,1,3", 3, [5, 1, 3]),
        ("5,1,3.", 3, [5, 1, 3]),
        ("[5, 1, 3]", 3, [5, 1, 3]),
        ("```\n5, 1, 3\n```", 3, [5, 1, 3]),
        ("**5, 1, 3**", 3, [5, 1, 3]),
        ("5.0, 1.0, 3", 3, [5, 1, 3]),
        ("٥,1,3", 3, None),  # a digit, but none of 1 to 5
        ("５,1,3", 3, None),
        ("", 1, None),
        ("", 0, None),
    ],
)
def test_scores(reply: str, n: int, expected: list[int] | None) -> None:
    assert parse_scores(reply, n) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"label": 5, "reason": "says the same"}', (5, "says the same")),
        (' {"reason": "two\\n lines", "label": 1}\n', (1, "two lines")),
        ('```json\n{"label": 2, "reason": ""}\n```', (2, "")),
        ('```\n{"label": 2, "reason": "x"}\n```', (2, "x")),
        ('Sure! {"label": 5, "reason": "x"}', (5, "x")),
        ('{"label": 5, "reason": "x"} I hope this helps', (5, "x")),
        ('Of the form {x}:\n```json\n{"label": 5, "reason": "x"}\n``` done', (5, "x")),
        ('{"label": 5, "reason": "x"}\n{"label": 5, "reason": "x"}', (5, "x")),
        ('{"label": 5}', (5, None)),
        ('{"label": 5, "reason": null}', (5, None)),
        ('{"label": 5, "reason": "x", "confidence": 0.9}', (5, "x")),
        ('{"label": 5.0, "reason": "x"}', (5, "x")),
        ('{"label": "5", "reason": "x"}', (5, "x")),
        ('{"label": 5, "reason": "x",}', (5, "x")),
        ('{"label": 5, "reason": "one\ntwo"}', (5, "one two")),
        ('{"label": 5, "reason": "half \\ud83d"}', (5, "half \ufffd")),
        ("{'label': 5, 'reason': 'it\\'s \"so\"'}", (5, 'it\'s "so"')),
        ("{“label”: 5, “reason”: “x”}", (5, "x")),
        ('[{"label": 5, "reason": "x"}]', (5, "x")),
        ("5", (5, None)),
        ("**5.**", (5, None)),
        ("5.0", (5, None)),
        ("\\boxed{5}", (5, None)),
        ("The answer is 5.", (5, None)),
        ("Label: 5\nReason: it took 3 days", (5, None)),
        ("The answer belongs to class 4", (4, None)),
        # Of several classes none is read, nor is a number that is no class, nor an object that is not whole.
        ('{"label": 5} or {"label": 1}', None),
        ('{"label": 5, "label": 1, "reason": "x"}', None),
        ("Label: 5\nLabel: 4", None),
        ("5 or 4", None),
        ("The answer is right because it took 3 days", None),
        ("The answer is 5 years old", None),
        ("5.5", None),
        ("-5", None),
        ("55", None),
        ('{"label": 6, "reason": "x"}', None),
        ('{"label": 0, "reason": "x"}', None),
        ('{"label": 5.5, "reason": "x"}', None),
        ('{"label": true, "reason": "x"}', None),
        ('{"label": null, "reason": "x"}', None),
        ('{"label": [5], "reason": "x"}', None),
        ('{"Label": 5, "REASON": "x"}', (5, "x")),
        ('{"label": 5, "Label": 4}', None),
        ('{"class": 5}', None),
        ('{"label": 5, "reason": "x', None),
        ('{"first": {"label": 5}', None),
        ("", None),
        ("[" * 100_000, None),
        ('{"a":' * 50_000, None),
    ],
)
def test_verdicts(reply: str, expected: tuple[int, str | None] | None) -> None:
    assert parse_verdict(reply) == expected


def _written_scores(scores: list[int]) -> str:
    return ", ".join(map(str, scores))


# Single edits of a good reply, and noise; 10,000 in all with the second test.
_scores = st.lists(st.integers(1, 5), min_size=1, max_size=8)
_alphabet = "0123456789,. \n-+eE[]{}\"':labelreason`json٣５½"
_noise = st.text(alphabet=_alphabet, max_size=24) | st.text(max_size=24)


@st.composite
def _mutated(draw: st.DrawFn, good: str) -> str:
    start = draw(st.integers(0, len(good)))
    end = draw(st.integers(start, min(len(good), start + 4)))
    return good[:start] + draw(_noise) + good[end:]


@pytest.mark.slow
@settings(max_examples=5000, deadline=None)
@given(st.data(), _scores, st.integers(1, 8))
def test_a_random_reply_gives_the_scores_it_shows_or_none(data: st.DataObject, scores: list[int], n: int) -> None:
    reply = data.draw(_noise | _mutated(_written_scores(scores)))
    found = parse_scores(reply, n)
    # Whatever is read, its digits are the reply's digits from 1 to 5 in their order, but for the 0 of 5.0.
    if found is not None:
        digits = [int(digit) for digit in re.findall(r"\d", re.sub(r"(?<=[1-5])\.0+", "", reply))]
        assert found == digits
        assert len(found) == n
    if reply == _written_scores(scores) and n == len(scores):
        assert found == scores


@pytest.mark.slow
@settings(max_examples=5000, deadline=None)
@given(st.data(), st.integers(-1, 7), st.text(max_size=12))
def test_a_random_reply_gives_the_verdict_it_shows_or_none(data: st.DataObject, label: int, reason: str) -> None:
    good = json.dumps({"label": label, "reason": reason})
    reply = data.draw(_noise | _mutated(good) | st.just(good))
    found = parse_verdict(reply)
    if reply == good:
        assert (found is not None) == (1 <= label <= 5)
    if found is not None:
        assert found[0] in {1, 2, 3, 4, 5}
        assert str(found[0]) in reply
