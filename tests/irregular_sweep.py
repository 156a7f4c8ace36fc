"""The outcomes of a sweep that is as uneven as real ones: what a regular fixture would not show.

Eleven jobs of five systems with unequal budgets, several rows a topic, topics without any hit, one without
evidence and one that is unanswerable, scores with many ties, missing verdicts, and no answer of class 3.
Topics and jobs are numbered so that 10 stands before 2 in the order of their names.
"""

from __future__ import annotations

import random

import pandas as pd

BUDGETS = {
    "bm25": (100, 200, 300, 400),
    "mlq": (250,),
    "mmr": (200, 400),
    "reo": (100,),
    "sim": (100, 200, 300),
}
N_TOPICS = 23
WITHOUT_HITS = ("q4", "q11")
WITHOUT_EVIDENCE = "q7"
UNANSWERABLE = "q13"
NEVER = 3  # the class that no answer has


def irregular_sweep() -> pd.DataFrame:
    """[qid, system, retriever, job, n_tokens, ir_score, n_used, label, unanswerable], 253 rows."""
    dice = random.Random(5)
    rows = []
    job = 0
    for quality, (system, budgets) in enumerate(sorted(BUDGETS.items())):
        for n_tokens in budgets:
            for i in range(N_TOPICS):
                qid = f"q{i + 1}"
                found = qid not in WITHOUT_HITS
                # Quarters: of 23 topics many have the same score.
                most = min(4, 1 + n_tokens // 100 + quality // 2)
                score = dice.randint(0, most) / 4 if found else 0.0
                label: int | None = dice.choices((1, 2, 4, 5), (5 - 4 * score, 1, 1, 0.5 + 4 * score))[0]
                label = 1 if not found else None if dice.random() < 0.08 else label
                rows.append(
                    {
                        "qid": qid, "system": system, "retriever": system, "job": str(job),
                        "n_tokens": n_tokens, "n_used": n_tokens - dice.randint(0, 9) if found else 0,
                        "ir_score": None if qid == WITHOUT_EVIDENCE else score, "label": label,
                        "unanswerable": qid == UNANSWERABLE,
                    }
                )  # fmt: skip
            job += 1
    frame = pd.DataFrame(rows).sample(frac=1, random_state=3, ignore_index=True)
    return frame.astype({"label": "Int8", "ir_score": "float64"})
