"""Slices of a job's topics: the config's words, what the dataset has, what is logged, and what is refused."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from omegaconf import OmegaConf

from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import Found
from ragauge.contract.groups import GROUPS
from ragauge.contract.settings import Settings
from ragauge.estimate.slicing import SliceBy
from ragauge.experiment.outcomes import outcomes as joined
from ragauge.experiment.setup.config import settings_of
from ragauge.experiment.slicing import (
    read_slices,
    read_weights,
    slices_of_topics,
    with_slices,
)
from ragauge.findings.slices import MAX_LOGGED, SlicesFound, metric_names, metrics_of_slices, slice_tables
from small_pipeline import TOPICS as SMALL
from small_pipeline import SmallPipelines, replaced
from sweep_records import record_of

TOPICS = pd.DataFrame(
    {
        "qid": ["q1", "q2", "q3"],
        "query": ["a", "b", "c"],
        "answer": ["x", "y", None],
        "type": ["bridge", "comparison", None],
        "hops": [2.0, 2.0, 3.0],
    }
)


def sliced(*names: Any, topics: pd.DataFrame = TOPICS, **weights: dict[str, float]) -> pd.DataFrame:
    found = slices_of_topics(topics, read_slices(names), weights, lambda: pd.DataFrame({"rarity": [1.0, 2, 3]}))
    assert found is not None
    return found


def test_entries_are_names_and_names_with_bins() -> None:
    assert read_slices(["type", {"hops": None}, {"rarity": 3}, {"p": [1, 2.5]}]) == (
        SliceBy("type"), SliceBy("hops"), SliceBy("rarity", 3), SliceBy("p", (1.0, 2.5)),
    )  # fmt: skip
    assert read_slices([]) == ()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (3, "slices: 3: allowed are name, "),
        ({"a": 2, "b": 2}, "slices: {'a': 2, 'b': 2}: allowed are name, "),
        (" ", "slices: ' ' is no name"),
        ({"p": 1}, "slices: 'p' has the bins 1: allowed are a number of bins from 2 to 20"),
        ({"p": True}, "slices: 'p' has the bins True"),
        ({"p": [2, 1]}, r"slices: 'p' has the bins \[2, 1\]"),
        ({"p": [1, float("nan")]}, r"slices: 'p' has the bins"),
        ({"p": ["a"]}, r"slices: 'p' has the bins \['a'\]"),
        ({"p": {"a": 1}}, "slices: 'p' has the bins"),
    ],
)  # fmt: skip
def test_any_other_entry_is_refused_with_what_is_allowed(entry: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}" if "{" not in message else None) as caught:
        read_slices([entry])
    assert str(caught.value).startswith(message.replace("\\", ""))


def test_a_name_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^slices: 'type' is there twice$"):
        read_slices(["type", {"type": None}])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"level": {"a": 1}}, "slice_weights: 'level' is not among slices, which are type"),
        ({"type": 2}, "slice_weights.type=2: allowed is {slice: weight}"),
        ({"type": {"bridge": -1}}, "slice_weights.type: 'bridge' has -1: allowed are numbers from 0"),
        ({"type": {"bridge": 1, "x": 0}}, "slice_weights.type: an average takes two slices"),
    ],
)
def test_weights_that_are_none_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_weights(weights, read_slices(["type"]))
    assert str(caught.value).startswith(message)


def test_slices_and_weights_may_point_at_other_keys_of_the_config() -> None:
    given = {"language": "english", "seed": 2, "slices": ["${language}"], "slice_weights": {"a": {"2": "${seed}"}}}
    groups = dict.fromkeys((*GROUPS, "store"), "any")
    settings = settings_of(OmegaConf.merge(Settings, groups, given))
    assert (settings.slices, settings.slice_weights) == (["english"], {"a": {"2": 2}})


def test_weights_name_the_slices_that_there_are() -> None:
    assert read_weights({"hops": {2: 1, "3": 4}}, read_slices(["hops"])) == {"hops": {"2": 1.0, "3": 4.0}}
    with pytest.raises(ConfigError, match=r"^slice_weights\.type: 'comparison' has no weight; the "):
        sliced("type", type={"bridge": 1.0})
    with pytest.raises(ConfigError, match=r"'Bridge' is no slice; the slices are bridge, comparison$"):
        sliced("type", type={"bridge": 1.0, "comparison": 1.0, "Bridge": 2.0})


def test_a_name_that_is_neither_attribute_nor_derived_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError) as caught:
        sliced("domain")
    assert str(caught.value) == (
        "slices: the topics of this dataset have no 'domain'; there are type, hops; derived: "
        "lexical_overlap, rarity, evidence_documents, language"
    )


def test_the_slices_of_topics() -> None:
    found = sliced("hops", "type", "rarity")
    assert list(found) == ["qid", "slice:hops", "slice:type", "slice:rarity"]
    assert found["slice:hops"].tolist() == ["2", "2", "3"]
    assert found["slice:type"].tolist() == ["bridge", "comparison", "not known"]
    assert slices_of_topics(TOPICS, (), {}, lambda: TOPICS) is None


def test_unanswerable_topics_are_a_slice_of_their_own_unasked() -> None:
    marked = TOPICS.assign(unanswerable=[False, True, False])
    assert list(sliced("type", topics=marked))[-1] == "slice:unanswerable"
    assert sliced("type", topics=marked)["slice:unanswerable"].tolist() == [
        "answerable", "unanswerable", "answerable",
    ]  # fmt: skip
    assert list(sliced("unanswerable", topics=marked)) == ["qid", "slice:unanswerable"]
    with pytest.raises(ConfigError, match="have no 'unanswerable'"):
        sliced("unanswerable")


def test_an_attribute_goes_before_what_is_derived_under_its_name() -> None:
    found = sliced("rarity", topics=TOPICS.assign(rarity=["low", "low", "high"]))
    assert found["slice:rarity"].tolist() == ["low", "low", "high"]


def test_an_attribute_that_is_called_like_a_column_of_slices_is_no_slice() -> None:
    phantom = TOPICS.assign(**{"slice:type": "x"})
    assert list(with_slices(phantom, None)) == list(TOPICS)
    assert with_slices(phantom, sliced("type"))["slice:type"].tolist()[0] == "bridge"
    with pytest.raises(ConfigError, match="have no 'slice:type'"):
        sliced("slice:type", topics=phantom)


def test_an_attribute_that_is_called_as_an_answer_measure_does_not_hide_it() -> None:
    found = pd.DataFrame({"qid": ["q1"], "ir_score": [0.5], "em": ["an attribute"]})
    answers = pd.DataFrame({"qid": ["q1"], "answer": ["x"], "status": ["ok"], "error": [None]})
    verdicts = pd.DataFrame({"qid": ["q1"], "label": [5], "status": ["ok"], "raw": ["5"]})
    values = pd.DataFrame({"qid": ["q1"], "measure": ["em"], "value": [1.0]})
    assert joined(found, answers, verdicts, values, None)["em"].tolist() == [1.0]


NASTY = ["a/b", "a_b", '<b>"x", y', "..", "", "  ", "ü 1", "x" * 300, "a:b"]


def test_names_of_metrics_are_allowed_by_mlflow_and_differ() -> None:
    from mlflow.utils.validation import _validate_metric_name

    frame = pd.DataFrame({"slice:my attr/x": [*NASTY, *NASTY], "slice:..": "only", "slice:correct_share": "1"})
    names = metric_names(frame)
    assert len(set(names.values())) == len(names) == len(set(NASTY)) + 2
    for name in names.values():
        _validate_metric_name(f"{name}/ir_score_lo")
    assert names["my attr/x", "a_b"] == "slice/my attr_x/a_b_3"
    assert names["correct_share", "1"] == "slice/correct_share/1"


def outcomes_of(n: int, slices: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(n)],
            "ir_score": 0.5,
            "label": pd.array([5] * n, dtype="Int8"),
            "slice:s": [f"s{i % slices}" for i in range(n)],
        }
    )


def slices_found(outcomes: pd.DataFrame) -> Found | None:
    stages = SimpleNamespace(slice_weights={})
    job: Any = SimpleNamespace(outcomes=outcomes, answer_measures=[], pipeline=stages, n_boot=10, seed=0)
    return SlicesFound().compute(job, {})


def test_at_most_fifty_slices_become_metrics_and_all_stand_in_the_table() -> None:
    found = slices_found(outcomes_of(120, 60))
    assert found is not None
    values = found.metrics
    logged = {name.split("/")[2] for name in values if name.startswith("slice/")}
    assert len(logged) == MAX_LOGGED
    assert found.logged["slices"]["slice"].nunique() == 60
    (told,) = SlicesFound().show(SimpleNamespace(), found.value, {}).lines  # type: ignore[arg-type]
    assert told == "60 slices; 50 of them are metrics; all are in slices.json"
    assert values["slice_macro/s/ir_score"] == pytest.approx(0.5)
    assert values["slice/s/s0/topics"] == 2
    assert values["slice/s/s0/correct_share_hi"] == 1.0
    assert slices_found(outcomes_of(3, 1).drop(columns="slice:s")) is None


def test_the_metrics_of_slices_are_known_before_any_work() -> None:
    known = metrics_of_slices(sliced("type"), ["em"])
    assert {"slice/type/bridge/ir_score_lo", "slice/type/bridge/topics", "slice_macro/type/em"} <= set(known)
    assert not {"slice/type/Bridge/ir_score", "slice_macro/x/ir_score", "slice/type/bridge/f1"} & set(known)
    assert metrics_of_slices(None, ["em"]) == []


def test_a_sweep_sets_its_two_best_systems_side_by_side() -> None:
    rows = pd.concat([outcomes_of(40, 2).assign(system=s, ir_score=x) for s, x in (("a", 0.4), ("b", 0.6))])
    board = pd.DataFrame({"system": ["b", "a"]})
    found = slice_tables(rows, board, record_of(), ())
    assert found is not None
    assert found.differences is not None
    of_score = found.differences[found.differences["measure"] == "ir_score"]
    assert of_score["difference"].tolist() == pytest.approx([0.2, 0.2])
    alone = slice_tables(rows[rows["system"] == "a"], board.iloc[1:], record_of(), ())
    assert alone is not None
    assert alone.differences is None
    assert slice_tables(rows.drop(columns="slice:s"), board, record_of(), ()) is None


def test_derived_attributes_are_a_stage_where_they_are_asked_for(small: SmallPipelines) -> None:
    topics = replaced(SMALL, 0, kind="x")
    one = small(topics=topics)
    asked = dataclasses.replace(one, slices=read_slices(["kind", "lexical_overlap", {"rarity": 2}]))
    assert "derived" not in [stage.name for stage in one.stages]
    assert one.sliced is None
    found = asked.sliced
    assert found is not None
    assert found["slice:kind"].tolist() == ["x", "not known", "not known"]
    assert found["slice:lexical_overlap"].tolist()[0] == "1"
    assert set(found["slice:rarity"]) == {"0.9163"}, "every word stands in one of four documents: ln(5 / 2)"
    assert "derived" in asked.made
    again = dataclasses.replace(asked, slices=read_slices(["lexical_overlap", "rarity"]))
    assert again.sliced is not None
    assert "derived" not in again.made
