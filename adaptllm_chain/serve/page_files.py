"""The page in the browser: plain files, sent by name."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Response

from adaptllm_chain.serve.failures import RefusalError

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
# Written out: what the system's table of types says differs from machine to machine.
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/vnd.microsoft.icon",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


def page_routes(folder: Path = FOLDER) -> APIRouter:
    """Make what sends the page.

    Args:
        folder: Where its files lie.

    Returns:
        The routes.
    """
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def index() -> Response:
        return _file(folder, INDEX)

    @router.get("/page/{name}")
    async def file(name: str) -> Response:
        return _file(folder, name)

    return router


def _file(folder: Path, name: str) -> Response:
    # Looked up among the files that are there, never joined to a path: no name leads out of the folder.
    files = {path.name: path for path in folder.iterdir() if path.is_file()} if folder.is_dir() else {}
    if INDEX not in files:
        raise RefusalError(
            "the page is not installed",
            status=404,
            code="no_page",
            expected="the files that are shipped with adaptllm-chain",
            hint="pip install --force-reinstall --no-deps adaptllm-chain; the interface works without: POST /ask",
        )
    path = files.get(name)
    kind = _TYPES.get(path.suffix) if path is not None else None
    if path is None or kind is None:
        raise RefusalError(
            f"there is no file {name!r:.80}", status=404, code="not_found", expected="a file of the page"
        )
    return Response(path.read_bytes(), headers={"Content-Type": kind, "Cache-Control": "no-cache"})
