"""The official openai package against the scripted model, strict response validation on.

usage: openai_sdk.py URL
"""

import json
import sys
import urllib.request

import openai

URL = sys.argv[1]
client = openai.OpenAI(base_url=f"{URL}/v1", api_key="test", _strict_response_validation=True)
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("look", "wait")
]


def requests_about(word):
    with urllib.request.urlopen(f"{URL}/_scripted/requests") as response:
        return [r for r in json.load(response) if word in r["body"]]


def ask(text, **more):
    options = {"model": "any-model", "messages": [{"role": "user", "content": text}]}
    return client.chat.completions.create(**{**options, **more})


def replies():
    whole = ask("text please").choices[0]
    assert whole.message.content.endswith("größe, 漢字.") and whole.finish_reason == "stop"
    chunks = list(ask("text please", stream=True, stream_options={"include_usage": True}))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.message.content
    assert chunks[-1].usage.completion_tokens > 0 and not chunks[-1].choices
    assert all(c.usage is None for c in chunks[:-1])


def tools():
    calls = ask("tools please", tools=TOOLS).choices[0].message.tool_calls
    assert [json.loads(call.function.arguments) for call in calls] == [{"at": "a", "n": 3}, {}]
    streamed = {}
    for chunk in ask("tools please", tools=TOOLS, stream=True):
        for call in chunk.choices[0].delta.tool_calls or []:
            name, arguments = streamed.get(call.index, ("", ""))
            streamed[call.index] = (name or call.function.name, arguments + (call.function.arguments or ""))
    assert [name for name, _ in streamed.values()] == ["look", "wait"]
    assert json.loads(streamed[0][1]) == {"at": "a", "n": 3}
    history = [
        {"role": "user", "content": "tools please"},
        {"role": "assistant", "tool_calls": [call.model_dump() for call in calls]},
        *({"role": "tool", "tool_call_id": call.id, "content": "done"} for call in calls),
    ]
    assert ask("", messages=history, tools=TOOLS).choices[0].message.content == "tools said done\ndone"
    for broken in (history[:3], [history[0], history[2]], history[:2]):
        try:
            ask("", messages=broken, tools=TOOLS)
        except openai.BadRequestError:
            continue
        raise AssertionError("an unpaired call was accepted")


def errors():
    expected = [
        ("status-401", openai.AuthenticationError, 1),
        ("status-403", openai.PermissionDeniedError, 1),
        ("status-404", openai.NotFoundError, 1),
        ("status-409", openai.ConflictError, 3),
        ("status-429", openai.RateLimitError, 3),
        ("status-500", openai.InternalServerError, 3),
    ]
    for word, kind, tries in expected:
        try:
            ask(word)
        except kind:
            assert len(requests_about(word)) == tries, (word, len(requests_about(word)))
            continue
        raise AssertionError(f"{word} was not refused")
    for bad in ({"colour": "red"}, {"stream_options": {"include_usage": True}}, {"messages": []}):
        try:
            ask("text", extra_body=bad)
        except openai.BadRequestError:
            continue
        raise AssertionError(f"{bad} was accepted")
    assert "claude-opus-5-5" in [model.id for model in client.models.list()]


def limits():
    limited = client.with_options(api_key="limited", max_retries=0)
    options = {"model": "any-model", "messages": [{"role": "user", "content": "text within limits"}]}
    for left in ("1", "0"):
        headers = limited.chat.completions.with_raw_response.create(**options).headers
        assert headers["x-ratelimit-limit-requests"] == "2", headers
        assert headers["x-ratelimit-remaining-requests"] == left, headers
        assert headers["x-ratelimit-limit-tokens"] == "66000", headers
        assert headers["x-ratelimit-reset-requests"].endswith("s"), headers
    for _ in ("over", "held"):
        try:
            limited.chat.completions.create(**options)
        except openai.RateLimitError as error:
            assert error.code == "rate_limit_exceeded" and error.type == "requests", error
            assert 0 < int(error.response.headers["retry-after"]) <= 30, error.response.headers
        else:
            raise AssertionError("it was not refused")
        # Later than a request that was on its way when the first one was refused.
        body = json.dumps({"advance_ms": 100}).encode()
        urllib.request.urlopen(urllib.request.Request(f"{URL}/_scripted/clock", data=body)).close()
    verdicts = [request["verdict"] for request in requests_about("text within limits")]
    assert verdicts == ["within", "within", {"over": "requests"}, "held"], verdicts
    with urllib.request.urlopen(f"{URL}/_scripted/limits") as response:
        pair = next(pair for pair in json.load(response) if pair["account"] == "limited")
    assert (pair["within"], pair["over"], pair["held"]) == (2, {"requests": 1}, 1), pair
    assert pair["limits"]["requests"]["used"] == 2 and pair["limits"]["requests"]["allowed"] >= 2, pair


for part in (replies, tools, errors, limits):
    part()
    print(part.__name__, "ok")
