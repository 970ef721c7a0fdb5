"""The ``nbautograd`` command: ``nbautograd lab``, ``nbautograd doctor``, ``nbautograd course``."""

from __future__ import annotations

import sys

from nbautograd.command import main

if __name__ == "__main__":
    sys.exit(main())
