"""Config group `judge`: answers to judge classes, by a chat model, by rules, or none."""

from ragauge.judges._chat import ChatJudge
from ragauge.judges._frame import Verdict, truths, verdict_frame
from ragauge.judges._lexical import LexicalJudge
from ragauge.judges._none import NoJudge
from ragauge.judges._parse import parse_scores, parse_verdict

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
