"""`python -m capacity` is the command `capacity`."""
import sys

from .cli import main

sys.exit(main())
