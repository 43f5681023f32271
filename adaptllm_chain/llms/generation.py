"""Generation in left-padded batches, with the probability of ``<RET>`` from the same pass.

What is computed: P(output starts with the marker) = the product over the marker's tokens of the
probability of each, given the prompt and the tokens before it, from the raw logits (no temperature,
no penalties). One forward pass over the prompt followed by all but the last of the marker's tokens gives
every factor; its cache, cut back to the prompt, is where generation starts, so the probability costs
a few positions and not a second pass.
"""

from __future__ import annotations

import hashlib
import math
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from adaptllm_chain.errors import missing_extra
from adaptllm_chain.llms.encoding import EncodedPrompt, PromptEncoder

try:
    import torch
    from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList
    from transformers.generation.streamers import BaseStreamer
except ImportError as error:
    raise missing_extra(error.name or "torch", "local") from error


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen.

    Attributes:
        max_new_tokens: The most tokens an answer may have.
        temperature: 0 for greedy decoding.
        top_p: Nucleus sampling's mass; used when the temperature is above 0.
        stop: Strings at which generation ends; the marker is among them.
    """

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()

    def arguments(self, tokenizer: Any) -> dict[str, Any]:
        """Write the choice as arguments of ``model.generate``.

        Args:
            tokenizer: The model's tokenizer.

        Returns:
            Keyword arguments.
        """
        arguments: dict[str, Any] = {
            "max_new_tokens": self.max_new_tokens,
            "do_sample": self.temperature > 0,
            "pad_token_id": tokenizer.pad_token_id,
            "use_cache": True,
        }
        arguments |= {
            "temperature": self.temperature if self.temperature > 0 else None,
            "top_p": self.top_p if self.temperature > 0 else None,
            "top_k": None,
        }
        if self.stop:
            arguments |= {"stop_strings": list(self.stop), "tokenizer": tokenizer}
        return arguments


@dataclass(frozen=True, slots=True)
class Generated:
    """One output.

    Attributes:
        text: The text, nothing cut yet.
        ret_probability: P(output starts with the marker), in [0, 1].
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens that were generated, end token included.
    """

    text: str
    ret_probability: float
    prompt_tokens: int
    completion_tokens: int


@dataclass(slots=True)
class _Prefilled:
    """A batch whose prompts have been read."""

    input_ids: Any
    attention_mask: Any
    cache: Any
    ret_probabilities: list[float]

    def start(self) -> dict[str, Any]:
        """Where generation goes on from, as an argument of ``model.generate``."""
        return {} if self.cache is None else {"cache": self.cache}


def _prefill(model: Any, prompts: Sequence[EncodedPrompt], pad_id: int) -> _Prefilled:
    """Read prompts and score the marker.

    Args:
        model: A causal language model.
        prompts: A batch; all with the same number of marker tokens.
        pad_id: The padding token.

    Returns:
        Token ids and mask of shape (batch, longest prompt), the cache of all but the last prompt
        position, and the probabilities.
    """
    distinct = list({tuple(prompt.ids): prompt for prompt in prompts}.values())
    marker = torch.tensor([prompt.marker_ids for prompt in distinct])
    pieces = marker.shape[1]
    by_position = _attends_by_position(model.config)
    shared = _shared_beginning([prompt.ids for prompt in distinct]) if by_position else 0
    longest = max(len(prompt.ids) for prompt in distinct)
    ids = torch.full((len(distinct), longest), pad_id)
    mask = torch.zeros_like(ids)
    # What all prompts begin with stands left of the padding, so that it is read once for all of them.
    ids[:, :shared] = torch.tensor(distinct[0].ids[:shared])
    mask[:, :shared] = 1
    for row, prompt in enumerate(distinct):
        start = longest - len(prompt.ids) + shared
        ids[row, start:] = torch.tensor(prompt.ids[shared:])
        mask[row, start:] = 1
    seen = torch.cat([ids, marker[:, :-1]], dim=1)
    seen_mask = torch.cat([mask, torch.ones_like(marker[:, :-1])], dim=1)
    device = model.device
    cache = None
    if shared:
        cache = model(input_ids=ids[:1, :shared].to(device), use_cache=True, logits_to_keep=1).cache
        cache.batch_repeat_interleave(len(distinct))
    output = model(
        input_ids=seen[:, shared:].to(device),
        attention_mask=seen_mask.to(device),
        position_ids=(seen_mask.cumsum(-1) - 1).clamp(min=0)[:, shared:].to(device),
        cache=cache,
        use_cache=True,
        logits_to_keep=pieces,
    )
    logprobs = output.logits.float().log_softmax(-1).gather(-1, marker.to(device).unsqueeze(-1)).squeeze(-1)
    cache = output.cache
    # generate() reads the last prompt token itself, so the cache has to end before it: the marker's tokens
    # that were read (all but the last) and one of the prompt go.
    if by_position:
        cache.crop(-pieces)
    else:
        cache = None  # some caches cannot be cut, or not without loss: generation then reads the prompts again
    probabilities = [min(1.0, math.exp(value)) for value in logprobs.sum(-1).tolist()]
    if len(distinct) < len(prompts):
        # Read once, answered several times: sampling asks the same prompt again and again.
        place = {tuple(prompt.ids): row for row, prompt in enumerate(distinct)}
        rows = [place[tuple(prompt.ids)] for prompt in prompts]
        ids, mask, probabilities = ids[rows], mask[rows], [probabilities[row] for row in rows]
        if cache is not None:
            cache.batch_select_indices(torch.tensor(rows, device=device))
    return _Prefilled(ids.to(device), mask.to(device), cache, probabilities)


def _attends_by_position(config: Any) -> bool:
    """Whether a model looks at all that came before, by rotary positions.

    Only then padding may stand in the middle of a prompt (ALiBi counts keys, padding too), and only then a cache can be
    cut back (a sliding window or a recurrent state has forgotten what it would have to return to).
    """
    text = config.get_text_config()
    layers = getattr(text, "layer_types", None) or ()
    rotary = any(getattr(text, name, None) for name in ("rope_parameters", "rope_theta"))
    return rotary and not getattr(text, "sliding_window", None) and all(kind == "full_attention" for kind in layers)


def _shared_beginning(prompts: Sequence[Sequence[int]]) -> int:
    """Count the tokens that several prompts begin with; at least one stays for the pass over each prompt."""
    if len(prompts) == 1:
        return 0
    shortest, first = min(len(ids) for ids in prompts), prompts[0]
    shared = next(
        (at for at in range(shortest) if any(ids[at] != first[at] for ids in prompts[1:])),
        shortest,
    )
    shared = min(shared, shortest - 1)
    return shared if shared >= _WORTH_SHARING else 0


# A shorter common beginning costs more in a second call of the model than it saves.
_WORTH_SHARING = 8


def generate_batch(
    model: Any, encoder: PromptEncoder, prompts: Sequence[EncodedPrompt], sampling: Sampling
) -> list[Generated]:
    """Generate for one batch.

    Args:
        model: A causal language model in evaluation mode.
        encoder: Turns ids into text.
        prompts: A batch; all with the same number of marker tokens.
        sampling: How tokens are chosen.

    Returns:
        One output a prompt, in order.
    """
    tokenizer = encoder.tokenizer
    with torch.inference_mode():
        state = _prefill(model, prompts, tokenizer.pad_token_id)
        sequences = model.generate(
            input_ids=state.input_ids,
            attention_mask=state.attention_mask,
            **state.start(),
            **sampling.arguments(tokenizer),
        )
    ends = end_ids(model, tokenizer)
    outputs = []
    for row, prompt in enumerate(prompts):
        new = _until_end(sequences[row, state.input_ids.shape[1] :].tolist(), ends)
        outputs.append(Generated(encoder.decode(new), state.ret_probabilities[row], len(prompt.ids), len(new)))
    return outputs


def plain_generation_config(model: Any, tokenizer: Any) -> Any:
    """Make a generation config that leaves the choice of tokens to the caller.

    Models bring settings of their own (penalties, suppressed tokens, beams), which ``generate`` adds to
    whatever is not passed; an answer would depend on them silently.

    Args:
        model: The model.
        tokenizer: Its tokenizer.

    Returns:
        A config that holds the model's token ids and nothing else.
    """
    ends = sorted(end_ids(model, tokenizer))
    return GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=ends or None, pad_token_id=tokenizer.pad_token_id
    )


def weights_fingerprint(model: Any) -> str:
    """Hash a sample of every weight: enough to tell two models or two trainings of an adapter apart.

    Args:
        model: The model.

    Returns:
        16 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for name, weight in model.named_parameters():
        values = weight.detach().flatten()
        sample = values[:: max(1, values.numel() // _FINGERPRINT_VALUES)].float().cpu()
        digest.update(f"{name}{tuple(weight.shape)}".encode())
        digest.update(sample.numpy().tobytes())
    return digest.hexdigest()[:16]


_FINGERPRINT_VALUES = 64


def end_ids(model: Any, tokenizer: Any) -> set[int]:
    """Collect the tokens that end an output.

    Args:
        model: The model, whose generation config may name several.
        tokenizer: Its tokenizer.

    Returns:
        Token ids.
    """
    named = getattr(model.generation_config, "eos_token_id", None)
    ends = set(named) if isinstance(named, list) else {named}
    return {end for end in (*ends, tokenizer.eos_token_id) if end is not None}


def _until_end(ids: list[int], ends: set[int]) -> list[int]:
    """Keep ids up to and including the first end token: what follows is padding."""
    for position, token in enumerate(ids):
        if token in ends:
            return ids[: position + 1]
    return ids


@dataclass(slots=True)
class _Failure:
    error: BaseException


_END = object()


@dataclass(slots=True)
class TokenStream:
    """A generation that runs in a thread of its own and hands over text while it comes.

    Iterating yields pieces of text; ``ret_probability`` is set before the first. An error
    in the thread is raised in the consumer; closing the iterator stops the generation at the next token.

    Attributes:
        model: A causal language model in evaluation mode.
        encoder: Turns ids into text.
        prompt: The prompt.
        sampling: How tokens are chosen.
        lock: Held by the thread while the model runs; never by the consumer, which may pause.
        ret_probability: P(output starts with the marker), in [0, 1].
    """

    model: Any
    encoder: PromptEncoder
    prompt: EncodedPrompt
    sampling: Sampling
    lock: threading.Lock
    ret_probability: float | None = None
    _queue: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    _closed: threading.Event = field(default_factory=threading.Event)

    def __iter__(self) -> Iterator[str]:
        worker = threading.Thread(target=self._work, name="adaptllm-stream", daemon=True)
        worker.start()
        try:
            self.ret_probability = self._take()
            yield from self._texts()
        finally:
            self._closed.set()
            worker.join()

    def _take(self) -> Any:
        item = self._queue.get()
        if isinstance(item, _Failure):
            raise item.error
        return item

    def _texts(self) -> Iterator[str]:
        ids: list[int] = []
        shown = 0
        while (token := self._take()) is not _END:
            ids.append(token)
            text = self.encoder.decode(ids)
            # Half a character of several bytes decodes to U+FFFD until its other half comes.
            if len(text) > shown and not text.endswith("\ufffd"):
                yield text[shown:]
                shown = len(text)
        text = self.encoder.decode(ids)
        if len(text) > shown:
            yield text[shown:]

    def _work(self) -> None:
        tokenizer = self.encoder.tokenizer
        try:
            with self.lock, torch.inference_mode():
                state = _prefill(self.model, [self.prompt], tokenizer.pad_token_id)
                self._queue.put(state.ret_probabilities[0])
                self.model.generate(
                    input_ids=state.input_ids,
                    attention_mask=state.attention_mask,
                    **state.start(),
                    streamer=_QueueStreamer(self._queue.put),
                    stopping_criteria=StoppingCriteriaList([_StopWhen(self._closed.is_set)]),
                    **self.sampling.arguments(tokenizer),
                )
            self._queue.put(_END)
        except BaseException as error:
            self._queue.put(_Failure(error))


class _QueueStreamer(BaseStreamer):  # type: ignore[misc]
    """Hands every new token to a callable; the first thing ``generate`` puts is the prompt."""

    def __init__(self, put: Callable[[int], None]) -> None:
        self._put = put
        self._prompt_seen = False

    def put(self, value: Any) -> None:
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        for token in value.flatten().tolist():
            self._put(token)

    def end(self) -> None:
        """Nothing to flush."""


class _StopWhen(StoppingCriteria):  # type: ignore[misc]
    """Ends generation once a condition holds."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition = condition

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        return torch.full((input_ids.shape[0],), self._condition(), dtype=torch.bool, device=input_ids.device)
