"""Config group `judge`: assigns judge classes to answers by a chat model, by rules, from a file, or not at all."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.answering.judges._chat import ChatJudge, parse_scores, parse_verdict
    from ragauge.answering.judges._lexical import LexicalJudge
    from ragauge.answering.judges._recorded import RecordedJudge
    from ragauge.answering.judges.frame import NoJudge, Verdict, truths, verdict_frame

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
