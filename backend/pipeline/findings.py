"""The findings of an audit as a DataFrame: tasks judge whole runs when Spark computes the rows, which no driver holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from msgspec import structs
from pyspark.sql import DataFrame, SparkSession

from quarterdeck.backend.journal.files import NOT_DECODABLE
from quarterdeck.backend.pipeline.audit import reported_findings
from quarterdeck.backend.pipeline.audit_input import AuditInput, Group, InputFile
from quarterdeck.backend.pipeline.judging.group_judge import judge_group, lines_of_file
from quarterdeck.backend.pipeline.judging.lines import run_of_line
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
from quarterdeck.backend.pipeline.rules import Finding
from quarterdeck.backend.pipeline.schemas import columns_of
from quarterdeck.backend.pipeline.spark.arrow import exit_with_task, in_tasks
from quarterdeck.backend.pipeline.tables.store import findings_table
from quarterdeck.backend.pipeline.tasks import results_of_whole_runs, tasks_of


def findings_in(spark: SparkSession, found: AuditInput, question: AuditQuestion) -> DataFrame:
    """Return the findings in a journal or a store. Which runs its files hold is read at once, and judged later.

    Open files are judged as far as they are written by then. Raises OSError for what cannot be read.
    """
    files = tuple(structs.replace(file, read=file.opened or file.read, opened="") for file in found.files)
    parts = [replace(found, files=group) for group in _whole_runs(spark, replace(found, files=files))]
    tasks = tasks_of(parts, [part.size_bytes for part in parts])
    judged = [[part for _, part in task] for task in tasks]
    return in_tasks(spark, judged, partial(_judge, question), columns_of(Finding))


def _whole_runs(spark: SparkSession, found: AuditInput) -> list[Group]:
    """Group the files so that no run is in two groups."""
    named = results_of_whole_runs(found.groups(), _with_runs, lambda one: one[1], spark, "find the runs in each file")
    return [group for group, _ in named]


def _with_runs(files: Group) -> tuple[Group, set[str]]:
    return files, {run for file in files for run in _runs_in(file)}


def _runs_in(file: InputFile) -> Iterator[str]:
    for line in lines_of_file(file):
        try:
            yield run_of_line(line).run
        except NOT_DECODABLE:
            continue


def _judge(question: AuditQuestion, tasks: Iterator[Sequence[AuditInput]]) -> Iterator[pa.RecordBatch]:
    exit_with_task()
    for part in (part for task in tasks for part in task):
        findings = reported_findings(judge_group(part.files, question), part)
        yield from findings_table(list(findings)).to_batches()
