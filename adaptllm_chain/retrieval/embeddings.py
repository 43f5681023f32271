"""Embedders as LangChain ``Embeddings``: Contriever as its paper pools it, and sentence-transformers models.

Contriever (Izacard et al. 2022, "Unsupervised Dense Information Retrieval with Contrastive Learning",
section 3.1): a text's vector is the average of the hidden states of the last layer, and the relevance of
a passage to a query is the dot product of their vectors. Nothing is normalised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from langchain_core.embeddings import Embeddings

from adaptllm_chain.errors import InvalidInputError, UnsupportedHardwareError, missing_extra
from adaptllm_chain.minilm import MINILM_NAME, minilm_folder
from adaptllm_chain.quiet_loading import quiet_transformers
from adaptllm_chain.retrieval.arrays import FloatMatrix, np
from adaptllm_chain.retrieval.identity import Identity

if TYPE_CHECKING:
    import torch

Device = Literal["cpu", "cuda", "auto"]
DType = Literal["float32", "float16", "bfloat16"]

CONTRIEVER = "facebook/contriever-msmarco"
# Contriever was trained on BERT's 512 positions.
_MAX_TOKENS = 512
_SAMPLED_VALUES = 8


class ContrieverEmbeddings(Embeddings):
    """Contriever, or any BERT-like encoder whose vectors are the mean of its last hidden states.

    Args:
        model: A transformers encoder; used as it is, on the device where it is.
        tokenizer: Its tokenizer.
        name: What the model is called in the manifest of an index.
        batch_size: Texts a forward pass.
        max_tokens: Tokens kept of a text, special tokens included; lowered to what the model has positions for.

    Raises:
        InvalidInputError: If ``batch_size`` or ``max_tokens`` is below 1.
    """

    # A query gets the vector that a passage of the same words gets: one encoder serves both.
    symmetric = True

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str = "contriever",
        batch_size: int = 32,
        max_tokens: int = _MAX_TOKENS,
    ) -> None:
        _at_least_one("batch_size", batch_size)
        _at_least_one("max_tokens", max_tokens)
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.name = name
        self.batch_size = batch_size
        positions = getattr(model.config, "max_position_embeddings", None) or max_tokens
        self.max_tokens = min(max_tokens, int(positions), int(tokenizer.model_max_length))
        self.dimension = int(model.config.hidden_size)
        self._weights = _weights_fingerprint(model)

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path = CONTRIEVER,
        *,
        device: Device = "auto",
        batch_size: int = 32,
        dtype: DType = "float32",
        max_tokens: int = _MAX_TOKENS,
        local_files_only: bool = False,
    ) -> ContrieverEmbeddings:
        """Load from the Hugging Face Hub or from a folder.

        Args:
            model: A name on the Hub, or a folder with the model and its tokenizer.
            device: ``"cpu"``, ``"cuda"`` or, the default, ``"auto"``: CUDA where there is a device, else the CPU.
            batch_size: Texts a forward pass.
            dtype: Of the weights; vectors are float32 in any case.
            max_tokens: Tokens kept of a text.
            local_files_only: Whether to refuse to use the network.

        Returns:
            The embedder.

        Raises:
            InvalidInputError: If an argument is unknown or no such model can be loaded.
            UnsupportedHardwareError: If CUDA is asked for and there is none.
            MissingExtraError: If torch or transformers is not installed.
        """
        if dtype not in get_args(DType):
            raise InvalidInputError(f"dtype is {dtype!r}", expected=f"one of {get_args(DType)}")
        torch, transformers = _import_torch(), _import_transformers()
        place = resolve_device(device)
        with quiet_transformers("embeddings"):
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(str(model), local_files_only=local_files_only)
                encoder = transformers.AutoModel.from_pretrained(
                    str(model), dtype=getattr(torch, dtype), local_files_only=local_files_only
                )
            except (OSError, ValueError) as error:
                raise _cannot_load(model, error) from error
        # The pooler is not part of Contriever: absent from its checkpoint, it would be drawn at random.
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler = None
        return cls(encoder.to(place), tokenizer, name=_model_name(model), batch_size=batch_size, max_tokens=max_tokens)

    @property
    def device(self) -> str:
        """Where the vectors are computed, e.g. ``"cpu"`` or ``"cuda:0"``."""
        return str(self.model.device)

    @property
    def identity(self) -> Identity:
        """What an index remembers of this embedder; the same for the same weights in float32 and bfloat16."""
        return {
            "name": self.name,
            "pooling": "mean",
            "normalisation": "none",
            "dimension": self.dimension,
            "max_tokens": self.max_tokens,
            "weights": self._weights,
        }

    def embed_matrix(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed texts, those of like length together, so that little is computed for padding.

        Args:
            texts: The texts; an empty one has the vector of its special tokens.

        Returns:
            float32, shape ``[len(texts), dimension]``, in the order of ``texts``.
        """
        matrix = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if not texts:
            return matrix
        token_ids = self.tokenizer(list(texts), truncation=True, max_length=self.max_tokens)["input_ids"]
        # Longest first: what does not fit into memory fails at once, not after hours.
        order = sorted(range(len(texts)), key=lambda row: -len(token_ids[row]))
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            matrix[rows] = self._forward([token_ids[row] for row in rows])
        return matrix

    def _forward(self, token_ids: list[list[int]]) -> FloatMatrix:
        torch = _import_torch()
        batch = self.tokenizer.pad({"input_ids": token_ids}, return_tensors="pt").to(self.model.device)
        with torch.inference_mode():
            hidden = self.model(**batch).last_hidden_state
            pooled: FloatMatrix = masked_mean(hidden, batch["attention_mask"]).cpu().numpy()
        return pooled

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages.

        Args:
            texts: The passages.

        Returns:
            One vector a passage, not normalised.
        """
        vectors: list[list[float]] = self.embed_matrix(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed a query.

        Args:
            text: The query.

        Returns:
            Its vector, not normalised.
        """
        return self.embed_documents([text])[0]


class SentenceEmbeddings(Embeddings):
    """Any sentence-transformers model, pooled and normalised as its own configuration says.

    Args:
        model: A ``SentenceTransformer``; used as it is.
        name: What the model is called in the manifest of an index.
        batch_size: Texts a forward pass.

    Raises:
        InvalidInputError: If ``batch_size`` is below 1.
    """

    def __init__(self, model: Any, *, name: str = "sentence-transformers", batch_size: int = 32) -> None:
        _at_least_one("batch_size", batch_size)
        self.model = model
        self.name = name
        self.batch_size = batch_size
        self.dimension = int(model.get_embedding_dimension())
        self._weights = _weights_fingerprint(model)

    @classmethod
    def from_pretrained(
        cls, model: str | Path, *, device: Device = "auto", batch_size: int = 32, local_files_only: bool = False
    ) -> SentenceEmbeddings:
        """Load from the Hugging Face Hub or from a folder.

        Args:
            model: A name on the Hub, or a folder.
            device: ``"cpu"``, ``"cuda"`` or, the default, ``"auto"``: CUDA where there is a device, else the CPU.
            batch_size: Texts a forward pass.
            local_files_only: Whether to refuse to use the network.

        Returns:
            The embedder.

        Raises:
            InvalidInputError: If no such model can be loaded.
            UnsupportedHardwareError: If CUDA is asked for and there is none.
            MissingExtraError: If sentence-transformers is not installed.
        """
        place = resolve_device(device)
        with quiet_transformers("embeddings"):
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError as error:
                raise missing_extra("sentence-transformers", "embeddings") from error
            try:
                encoder = SentenceTransformer(str(model), device=place, local_files_only=local_files_only)
            except (OSError, ValueError) as error:
                raise _cannot_load(model, error) from error
        return cls(encoder, name=_model_name(model), batch_size=batch_size)

    @property
    def device(self) -> str:
        """Where the vectors are computed, e.g. ``"cpu"`` or ``"cuda:0"``."""
        return str(self.model.device)

    @property
    def identity(self) -> Identity:
        """What an index remembers of this embedder."""
        modules = list(self.model)
        pooling = next((mode for mode in (getattr(m, "pooling_mode", None) for m in modules) if mode), "unknown")
        normalised = any(type(module).__name__ == "Normalize" for module in modules)
        return {
            "name": self.name,
            "pooling": str(pooling),
            "normalisation": "l2" if normalised else "none",
            "dimension": self.dimension,
            "max_tokens": self.model.max_seq_length,
            "weights": self._weights,
        }

    def embed_matrix(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages, with the model's own prompt for passages where it has one.

        Args:
            texts: The passages.

        Returns:
            float32, shape ``[len(texts), dimension]``.
        """
        return self._encode(self.model.encode_document, texts)

    def embed_query_matrix(self, queries: Sequence[str]) -> FloatMatrix:
        """Embed queries, with the model's own prompt for queries where it has one.

        Args:
            queries: The queries.

        Returns:
            float32, shape ``[len(queries), dimension]``.
        """
        return self._encode(self.model.encode_query, queries)

    def _encode(self, encode: Any, texts: Sequence[str]) -> FloatMatrix:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        vectors = encode(list(texts), batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages.

        Args:
            texts: The passages.

        Returns:
            One vector a passage.
        """
        vectors: list[list[float]] = self.embed_matrix(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed a query.

        Args:
            text: The query.

        Returns:
            Its vector.
        """
        vector: list[float] = self.embed_query_matrix([text])[0].tolist()
        return vector


def embedded_embeddings(*, device: Device = "cpu", batch_size: int = 32) -> SentenceEmbeddings:
    """Load all-MiniLM-L6-v2 out of a PyPI package: small, and no network is used.

    Args:
        device: ``"cpu"``, the default (the model is small), ``"cuda"`` or ``"auto"``.
        batch_size: Texts a forward pass.

    Returns:
        The embedder: 384 dimensions, normalised to length 1.

    Raises:
        MissingExtraError: If the package is not installed.
    """
    embeddings = SentenceEmbeddings.from_pretrained(
        minilm_folder(), device=device, batch_size=batch_size, local_files_only=True
    )
    embeddings.name = MINILM_NAME
    return embeddings


def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Average hidden states over the tokens that are not padding.

    Args:
        hidden: Shape ``[batch, tokens, dimension]``.
        mask: 1 for a token, 0 for padding; shape ``[batch, tokens]``.

    Returns:
        float32, shape ``[batch, dimension]``.
    """
    weights = mask.unsqueeze(-1).to(hidden.device).float()
    return (hidden.float() * weights).sum(dim=1) / weights.sum(dim=1)


def resolve_device(device: Device) -> str:
    """Turn the choice of a device into one that exists.

    Args:
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``: CUDA where there is a device, else the CPU.

    Returns:
        ``"cpu"`` or ``"cuda"``.

    Raises:
        InvalidInputError: If the name is unknown.
        UnsupportedHardwareError: If CUDA is asked for and there is none.
    """
    if device not in get_args(Device):
        raise InvalidInputError(f"device is {device!r}", expected=f"one of {get_args(Device)}")
    if device == "cpu":
        return "cpu"
    available = _import_torch().cuda.is_available()
    if device == "cuda" and not available:
        raise UnsupportedHardwareError(
            "device is 'cuda', but torch sees no CUDA device",
            expected="a GPU, its driver, and a CUDA build of torch",
            hint='device="auto" or device="cpu"',
        )
    return "cuda" if available else "cpu"


def _weights_fingerprint(model: Any) -> str:
    """Hash the first values of every tensor: enough to tell checkpoints apart, and quick.

    Rounded to bfloat16, so that one checkpoint loaded in float32 or in bfloat16 is one model.
    """
    torch = _import_torch()
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        if "pooler." in name or "position_ids" in name:
            continue
        sample = tensor.detach().reshape(-1)[:_SAMPLED_VALUES].to("cpu", torch.bfloat16)
        digest.update(f"{name}{tuple(tensor.shape)}".encode())
        digest.update(sample.view(torch.int16).numpy().tobytes())
    return digest.hexdigest()[:16]


def _model_name(model: str | Path) -> str:
    """Name a folder by its last part: where it lies is no part of what it is."""
    path = Path(model)
    return path.resolve().name if path.is_dir() else str(model)


def _cannot_load(model: str | Path, error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"no embedding model could be loaded from {str(model)!r} ({str(error).splitlines()[0]})",
        expected="a name on the Hugging Face Hub, or a folder with a model and its tokenizer",
        hint=f"hf download {model} --local-dir ./model, and pass './model'",
    )


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise InvalidInputError(f"{name} is {value!r}", expected="a whole number of 1 or more")


def _import_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise missing_extra("torch", "embeddings") from error
    return torch


def _import_transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise missing_extra("transformers", "embeddings") from error
    return transformers
