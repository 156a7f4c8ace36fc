"""What Python gives: values as the texts of a command line, and samples of every kind as one file."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given as drawn
from hypothesis import strategies

import ragauge
from ragauge.commands import given
from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets.recordings import read_rows

ROW = {
    "user_input": "Which town?",
    "response": "Paris",
    "retrieved_contexts": ["Paris is a town."],
    "reference": "Paris",
}


def test_values_become_the_texts_of_a_command_line() -> None:
    values = {
        "retriever": "bm25", "n_tokens": 300, "llm": {"chat": {"model": "a:b", "base_url": None}}, "trace": True,
        "answers": ["em", "f1"], "estimate.spline": False, "zones": {"alpha": np.float64(0.2)}, "dataset": {},
        "gate": {"em": 0.5, "f1": {"min": 0.2}},
    }  # fmt: skip
    assert given.overrides(values, {"path": Path("a b")}, swept=False) == [
        "retriever=bm25", "n_tokens=300", "llm.chat.model='a:b'", "llm.chat.base_url=null", "trace=true",
        "answers=[em,f1]", "estimate.spline=false", "zones.alpha=0.2", "dataset={}",
        "++gate.em=0.5", "++gate.f1.min=0.2", "path='a b'",
    ]  # fmt: skip


def test_of_a_sweep_a_list_is_what_jobs_take_in_turn_and_a_list_in_it_one_value() -> None:
    settings = {"retriever": ["bm25", "sim"], "n_tokens": range(100, 300, 100), "answers": [["em", "f1"]], "seed": 1}
    assert given.overrides(["judge=none"], settings, swept=True) == [
        "judge=none", "retriever=bm25,sim", "n_tokens=100,200", "answers=[em,f1]", "seed=1",
    ]  # fmt: skip
    assert given.overrides((), {"answers": [[]]}, swept=True) == ["answers=[]"]
    for nothing in ([], (), range(300, 100)):
        with pytest.raises(ConfigError, match=r"^answers=.*: holds no value, so there is no job to run"):
            given.overrides((), {"answers": nothing}, swept=True)


@drawn(strategies.text(strategies.characters(exclude_categories=["C"]), min_size=1))
def test_hydra_reads_every_text_as_it_was_given(text: str) -> None:
    [override] = given.overrides({"key": text}, {}, swept=False)
    assert OverridesParser.create().parse_override(override).value() == text


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes"])
def test_a_value_that_no_command_line_holds_is_named_by_its_key(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"^llm\.seed: \w+ is none of text, number"):
        given.overrides({"llm": {"seed": value}}, {}, swept=False)


def test_two_functions_of_one_name_are_no_sweep() -> None:
    def searched_by_us(query: str) -> list[str]:
        return [query]

    first = searched_by_us

    def searched_by_us(query: str) -> list[str]:  # type: ignore[no-redef]
        return []

    [text] = given.overrides({}, {"retriever": [first, "bm25"]}, swept=True)
    assert text == "retriever=searched_by_us,bm25"
    with pytest.raises(ConfigError, match="two functions have the same name"):
        given.overrides({}, {"retriever": [first, searched_by_us]}, swept=True)


@dataclass
class Case:
    """As DeepEval's LLMTestCase."""

    input: str
    actual_output: str
    expected_output: str | None = None
    retrieval_context: list[str] | None = None


class Sample:
    """As RAGAS's SingleTurnSample."""

    def model_dump(self) -> dict[str, Any]:
        return {**ROW, "rubrics": None}


class Listing:
    """As RAGAS's EvaluationDataset."""

    def to_list(self) -> list[dict[str, Any]]:
        return [ROW]


class Cases:
    """As DeepEval's EvaluationDataset."""

    test_cases = (Case("Which town?", "Paris", "Paris", ["Paris is a town."]),)


CASE = {
    "input": "Which town?", "actual_output": "Paris", "expected_output": "Paris",
    "retrieval_context": ["Paris is a town."],
}  # fmt: skip


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([ROW], ROW), ([Sample()], ROW), (Listing(), ROW), (Cases(), CASE), (Cases.test_cases, CASE),
        (pd.DataFrame([{**ROW, "retrieved_contexts": np.array(["Paris is a town."]), "score": np.nan}]), ROW),
        ((row for row in [ROW]), ROW),
    ],
)  # fmt: skip
def test_samples_of_every_kind_become_rows(samples: Any, expected: dict[str, Any], tmp_path: Path) -> None:
    file, systems, _ = given.sample_file(samples, None, tmp_path)
    [line] = file.read_text("utf-8").splitlines()
    assert {name: value for name, value in json.loads(line).items() if value is not None} == expected
    assert systems == []


def test_a_file_is_named_by_its_content_and_its_systems_are_found(tmp_path: Path) -> None:
    rows = [{**ROW, "system": name} for name in ("a", "b", "a")]
    (tmp_path / "rows.csv").write_text("question,answer,system\nq,x,a\nq,y,b\n", encoding="utf-8")
    file, systems, _ = given.sample_file(rows, None, tmp_path)
    assert systems == ["a", "b"]
    assert given.sample_file(iter(rows), None, tmp_path)[0] == file
    assert given.sample_file(rows[:2], None, tmp_path)[0] != file
    assert given.sample_file(tmp_path / "rows.csv", None, tmp_path) == (tmp_path / "rows.csv", ["a", "b"], False)


class Document:
    """As LangChain's."""

    page_content = "it is"


def asked(app: Any, folder: Path, *questions: str) -> list[dict[str, Any]]:
    file, *_ = given.sample_file([{"question": one} for one in questions], app, folder)
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_an_app_answers_what_has_no_answer_and_its_errors_are_those_of_rows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nested: Any = "deep"
    for _ in range(2_000):
        nested = [nested]
    given_for = {
        "text?": "yes", "half?": "yes \ud83d", "pair?": ("yes", ["it is"]), "documents?": ("yes", [Document()]),
        "dict?": {"answer": "yes", "seconds": 2.0}, "chain?": {"result": "yes", "contexts": "['it is']"},
        "empty?": "", "number?": 7, "nothing?": (None, ["it is"]), "list?": ["yes"], "deep?": ("yes", nested),
        "none?": None,
    }  # fmt: skip

    def app(question: str) -> Any:
        if question == "bad?":
            raise ValueError("no such page")
        if question == "silent?":
            raise TimeoutError
        return given_for[question]

    rows = asked(app, tmp_path, *given_for, "bad?", "silent?")
    assert [{key: value for key, value in row.items() if key != "question"} for row in rows] == [
        {"response": "yes"},
        {"response": "yes \ufffd"},
        {"response": "yes", "retrieved_contexts": ["it is"]},
        {"response": "yes", "retrieved_contexts": ["it is"]},
        {"answer": "yes", "seconds": 2.0},
        {"answer": "yes", "contexts": "['it is']"},
        {"response": ""},
        {"response": 7},
        {"error": "the app returned no answer", "retrieved_contexts": ["it is"]},
        {"error": "the app returned a list of str: 'response' is not a string: ['yes']"},
        {"error": "the app returned a tuple of str, list: it is nested too deep"},
        {"error": "the app returned None: it holds no answer"},
        {"error": f"ValueError: no such page (test_given.py, line {app.__code__.co_firstlineno + 2}, in app)"},
        {"error": f"TimeoutError (test_given.py, line {app.__code__.co_firstlineno + 4}, in app)"},
    ]
    assert "the app failed for 6 of 14 rows; the first: the app returned no answer" in caplog.text
    assert given.sample_file([ROW], app, tmp_path)[0].read_text("utf-8") == json.dumps(ROW) + "\n"
    assert "every sample has an answer already" in caplog.text


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (["yes"], "a list of str: 'response' is not a string"), (None, "None: it holds no answer"),
        ({"a": "x", "b": "y"}, "a dict: its keys are 'a', 'b'"), (("yes", [1, None]), "entry 2 of 'retri"),
        ((1, 2, 3), "a tuple of int, int, int"),
    ],
)  # fmt: skip
def test_what_no_row_takes_is_an_error_before_the_second_question(tmp_path: Path, first: Any, told: str) -> None:
    questions: list[str] = []

    def app(question: str) -> Any:
        questions.append(question)
        return first

    with pytest.raises(DataError, match=f"sample 1: the app returned .*{told}.*allowed are the answer"):
        asked(app, tmp_path, "a?", "b?")
    assert questions == ["a?"]


def test_an_app_that_always_raises_or_takes_other_arguments_says_so(tmp_path: Path) -> None:
    def app(question: str) -> str:
        raise KeyError("retriever")

    with pytest.raises(DataError, match=r"2 of 2 rows; the first: KeyError: 'retriever' \(test_given.py, line"):
        asked(app, tmp_path, "a?", "b?")
    with pytest.raises(DataError, match="called with the question alone: missing a required argument: 'k'"):
        asked(lambda question, k: "x", tmp_path, "a?")


def test_an_app_may_be_asynchronous_also_where_a_loop_is_running(tmp_path: Path) -> None:
    loops = set()

    async def app(question: str) -> str:
        await asyncio.sleep(0)
        loops.add(id(asyncio.get_running_loop()))
        if question == "bad?":
            raise ValueError("no such page")
        return "yes"

    async def in_a_notebook() -> list[dict[str, Any]]:
        return asked(app, tmp_path, "a?", "b?", "bad?")

    rows = asyncio.run(in_a_notebook())
    assert [row.get("response") for row in rows] == ["yes", "yes", None]
    assert rows[2]["error"].startswith("ValueError: no such page (test_given.py")
    assert len(loops) == 1


def test_frames_have_missing_values_times_and_columns_of_one_name(tmp_path: Path) -> None:
    frame = pd.DataFrame({"question": ["a", "b"], "answer": [5, None], "when": pd.Timestamp("2026-01-02"), "x": pd.NA})
    file, *_ = given.sample_file(frame, None, tmp_path)
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    when = "2026-01-02T00:00:00"
    assert rows == [{"question": "a", "answer": 5.0, "when": when}, {"question": "b", "when": when}]
    assert read_rows(file, None, "system")[0].text("answer") == "5"
    frame.columns = ["question", "answer", "answer", "x"]
    with pytest.raises(DataError, match="column 'answer' stands twice"):
        given.sample_file(frame, None, tmp_path)


def nested(depth: int) -> Any:
    found: Any = "deep"
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize("depth", [101, 100_000])
@pytest.mark.parametrize("name", ["retrieved_contexts", "response", "reference", "metadata"])
def test_a_sample_that_is_nested_too_deep_is_a_missing_answer_with_its_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, depth: int
) -> None:
    held = {"run": nested(depth)} if name == "metadata" else nested(depth)
    file, _, lacks_values = given.sample_file([ROW, {**ROW, name: held}, ROW], None, tmp_path)
    first, second, third = map(json.loads, file.read_text("utf-8").splitlines())
    left = {key: value for key, value in ROW.items() if key not in (name, "response")}
    assert (first, second, third) == (ROW, {**left, "error": f"{name!r} is nested too deep"}, ROW)
    assert lacks_values
    said = f"the answers of 1 of 3 samples count as missing; the first: sample 2: {name!r} is nested too deep"
    assert said in caplog.text


def test_a_system_whose_values_are_nested_too_deep_lacks_its_own_answer_alone(tmp_path: Path) -> None:
    ring: list[Any] = []
    ring.append(ring)
    row = {"question": "q?", "a": {"answer": "x", "contexts": ring}, "b": {"answer": "y", "contexts": nested(99)}}
    file, systems, _ = given.sample_file([row, {"question": "r?", "a": {"answer": "z"}}], None, tmp_path)
    assert systems == ["a", "b"]
    assert json.loads(file.read_text("utf-8").splitlines()[0]) == {
        **row, "a": {"error": "'contexts' is nested too deep"},
    }  # fmt: skip


def test_a_question_that_is_nested_too_deep_and_samples_that_all_are_end_in_one_line(tmp_path: Path) -> None:
    for app in (None, lambda question: "yes"):
        with pytest.raises(DataError, match=r"^sample 2: .*question.* is nested too deep$"):
            given.sample_file([{"question": "a?"}, {"question": nested(100_000)}], app, tmp_path)
    with pytest.raises(DataError, match=r"^sample 1: 'contexts' is nested too deep; so are all samples$"):
        given.sample_file([{**ROW, "contexts": nested(500)}] * 2, None, tmp_path)


def test_an_app_is_asked_beside_samples_that_are_nested_too_deep(tmp_path: Path) -> None:
    rows = [{"question": "a?"}, {"question": "b?", "answer": nested(500)}, {"question": "c?", "x": nested(500)}]
    file, *_ = given.sample_file(rows, lambda question: ("yes", ["it is"]), tmp_path)
    answered = {"response": "yes", "retrieved_contexts": ["it is"]}
    assert list(map(json.loads, file.read_text("utf-8").splitlines())) == [
        {"question": "a?", **answered},
        {"question": "b?", "error": "'answer' is nested too deep"},
        {"question": "c?", "retrieved_contexts": ["it is"], "error": "'x' is nested too deep"},
    ]


def test_what_failed_is_asked_again_and_its_error_is_gone(tmp_path: Path) -> None:
    def broken(question: str) -> str:
        raise ValueError("no such page")

    with pytest.raises(DataError, match="no such page"):
        given.sample_file([{"question": "a?"}], broken, tmp_path)
    [first] = tmp_path.iterdir()
    again, *_ = given.sample_file(first, lambda question: ("yes", ["it is"]), tmp_path)
    assert json.loads(again.read_text("utf-8")) == {
        "question": "a?", "response": "yes", "retrieved_contexts": ["it is"],
    }  # fmt: skip


def test_what_an_app_answered_before_it_was_stopped_is_kept(tmp_path: Path) -> None:
    def app(question: str) -> str:
        if question == "3?":
            raise KeyboardInterrupt
        return "yes"

    with pytest.raises(KeyboardInterrupt):
        given.sample_file([{"question": f"{i}?"} for i in range(1, 5)], app, tmp_path)
    [file] = tmp_path.iterdir()
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [(row["question"], row.get("response")) for row in rows] == [
        ("1?", "yes"), ("2?", "yes"), ("3?", None), ("4?", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        ([], "samples: there is none"), (7, "samples: int is none of a list of rows"),
        ({"question": "?"}, "samples: dict is none of"), ([ROW, 7], "sample 2 is no row"),
        ([{"question": object()}], "sample 1: Object of type object is not JSON serializable"),
        ("nowhere.jsonl", "samples: there is no file nowhere.jsonl"),
    ],
)  # fmt: skip
def test_what_is_no_sample_is_said_in_one_line(samples: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        given.sample_file(samples, None, tmp_path)
    assert str(raised.value).startswith(told)
    assert "\n" not in str(raised.value)
    with pytest.raises(DataError, match=r"sample 1 has no question; allowed names are question, query"):
        given.sample_file([{"answer": "x"}], str, tmp_path)


def test_the_package_lists_what_it_offers() -> None:
    assert {"run", "sweep", "evaluate", "load"} <= set(dir(ragauge)) == set(ragauge.__all__)


def test_samples_are_evaluated_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_URI", "RAGAUGE_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    rows = [
        {"user_input": f"Town {i}?", "response": answer, "reference": "Paris",
         "retrieved_contexts": ["It is Paris."], "reference_contexts": ["It is Paris."]}
        for i, answer in enumerate(["Paris", "Rome", "Paris", "I do not know."])
    ]  # fmt: skip
    job = ragauge.evaluate(rows, ["em"], judge="lexical", tokenizer="words", bootstrap=20)
    summary = job.summary.set_index("measure")
    assert summary.index[:2].tolist() == ["em", "truthfulness"]
    assert summary.loc["em", "value"] == summary.loc["correct_share", "value"] == 0.5
    assert summary.loc["em", "lo"] < 0.5 < summary.loc["em", "hi"]
    assert job.failures()["qid"].tolist() == ["2", "4"]
    assert ragauge.evaluate(rows, ["em"], judge="lexical", tokenizer="words", bootstrap=20).metrics["stages_made"] == 0
