"""Groups that several processes judge: the same verdicts, and failures that reach the caller."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quarterdeck.backend.pipeline.audit_input import Group, InputFile, resolve_input
from quarterdeck.backend.pipeline.judging.group_judge import judge_group
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
from quarterdeck.backend.pipeline.tasks import BYTES_A_TASK, carry_out_in_processes, tasks_of
from tests.pipeline.journal_builder import clean_story, write
from tests.waiting import wait_until

QUESTION = AuditQuestion(("numbering", "version", "view order"), None)


def judge(group: Group) -> object:
    return judge_group(group, QUESTION)


def groups_of_runs(root: Path, staging: Path) -> list[Group]:
    for number in range(4):
        write(root, clean_story(f"run-{number}"))
    return resolve_input([root], staging).groups()


def test_processes_say_of_each_run_what_one_says(tmp_path: Path) -> None:
    groups = groups_of_runs(tmp_path / "root", tmp_path)
    divided = tasks_of(groups, [BYTES_A_TASK] * len(groups))
    assert len(divided) == 4
    assert dict(carry_out_in_processes(divided, judge, 2)) == {
        place: judge_group(group, QUESTION) for place, group in enumerate(groups)
    }


def test_a_file_that_cannot_be_read_in_a_process_is_named(tmp_path: Path) -> None:
    gone = InputFile(str(tmp_path / "gone.jsonl"), "gone.jsonl")
    with pytest.raises(FileNotFoundError, match=r"gone\.jsonl"):
        list(carry_out_in_processes([[(0, (gone,))]], judge, 1))


def test_a_process_that_is_ended_is_a_failure_and_no_verdict(tmp_path: Path) -> None:
    def end(group: Group) -> None:
        os._exit(9)

    with pytest.raises(ChildProcessError, match="ended from outside"):
        list(carry_out_in_processes([[(0, group)] for group in groups_of_runs(tmp_path / "root", tmp_path)], end, 2))


def test_processes_end_soon_after_a_parent_that_was_killed(tmp_path: Path) -> None:
    program = """
import os, signal, sys, time
from pathlib import Path
from quarterdeck.backend.pipeline.tasks import carry_out_in_processes
def work(place):
    (Path(sys.argv[1]) / str(os.getpid())).touch()
    time.sleep(600)
list(carry_out_in_processes([[(0, 0)], [(1, 1)]], work, 2))
"""
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) as parent:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        parent.kill()
    processes = [Path("/proc") / file.name for file in tmp_path.iterdir()]
    wait_until(lambda: not any(process.exists() for process in processes))
