"""``python -m adaexplore.cli``."""

from adaexplore.cli import main

raise SystemExit(main())
