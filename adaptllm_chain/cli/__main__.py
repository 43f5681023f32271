"""``python -m adaptllm_chain.cli``."""

import sys

from adaptllm_chain.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
