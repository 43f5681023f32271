from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled, RepositoryNotFoundError

from tests.cli.conftest import Run
from tests.publishing.test_export import make_adapter

CARD = "---\nbase_model: someone/some-base\nlibrary_name: peft\n---\n\n# mine\n"


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    _, folder = make_adapter(tmp_path)
    edit_config(folder, base_model_name_or_path="someone/some-base")
    (folder / "README.md").write_text(CARD)
    (folder / "recipe.yaml").write_text("epochs: 1\n")
    (folder / "checkpoints" / "checkpoint-5").mkdir(parents=True)
    (folder / "checkpoints" / "checkpoint-5" / "adapter_model.safetensors").write_text("large")
    (folder / "rows.jsonl").write_text("a journal")
    (folder / ".env").write_text("HF_TOKEN=secret")
    return folder


def edit_config(folder: Path, **fields: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


class FakeHub:
    """Records what the hub's client is asked to do, and fails as it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.tokens: list[str | None] = []
        self.error: Exception | None = None

    def __call__(self, *, token: str | None = None) -> FakeHub:
        self.tokens.append(token)
        return self

    def create_repo(self, repo_id: str, **options: Any) -> str:
        if self.error is not None:
            raise self.error
        self.calls.append(("create_repo", {"repo_id": repo_id, **options}))
        return f"https://huggingface.co/{repo_id}"

    def upload_folder(self, **options: Any) -> None:
        self.calls.append(("upload_folder", options))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    fake = FakeHub()
    monkeypatch.setattr(huggingface_hub, "HfApi", fake)
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "from-the-machine")
    return fake


SENT = ["README.md", "adapter_config.json", "adapter_model.safetensors", "prompt_spec.json", "recipe.yaml"]


def test_it_uploads_what_belongs_to_the_adapter_and_nothing_else(run: Run, adapter: Path, hub: FakeHub) -> None:
    ran = run("push", "--adapter", adapter, "--repo", "me/mine")
    assert (ran.code, ran.out) == (0, "https://huggingface.co/me/mine\n")
    (first, created), (second, uploaded) = hub.calls
    assert (first, second) == ("create_repo", "upload_folder")
    assert created == {"repo_id": "me/mine", "repo_type": "model", "private": None, "exist_ok": True}
    assert sorted(uploaded["allow_patterns"]) == SENT
    assert uploaded["repo_id"] == "me/mine"
    # As the hub's own client reads the patterns: a checkpoint has files of the same names.
    everything = [str(path.relative_to(adapter)) for path in adapter.rglob("*") if path.is_file()]
    chosen = huggingface_hub.utils.filter_repo_objects(everything, allow_patterns=uploaded["allow_patterns"])
    assert sorted(chosen) == SENT


def test_private_and_token(run: Run, adapter: Path, hub: FakeHub) -> None:
    assert run("push", "--adapter", adapter, "--repo", "me/mine", "--private", "--token", "hf_x").code == 0
    assert hub.tokens == ["hf_x"]
    assert hub.calls[0][1]["private"] is True


def test_a_dry_run_lists_sizes_and_asks_no_hub(
    run: Run, adapter: Path, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    ran = run("push", "--adapter", adapter, "--repo", "me/mine", "--dry-run")
    assert ran.code == 0
    assert hub.calls == []
    listed = dict(reversed(line.split()) for line in ran.out.splitlines()[:-1])
    assert sorted(listed) == SENT
    assert listed["README.md"] == str(len(CARD))
    assert "5 files would go to https://huggingface.co/me/mine" in ran.out


def test_an_added_token_brings_its_tokenizer(run: Run, adapter: Path, tmp_path: Path, hub: FakeHub) -> None:
    (tmp_path / "other").mkdir()
    _, folder = make_adapter(tmp_path / "other", token=True)
    edit_config(folder, base_model_name_or_path="someone/some-base")
    (folder / "README.md").write_text(CARD)
    assert run("push", "--adapter", folder, "--repo", "me/mine").code == 0
    assert {"tokenizer.json", "tokenizer_config.json"} <= set(hub.calls[1][1]["allow_patterns"])


@pytest.mark.parametrize("name", ["README.md", "adapter_config.json", "adapter_model.safetensors", "prompt_spec.json"])
def test_a_file_that_is_missing_or_broken(run: Run, adapter: Path, hub: FakeHub, name: str) -> None:
    (adapter / name).write_text("---\n[: {\n---\n")
    ran = run("push", "--adapter", adapter, "--repo", "me/mine")
    assert ran.code == 2
    assert name in ran.err
    assert "Traceback" not in ran.err
    (adapter / name).unlink()
    ran = run("push", "--adapter", adapter, "--repo", "me/mine", "--dry-run")
    assert ran.code == 2
    assert f"lacks {name}" in ran.err
    assert hub.calls == []


def test_a_base_on_this_disk_is_of_no_use_to_others(run: Run, adapter: Path, hub: FakeHub, tmp_path: Path) -> None:
    (adapter / "README.md").write_text(CARD.replace("someone/some-base", "/home/me/base"))
    ran = run("push", "--adapter", adapter, "--repo", "me/mine")
    assert "'/home/me/base', which is a place on this disk" in ran.err
    edit_config(adapter, base_model_name_or_path=str(tmp_path / "base"))
    ran = run("push", "--adapter", adapter, "--repo", "me/mine")
    assert ran.code == 2
    assert "base_model_name_or_path" in ran.err
    assert hub.calls == []


@pytest.mark.parametrize("repo", ["mine", "me/mine/more", "/mine", "me/", "https://huggingface.co/me/mine"])
def test_a_repo_is_user_and_name(run: Run, adapter: Path, repo: str) -> None:
    ran = run("push", "--adapter", adapter, "--repo", repo, "--dry-run")
    assert ran.code == 2
    assert "USER/NAME" in ran.err


def test_without_a_token(run: Run, adapter: Path, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    ran = run("push", "--adapter", adapter, "--repo", "me/mine")
    assert ran.code == 2
    assert "hf auth login" in ran.err
    assert hub.calls == []


def refusal(status: int, kind: type[HfHubHTTPError] = HfHubHTTPError) -> HfHubHTTPError:
    module = __import__(HfHubHTTPError.__mro__[1].__module__.partition(".")[0])  # httpx, under the name in use
    request = module.Request("POST", "https://huggingface.co/api/repos/create")
    return kind("no", response=module.Response(status, request=request), server_message="the reason")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (refusal(401), "does not know the token"),
        (refusal(403), "may not write to me/mine"),
        (refusal(404, RepositoryNotFoundError), "may not write to me/mine"),
        (refusal(500), "refused with 500: the reason"),
        (ValueError("Invalid metadata in README.md."), "valid"),
        (OfflineModeIsEnabled("offline"), "HF_HUB_OFFLINE"),
        (httpx.ConnectError("[Errno -2] Name or service not known"), "was not reached"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_refusals_say_what_to_do(run: Run, adapter: Path, hub: FakeHub, error: Exception, said: str) -> None:
    hub.error = error
    ran = run("push", "--adapter", adapter, "--repo", "me/mine", "--token", "hf_secret")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert "hf_secret" not in ran.err


def test_a_mistake_of_our_own_is_not_dressed_up(run: Run, adapter: Path, hub: FakeHub) -> None:
    hub.error = TypeError("unexpected argument")
    with pytest.raises(TypeError):
        run("push", "--adapter", adapter, "--repo", "me/mine")


def test_the_real_client_offline(run: Run, adapter: Path) -> None:
    """HF_HUB_OFFLINE is set in tests: the real client refuses before it opens a connection."""
    ran = run("push", "--adapter", adapter, "--repo", "me/mine", "--token", "hf_x")
    assert ran.code == 2
    assert "was not reached" in ran.err
