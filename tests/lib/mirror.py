"""What two comparisons of the same recordings, one with its sides swapped, must have in common."""

SWAPPED = {"slower": "faster", "faster": "slower", "more-calls": "fewer-calls", "fewer-calls": "more-calls", "larger-grid": "smaller-grid",
           "smaller-grid": "larger-grid", "new": "gone", "gone": "new"}
ROUNDING_NS = 2  # of exposed times, which are shares of a sum


def swapped(word):
    return SWAPPED.get(word, word)


def differences(there, back):
    """Where `back` is not `there` with every sign changed; words for people may differ."""
    if swapped(there["verdict"]) != back["verdict"]:
        yield f"verdict: {there['verdict']}, swapped {back['verdict']}"
    if there["delta_ns_per_step"] != -back["delta_ns_per_step"]:
        yield f"delta: {there['delta_ns_per_step']}, swapped {back['delta_ns_per_step']}"
    for key in ("significant", "noise_ns", "p_value"):
        if there[key] != back[key]:
            yield f"{key}: {there[key]}, swapped {back[key]}"
    for side, other in (("before", "after"), ("after", "before")):
        if {**there[side]} != {**back[other]}:
            yield f"{side} is not told alike"
    yield from rows(there["budget"], back["budget"], "budget", lambda row: (row["owner"], row["before_ns"], row["after_ns"], row["delta_ns"]),
                    lambda row: (row["owner"], row["after_ns"], row["before_ns"], -row["delta_ns"]))
    yield from rows(there["kernels"], back["kernels"], "kernels",
                    lambda row: (row["change"], row["delta_ns"], row["before"], row["after"]),
                    lambda row: (swapped(row["change"]), -row["delta_ns"], row["after"], row["before"]))
    yield from causes(there["suspects"], back["suspects"])
    ruled = [[each["hypothesis"] for each in document["ruled_out"]] for document in (there, back)]
    if ruled[0] != ruled[1]:
        yield f"ruled out: {ruled[0]}, swapped {ruled[1]}"


def rows(there, back, what, read, read_swapped):
    one, other = [read(row) for row in there], [read_swapped(row) for row in back]
    for missing in [row for row in one if row not in other][:3]:
        yield f"{what}: {missing} is not in the swapped one"
    if len(one) != len(other):
        yield f"{what}: {len(one)} rows, swapped {len(other)}"
    if [abs(row[-1] if isinstance(row[-1], int) else row[1]) for row in one] != [abs(row[-1] if isinstance(row[-1], int) else row[1]) for row in other]:
        yield f"{what}: another order"


def causes(there, back):
    def read(cause, sign):
        return (cause["id"], cause["verdict"], cause["confidence"], sign * cause["ns_per_step"], sorted(cause["kernels"]), cause["beside_steps"])
    one, other = [read(cause, 1) for cause in there], [read(cause, -1) for cause in back]
    if sorted(one, key=str) != sorted(other, key=str):
        yield f"causes: {one}\n   swapped {other}"
    for cause in there:
        twin = [each for each in back if each["id"] == cause["id"] and each["ns_per_step"] == -cause["ns_per_step"]]
        if twin and abs(cause["exposed_ns_per_step"] + twin[0]["exposed_ns_per_step"]) > ROUNDING_NS:
            yield f"{cause['id']}: {cause['exposed_ns_per_step']} ns exposed, swapped {twin[0]['exposed_ns_per_step']}"


def itself(document):
    """Where a recording differs from itself."""
    if document["verdict"] != "no-significant-difference" or document["delta_ns_per_step"] != 0:
        yield f"verdict: {document['verdict']}, {document['delta_ns_per_step']} ns"
    if document["p_value"] not in (None, 1):
        yield f"p {document['p_value']}"
    if any(row["delta_ns"] for row in document["budget"]) or document["suspects"]:
        yield "budget or causes are not empty"
    for kernel in document["kernels"]:
        if kernel["change"] != "same" or kernel["delta_ns"] != 0:
            yield f"kernel {kernel['change']} {kernel['delta_ns']}: {kernel['before']} {kernel['after']}"
