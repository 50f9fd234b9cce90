"""Anthropic's Python client, unmodified, against cogn."""

import json
import unittest

import anthropic
import scene


def client(url=scene.OPEN, key="anything"):
    return anthropic.Anthropic(base_url=url, api_key=key, max_retries=0, timeout=120)


def ask(text):
    return [{"role": "user", "content": text}]


TOOL = {"name": "weather", "input_schema": scene.PLACE}
# The model server, called in its Anthropic dialect, and the models called in OpenAI's.
REAL = ["llama-messages", *scene.REAL]


class Messages(unittest.TestCase):
    def test_whole(self):
        for model in REAL:
            with self.subTest(model):
                answer = client().messages.create(
                    model=model, max_tokens=8, system="Be brief.", messages=scene.QUESTION
                )
                self.assertEqual((answer.type, answer.role), ("message", "assistant"))
                self.assertTrue(answer.content[0].text)
                self.assertIn(answer.stop_reason, ["end_turn", "max_tokens"])
                self.assertGreater(answer.usage.input_tokens, 0)
                self.assertGreater(answer.usage.output_tokens, 0)

    def test_stream(self):
        for model in REAL:
            with self.subTest(model):
                with client().messages.stream(
                    model=model, max_tokens=8, messages=scene.QUESTION
                ) as stream:
                    text = "".join(stream.text_stream)
                    final = stream.get_final_message()
                self.assertTrue(text)
                self.assertEqual(text, "".join(block.text for block in final.content))
                self.assertIn(final.stop_reason, ["end_turn", "max_tokens"])
                self.assertGreater(final.usage.output_tokens, 0)

    def test_tools(self):
        for model in scene.SCRIPTED:
            with self.subTest(model):
                turns = ask(scene.WEATHER)
                asked = {"model": model, "max_tokens": 100, "tools": [TOOL]}
                answer = client().messages.create(messages=turns, **asked)
                self.assertEqual(answer.stop_reason, "tool_use")
                call = next(block for block in answer.content if block.type == "tool_use")
                self.assertEqual((call.name, call.input), ("weather", {"city": "Bern"}))
                result = {"type": "tool_result", "tool_use_id": call.id, "content": "22 degrees"}
                turns += [
                    {"role": "assistant", "content": answer.content},
                    {"role": "user", "content": [result]},
                ]
                answer = client().messages.create(messages=turns, **asked)
                self.assertEqual(answer.content[0].text, scene.ANSWER)
                with client().messages.stream(messages=ask(scene.WEATHER), **asked) as stream:
                    answer = stream.get_final_message()
                call = next(block for block in answer.content if block.type == "tool_use")
                self.assertEqual(call.input, {"city": "Bern"})

    def test_structured(self):
        for model in scene.REAL:
            with self.subTest(model):
                answer = client().messages.parse(
                    model=model,
                    max_tokens=60,
                    messages=ask("I was charged twice. Label this ticket."),
                    output_format=scene.Ticket,
                )
                self.assertIsInstance(answer.parsed_output, scene.Ticket)

    def test_count_tokens(self):
        for model in REAL:
            with self.subTest(model):
                count = client().messages.count_tokens(model=model, messages=scene.QUESTION)
                self.assertGreater(count.input_tokens, 3)
        # Two models with token counts: the count equals the reported usage.
        for model in ["llama-messages", "embedded"]:
            with self.subTest(model):
                count = client().messages.count_tokens(model=model, messages=scene.QUESTION)
                answer = client().messages.create(model=model, max_tokens=1, messages=scene.QUESTION)
                used = answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0)
                self.assertEqual(count.input_tokens, used)

    def test_models(self):
        listed = [model.id for model in client().models.list()]
        self.assertIn("llama-messages", listed)
        self.assertEqual(client().models.retrieve("module:counter").id, "module:counter")


class Modules(unittest.TestCase):
    def test_whole_and_streamed(self):
        asked = {"model": "module:counter", "max_tokens": 500, "messages": ask('{"text": "two words"}')}
        answer = client().messages.create(**asked)
        self.assertEqual(json.loads(answer.content[0].text), scene.COUNTED)
        self.assertIs(answer.cogn["ok"], True)
        with client().messages.stream(**asked) as stream:
            answer = stream.get_final_message()
        self.assertEqual(json.loads(answer.content[0].text), scene.COUNTED)

    def test_failure_is_an_error(self):
        with self.assertRaises(anthropic.BadRequestError) as caught:
            client().messages.create(model="module:counter", max_tokens=9, messages=ask('{"number": 1}'))
        self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
        with self.assertRaises(anthropic.InternalServerError) as caught:
            client().messages.create(model="module:counter", max_tokens=9, messages=ask('{"text": "badly"}'))
        self.assertIs(caught.exception.body["cogn"]["ok"], False)


class Errors(unittest.TestCase):
    def create(self, text, model="scripted-anthropic", url=scene.OPEN, key="anything", **more):
        more = {"max_tokens": 50, **more}
        return client(url, key).messages.create(model=model, messages=ask(text), **more)

    def test_classes(self):
        with self.assertRaises(anthropic.AuthenticationError):
            self.create("x", url=scene.CLOSED, key="sk-wrong", model="embedded")
        with self.assertRaises(anthropic.NotFoundError):
            self.create("x", model="no-such-model")
        with self.assertRaises(anthropic.BadRequestError):
            client().messages.create(model="scripted-anthropic", max_tokens=9, messages="x")
        for model in scene.SCRIPTED:
            with self.assertRaises(anthropic.RateLimitError):
                self.create(scene.BUSY, model=f"{model}-busy")

    def test_key_of_this_server(self):
        answer = self.create("x", url=scene.CLOSED, key=scene.KEY, model="embedded", max_tokens=2)
        self.assertEqual(answer.type, "message")

    def test_interrupted_stream_is_an_error(self):
        for model in scene.SCRIPTED:
            with self.subTest(model):
                seen = []
                with self.assertRaises(anthropic.APIError):
                    for event in self.create(scene.DYING, model=model, stream=True):
                        seen.append(event.type)
                self.assertIn("content_block_delta", seen)
                self.assertNotIn("message_stop", seen)
                with self.assertRaises(anthropic.InternalServerError):
                    self.create(scene.DYING, model=model)


class Usage(unittest.TestCase):
    def test_usage_equals_that_of_the_model_server(self):
        asked = {"model": "llama-messages", "messages": scene.QUESTION, "max_tokens": 8}
        cold = {"temperature": 0}
        direct = scene.post(f"{scene.LLAMA}/v1/messages", {**asked, **cold})["usage"]
        usage = client().messages.create(extra_body=cold, **asked).usage
        with client().messages.stream(extra_body=cold, **asked) as stream:
            streamed = stream.get_final_message().usage

        def read(usage):
            # Cached input tokens are reported separately.
            return usage["input_tokens"] + (usage.get("cache_read_input_tokens") or 0)

        for usage in [usage.to_dict(), streamed.to_dict()]:
            self.assertEqual(read(usage), read(direct))
            self.assertEqual(usage["output_tokens"], direct["output_tokens"])


if __name__ == "__main__":
    unittest.main()
