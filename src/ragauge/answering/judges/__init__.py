"""Config group `judge`: answers to judge classes, by a chat model, by rules, from a file, or none."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.answering.judges._chat import ChatJudge
    from ragauge.answering.judges._frame import Verdict, truths, verdict_frame
    from ragauge.answering.judges._lexical import LexicalJudge
    from ragauge.answering.judges._none import NoJudge
    from ragauge.answering.judges._parse import parse_scores, parse_verdict
    from ragauge.answering.judges._recorded import RecordedJudge

__all__ = [
    "ChatJudge",
    "LexicalJudge",
    "NoJudge",
    "RecordedJudge",
    "Verdict",
    "parse_scores",
    "parse_verdict",
    "truths",
    "verdict_frame",
]

__getattr__ = lazily(__name__)
