"""An adapter's folder on its way to the hub: what may go, and what the hub's refusals mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaptllm_chain.errors import AdaptLLMError, InvalidInputError, missing_extra
from adaptllm_chain.prompts.spec import FILE_NAME as PROMPT_SPEC
from adaptllm_chain.publishing.adapter_files import CONFIG_FILE, WEIGHTS_FILE, is_hub_name, read_adapter

_CARD = "README.md"
_NEEDED = (CONFIG_FILE, WEIGHTS_FILE, PROMPT_SPEC, _CARD)
# All that belongs to an adapter. A list of what goes, not of what stays: a folder may hold anything.
_ALLOWED = (
    *_NEEDED,
    "recipe.yaml",
    "result.json",
    "curves.png",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
)
_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SIGN_IN = "hf auth login, or HF_TOKEN=…; tokens that may write are made at https://huggingface.co/settings/tokens"
_UNAUTHORISED, _FORBIDDEN, _NOT_FOUND = 401, 403, 404


@dataclass(frozen=True, slots=True)
class Upload:
    """A folder that was checked.

    Attributes:
        folder: The adapter's folder.
        repo: Where it goes, as ``user/name``.
        files: The files that go, and their sizes in bytes.
    """

    folder: Path
    repo: str
    files: Mapping[str, int]

    @property
    def address(self) -> str:
        """Where it can be looked at."""
        return f"https://huggingface.co/{self.repo}"

    @classmethod
    def check(cls, folder: Path, repo: str) -> Upload:
        """Make sure that a folder holds an adapter that others can use.

        Args:
            folder: The adapter's folder.
            repo: Where it shall go.

        Returns:
            What would be uploaded.

        Raises:
            InvalidInputError: If a file is missing, the card cannot be read, or the base is a place on this disk.
        """
        if not _REPO.fullmatch(repo):
            raise InvalidInputError(f"--repo {repo!r} is no name on the hub", expected="USER/NAME")
        missing = [name for name in _NEEDED if not (folder / name).is_file()]
        if missing:
            raise InvalidInputError(
                f"{str(folder)!r} lacks {', '.join(missing)}",
                expected=f"an adapter's folder, as training/sft.py writes it: {', '.join(_NEEDED)}",
                hint="--adapter with the folder that was --out of training/sft.py",
            )
        files = read_adapter(folder)
        files.prompt_spec()
        if files.base_on_hub is None:
            raise InvalidInputError(
                f"the adapter says that its base is {files.base!r}, which is a place on this disk",
                expected="the base's name on the hub, so that others can load it",
                hint=f"write it into {folder / CONFIG_FILE} (base_model_name_or_path), and into {_CARD} (base_model)",
            )
        _check_card(folder / _CARD)
        return cls(
            folder, repo, {name: (folder / name).stat().st_size for name in _ALLOWED if (folder / name).is_file()}
        )

    def send(self, *, private: bool = False, token: str | None = None) -> str:
        """Upload the files in one commit.

        Args:
            private: Whether a repository that is made now is private.
            token: A token that may write; by default the one that this machine is signed in with.

        Returns:
            The address of the repository.

        Raises:
            AdaptLLMError: If the hub refuses, or is not reached.
        """
        hub = _hub()
        from huggingface_hub.errors import HfHubHTTPError

        if token is None and hub.get_token() is None:
            raise InvalidInputError(
                "no token for the hub was passed, and this machine is not signed in",
                expected="a token that may write",
                hint=_SIGN_IN,
            )
        api = hub.HfApi(token=token)
        try:
            address = api.create_repo(self.repo, repo_type="model", private=private or None, exist_ok=True)
            api.upload_folder(
                repo_id=self.repo,
                repo_type="model",
                folder_path=self.folder,
                allow_patterns=list(self.files),
                commit_message="Upload an adapter with adaptllm push",
            )
        except HfHubHTTPError as error:
            raise self._refusal(error) from error
        except ValueError as error:  # the hub's own reading of the card
            raise InvalidInputError(
                f"the hub does not take the folder: {str(error).splitlines()[0]}",
                expected=f"a {_CARD} whose header is valid",
            ) from error
        except Exception as error:
            if not _is_network(error):
                raise
            raise AdaptLLMError(
                f"{self.address} was not reached: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
                expected="a network that reaches the hub, and HF_HUB_OFFLINE not set",
                hint="--dry-run checks the folder without a network",
            ) from error
        return str(address)

    def _refusal(self, error: Any) -> AdaptLLMError:
        status = error.response.status_code
        owner = self.repo.split("/", 1)[0]
        if status == _UNAUTHORISED:
            return AdaptLLMError("the hub does not know the token", expected="a token that is valid", hint=_SIGN_IN)
        if status in {_FORBIDDEN, _NOT_FOUND}:
            return AdaptLLMError(
                f"the token may not write to {self.repo} (the hub said {status})",
                expected=f"a token that may write, of {owner!r} or of a member of that organisation",
                hint="--repo with your own user name (hf auth whoami), or another --token",
            )
        said = error.server_message or str(error).splitlines()[0]
        return AdaptLLMError(f"the hub refused with {status}: {said}", hint="https://status.huggingface.co, or later")


def _check_card(path: Path) -> None:
    hub = _hub()
    try:
        data = hub.ModelCard.load(path).data
    except Exception as error:  # YAML errors, and whatever the reader of cards makes of odd fields
        raise InvalidInputError(
            f"the header of {str(path)!r} cannot be read: {str(error).splitlines()[0]}", expected="YAML between two ---"
        ) from error
    named = data.base_model if isinstance(data.base_model, list) else [data.base_model]
    if odd := [name for name in named if name is not None and not is_hub_name(str(name))]:
        raise InvalidInputError(
            f"{str(path)!r} names the base {odd[0]!r}, which is a place on this disk",
            expected="base_model: a name on the hub",
        )


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise missing_extra("huggingface_hub", "local") from error
    return huggingface_hub


def _is_network(error: Exception) -> bool:
    """Tell trouble with the network from trouble with the program; the hub's client is httpx under two names."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in {"httpx", "httpx2", "httpcore"}
