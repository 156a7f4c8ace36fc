"""Who can be asked for what."""

from __future__ import annotations

from typing import Any

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.plugins.synthesis.asking import CHECKS, CLOSED_BOOK, WRITES, Asking

PURPOSES = (WRITES, CLOSED_BOOK, *CHECKS)


@pytest.mark.parametrize(("llm", "evaluator"), [(True, True), (True, False), (False, True), (False, False)])
def test_the_llm_writes_and_answers_and_the_evaluator_checks(llm: bool, evaluator: bool) -> None:
    nobody: Any = None
    chat: Any = object()
    asking = Asking(chat if llm else None, chat if llm else None, chat if evaluator else None, nobody)
    assert [asking.can(purpose) for purpose in PURPOSES] == [llm, llm, evaluator, evaluator, evaluator]
    assert asking.asks is (llm or evaluator)
    for purpose in PURPOSES:
        assert asking(purpose, {}, {}) == {}
        if not asking.can(purpose):
            with pytest.raises(ConfigError, match=f"{purpose}: there is no chat model to ask"):
                asking(purpose, {"Who?": str}, {"Who?": ""})
