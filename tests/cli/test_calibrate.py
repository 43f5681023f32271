"""``adaptllm calibrate``: what is chosen, what is written, what is refused before anything is asked; D12."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.cli import model_loading
from adaptllm_chain.llms.embedded import embedded_adapter
from adaptllm_chain.prompts import PromptSpec
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedLLM
from tests.chain.scenes import PASSAGES
from tests.cli.conftest import Run

SPEC = {"format": "alpaca", "trained_on": ["parametric", "context", "closed_book"], "base_model": "Mühle-1B"}
# By mill: P(<RET>), what it says to the parametric prompt, to the closed-book one, and with the passage.
MILLS = {
    0: (0.95, "<RET>", "wrong", "right"),
    1: (0.80, "<RET>", "wrong", "wrong"),
    2: (0.70, "wrong", "wrong", "right"),
    3: (0.40, "<RET>", "right", "wrong"),  # below the cut, its closed-book answer counts
    4: (0.20, "wrong", "wrong", "right"),
    5: (0.10, "right", "wrong", "wrong"),  # below the cut, its own answer counts, not the closed-book one
}


class Trained(ScriptedLLM):
    prompt_spec: PromptSpec | None = None


def answer(prompt: str) -> Reply:
    number = next(n for n in MILLS if f"mill {n}" in prompt)
    probability, parametric, closed_book, context = MILLS[number]
    said = context if "given the context" in prompt else parametric if "help" in prompt else closed_book
    text = {"right": f"builder {number}", "wrong": "nobody"}.get(said, said)
    return Reply(text=text, info={"ret_probability": probability, "ret_probability_kind": "exact"})


def adapters_model(folder: Path, script: Any = answer) -> Trained:
    return Trained(script=script, prompt_spec=PromptSpec.load(folder))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        {"id": str(n), "question": f"Who built mill {n}?", "answers": [f"builder {n}"], "gold_passage": f"Of mill {n}."}
        for n in MILLS
    ]
    path = tmp_path / "dev.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    folder = tmp_path / "adapter"
    folder.mkdir()
    write_spec(folder, SPEC)
    return folder


def write_spec(folder: Path, content: dict[str, Any]) -> None:
    (folder / "prompt_spec.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def read_spec(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "prompt_spec.json").read_text(encoding="utf-8"))


@pytest.fixture
def loaded(adapter: Path, monkeypatch: pytest.MonkeyPatch) -> list[Trained]:
    """Every model that a command loads, with what its adapter says at that moment."""
    models: list[Trained] = []

    def load(_: object) -> Trained:
        models.append(adapters_model(adapter))
        return models[-1]

    monkeypatch.setattr(model_loading, "load_llm", load)
    return models


@pytest.fixture
def command(data: Path, adapter: Path, tmp_path: Path) -> list[object]:
    return ["calibrate", "--data", data, "--retriever", "gold", "--out", tmp_path / "out", "--adapter", adapter]


def test_d12_the_best_cut_is_stored_and_all_else_stays(
    run: Run, command: list[object], adapter: Path, loaded: list[Trained]
) -> None:
    ran = run(*command)
    assert ran.code == 0
    # From the highest P on: wins, nothing, wins, loses, wins, loses.
    assert read_spec(adapter) == {**SPEC, "ret_threshold": (0.4 + 0.7) / 2}
    assert "Mühle" in (adapter / "prompt_spec.json").read_text(encoding="utf-8")
    assert [path.name for path in adapter.iterdir()] == ["prompt_spec.json"]
    assert "| P(<RET>) >= 0.55, chosen | 66.7 % | 50.0 % |" in ran.out  # 0, 2, and 3 and 5 from memory
    assert "| always retrieve | 50.0 % | 100.0 % |" in ran.out  # 0, 2, 4
    assert "| never retrieve | 33.3 % | 0.0 % |" in ran.out  # 3 and 5
    assert "| the output decides | 33.3 % | 50.0 % |" in ran.out  # 0 and 5, of 0, 1 and 3 with passages
    assert "chosen on 6 questions for the best accuracy\n" in ran.out
    assert "looks better here than on others" in ran.out
    assert "few questions" in ran.out
    assert "ret_threshold was none, is now 0.55" in ran.out


@pytest.mark.parametrize(
    ("option", "threshold", "says"),
    [
        (["--budget", "0.4"], (0.8 + 0.95) / 2, "with at most 40 % of the questions retrieving"),
        (["--price", "1"], (0.95 + 1) / 2, "less 1 for each retrieval"),
    ],
)
def test_d12_an_objective_is_met_and_named(
    run: Run,
    command: list[object],
    adapter: Path,
    loaded: list[Trained],
    option: list[str],
    threshold: float,
    says: str,
) -> None:
    ran = run(*command, *option)
    assert ran.code == 0
    assert read_spec(adapter)["ret_threshold"] == threshold
    assert f"for the best accuracy {says}\n" in ran.out


def test_a_chain_on_that_adapter_decides_by_it(
    run: Run, command: list[object], adapter: Path, loaded: list[Trained]
) -> None:
    def decisions() -> list[tuple[str, str]]:
        chain = AdaptiveRetrievalChain(llm=adapters_model(adapter), retriever=CountingRetriever(documents=PASSAGES))
        asked = [chain.invoke(f"Who built mill {n}?")["decision"] for n in MILLS]
        return [(decision.rule, decision.route) for decision in asked]

    assert [route for _, route in decisions()] == ["retrieve", "retrieve", "direct", "retrieve", "direct", "direct"]
    assert {rule for rule, _ in decisions()} == {"token"}
    assert run(*command).code == 0
    assert PromptSpec.load(adapter).ret_threshold == (0.4 + 0.7) / 2
    assert [route for _, route in decisions()] == ["retrieve", "retrieve", "retrieve", "direct", "direct", "direct"]
    assert {rule for rule, _ in decisions()} == {"probability"}


def test_a_stored_threshold_changes_nothing_and_its_value_is_told(
    run: Run, command: list[object], adapter: Path, loaded: list[Trained]
) -> None:
    write_spec(adapter, {**SPEC, "ret_threshold": 0.01})
    ran = run(*command)
    assert ran.code == 0
    assert loaded[0].prompt_spec is not None
    assert loaded[0].prompt_spec.ret_threshold == 0.01
    assert read_spec(adapter)["ret_threshold"] == (0.4 + 0.7) / 2
    assert "ret_threshold was 0.01, is now 0.55" in ran.out
    assert "| the output decides | 33.3 % | 50.0 % |" in ran.out  # by 0.01, all of them would have retrieved


def test_another_objective_asks_nothing_again(
    run: Run, command: list[object], adapter: Path, loaded: list[Trained]
) -> None:
    assert run(*command).code == 0
    assert sum(map(len, loaded[0].calls)) > 0
    assert run(*command, "--price", "1").code == 0
    assert [model.calls for model in loaded[1:]] == [[]]
    assert read_spec(adapter)["ret_threshold"] == (0.95 + 1) / 2


def test_a_dry_run_writes_nothing_and_needs_no_folder(
    run: Run, command: list[object], adapter: Path, loaded: list[Trained]
) -> None:
    before = (adapter / "prompt_spec.json").read_bytes()
    for name in (adapter, "someone/their-adapter", "none"):
        ran = run(*command[:-1], name, "--dry-run", "--out", adapter.parent / Path(str(name)).name)
        assert ran.code == 0
        assert f"--threshold {(0.4 + 0.7) / 2!r}\n" in ran.out
    assert (adapter / "prompt_spec.json").read_bytes() == before


def test_unset_takes_it_out_again(run: Run, adapter: Path, loaded: list[Trained]) -> None:
    write_spec(adapter, {**SPEC, "ret_threshold": 0.3})
    told = run("calibrate", "--unset", "--adapter", adapter, "--dry-run")
    assert (told.code, read_spec(adapter)["ret_threshold"]) == (0, 0.3)
    assert "ret_threshold was 0.3, would be none" in told.out
    ran = run("calibrate", "--adapter", adapter, "--unset")
    assert ran.code == 0
    assert "ret_threshold was 0.3, is now none" in ran.out
    assert read_spec(adapter) == {**SPEC, "ret_threshold": None}
    assert PromptSpec.load(adapter).ret_threshold is None
    assert loaded == []


def test_the_questions_are_needed_without_unset(run: Run, adapter: Path) -> None:
    ran = run("calibrate", "--adapter", adapter)
    assert ran.code == 2
    assert "--data FILE --out DIR" in ran.err


def test_the_shipped_adapter_is_copied_first(run: Run, command: list[object], loaded: list[Trained]) -> None:
    shipped = embedded_adapter()
    before = (shipped / "prompt_spec.json").read_bytes()
    for chosen in ([], ["--adapter", "embedded"], ["--adapter", shipped], ["--unset"]):
        ran = run(*command[:-2], *chosen)
        assert ran.code == 2
        assert shlex.join(["cp", "-r", str(shipped), "my-adapter"]) in ran.err
        assert "--dry-run" in ran.err
    assert loaded == []
    assert (shipped / "prompt_spec.json").read_bytes() == before


def test_a_copy_of_the_shipped_adapter_will_do(
    run: Run, command: list[object], tmp_path: Path, loaded: list[Trained]
) -> None:
    copy = tmp_path / "my-adapter"
    shutil.copytree(embedded_adapter(), copy)
    former = read_spec(copy)
    assert run(*command[:-1], copy).code == 0
    assert read_spec(copy) == {**former, "ret_threshold": (0.4 + 0.7) / 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--adapter", "none"], "--dry-run"),
        (["--adapter", "someone/their-adapter"], "hf download someone/their-adapter --local-dir my-adapter"),
        (["--model", "some/model", "--adapter", "none"], "without an adapter"),
        (["--threshold", "0.5"], "no --threshold"),
        (["--threshold", "none"], "no --threshold"),
        (["--budget", "1.5"], "from 0 to 1"),
        (["--budget", "nan"], "from 0 to 1"),
        (["--price", "-1"], "0 or more"),
        (["--budget", "0.5", "--price", "0.1"], "--price: not allowed with argument --budget"),
        (["--unset", "--price", "0.1"], "--price: not allowed with argument --unset"),
    ],
)
def test_refused_before_anything_is_asked(
    run: Run, command: list[object], adapter: Path, loaded: list[Trained], options: list[str], message: str
) -> None:
    ran = run(*command, *options)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert loaded == []
    assert read_spec(adapter) == SPEC


def test_a_folder_without_its_prompt_spec(
    run: Run, command: list[object], adapter: Path, loaded: list[Trained]
) -> None:
    (adapter / "prompt_spec.json").unlink()
    ran = run(*command)
    assert (ran.code, loaded) == (2, [])
    assert "has no prompt_spec.json" in ran.err


def test_an_adapter_that_cannot_answer_where_the_cut_overrules_it(
    run: Run, command: list[object], adapter: Path, loaded: list[Trained]
) -> None:
    write_spec(adapter, {**SPEC, "trained_on": ["parametric", "context"], "ret_threshold": 0.3})
    ran = run(*command)
    assert (ran.code, loaded) == (2, [])
    assert "--baseline-rows" in ran.err
    assert run("calibrate", "--adapter", adapter, "--unset").code == 0


def test_a_folder_that_cannot_be_written(
    run: Run, command: list[object], adapter: Path, loaded: list[Trained], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs tests as root may write everywhere, so the system's answer is put in its mouth."""
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != adapter and allowed(path, mode))
    ran = run(*command)
    assert (ran.code, loaded) == (2, [])
    assert "cannot be written" in ran.err
    assert shlex.join(["cp", "-r", str(adapter), "my-adapter"]) in ran.err


def test_questions_that_fail_are_left_out(
    run: Run, command: list[object], adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_on_five(prompt: str) -> Reply:
        if "mill 5" in prompt and "given the context" in prompt:
            raise RuntimeError("out of paper")
        return answer(prompt)

    monkeypatch.setattr(model_loading, "load_llm", lambda _: adapters_model(adapter, breaks_on_five))
    ran = run(*command)
    assert ran.code == 1
    assert "out of paper" in ran.err
    assert "chosen on 5 questions" in ran.out
    assert read_spec(adapter)["ret_threshold"] == (0.4 + 0.7) / 2


@pytest.mark.parametrize(
    ("text", "message"), [(None, "no question could be answered"), ("nobody", "tells P(<RET>) for 0 of 6 questions")]
)
def test_nothing_to_choose_from(
    run: Run, command: list[object], adapter: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, message: str
) -> None:
    def says_little(_: str) -> Reply:
        if text is None:
            raise RuntimeError("out of paper")
        return Reply(text)

    monkeypatch.setattr(model_loading, "load_llm", lambda _: adapters_model(adapter, says_little))
    ran = run(*command)
    assert ran.code == 2
    assert message in ran.err
    assert read_spec(adapter) == SPEC
