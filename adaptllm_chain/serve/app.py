"""Putting the service together."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import AdaptLLMError, InvalidInputError
from adaptllm_chain.serve.access import ConcurrencyLimit, HeadAsGet, SecurityHeaders, key_check, path_of
from adaptllm_chain.serve.answering import Answering
from adaptllm_chain.serve.chat import chat_routes
from adaptllm_chain.serve.failures import failure_of
from adaptllm_chain.serve.measures import CONTENT_TYPE, Measures
from adaptllm_chain.serve.native import ask_routes, open_routes
from adaptllm_chain.serve.outgoing import JSON
from adaptllm_chain.serve.page_files import page_routes
from adaptllm_chain.serve.settings import ServerSettings

_OPENAI = "/v1/"
_ASKING = frozenset({"/ask", "/v1/chat/completions"})


def create_app(chain: AdaptiveRetrievalChain, settings: ServerSettings | None = None) -> FastAPI:
    """Make a web application of a chain.

    It answers ``GET /health``, ``GET /settings``, ``POST /ask``, ``POST /v1/chat/completions``, ``GET /v1/models``,
    ``GET /metrics``, and ``GET /`` with a page. Questions that arrive together become one ``chain.batch`` in a
    thread, whatever their mode, threshold and ``k``; streams run in threads of their own. The chain's model must stand
    being called from several threads, as ``LocalLLM`` and clients of an API do.

    It can be mounted in another application, ``app.mount("/answers", create_app(chain))``; it needs no start and no
    end. Run one process of it for a model: what is batched and limited is counted in the process.

    Args:
        chain: The chain. Clients may ask for another mode, threshold or ``k``, and for nothing else.
        settings: The operator's settings.

    Returns:
        The application.

    Raises:
        InvalidInputError: If that is no ``AdaptiveRetrievalChain``.
    """
    if not isinstance(chain, AdaptiveRetrievalChain):
        raise InvalidInputError(
            f"create_app got a {type(chain).__name__}",
            expected="an AdaptiveRetrievalChain",
            hint="create_app(AdaptiveRetrievalChain(llm=…, retriever=…))",
        )
    settings = settings or ServerSettings()
    measures = Measures(settings.batch_size)
    answering = Answering(chain, settings, measures)
    app = FastAPI(
        title="adaptllm",
        description="Answers questions; retrieves only when it helps.",
        # The interactive documentation would load scripts of other sites, which the headers forbid.
        docs_url=None,
        redoc_url=None,
        # The address would be made of headers, which behind a proxy are not those of the client.
        redirect_slashes=False,
    )
    for router in (open_routes(answering), page_routes()):
        app.include_router(router)
    for router in (ask_routes(answering), chat_routes(answering), _measures_route(measures)):
        app.include_router(router, dependencies=[Depends(key_check(settings.api_key))])

    def tell(request: HTTPConnection, error: Exception) -> Response:
        failure = measures.counted(failure_of(error))
        as_openai = path_of(request.scope).startswith(_OPENAI)
        # OpenAI's clients expect 400 wherever a request is at fault.
        status = 400 if as_openai and failure.status == 422 else failure.status
        return JSON(failure.body(as_openai=as_openai), status, dict(failure.headers))

    async def handle(request: Request, error: Exception) -> Response:
        return tell(request, error)

    for kind in (AdaptLLMError, HTTPException, Exception):
        app.add_exception_handler(kind, handle)
    app.add_middleware(
        ConcurrencyLimit, paths=_ASKING, limit=settings.max_concurrency, gauge=measures.in_flight, tell=tell
    )
    app.add_middleware(HeadAsGet)
    app.add_middleware(SecurityHeaders)
    return app


def _measures_route(measures: Measures) -> APIRouter:
    router = APIRouter()

    @router.get("/metrics")
    async def show_measures() -> Response:
        """Say what was counted, for Prometheus."""
        return Response(measures.exposition(), headers={"Content-Type": CONTENT_TYPE})

    return router
