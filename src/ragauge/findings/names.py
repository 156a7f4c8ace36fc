"""What findings call the judge's classes, measures and zones."""

from ragauge.contract.frames import JUDGE_CLASSES

SHORT = {1: "lack", 2: "partly wrong", 3: "incomplete", 4: "wrong", 5: "right"}
PAIRS = {"ir_score": "IR score", "correct": "right, points", "hallucination": "hallucination, points"}


def class_name(label: int | None) -> str:
    """A judge class as people read it: `4, wrong`; `no verdict` for a missing one."""
    return f"{label}, {JUDGE_CLASSES[label]}" if label else "no verdict"
