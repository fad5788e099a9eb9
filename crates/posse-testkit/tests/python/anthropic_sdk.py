"""The official anthropic package against the scripted model, strict response validation on.

usage: anthropic_sdk.py URL CONFORMANCE_JSONL URL_OF_BUILT_IN_SCRIPT
"""

import datetime
import json
import sys
import time
import urllib.request

import anthropic

URL, CONFORMANCE = sys.argv[1], sys.argv[2]
MODEL = "claude-opus-5-5"
client = anthropic.Anthropic(base_url=URL, api_key="test", _strict_response_validation=True)
TOOLS = [
    {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}},
    {"name": "wait", "description": "Waits.", "input_schema": {"type": "object"}},
]


def requests_about(word):
    with urllib.request.urlopen(f"{URL}/_scripted/requests") as response:
        return [r for r in json.load(response) if word in r["body"]]


def ask(text, **more):
    options = {"model": MODEL, "max_tokens": 1000, "messages": [{"role": "user", "content": text}]}
    return client.messages.create(**{**options, **more})


def replies():
    message = ask("text please")
    assert message.content[0].text.endswith("größe, 漢字."), message
    assert message.stop_reason == "end_turn" and message.usage.output_tokens > 0
    assert ask("refuse this").stop_reason == "refusal"

    kinds = []
    with client.messages.stream(
        model=MODEL, max_tokens=1000, messages=[{"role": "user", "content": "text please"}]
    ) as stream:
        for event in stream:
            kinds.append(event.type)
        final = stream.get_final_message()
    assert final.content[0].text == message.content[0].text
    assert final.usage.output_tokens == message.usage.output_tokens
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds
    raw = ask("text please", stream=True)
    assert "content_block_delta" in [event.type for event in raw]
    body = urllib.request.Request(
        f"{URL}/v1/messages",
        headers={"x-api-key": "k", "anthropic-version": "2026-10-21"},
        data=json.dumps(
            {"model": MODEL, "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "text"}]}
        ).encode(),
    )
    assert b"event: ping" in urllib.request.urlopen(body).read()


def thinking():
    first = ask("think", thinking={"type": "adaptive"})
    block = first.content[0]
    assert block.type == "thinking" and block.thinking and block.signature
    with client.messages.stream(
        model=MODEL, max_tokens=1000, messages=[{"role": "user", "content": "think"}], thinking={"type": "adaptive"}
    ) as stream:
        streamed = stream.get_final_message()
    assert streamed.content[0].signature == block.signature, "bound to the same prompt"
    history = [{"role": "user", "content": "think"}, {"role": "assistant", "content": first.content}]
    again = history + [{"role": "user", "content": "think again"}]
    ask("", messages=again, thinking={"type": "adaptive"})


def tools():
    first = ask("tools please", tools=TOOLS)
    calls = [block for block in first.content if block.type == "tool_use"]
    assert [call.input for call in calls] == [{"at": "a", "n": 3}, {}], calls
    assert first.stop_reason == "tool_use"
    with client.messages.stream(
        model=MODEL, max_tokens=1000, tools=TOOLS, messages=[{"role": "user", "content": "tools please"}]
    ) as stream:
        streamed = stream.get_final_message()
    assert [b.input for b in streamed.content if b.type == "tool_use"] == [{"at": "a", "n": 3}, {}]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "done"} for call in calls]
    history = [
        {"role": "user", "content": "tools please"},
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": results},
    ]
    assert ask("", messages=history, tools=TOOLS).content[0].text == "tools said done\ndone"


def counting_and_models():
    long = "count " * 100
    count = client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": long}])
    assert 150 < count.input_tokens < 170, count
    ids = [model.id for model in client.models.list()]
    assert MODEL in ids and len(ids) > 5
    assert client.models.retrieve(MODEL).id == MODEL


def errors():
    expected = [
        ("status-401", anthropic.AuthenticationError, 401, 1),
        ("status-402", anthropic.APIStatusError, 402, 1),
        ("status-403", anthropic.PermissionDeniedError, 403, 1),
        ("status-404", anthropic.NotFoundError, 404, 1),
        ("status-409", anthropic.ConflictError, 409, 3),
        ("status-413", anthropic.APIStatusError, 413, 1),
        ("status-429", anthropic.RateLimitError, 429, 3),
        ("spend-cap", anthropic.RateLimitError, 429, 1),
        ("status-500", anthropic.InternalServerError, 500, 3),
        ("status-504", anthropic.APIStatusError, 504, 3),
        ("status-529", anthropic.APIStatusError, 529, 3),
    ]
    for word, kind, status, tries in expected:
        try:
            ask(word)
        except kind as error:
            assert error.status_code == status, (word, error)
            assert error.request_id, word
        else:
            raise AssertionError(f"{word} was not refused")
        assert len(requests_about(word)) == tries, (word, len(requests_about(word)))
    assert ask("once-529").content[0].text == "recovered"
    assert len(requests_about("once-529")) == 2
    try:
        list(ask("in-stream", stream=True))
    except anthropic.APIStatusError as error:
        assert "overloaded_error" in str(error), error
    else:
        raise AssertionError("the error inside the stream was not seen")


def limits():
    limited = client.with_options(api_key="limited", max_retries=0)
    options = {"model": MODEL, "max_tokens": 99, "messages": [{"role": "user", "content": "text within limits"}]}
    for left in ("1", "0"):
        headers = limited.messages.with_raw_response.create(**options).headers
        assert headers["anthropic-ratelimit-requests-limit"] == "2", headers
        assert headers["anthropic-ratelimit-requests-remaining"] == left, headers
        for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
            reset = datetime.datetime.fromisoformat(headers[f"anthropic-ratelimit-{kind}-reset"])
            assert abs(reset.timestamp() - time.time()) <= 62, headers
    for _ in ("over", "held"):
        try:
            limited.messages.create(**options)
        except anthropic.RateLimitError as error:
            assert error.body["error"]["type"] == "rate_limit_error", error
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


def bad_requests():
    """Each conformance request that must be refused is, through the package, with the right class."""
    kinds = {400: anthropic.BadRequestError, 401: anthropic.AuthenticationError, 404: anthropic.NotFoundError}
    thought, refused = None, 0
    for line in open(CONFORMANCE, encoding="utf-8"):
        case = json.loads(line)
        body, status = case["body"], case["expect"]["status"]
        if isinstance(body, str) or case["name"] in ("no-key", "no-version"):
            continue  # the package cannot be made to send these
        text = json.dumps(body).replace('"$model"', json.dumps(MODEL))
        body = json.loads(text)
        if "needs_thinking_of" in case:
            edited = [{**b, "thinking": b["thinking"] + " not"} if b["type"] == "thinking" else b for b in thought]
            for message in body["messages"]:
                replacement = {"$content": thought, "$edited_content": edited}
                if isinstance(message["content"], str) and message["content"] in replacement:
                    message["content"] = replacement[message["content"]]
        headers = {name: value for name, value in case.get("headers", {}).items() if value}
        path = case.get("path", "/v1/messages")
        try:
            answer = client.post(path, body=body, cast_to=object, options={"headers": headers})
        except anthropic.APIStatusError as error:
            assert isinstance(error, kinds[status]), (case["name"], error)
            assert error.body["error"]["type"] == case["expect"]["type"], (case["name"], error)
            refused += 1
            continue
        assert status == 200, f"{case['name']} was accepted"
        if case["name"] == "thinking":
            thought = answer["content"]
    assert refused >= 25, refused
    print(f"{refused} bad requests refused")


for part in (replies, thinking, tools, counting_and_models, errors, limits):
    part()
    print(part.__name__, "ok")
client = anthropic.Anthropic(base_url=sys.argv[3], api_key="test")
bad_requests()
