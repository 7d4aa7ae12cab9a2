"""Which engine a command uses, and what of the user's configuration it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quarterdeck.backend.pipeline import audit as module
from quarterdeck.backend.pipeline.address import spark_defaults
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.spark.engine import AUTO, Engine
from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing
from tests.pipeline.journal_builder import clean_story, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def no_spark(engine: Engine, command: str) -> object:
    raise PipelineMissing


def test_no_size_is_refused_where_there_is_no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, clean_story("calm"))
    monkeypatch.setattr(module, "IN_PROCESS_BYTES", 1)
    monkeypatch.setattr(module, "engine_session", no_spark)
    said: list[str] = []
    assert audit([root], engine=AUTO, on_message=said.append).counts["runs"] == 1
    assert len(said) == 1 and said[0].startswith(
        "judged here, although 0 MB are more than 0 MB: more packages are needed"
    )
    with pytest.raises(PipelineMissing):
        audit([root], engine=Engine("spark"))


def test_what_is_large_is_judged_on_spark_unless_here_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path, clean_story("calm"))
    monkeypatch.setattr(module, "IN_PROCESS_BYTES", 1)
    said: list[str] = []
    there = audit([root], on_message=said.append)
    assert said == ["judged on Spark: 0 MB are more than 0 MB"]
    assert audit([root], engine=Engine("here"), on_message=said.append) == there and len(said) == 1


def test_the_users_configuration_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# mine\nspark.master spark://head:7077\nspark.ui.port=5050\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert spark_defaults() == {"spark.master": "spark://head:7077", "spark.ui.port": "5050"}
