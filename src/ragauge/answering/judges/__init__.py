"""Config group `judge`: answers to judge classes, by a chat model, by rules, or none."""

from ragauge.answering.judges._chat import ChatJudge
from ragauge.answering.judges._frame import Verdict, truths, verdict_frame
from ragauge.answering.judges._lexical import LexicalJudge
from ragauge.answering.judges._none import NoJudge
from ragauge.answering.judges._parse import parse_scores, parse_verdict

__all__ = [
    "ChatJudge",
    "LexicalJudge",
    "NoJudge",
    "Verdict",
    "parse_scores",
    "parse_verdict",
    "truths",
    "verdict_frame",
]
