"""The chain as an HTTP service: a JSON interface, OpenAI's interface, measures for Prometheus, and a page.

``create_app(chain)`` makes a FastAPI application, to be run with uvicorn or mounted in an application of yours::

    app = create_app(chain, ServerSettings(model="my model", api_key="…"))
    mine.mount("/answers", app)
"""

from __future__ import annotations

from adaptllm_chain.errors import missing_extra

try:
    import fastapi
    import prometheus_client
    import uvicorn
except ImportError as error:
    raise missing_extra(error.name or "fastapi", "serve") from error

from adaptllm_chain.serve.app import create_app
from adaptllm_chain.serve.settings import ServerSettings

# Imported here to find out once, and in one place, whether they are there.
del fastapi, prometheus_client, uvicorn

__all__ = ["ServerSettings", "create_app"]
