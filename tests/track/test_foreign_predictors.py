"""Predictors that others logged: read as numbers, and nothing of theirs runs unless it is trusted."""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from ragauge.contract.errors import ConfigError
from ragauge.estimate import fit_predictor
from ragauge.track import Tracker, load_predictor, save_predictor

X = pd.DataFrame({"qid": [f"q{i}" for i in range(20)], "ir_score": np.linspace(0, 1, 20)})
LABELS = pd.array([1] * 8 + [4] * 4 + [5] * 8, dtype="Int8")


class Marks:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.marker),)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('models') / 'mlflow.db'}"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """The files of a predictor, to be changed by a test before they are logged."""
    model = fit_predictor(X.assign(label=LABELS), spline=True).model
    save_predictor(tmp_path / "model", model, X[["ir_score"]].head(3), {"n_tokens": [100]})
    return tmp_path / "model"


def logged(uri: str, files: Path, name: str | None = None) -> str:
    with Tracker(uri, "models").run("fit", {}, {}) as run:
        run.predictor(files, name)
    return f"runs:/{run.run_id}/predictor"


def by_sklearn(folder: Path, marker: Path) -> Path:
    """An MLflow scikit-learn model whose pickle makes a folder."""
    folder.mkdir()
    (folder / "model.pkl").write_bytes(pickle.dumps(Marks(marker)))
    flavour = {"pickled_model": "model.pkl", "serialization_format": "pickle", "sklearn_version": "1.0"}
    loader = {"loader_module": "mlflow.sklearn", "model_path": "model.pkl", "python_version": "3.11.0"}
    text = {"flavors": {"sklearn": flavour, "python_function": loader}, "model_uuid": "0" * 32}
    (folder / "MLmodel").write_text(yaml.safe_dump(text))
    return folder


def test_a_logged_predictor_holds_no_file_that_executes(uri: str, saved: Path) -> None:
    names = {str(f.relative_to(saved)) for f in saved.rglob("*") if f.is_file()}
    assert "data/predictor.json" in names
    assert {Path(name).suffix for name in names} <= {"", ".json", ".yaml", ".txt"}
    flavors = yaml.safe_load((saved / "MLmodel").read_text())["flavors"]
    assert set(flavors) == {"python_function"}
    assert flavors["python_function"]["loader_module"] == "ragauge.track.models"


def test_a_registered_predictor_is_found_by_each_of_its_uris_and_by_pyfunc(uri: str, saved: Path) -> None:
    import mlflow

    of_run = logged(uri, saved, "ours")
    expected = fit_predictor(X.assign(label=LABELS), spline=True).model.predict_proba(X[["ir_score"]])
    for model_uri in (of_run, "models:/ours/1"):
        model, settings = load_predictor(uri, model_uri)
        assert settings == {"n_tokens": [100]}
        np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-12)
    assert np.array_equal(mlflow.pyfunc.load_model("models:/ours/1").predict(X), model.predict_proba(X))


def test_a_pickled_predictor_is_not_opened_unless_it_is_trusted(uri: str, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    model_uri = logged(uri, by_sklearn(tmp_path / "evil", marker))
    with pytest.raises(ConfigError, match=r"has no data/predictor.json.*trust=true") as caught:
        load_predictor(uri, model_uri)
    assert "\n" not in str(caught.value)
    assert not marker.exists()
    # What was refused is what would have run.
    pickle.loads((tmp_path / "evil" / "model.pkl").read_bytes())
    assert marker.exists()


def test_a_scikit_learn_model_loads_where_it_is_trusted(uri: str, tmp_path: Path) -> None:
    import mlflow

    model = fit_predictor(X.assign(label=LABELS)).model
    settings = {"ragauge_settings": json.dumps({"n_tokens": [7]})}
    mlflow.sklearn.save_model(
        model, str(tmp_path / "older"), metadata=settings, pip_requirements=["scikit-learn"],
        serialization_format="cloudpickle",
    )  # fmt: skip
    model_uri = logged(uri, tmp_path / "older")
    with pytest.raises(ConfigError, match="trust=true"):
        load_predictor(uri, model_uri)
    again, found = load_predictor(uri, model_uri, trust=True)
    assert found == {"n_tokens": [7]}
    np.testing.assert_array_equal(again.predict_proba(X[["ir_score"]]), model.predict_proba(X[["ir_score"]]))


def test_the_loader_that_a_model_names_is_not_imported(
    uri: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "imported"
    (tmp_path / "foreign_loader.py").write_text(f"import os\nos.mkdir({str(marker)!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    about = yaml.safe_load((saved / "MLmodel").read_text())
    about["flavors"]["python_function"] |= {
        "loader_module": "foreign_loader",
        "data": "../../../../etc/passwd",
    }
    (saved / "MLmodel").write_text(yaml.safe_dump(about))
    model, _ = load_predictor(uri, logged(uri, saved))
    assert len(model.classes_) == 3
    assert not marker.exists()
    assert "foreign_loader" not in sys.modules


def test_a_link_in_place_of_the_numbers_tells_nothing_of_what_it_points_at(
    uri: str, saved: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2 hunter2")
    model_uri = logged(uri, saved)
    (file,) = (Path(uri.removeprefix("sqlite:///")).parent / "artifacts").rglob(
        f"*{_model_id(uri, model_uri)}*/**/predictor.json"
    )
    file.unlink()
    file.symlink_to(secret)
    with pytest.raises(ConfigError) as caught:
        load_predictor(uri, model_uri)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def _model_id(uri: str, model_uri: str) -> str:
    from mlflow import MlflowClient

    run_id = model_uri.split("/")[1]
    (output,) = MlflowClient(uri).get_run(run_id).outputs.model_outputs
    return str(output.model_id)


@pytest.mark.parametrize(
    "text", ['{"format": "ragauge.predictor", "version": 99}', "[", "[NaN]", "[" * 50_000, " " * 1_000_001]
)
def test_damaged_numbers_are_one_line_that_names_the_model(uri: str, saved: Path, text: str) -> None:
    (saved / "data" / "predictor.json").write_text(text)
    model_uri = logged(uri, saved)
    with pytest.raises(ConfigError) as caught:
        load_predictor(uri, model_uri)
    assert str(caught.value).startswith(f"predictor: {model_uri}: predictor.json ")
    assert "\n" not in str(caught.value)
