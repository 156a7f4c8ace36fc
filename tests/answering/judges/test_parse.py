import json

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
        ("5.0,1,3", 3, None),
        ("5,1,3,", 3, None),
        ("5,,3", 2, None),
        ("5 1 3", 3, None),
        ("5;1;3", 3, None),
        ("513", 3, None),
        ("5\n1\n3", 3, None),
        ("Scores: 5,1,3", 3, None),
        ("5,1,3.", 3, None),
        ("[5,1,3]", 3, None),
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
        ('Sure! {"label": 5, "reason": "x"}', None),
        ('{"label": 5, "reason": "x"} I hope this helps', None),
        ('```json\n{"label": 5, "reason": "x"}\n``` done', None),
        ('{"label": 6, "reason": "x"}', None),
        ('{"label": 0, "reason": "x"}', None),
        ('{"label": true, "reason": "x"}', None),
        ('{"label": 5.0, "reason": "x"}', None),
        ('{"label": "5", "reason": "x"}', None),
        ('{"label": null, "reason": "x"}', None),
        ('{"label": 5}', None),
        ('{"label": 5, "reason": null}', None),
        ('{"label": 5, "reason": "x", "more": 1}', None),
        ('{"label": 5, "label": 1, "reason": "x"}', None),
        ('[{"label": 5, "reason": "x"}]', None),
        ('[["label", 5], ["reason", "x"]]', None),
        ('{"label": 5, "reason": "x', None),
        ("5", None),
        ("", None),
        ("[" * 100_000, None),
    ],
)
def test_verdicts(reply: str, expected: tuple[int, str] | None) -> None:
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
    # The twin reads character by character: fields between commas, each exactly one of five digits.
    fields = [field.strip(" \t") for field in reply.strip().split(",")]
    shown = all(field in ("1", "2", "3", "4", "5") for field in fields) and len(fields) == n
    assert found == ([int(field) for field in fields] if shown else None)


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
        body = reply.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
        value = json.loads(body)
        assert set(value) == {"label", "reason"}
        assert type(value["label"]) is int
        assert found[0] == value["label"] in {1, 2, 3, 4, 5}
