"""Cuts a Chrome trace to its first steps without touching what it keeps.

Events are sliced as text, so times keep every digit; only an event that outlives the cut is
rewritten, to end there. Reads pretty-printed Kineto files and bare arrays alike.
"""

import json
import re
from decimal import Decimal

STEP_MARK = re.compile(r"ProfilerStep#\d+|step\[DECODE .*\]")
DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset"}
_SPACE = re.compile(r"[\s,]*")
# Decimal, not float: 13 digits of microseconds and 3 of fraction do not fit a double for sure.
_DECODER = json.JSONDecoder(parse_float=Decimal, strict=False)


class NotATrace(Exception):
    pass


def split_events(text):
    """(head, [(event, its text)], tail); head + events + tail is the document."""
    start = text.find('"traceEvents"')
    start = text.find("[", max(start, 0)) + 1
    if start == 0 or not text.lstrip().startswith(("{", "[")):
        raise NotATrace("no event array")
    at, events = start, []
    while True:
        at = _SPACE.match(text, at).end()
        if at >= len(text):
            raise NotATrace("the event array does not end")
        if text[at] == "]":
            return text[:start], events, text[at:]
        try:
            event, end = _DECODER.raw_decode(text, at)
        except ValueError as error:
            raise NotATrace(str(error)) from None
        events.append((event, text[at:end]))
        at = end


class Trace:
    """A parsed trace; `steps` is the number of its decode steps. Raises NotATrace."""

    def __init__(self, text):
        self.text = text
        self.head, self.events, self.tail = split_events(text)
        self.marks = sorted(Decimal(e["ts"]) for e, _ in self.events
                            if e.get("ph") == "X" and STEP_MARK.fullmatch(e.get("name", ""))
                            and e.get("cat", "") != "gpu_user_annotation")
        self.steps = len(self.marks)

    def first_steps(self, keep):
        """The text of the first `keep` steps; the whole text if there are no more."""
        if self.steps <= keep:
            return self.text
        end = self.marks[keep]
        before = [e for e, _ in self.events if e.get("ph") != "M" and Decimal(e.get("ts", 0)) < end]
        launched = {e["args"]["correlation"] for e in before if e.get("cat") in ("cuda_runtime", "cuda_driver")}
        flows = {e.get("id") for e in before if e.get("ph") == "s"}
        kept = (keep_event(event, source, end, launched, flows) for event, source in self.events)
        return self.head + "\n" + ",\n".join(filter(None, kept)) + "\n" + self.tail


def keep_event(event, source, end, launched, flows):
    """The text that stays of an event when the trace ends at `end`; None: nothing."""
    phase = event.get("ph")
    if phase == "M":
        return source
    if phase == "f":
        return source if event.get("id") in flows else None
    if event.get("cat") in DEVICE_CATEGORIES:
        # A step's last kernels may end after the next mark: the launch decides.
        return source if event.get("args", {}).get("correlation") in launched else None
    if event.get("name") == "Record Window End":
        return re.sub(r'("ts"\s*:\s*)[0-9.]+', lambda m: m[1] + str(end), source, count=1)
    begin = Decimal(event.get("ts", 0))
    return cut(event, source, begin, end) if begin < end else None


def cut(event, source, begin, end):
    if event.get("ph") != "X" or begin + Decimal(event.get("dur", 0)) <= end:
        return source
    return re.sub(r'("dur"\s*:\s*)[0-9.]+', lambda m: m[1] + str(end - begin), source, count=1)


def redact(text, names):
    """Replaces paths and host names of the recording machine; `names` maps text to its stand-in."""
    for name, stand_in in sorted(names.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(name, stand_in)
    return text
