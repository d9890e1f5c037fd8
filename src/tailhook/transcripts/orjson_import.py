"""Imports orjson such that Ctrl-C at any moment raises KeyboardInterrupt.

The imports of orjson 3.13.0 itself end the process with SIGSEGV if one of them raises anything. So these modules
are imported before it: an imported module is found without running any code that could raise.
"""

import dataclasses  # noqa: F401 - for orjson
import datetime  # noqa: F401
import enum  # noqa: F401
import json  # noqa: F401
import uuid  # noqa: F401
import zoneinfo  # noqa: F401 - by releases before 3.13

import orjson

__all__ = ["orjson"]
