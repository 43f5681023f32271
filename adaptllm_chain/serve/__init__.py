"""The chain as an HTTP service, with a page."""
