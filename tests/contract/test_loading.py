"""Classes by their dotted paths."""

from __future__ import annotations

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.loading import locate


def test_a_dotted_path_is_its_class_and_another_is_refused_with_the_key() -> None:
    assert locate("judge", "ragauge.contract.errors.ConfigError") is ConfigError
    for wrong in ("ConfigError", "", 3, None):
        with pytest.raises(ConfigError, match=r"^judge\._target_=.*: must be the dotted path of a class or function$"):
            locate("judge", wrong)
