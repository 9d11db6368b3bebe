"""The checks as a whole, on the answers of answers.jsonl, written from the task texts; and the command that counts."""

import json
from pathlib import Path

import pytest

from mhsa.exercises import audit

ANSWERS = Path(__file__).with_name("answers.jsonl")


@pytest.fixture(scope="module")
def found():
    return audit.audit(ANSWERS)


def told(found, way):
    return [f"{one.item['exercise']}, {one.item['truth']}: {one.verdict.words}" for one in found if one.way == way]


def test_no_wrong_answer_is_accepted_and_no_right_one_refused(found):
    assert not told(found, "accepted") and not told(found, "refused")


def test_hardly_a_wrong_answer_is_told_no_more_than_a_first_difference(found):
    wrong = [one for one in found if not one.item["right"]]
    assert len(wrong) >= 160 and len({one.item["exercise"] for one in wrong}) >= 60
    assert len(told(found, "first difference")) <= 0.1 * len(wrong), told(found, "first difference")


def test_no_finder_fails(found):
    assert not [one for one in found if "cannot make sense" in one.verdict.words]


def test_what_is_said_is_short(found):
    """Three sentences and, where the code stops with an error, its line."""
    for one in found:
        if one.way in audit.WAYS:
            assert len(one.verdict.words.partition("\n\n")[0]) <= 560, one.verdict.words


def test_each_way_is_counted(found, tmp_path, capsys, monkeypatch):
    few = {one.way: one.item for one in found}  # one answer each way
    assert {"form", "listed", "mutant", "relation", "stage", "right"} <= {*few} <= {*audit.WAYS, "right"}
    (tmp_path / "few.jsonl").write_text("\n".join(map(json.dumps, few.values())))
    monkeypatch.setattr("sys.argv", ["audit", str(tmp_path / "few.jsonl")])
    audit.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{len(few) - 1} wrong answers, 0 accepted; 1 right ones, 0 refused"
    assert [line[:21].strip().split(maxsplit=1) for line in lines[1:-1]] == [
        [str(int(way in few)), way] for way in audit.WAYS
    ]


def test_wrong_answers_that_pass_and_right_ones_that_fail_are_shown(tmp_path, capsys, monkeypatch):
    file = tmp_path / "answers.jsonl"
    items = [
        {"exercise": "HEAD_WIDTH", "right": False, "truth": "none: it is right", "code": "64"},
        {"exercise": "HEAD_WIDTH", "right": True, "truth": "another number", "code": "63"},
    ]
    file.write_text("\n".join(map(json.dumps, items)))
    monkeypatch.setattr("sys.argv", ["audit", str(file)])
    audit.main()
    out = capsys.readouterr().out
    assert (
        "HEAD_WIDTH: accepted" in out and "HEAD_WIDTH: refused" in out and "1 accepted; 1 right ones, 1 refused" in out
    )


def test_an_exercise_that_is_gone_is_named(tmp_path):
    (tmp_path / "answers.jsonl").write_text('{"exercise": "GONE", "code": "1", "right": true}')
    with pytest.raises(ValueError, match="line 1: there is no exercise GONE"):
        audit.audit(tmp_path / "answers.jsonl")
