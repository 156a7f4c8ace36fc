"""Which jobs were measured alike, and which measures a study is about, on jobs by hand."""

from __future__ import annotations

import hashlib
import json

import pytest

from ragauge.contract import comparable
from ragauge.contract.errors import ConfigError
from ragauge.contract.families import Families, check_primary

# The settings of five jobs. Only b to d measure otherwise: another mode of the judge, another fold, another tokenizer.
CHOSEN = {"measure": "substring", "tokenizer": "words", "judge": "chat", "llm": "openai"}
SETTINGS = {
    "a": {"judge.mode": "each", "judge.concurrency": 4, "measure.fold": "[case, nfkc]", "llm.model": "m", "seed": 1},
    "alike": {"judge.mode": "each", "judge.chat.timeout": 9, "measure.fold": "[nfkc, case]", "llm.model": "x"},
    "b": {"judge.mode": "batch", "measure.fold": "[case, nfkc]"},
    "c": {"judge.mode": "each", "measure.fold": "[case]"},
    "d": {"judge.mode": "each", "measure.fold": "[case, nfkc]"},
}
CHOICES = [{**CHOSEN, "tokenizer": "cl100k"} if job == "d" else CHOSEN for job in SETTINGS]


def test_jobs_whose_digests_cannot_be_read_are_told_apart_by_what_changes_a_number() -> None:
    recorded = [None, {"measure": "1"}, {"measure": "1", "tokenizer": "1", "judge": 5}, "text", None]
    found = dict(zip(SETTINGS, comparable.measured_by(recorded, CHOICES, list(SETTINGS.values())), strict=True))
    assert found["a"] == {
        "measure": "substring measure.fold=case, nfkc", "tokenizer": "words", "judge": "chat judge.mode=each",
    }  # fmt: skip
    assert [job for job in found if found[job] == found["a"]] == ["a", "alike"]
    differs = {job: [part for part in found["a"] if found[job][part] != found["a"][part]] for job in "bcd"}
    assert differs == {"b": ["judge"], "c": ["measure"], "d": ["tokenizer"]}
    assert comparable.in_words("evaluator", CHOSEN, {}) == "?"


def test_where_all_recorded_digests_they_alone_decide_and_go_through_a_tag() -> None:
    own = {"measure": {"component": "S", "n": 1}, "tokenizer": {"b": 1, "a": 2}, "judge": {}, "answers.em": {"v": 1}}
    digests = comparable.digests(own)
    assert digests["tokenizer"] == hashlib.sha256(b'{"a": 2, "b": 1}').hexdigest()[:16]  # in whatever order
    assert len(set(digests.values())) == 4
    tag = comparable.as_tag(digests)
    assert comparable.from_tags({**tag, "other": "1"}) == digests
    assert [comparable.from_tags(tags) for tags in ({}, {comparable.TAG: "no json"})] == [None, None]
    other = {**digests, "judge": "0" * 16, "answers.em": "1" * 16, "answers.f1": "2" * 16}
    assert comparable.measured_by([digests, other], CHOICES[:2], [{}, {}]) == [digests, other]
    assert comparable.conflicting([digests, other, {**other, "answers.f1": "3" * 16}]) == ["answers.em", "answers.f1"]
    assert comparable.conflicting([digests, {"judge": "1"}]) == []


def test_primary_measures_are_said_with_those_that_have_no_values() -> None:
    titles = {"ir_score": "IR score", "correct": "right", "hallucination": "hallucination", "em": "EM"}
    usual = Families.of_params({})
    assert (usual, usual.is_usual) == (Families(), True)
    assert usual.in_words(titles) == "primary measures: IR score, right; exploratory: hallucination, EM"
    assert usual.in_short == "each measure corrected by itself; primary: ir_score, right"
    own = Families.of_params({"report.family": "all", "report.primary": json.dumps(["em", "right"])})
    assert [own.is_primary(name) for name in titles] == [False, True, False, True]
    assert own.in_words({"em": "EM"}) == "primary measures: EM (without values: right)"
    assert own.in_short == "all measures corrected together; primary: em, right"
    assert Families(primary=()).in_words({"em": "EM"}) == "primary measures: none; exploratory: EM"
    assert not Families("all").is_usual
    assert not Families(primary=["right"]).is_usual
    check_primary(["hallucination", "em", "right"], ["em"])
    with pytest.raises(ConfigError, match=r"no measure 'f1'; it has ir_score, right, hallucination, em$"):
        check_primary(["em", "f1"], ["em"])
