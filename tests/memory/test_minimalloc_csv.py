"""MiniMalloc's CSV, in and out, and what its reader says about damaged files."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.memory.random_problems import problems
from tflm_planner.memory.minimalloc_csv import read_csv, write_csv
from tflm_planner.memory.problem import Buffer, Plan, Problem
from tflm_planner.support.errors import UsageError


@settings(deadline=None)
@given(problems(aliases=False, trailing=False))
def test_what_is_written_is_read_back(problem: Problem) -> None:
    stream = io.StringIO()
    write_csv(problem, stream)
    assert read_csv(io.StringIO(stream.getvalue())) == problem


def test_upper_is_the_time_after_the_last() -> None:
    problem = read_csv(io.StringIO("id,lower,upper,size\nx,0,3,16\n"))
    assert problem == Problem.of((Buffer("x", 16, 0, 3),))


def test_the_older_end_column_is_the_last_time() -> None:
    problem = read_csv(io.StringIO("buffer,start,end,size\nx,0,3,16\n"))
    assert problem == Problem.of((Buffer("x", 16, 0, 4),))


def test_a_plan_adds_the_offsets(tmp_path: Path) -> None:
    stream = io.StringIO()
    problem = Problem.of((Buffer("x", 16, 0, 3), Buffer("y", 32, 1, 2)))
    write_csv(problem, stream, Plan((32, 0)))
    assert stream.getvalue() == "id,lower,upper,size,offset\nx,0,3,16,32\ny,1,2,32,0\n"
    path = tmp_path / "plan.csv"
    path.write_text(stream.getvalue())
    assert read_csv(path) == problem == read_csv(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: column 'id' is missing"),
        ("id,lower,size\n", "line 1: column 'upper' is missing"),
        ("id,lower,upper,size\na,0,1,16\nb,0,x,16\n", "line 3, column 'upper': 'x' is not"),
        ("id,lower,upper,size\na,0,1\n", "line 2: 3 columns, but the header has 4"),
        ("id,lower,upper,size\na,0,1,0\n", "line 2, column 'size': 0 is not positive"),
        ("id,lower,upper,size\n\na,5,5,16\n", r"line 3, column 'upper': life span \[5, 5\)"),
    ],
)
def test_damage_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_csv(io.StringIO(text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.csv"):
        read_csv(tmp_path / "none.csv")
