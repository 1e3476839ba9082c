"""`python -m tapeless`: the same as the `tapeless` command."""

import sys

from tapeless.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
