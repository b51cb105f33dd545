from pathlib import Path

import pytest

from adaexplore.model.task import Policy
from adaexplore_lsp.settings import ServerSettings, read_settings

ALL = {"python": "/p", "steps": 3, "seconds": 1, "policy": "tf32", "dataDir": "/d"}


@pytest.mark.parametrize("data", [ALL, {"adaexplore": ALL}, {"adaexplore": ALL, "python": {"x": 1}}])
def test_all_settings_are_read(data):
    assert read_settings(data) == ServerSettings("/p", 3, 1.0, Policy.TF32, Path("/d"))


@pytest.mark.parametrize("data", [None, {}, [], 3, "x", {"adaexplore": None}, {"adaexplore": []}])
def test_nothing_set_is_the_base(data):
    base = ServerSettings(steps=4)
    assert read_settings(data, base) is base


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("steps", 0), ("steps", True), ("steps", "3"), ("steps", 2.5), ("seconds", -1), ("seconds", float("nan")),
        ("seconds", False), ("policy", "fast"), ("policy", 3), ("python", ""), ("python", []), ("dataDir", "relative"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_logged_and_leaves_the_others(key, value, caplog):
    settings = read_settings({**ALL, key: value})
    field = "data_dir" if key == "dataDir" else key
    assert getattr(settings, field) is None
    assert settings != ServerSettings()
    assert f"adaexplore.{key}" in caplog.text


def test_null_leaves_a_setting_and_an_unknown_one_is_logged(caplog):
    assert read_settings({"steps": None, "color": 1}, ServerSettings(steps=2)).steps == 2
    assert "adaexplore.color" in caplog.text


def test_the_data_dir_of_the_editor_wins(tmp_path, monkeypatch):
    monkeypatch.setenv("ADAEXPLORE_DATA_DIR", str(tmp_path / "environment"))
    assert ServerSettings().resolved_data_dir() == tmp_path / "environment"
    assert ServerSettings(data_dir=tmp_path).resolved_data_dir() == tmp_path
