"""`python -m yourturn.demo`."""

import sys

from . import main

sys.exit(main())
