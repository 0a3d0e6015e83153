"""What the embedder sends and reads, by recordings of a service."""

import json
from pathlib import Path

import numpy as np
import pytest
from vcr.errors import CannotOverwriteExistingCassetteException

from memoranda.errors import EmbedderRefused, EmbedderUnavailable

CASSETTES = Path(__file__).parent / "cassettes"


def sent(recording):
    return [json.loads(request.body) for request in recording.requests]


@pytest.mark.behaviour("W05")
def test_one_text(recording, recorded, embed):
    [vector] = embed(recorded(), ["Ana's dog is called Rex."])

    assert vector.shape == (1536,) and vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-3)
    assert sent(recording) == [
        {
            "model": "text-embedding-3-small",
            "input": ["Ana's dog is called Rex."],
            "dimensions": 1536,
            "encoding_format": "base64",
        }
    ]


@pytest.mark.behaviour("E08")
def test_a_batch_is_one_request_and_keeps_its_order(recording, recorded, embed):
    texts = ["Ana's dog is called Rex.", "The office is in Lisbon.", "Ana's dog is called Rex."]

    vectors = embed(recorded(dimensions=64), texts)

    assert [request["input"] for request in sent(recording)] == [texts]
    assert vectors[0] @ vectors[2] == pytest.approx(1, abs=1e-3)
    assert vectors[0] @ vectors[1] < 0.9


@pytest.mark.behaviour("E02")
def test_a_shorter_vector_is_asked_for(recording, recorded, embed):
    vectors = embed(recorded(dimensions=512), ["The office is in Lisbon."])

    assert vectors.shape == (1, 512)
    assert [request["dimensions"] for request in sent(recording)] == [512]


@pytest.mark.behaviour("W05")
def test_a_model_of_another_family_is_asked_for_no_length(recording, recorded, embed):
    vectors = embed(recorded("text-embedding-ada-002"), ["The office is in Lisbon."])

    assert vectors.shape == (1, 1536)
    assert ["dimensions" in request for request in sent(recording)] == [False]


@pytest.mark.behaviour("W49")
def test_an_unknown_model_fails_the_check(recording, recorded):
    with pytest.raises(EmbedderRefused, match=r"check the model's name and the base URL \(HTTP 404, model_not_found\)"):
        recorded("nonexistent", dimensions=8).check()


def test_a_wrong_key_fails_the_check(recording, recorded):
    with pytest.raises(EmbedderRefused, match=r"check OPENAI_API_KEY .*\(HTTP 401, invalid_api_key\)") as caught:
        recorded(api_key="wrong").check()
    assert caught.value.status == 401


# -- the recordings themselves


def test_what_was_not_recorded_is_not_answered(replay, recorded, embed):
    # The client hands the recorder's refusal on as it is, or (before 3.0) as a connection that failed.
    with (
        replay("test_one_text") as cassette,
        pytest.raises((CannotOverwriteExistingCassetteException, EmbedderUnavailable)),
    ):
        embed(recorded(max_retries=0), ["something else"])
    assert not cassette.play_count


def test_every_recording_belongs_to_a_test():
    assert {path.stem for path in CASSETTES.iterdir()} == {
        name
        for name, test in globals().items()
        if name.startswith("test_") and "recording" in test.__code__.co_varnames
    }


def test_no_recording_holds_a_secret():
    for path in CASSETTES.iterdir():
        text = path.read_text().lower()
        for trace in ("bearer", "authorization", "sk-", "organization", "cookie", "x-request-id"):
            assert trace not in text, path.name
