"""Unary operations of OpenAI's Python client: embeddings, speech and transcription."""

import io
import os
import unittest

import openai

client = openai.OpenAI(base_url=f"{os.environ['OPEN_URL']}/v1", api_key="anything", max_retries=0, timeout=120)
TEXTS = ["A cat sits on the mat.", "A kitten rests on a rug.", "Interest rates rose in March."]
SENTENCE = "The meeting is on Monday morning."


class Operations(unittest.TestCase):
    def test_embeddings(self):
        # This client requests base64 by default and decodes it itself.
        made = client.embeddings.create(model="all-minilm-l6-v2", input=TEXTS)
        vectors = [item.embedding for item in made.data]
        self.assertEqual([len(vector) for vector in vectors], [384] * 3)
        near, far = (sum(a * b for a, b in zip(vectors[0], other)) for other in vectors[1:])
        self.assertGreater(near, far + 0.3)
        self.assertGreater(made.usage.prompt_tokens, 20)
        plain = client.embeddings.create(
            model="all-minilm-l6-v2", input=TEXTS[0], encoding_format="float"
        )
        for packed, known in zip(vectors[0], plain.data[0].embedding):
            self.assertAlmostEqual(packed, known, places=6)

    def test_spoken_sentence_is_transcribed_back(self):
        spoken = client.audio.speech.create(
            model="tts-1", voice="alloy", input=SENTENCE, response_format="wav"
        )
        sound = spoken.read()
        self.assertEqual(sound[:4], b"RIFF")
        with client.audio.speech.with_streaming_response.create(
            model="tts-1", voice="alloy", input=SENTENCE, response_format="wav"
        ) as stream:
            self.assertEqual(b"".join(stream.iter_bytes()), sound)
        file = ("said.wav", io.BytesIO(sound), "audio/wav")
        heard = client.audio.transcriptions.create(model="whisper-1", file=file, language="en")
        self.assertEqual(heard.text, "the meeting is on monday morning")
        file = ("said.wav", io.BytesIO(sound), "audio/wav")
        text = client.audio.transcriptions.create(model="whisper-1", file=file, response_format="text")
        self.assertEqual(text.strip(), "the meeting is on monday morning")

    def test_errors(self):
        with self.assertRaises(openai.BadRequestError):
            client.embeddings.create(model="all-minilm-l6-v2", input="word " * 600)
        with self.assertRaises(openai.APIStatusError):
            file = ("said.wav", io.BytesIO(b"no sound at all"), "audio/wav")
            client.audio.transcriptions.create(model="whisper-1", file=file)


if __name__ == "__main__":
    unittest.main()
