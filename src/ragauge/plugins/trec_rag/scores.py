"""The scores of AutoNuggetizer's assignments, as in nuggetizer's `metrics`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from ragauge.contract.errors import DataError
from ragauge.contract.output_files import write_output
from ragauge.datasets import BadRow
from ragauge.datasets.fields import listed
from ragauge.datasets.files import json_rows, parse_json
from ragauge.plugins.llm_measures.nuggets import SUPPORT, nugget_scores

NAMES = ("strict_vital", "strict_all", "vital", "all")


def score_lines(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """qid and the four scores of every row, then a row `all` of their means.

    A topic without a nugget to count scores 0. Means are `statistics.mean`'s, correctly rounded.
    """
    found = []
    for row in rows:
        nuggets = row["nuggets"]
        scores = nugget_scores([one["importance"] for one in nuggets], [one["assignment"] for one in nuggets])
        found.append({"qid": row["qid"], **{f"{name}_score": scores.get(name, 0.0) for name in NAMES}})
    means = {f"{name}_score": mean(one[f"{name}_score"] for one in found) for name in NAMES}
    return [*found, {"qid": "all", **means}]


def read_rows(file: Path) -> list[Mapping[str, Any]]:
    """The rows of a file of assignments; DataError names file and line of an invalid one."""
    found = []
    for where, line in json_rows(file):
        try:
            row = parse_json(line)
            if not isinstance(row, Mapping) or "qid" not in row:
                raise BadRow("expected a JSON object with 'qid' and 'nuggets'")
            for number, one in enumerate(listed(row, "nuggets"), start=1):
                if not isinstance(one, Mapping) or one.get("assignment") not in SUPPORT or "importance" not in one:
                    allowed = f"importance and an assignment, one of {', '.join(SUPPORT)}"
                    raise BadRow(f"nugget {number} is no object with {allowed}")
        except BadRow as bad:
            raise DataError(f"{where}: {bad}") from None
        found.append(row)
    if not found:
        raise DataError(f"{file}: no row in it")
    return found


def write_scores(file: Path, out: Path) -> dict[str, Any]:
    """Writes the scores of a file of assignments as JSON Lines, and returns the row of the means."""
    lines = score_lines(read_rows(file))
    write_output(out, "".join(json.dumps(line) + "\n" for line in lines))
    return lines[-1]
