"""Plans, and what the walker tells, judged by them."""

import json
import re

from harness import HERE, LEGACY, MODERN

ALL = [*LEGACY, MODERN]

# What a server does though it should not: the server, what is told of it, why.
# Whatever it is, our client goes on, and the steps are checked all the same.
FLAWS = [
    ("mcp-1.30", {"event": "ignored", "what": "UnknownResponse"}, "it answers requests that were cancelled"),
    ("everything", {"event": "ignored", "what": "UnknownProgress"}, "it reports on operations that were cancelled"),
    ("everything", {"step": "end", "after": "Terminate"}, "it stays when its stdin ends"),
]

CONDITIONS = {"from", "until", "on", "servers", "why"}
STEP_KEYS = {
    "do", "name", "of", "argument", "value", "arguments", "params", "progress", "logs", "timeout", "cancel_after", "mood",
    "times", "uris", "tools", "prompts", "resources", "changes", "await", "wait", "then", "expect", "skip", "instead",
}
EXPECT_KEYS = {"text", "result", "answers", "events", "counts", "none", "names", "error", "failure", "is_error"}
# What has no answer of its own.
SILENT = {"level", "roots"}


class Mismatch(Exception):
    """Something is not as the plan has it."""


def load_plan(name, folder):
    plan = json.loads((HERE / f"plans/{name}.json").read_text().replace("$FOLDER", str(folder)))
    for step in all_steps(plan["steps"]):
        check_form(step)
    return plan


def check_form(step):
    """A plan with a word that nobody reads would pass without having said anything."""
    rows = step.get("skip", []) + step.get("instead", [])
    wrong = set(step) - STEP_KEYS
    wrong |= {key for row in rows for key in set(row) - CONDITIONS - {"expect"}}
    for expect in [step.get("expect", {}), *(row.get("expect", {}) for row in rows)]:
        wrong |= set(expect) - EXPECT_KEYS
    if wrong or not all(row.get("why") for row in rows):
        raise SystemExit(f"interop: {wrong or 'a row without why'} in {step}")
    if not step.get("expect") and step["do"] not in SILENT:
        raise SystemExit(f"interop: nothing is expected of {step}")


def all_steps(steps):
    for step in steps:
        yield step
        yield from all_steps(step.get("then", []))


def matches(row, where):
    server, transport, revision = where
    return (
        row.get("from", ALL[0]) <= revision <= row.get("until", MODERN)
        and transport in row.get("on", [transport])
        and server in row.get("servers", [server])
    )


def choose(steps, where):
    """The steps that are taken there, and those that are not, with the reason."""
    taken, skipped = [], []
    for step in steps:
        why = next((row["why"] for row in step.get("skip", []) if matches(row, where)), None)
        if why:
            skipped.append((title(step), why))
            continue
        other = next((row["expect"] for row in step.get("instead", []) if matches(row, where)), None)
        inner, left_out = choose(step.get("then", []), where)
        skipped += left_out
        taken.append({**step, **({"expect": other} if other else {}), **({"then": inner} if inner else {})})
    return taken, skipped


def title(step):
    what = step.get("name") or " ".join(step.get("uris", [])) or step.get("await", "")
    return f"{step['do']} {what}".strip()


def within(expected, found, where=""):
    """Whether all that is expected is there. Strings that begin with ~ are regular expressions."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key not in found:
                raise Mismatch(f"{where}.{key} is missing in {found}"[:500])
            within(value, found[key], f"{where}.{key}")
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            raise Mismatch(f"{where} has {len(found)} elements, not {len(expected)}")
        for at, (a, b) in enumerate(zip(expected, found)):
            within(a, b, f"{where}[{at}]")
    elif isinstance(expected, str) and expected.startswith("~"):
        if not re.search(expected[1:], str(found)):
            raise Mismatch(f"{where} is {found!r}"[:500] + f", which has no /{expected[1:]}/")
    elif expected != found or isinstance(expected, bool) != isinstance(found, bool):
        raise Mismatch(f"{where} is {found!r}"[:500] + f", not {expected!r}")


def is_within(expected, found):
    try:
        within(expected, found)
        return True
    except Mismatch:
        return False


def is_flaw(server, event):
    return any(whose == server and is_within(what, event) for whose, what, _ in FLAWS)


def check_step(server, step, came):
    """What came of a step, against the plan's `expect`."""
    expect, events = step.get("expect", {}), came.get("events", [])
    check_events(server, came)
    if came.get("flaws"):
        raise Mismatch(f"flaws: {came['flaws']}")
    inner = [event["came"] for event in events if event["event"] == "then"]
    refused = any(event["event"] == "done" for event in events)
    if refused and {"event": "done"} not in [{"event": one["event"]} for one in expect.get("events", [])]:
        raise Mismatch(f"the listen has ended: {events}")
    if not refused and len(inner) != len(step.get("then", [])):
        raise Mismatch(f"{len(inner)} inner steps were taken")
    for one, result in zip(step.get("then", []), inner, strict=not refused):
        check_step(server, one, result)
    check_outcome(step, expect, came)
    check_counts(expect, events)
    if "names" in expect:
        check_names(expect["names"], came["items"], came["name"])


def check_outcome(step, expect, came):
    if "error" in expect:
        within({"code": expect["error"]}, came.get("error") or {"instead": came}, "error")
        return
    if "failure" in expect:
        within("~" + expect["failure"], came.get("failure"), "failure")
        return
    if "error" in came or "failure" in came:
        raise Mismatch(f"{came.get('error') or came.get('failure')}")
    if step["do"] == "call" and ("cancel_after" in step) != ("cancelled" in came):
        raise Mismatch(f"it was not cancelled: {came}")
    result = came.get("result") or {}
    if step["do"] == "call" and "cancelled" not in came:
        within(expect.get("is_error", False), result.get("isError", False), "isError")
    if "text" in expect:
        texts = [piece.get("text", "") for piece in result.get("content", [])]
        within("~" + expect["text"], "\n".join(texts), "text")
    for key in {"result", "answers"} & set(expect):
        within(expect[key], came[key], key)


def check_counts(expect, events):
    left = iter(events)
    for event in expect.get("events", []):
        if not any(is_within(event, other) for other in left):
            raise Mismatch(f"no event like {event} (in that order) among {events}")
    for name, least in expect.get("counts", {}).items():
        if (count := sum(event["event"] == name for event in events)) < least:
            raise Mismatch(f"{count} events {name}, not {least}")
    for name in expect.get("none", []):
        if any(event["event"] == name for event in events):
            raise Mismatch(f"there are events {name}")


def check_events(server, came):
    """Nothing odd; and of what was cancelled, nothing but one report that was under way."""
    late = came.get("late", [])
    for event in came.get("events", []):
        odd = event["event"] in ("ignored", "other") or event.get("failure")
        if odd and event not in late and not is_flaw(server, event):
            raise Mismatch(f"odd: {event}")
    under_way = {"event": "ignored", "what": "UnknownProgress"}
    rest = [event for event in late if not is_flaw(server, event) and event["event"] not in ("log", "changed")]
    if rest not in ([], [under_way]):
        raise Mismatch(f"after it was cancelled: {rest}")


def names_of(items):
    return [item.get("uriTemplate") or item.get("uri") or item["name"] for item in items]


def check_names(offer, items, what, revision=MODERN):
    found = names_of(items)
    always = list(offer.get("always", []))
    for since, names in offer.get("since", {}).items():
        always += names if since <= revision else []
    missing = [name for name in always if name not in found]
    known = always + offer.get("maybe", [])
    more = [name for name in found if not any(re.fullmatch(one, name) or one == name for one in known)]
    if missing or more or len(set(found)) != len(found):
        raise Mismatch(f"{what}: missing {missing}, not in the plan {more}, all {found}")


def check_list(where, plan, came):
    server, _, revision = where
    what = came["name"]
    check_step(server, {"do": "list"}, came)
    if what not in plan["offers"]:
        raise Mismatch(f"{what} are not in the plan")
    check_names(plan["offers"][what], came["items"], what, revision)
    within(plan.get("pages", {}).get(server, {}).get(what, 1), came["pages"], "pages")


# Which steps use what is in a list.
USES = {"tools": ("call", "many"), "resources": ("read",), "prompts": ("prompt",), "templates": ("read",)}


def unused(plan, what, items):
    """What is offered and in no step of the plan."""
    used = [step.get("name") for step in all_steps(plan["steps"]) if step["do"] in USES[what]]
    stems = {name: name.split("{")[0] for name in names_of(items)}
    if what == "templates":
        return [name for name, stem in stems.items() if not any(one.startswith(stem) for one in used)]
    return [name for name in stems if name not in used]
