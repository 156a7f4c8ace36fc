"""The data model: what passes the check, and what the error says of what does not."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.errors import DataError

RUN = pd.DataFrame({"qid": ["q1", "q1"], "docno": ["a%p0", "b%p0"], "score": [2.0, 1.0], "rank": [0, 1]})


def test_a_good_frame_is_returned_itself_and_may_have_more_columns() -> None:
    more = RUN.assign(query="what")
    assert frames.check("run", more) is more


def test_a_missing_column_is_named_beside_those_there() -> None:
    with pytest.raises(DataError, match=r"run frame from bm25: column\(s\) score, rank missing; it has qid, docno"):
        frames.check("run", RUN[["qid", "docno"]], "bm25")


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("qid", ["q1", None], r"column qid, row 1 .*no value; expected str"),
        ("docno", [7, "b"], r"column docno, row 0 .*7 is not str"),
        ("score", [1.0, float("inf")], r"column score, row 1 .*inf is not a finite number"),
        ("score", ["high", "low"], r"column score, row 0 .*'high' is not a number"),
        ("rank", [0.0, 1.5], r"column rank, row 0 .*is not int"),
        ("docno", ["a", "a"], r"row 1 repeats the key qid='q1', docno='a'"),
    ],
)
def test_the_first_bad_row_is_named(column: str, values: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        frames.check("run", RUN.assign(**{column: values}))


@pytest.mark.parametrize("label", [1, 5, pd.NA])
def test_labels_are_judge_classes_or_missing(label: object) -> None:
    frames.check("verdicts", _verdicts(label))


@pytest.mark.parametrize("label", [0, 6, -100])
def test_a_label_outside_the_classes_is_refused(label: int) -> None:
    with pytest.raises(DataError, match=r"is not a judge class 1\.\.5 or nothing"):
        frames.check("verdicts", _verdicts(label))


def _verdicts(label: object) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "qid": ["q1"],
            "n_tokens": [100],
            "label": pd.array([label], dtype="Int8"),
            "status": ["ok"],
            "raw": ["5"],
            "prompt_tokens": [0],
            "completion_tokens": [0],
            "cost_usd": [0.0],
            "seconds": [0.0],
            "cached": [False],
        }
    )


@pytest.mark.parametrize("name", sorted(frames.SCHEMAS))
def test_an_empty_frame_of_every_schema_passes_its_own_check(name: str) -> None:
    assert len(frames.check(name, frames.empty(name))) == 0


@pytest.mark.parametrize("name", sorted(frames.SCHEMAS))
def test_a_frame_without_rows_may_have_columns_of_any_type(name: str) -> None:
    bare = pd.DataFrame(columns=list(frames.SCHEMAS[name].columns))
    assert frames.check(name, bare) is bare


def test_the_content_digest_tells_rows_their_order_and_their_columns_apart() -> None:
    digests = {
        frames.content_digest(frame)
        for frame in (RUN, RUN.iloc[::-1], RUN.rename(columns={"score": "s"}), RUN.assign(score=[2.0, 1.5]))
    }
    assert len(digests) == 4
    assert frames.content_digest(RUN.copy()) == frames.content_digest(RUN)


def test_the_content_digest_does_not_run_neighbouring_values_together() -> None:
    one = pd.DataFrame({"text": ["ab", "c"]})
    other = pd.DataFrame({"text": ["a", "bc"]})
    assert frames.content_digest(one) != frames.content_digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["nan", "x"], [float("nan"), "x"]),
        (["None", "x"], [None, "x"]),
        (["a\x1fb", "c"], ["a", "b\x1fc"]),
        (["a\x1f", "b"], ["a", "\x1fb"]),
        (["\x1emnan"], ["nan"]),
        (["a\x1esb"], ["a\x1fb"]),
        ([np.arange(2000)], [np.where(np.arange(2000) == 1000, 7, np.arange(2000))]),
        ([np.array([0.1234567890123])], [np.array([0.1234567890124])]),
        ([["a", "b"]], [["a b"]]),
        ([["a"]], ["['a']"]),
        ([["a"]], ['\x1ej["a"]']),
        ([[None]], [["null"]]),
    ],
)  # fmt: skip
def test_different_values_never_share_a_content_digest(one: list[object], other: list[object]) -> None:
    def digest(values: list[object]) -> str:
        return frames.content_digest(pd.DataFrame({"x": pd.Series(values, dtype=object)}))

    assert digest(one) != digest(other)


def test_lists_have_one_content_digest_whatever_holds_them() -> None:
    def digest(value: object) -> str:
        return frames.content_digest(pd.DataFrame({"x": pd.Series([value, value], dtype=object)}))

    assert len({digest([0, 5, 9]), digest((0, 5, 9)), digest(np.array([0, 5, 9], dtype=np.int32))}) == 1
    assert len({digest(["a", "ü"]), digest(np.array(["a", "ü"], dtype=object))}) == 1


def test_ordinary_texts_and_numbers_have_the_content_digest_that_stores_know() -> None:
    frame = pd.DataFrame({"docno": ["d1", "d2"], "text": ["One ü.\n", ""], "n": [1, 2], "x": [0.5, float("nan")]})
    text = "".join(f"{c}\x1f2\x1e{a}\x1f{b}\x1f" for c, a, b in (("docno", "d1", "d2"), ("text", "One ü.\n", "")))
    known = hashlib.sha256(text.encode())
    known.update(b"n\x1f2\x1e" + np.array([1, 2]).tobytes() + b"x\x1f2\x1e" + np.array([0.5, np.nan]).tobytes())
    assert frames.content_digest(frame) == known.hexdigest()


def test_missing_values_have_one_digest_in_every_process() -> None:
    program = """
import pandas as pd
from ragauge.contract.frames import content_digest
for dtype, values in {"Int64": [5, None, 1], "boolean": [True, None, False]}.items():
    print(content_digest(pd.DataFrame({"x": pd.array(values, dtype=dtype)})))
"""
    told = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert told[0] == told[1]
    here = pd.DataFrame({"x": pd.array([True, None, False], dtype="boolean")})
    assert told[0].split()[1] == frames.content_digest(here)
    assert frames.content_digest(here) != frames.content_digest(here.fillna(True))


def test_rows_are_picked_alike_from_a_frame_and_from_batches() -> None:
    frame = pd.DataFrame({"docno": ["a", "b", "c", "b", "a"], "n": range(5)})
    batches = frames.Batches(lambda: iter([frame.iloc[:2], frame.iloc[2:3], frame.iloc[3:]]))
    for rows in (frame.set_axis(list("vwxyz")), batches):
        assert frames.rows_where(rows, "docno", ["b", "x"])["n"].to_dict() == {1: 1, 3: 3}
        assert frames.rows_at(rows, np.array([4, 0]))["n"].to_dict() == {4: 4, 0: 0}
        assert frames.columns_of(rows, ["n"])["n"].tolist() == list(range(5))
        assert frames.count_rows(rows) == 5
        assert [piece["n"].tolist() for piece in frames.in_pieces(rows, 2)] == [[0, 1], [2, 3], [4]]
        assert frames.as_frame(rows)["n"].tolist() == list(range(5))
        assert frames.rows_where(rows, "docno", []).columns.tolist() == ["docno", "n"]
    assert len(list(frames.batches_of(frame))) == 1
    assert len(list(frames.batches_of(batches))) == 3
    assert list(frames.in_pieces(frame.head(0), 2)) == []


def test_the_content_digest_tells_columns_apart_by_name_and_number_of_rows() -> None:
    one = pd.DataFrame({"a": ["x"], "b": ["y"]})
    others = [pd.DataFrame({"a": ["x"], "c": ["y"]}), pd.DataFrame({"b": ["y"], "a": ["x"]}), one[["a"]],
              pd.DataFrame({"a": np.array([], dtype=float), "b": np.array([], dtype=float)}),
              pd.DataFrame({"a": np.array([], dtype=float)})]  # fmt: skip
    assert len({frames.content_digest(frame) for frame in [one, *others]}) == 6
