"""The command `ragauge otel`: spans in files as a file of samples."""

from __future__ import annotations

import argparse
import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragauge.commands.errors import told
from ragauge.contract.errors import DataError
from ragauge.contract.output_files import add_force, refuse_foreign, write_output
from ragauge.contract.visible import visible

ABOUT = "writes questions, contexts and answers of OpenTelemetry's, Phoenix's or Langfuse's spans as samples"
_USUAL_MISSING = 0.05  # of answers, the default of max_missing_share


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge otel",
        description="Reads spans of OpenTelemetry, Phoenix or Langfuse from files (JSON Lines, JSON, Parquet). Writes "
        "a sample for each trace.",
    )
    parser.add_argument("files", nargs="+", type=Path, help="files of spans; those of one trace may be in several")
    parser.add_argument("-o", "--out", type=Path, default=Path("samples.jsonl"), help="the file to write (%(default)s)")
    parser.add_argument("--system", default="", metavar="KEY", help="attribute that names the system: service.version")
    parser.add_argument("--label", metavar="NAME", help="the score that is a label, 1 to 5")
    add_force(parser)
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    from ragauge.plugins.otel.files import read
    from ragauge.plugins.otel.samples import samples_of

    refuse_foreign(given.out, '{"qid": ', given.force)
    spans, scores = read(given.files, given.system)
    rows, without = samples_of(spans, scores, given.label, given.system)
    left_out = [
        f"left out: {len(ids):,} traces without {what} ({', '.join(ids[:3])}{', …' if ids[3:] else ''})"
        for what, ids in without.items()
    ]
    if not rows:
        raise DataError("; ".join([f"{given.files[0]}: no trace has a question and an answer", *left_out]))
    write_output(given.out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    n_traces = len({span.trace for span in spans})
    print(f"{given.out}: {len(rows):,} samples of {n_traces:,} traces ({len(spans):,} spans)")
    print(*map(visible, [*left_out, *_notes(rows), f"next: {_next(given.out, rows)}"]), sep="\n")
    return 0


def _notes(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The numbers of traces that failed, that have empty contexts, and whose contexts are unknown."""
    contexts = [row["retrieved_contexts"] for row in rows]
    about = {
        "failed: they have an error and no answer": sum("error" in row for row in rows),
        "have empty contexts: no retriever span, or one that found nothing": contexts.count([]),
        "have no texts of documents: their contexts are unknown": contexts.count(None),
    }
    return [f"{count:,} traces {what}" for what, count in about.items() if count]


def _next(out: Path, rows: Sequence[dict[str, Any]]) -> str:
    """A command that measures the samples, and asks no LLM yet."""
    several = len({row.get("system") for row in rows}) > 1
    n_known = sum(row["retrieved_contexts"] is not None or "docnos" in row for row in rows)
    words = ["ragauge", *(["-m"] if several else []), "experiment=recorded", f"recorded.path={out}"]
    words += ["recorded.on_missing=missing"] if several or 0 < n_known < len(rows) else []
    words += [] if n_known else ["retriever.on_missing=missing"]
    failed = sum("error" in row for row in rows) / len(rows)
    words += [f"max_missing_share={math.ceil(100 * failed) / 100}"] if failed > _USUAL_MISSING else []
    words += ["judge=recorded"] if any("label" in row for row in rows) else []
    measure = "faithfulness" if n_known else "answer_relevancy"
    return shlex.join([*words, f"answers=[{measure}]", "evaluator=openai", "dry_run=true"])
